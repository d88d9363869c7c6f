/**
 * Puts of doubles one by one: calls that repeat the one before, which are checked less (src/bsp/repeated.ts). They do
 * what others do, and refuse what others refuse.
 */
import assert from 'node:assert/strict';
import type { Communicator, RmaError } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';

type Run = (bsp: Bsp, sync: () => Promise<void>) => Promise<void> | void;

const CALLS = ['put', 'hpput'] as const;
/** As many as short headers reach, and more; and more puts than a chunk holds. */
const LENGTH = 132_000;
const PUTS = 3000;

const codeOf = (code: string) => (error: unknown) => (error as RmaError).code === code;

/** So that a process is ready to be stored to, whatever the last superstep was: one without anything behind it. */
async function settle(sync: () => Promise<void>): Promise<void> {
  await sync();
  await sync();
}

export const REPEATED: Record<string, Run> = Object.fromEntries(CALLS.flatMap(oneByOne));

function oneByOne(call: (typeof CALLS)[number]): [name: string, run: Run][] {
  return [
    [
      `${call} of doubles one by one, to places near and far, of one process and of all in turns`,
      async (bsp: Bsp, sync: () => Promise<void>) => {
        const { pid, nprocs } = bsp;
        const x = bsp.comm.allocMem(Float64Array, LENGTH).fill(0);
        bsp.pushReg(x);
        await settle(sync);
        const [right, left] = [(pid + 1) % nprocs, (pid + nprocs - 1) % nprocs];
        const source = Float64Array.from({ length: LENGTH }, (_, i) => i + pid / 8);
        for (let i = 0; i < PUTS; i++) bsp[call](right, source, x, LENGTH - 1 - i, 1, i);
        await sync();
        assert.ok(x.every((v, i) => v === (i < LENGTH - PUTS ? 0 : LENGTH - 1 - i + left / 8)));
        await settle(sync);
        // Each process has places of its own now.
        for (let i = 0; i < 100; i++) {
          for (let to = 0; to < nprocs; to++) {
            bsp[call](to, source, x, 1000 * pid + i, 1, i);
            if (i % 3 === 0) bsp[call](to, source, x, 1000 * pid + 100 + i, 1, i);
          }
        }
        await sync();
        for (let from = 0; from < nprocs; from++) {
          for (let i = 0; i < 100; i++) {
            assert.equal(x[1000 * from + i], i + from / 8);
            assert.equal(x[1000 * from + 100 + i], i % 3 === 0 ? i + from / 8 : 0);
          }
        }
        bsp.popReg(x);
        await sync();
        bsp.comm.freeMem(x);
      },
    ],
    [
      `${call} of doubles one by one: what is wrong is refused, and nothing is put`,
      async (bsp: Bsp, sync: () => Promise<void>) => {
        const { pid, nprocs } = bsp;
        // Another length at each.
        const x = bsp.comm.allocMem(Float64Array, 40 + 10 * pid).fill(-1);
        const bytes = new Uint8Array(8);
        bsp.pushReg(x);
        bsp.pushReg(bytes);
        await settle(sync);
        const right = (pid + 1) % nprocs;
        const there = 40 + 10 * right;
        const source = new Float64Array(20).fill(pid);
        Object.defineProperty(source, 'length', { value: 1000 });
        const once = (offset: unknown, start: unknown, count: unknown = 1): void =>
          bsp[call](right, source, x, offset as number, count as number, start as number);
        for (let round = 0; round < 4; round++) {
          for (let i = 0; i < 5; i++) once(i, i);
          assert.throws(() => once(there, 0), { code: 'ERR_RMA_RANGE' });
          for (const offset of [-1, 0.5, Number.NaN, 2 ** 40 + 0.5, '3', null]) {
            assert.throws(() => once(offset, 0), { code: 'ERR_DISP' }, `${offset}`);
          }
          for (const start of [20, 999, -1, 0.5, Number.NaN, '0', null, 2 ** 32]) {
            assert.throws(() => once(0, start), { code: 'ERR_BUFFER' }, `${start}`);
          }
          for (const count of [-1, 21, '1', 0.5]) {
            assert.throws(() => once(0, 0, count), { code: 'ERR_BUFFER' }, `${count}`);
          }
          assert.throws(() => bsp[call](nprocs, source, x, 0, 1, 0), { code: 'ERR_RANK' });
          assert.throws(() => bsp[call](-1, source, x, 0, 1, 0), { code: 'ERR_RANK' });
          assert.throws(() => bsp[call](right, source, x.subarray(1), 0, 1, 0), { code: 'ERR_RMA_ATTACH' });
          assert.throws(() => bsp[call](right, new Float32Array(20), x, 0, 1, 0), { code: 'ERR_TYPE' });
          for (const nothing of [undefined, null]) {
            assert.throws(() => bsp[call](-1, nothing as never, nothing as never, 0, 1, 0), TypeError);
          }
        }
        await sync();
        const left = (pid + nprocs - 1) % nprocs;
        assert.ok(x.every((v, i) => v === (i < 5 ? left : -1)));
        bsp.popReg(x);
        await sync();
        bsp.comm.freeMem(x);
      },
    ],
    [
      `${call} of doubles one by one: a source that has lost its memory is refused`,
      async (bsp: Bsp, sync: () => Promise<void>) => {
        const x = bsp.comm.allocMem(Float64Array, 10).fill(-1);
        bsp.pushReg(x);
        await settle(sync);
        const right = (bsp.pid + 1) % bsp.nprocs;
        const source = new Float64Array(10).fill(5);
        for (let i = 0; i < 4; i++) bsp[call](right, source, x, i, 1, i);
        structuredClone(source.buffer, { transfer: [source.buffer] });
        for (let i = 0; i < 10; i++) assert.throws(() => bsp[call](right, source, x, i, 1, i), { code: 'ERR_BUFFER' });
        await sync();
        assert.ok(x.every((v, i) => v === (i < 4 ? 5 : -1)));
        bsp.popReg(x);
        await sync();
        bsp.comm.freeMem(x);
      },
    ],
    [
      `${call} of doubles one by one: what was registered then is not asked of the next superstep`,
      async (bsp: Bsp, sync: () => Promise<void>) => {
        const { pid, nprocs } = bsp;
        const right = (pid + 1) % nprocs;
        const x = bsp.comm.allocMem(Float64Array, 30).fill(-1);
        const source = new Float64Array(30).fill(pid);
        const three = (offset: number): void => {
          for (let i = 0; i < 3; i++) bsp[call](right, source, x, offset + i, 1, i);
        };
        // `x` itself is not registered: it names the newest registration of its place.
        bsp.pushReg(x.subarray(0));
        await settle(sync);
        three(0);
        // Until the superstep ends, the first registration counts.
        bsp.pushReg(x.subarray(0, 5));
        three(27);
        await sync();
        assert.throws(() => three(5), { code: 'ERR_RMA_RANGE' });
        three(2);
        bsp.popReg(x);
        await sync();
        three(27);
        bsp.popReg(x);
        if (pid === 0 && nprocs > 1) {
          const ending = bsp.sync();
          assert.throws(() => three(0), { code: 'ERR_RMA_SYNC' });
          await bsp.comm.barrier();
          await ending;
        } else {
          await bsp.comm.barrier();
          await bsp.sync();
        }
        assert.throws(() => three(0), { code: 'ERR_RMA_ATTACH' });
        const left = (pid + nprocs - 1) % nprocs;
        assert.ok(x.every((v, i) => v === (i < 5 || i >= 27 ? left : -1)));
        await bsp.end();
        assert.throws(() => three(0), codeOf('ERR_COMM'));
        bsp.comm.freeMem(x);
      },
    ],
  ];
}

/** Collective. In each superstep, all others put so many doubles to process 1, one by one. */
export async function reportedOneByOne(world: Communicator, options: BspOptions): Promise<void> {
  const others = world.size - 1;
  if (others === 0) return;
  const most = 300;
  for (const call of CALLS) {
    const bsp = await begin(world, { ...options, report: true });
    const x = world.allocMem(Float64Array, most * world.size);
    bsp.pushReg(x);
    await settle(() => bsp.sync());
    const source = new Float64Array(most);
    const counts = [1, 2, 3, most, 0, 40];
    for (const count of counts) {
      if (bsp.pid !== 1) for (let i = 0; i < count; i++) bsp[call](1, source, x, most * bsp.pid + i, 1, i);
      await bsp.sync();
      // Whoever has something to do in a superstep may be stored to after the next one only.
      await bsp.sync();
    }
    const { supersteps } = await bsp.report();
    const found = supersteps.map(({ out, in: into, h, messages }) => [out, into, h, messages]);
    const expected = [0, 0, ...counts.flatMap((count) => [count, 0])];
    assert.deepEqual(
      found,
      expected.map((count) => [count, others * count, others * count, others * count]),
      call,
    );
    await bsp.end();
    world.freeMem(x);
  }
}
