/** What happens in which order when a superstep ends, and what is left when a call of it was refused or ended early. */
import type { Communicator } from 'onesided';
import { begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DELIVERIES, packedKind } from '../../src/bsp/delivery/delivery-kinds.ts';
import { SharedChunks } from '../../src/bsp/delivery/shared-regions.ts';
import { RmaError } from '../../src/errors.ts';

const FABRIC = { fabric: 'infinihost-64', seed: 1 } as const;
const PACKED = DELIVERIES.filter((name) => packedKind(name) !== undefined);

afterEach(() => {
  vi.restoreAllMocks();
});

const onTasks = <R>(size: number, main: (world: Communicator) => Promise<R>) => runTasks(size, main, FABRIC);

describe.each(PACKED)('delivery %s', (delivery) => {
  test('results of gets are written when all gets have read, whoever asked and in how many chunks', async () => {
    const [, , found] = await onTasks(3, async (world) => {
      const bsp = await begin(world, { delivery });
      const n = 20_000;
      const x = new Float64Array(n).fill(world.rank + 1);
      const got = new Float64Array(n);
      bsp.pushReg(x);
      await bsp.sync();
      // The last chunk of rank 2's gets reaches rank 0 behind the answer of rank 1.
      if (world.rank === 0) bsp.get(1, x, 0, x, 1, n - 1);
      if (world.rank === 2) for (let i = 0; i < n; i++) bsp.get(0, x, i, got, 1, i);
      await bsp.sync();
      const own = x.slice(0, 3);
      await bsp.end();
      return world.rank === 0 ? [...own] : got.filter((value) => value !== 1).length;
    });
    expect(found).toBe(0);
  });

  test('so are those of a process’s gets from itself', async () => {
    const [wrong] = await onTasks(2, async (world) => {
      const bsp = await begin(world, { delivery });
      const n = 4000;
      const z = Float64Array.from({ length: n + 1 }, (_, i) => i);
      bsp.pushReg(z);
      await bsp.sync();
      for (let i = 0; i < n; i++) bsp.get(bsp.pid, z, i, z, 1, i + 1);
      await bsp.sync();
      await bsp.end();
      return z.filter((value, i) => value !== Math.max(0, i - 1)).length;
    });
    expect(wrong).toBe(0);
  });

  test.each(['hpput', 'hpget'] as const)('%s of more arrays than stay registered', async (call) => {
    const rows = 150;
    const length = 128;
    const results = await onTasks(2, async (world) => {
      const bsp = await begin(world, { delivery });
      const all = new Float64Array(rows * length).fill(call === 'hpget' ? world.rank + 1 : 0);
      bsp.pushReg(all);
      await bsp.sync();
      const other = 1 - bsp.pid;
      const own = Array.from({ length: rows }, () => new Float64Array(length).fill(bsp.pid + 1));
      for (const [i, row] of own.entries()) {
        if (call === 'hpput') bsp.hpput(other, row, all, i * length);
        else bsp.hpget(other, all, i * length, row);
      }
      await bsp.sync();
      await bsp.end();
      const expected = other + 1;
      return (call === 'hpput' ? [all] : own).every((array) => array.every((value) => value === expected));
    });
    expect(results).toEqual([true, true]);
  });

  test('a put or a message that there is no memory for leaves nothing behind', async () => {
    const { take } = SharedChunks.prototype;
    let chunks = Number.POSITIVE_INFINITY;
    vi.spyOn(SharedChunks.prototype, 'take').mockImplementation(function (this: SharedChunks) {
      if (chunks-- <= 0) throw new RmaError('ERR_SIZE', 'there is no more memory');
      return take.call(this);
    });
    const [, found] = await onTasks(2, async (world) => {
      const bsp = await begin(world, { delivery });
      const long = new Float64Array(50_000).fill(7);
      const all = new Float64Array(50_002);
      bsp.pushReg(all);
      await bsp.sync();
      if (bsp.pid === 0) {
        bsp.put(1, Float64Array.of(5), all, 50_001);
        for (const call of [() => bsp.put(1, long, all, 1), () => bsp.send(1, null, long)]) {
          chunks = 2;
          expect(call).toThrow('there is no more memory');
          chunks = Number.POSITIVE_INFINITY;
        }
        bsp.send(1, null, Float64Array.of(6));
        bsp.put(1, Float64Array.of(8), all, 1);
      }
      await bsp.sync();
      const { messages } = bsp.qsize();
      const payload = messages > 0 ? bsp.hpmove()!.payload.slice() : new Uint8Array(8);
      const values = all.filter((value) => value !== 0);
      await bsp.end();
      return { values: [...values], messages, first: new Float64Array(payload.buffer)[0] };
    });
    expect(found).toEqual({ values: [8, 5], messages: 1, first: 6 });
  });

  test('end() goes on when its wait has ended early', async () => {
    const results = await onTasks(2, async (world) => {
      const bsp = await begin(world, { delivery });
      const x = new Float64Array(512);
      bsp.pushReg(x);
      await bsp.sync();
      let code = '';
      if (bsp.pid === 0) {
        await world.compute(20_000);
        bsp.hpput(1, new Float64Array(512).fill(4), x, 0);
      } else
        code = await bsp.end({ timeout: 5 }).then(
          () => '',
          (error) => error.code,
        );
      await bsp.end();
      return [code, x[511]];
    });
    expect(results).toEqual([
      ['', 0],
      ['ERR_RMA_TIMEOUT', 4],
    ]);
  });
});

test('very many variables can be registered in one superstep', async () => {
  const counts = await onTasks(2, async (world) => {
    const bsp = await begin(world, { delivery: 'packed' });
    const arrays = Array.from({ length: 70_000 }, () => new Uint8Array(1));
    for (const array of arrays) bsp.pushReg(array);
    await bsp.sync();
    bsp.put(1 - bsp.pid, Uint8Array.of(9), arrays[69_999], 0);
    await bsp.sync();
    await bsp.end();
    return arrays[69_999][0];
  });
  expect(counts).toEqual([9, 9]);
});
