/** Tags of messages between ranks that are tasks. */
import { expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { runTasks } from '../../src/start/tasks.ts';

const FABRIC = { fabric: 'infinihost-64' } as const;
const MOST = 2 ** 31 - 1;

async function next(world: Communicator, source: number, tag: number): Promise<number> {
  const buffer = new Int32Array(1);
  await world.receive(buffer, source, { tag });
  return buffer[0];
}

test('a receive takes the oldest message with its tag, and leaves the others', async () => {
  const [, got] = await runTasks(
    2,
    async (world) => {
      if (world.rank === 0) {
        for (const [value, tag] of [
          [1, 7],
          [2, 0],
          [3, 7],
          [4, MOST],
          [5, 0],
          [6, 7],
        ]) {
          world.send(Int32Array.of(value), 1, { tag });
        }
        return [];
      }
      const values: number[] = [];
      for (const tag of [MOST, 7, 0, 7, 0, 7]) values.push(await next(world, 0, tag));
      return values;
    },
    FABRIC,
  );
  expect(got).toEqual([4, 1, 2, 3, 5, 6]);
});

test('receives that wait at once get the messages of their tags, whoever takes them in', async () => {
  const [got] = await runTasks(
    3,
    async (world) => {
      if (world.rank > 0) {
        for (const tag of [3, 1, 2, 3]) world.send(Int32Array.of(10 * world.rank + tag), 0, { tag });
        return [];
      }
      const waits: Promise<number>[] = [];
      for (const source of [2, 1]) for (const tag of [1, 2, 3, 3]) waits.push(next(world, source, tag));
      return Promise.all(waits);
    },
    FABRIC,
  );
  expect(got).toEqual([21, 22, 23, 23, 11, 12, 13, 13]);
});

test('long messages, of no bytes, to oneself, and in another communicator', async () => {
  await runTasks(
    2,
    async (world) => {
      const other = await world.dup();
      const long = new Float64Array(20_000).fill(world.rank);
      const peer = 1 - world.rank;
      other.send(Int32Array.of(9), peer, { tag: 1 });
      world.send(long, peer, { tag: 1 });
      world.send(new Uint8Array(0), peer, { tag: 2 });
      world.send(Int32Array.of(4), world.rank, { tag: 5 });
      await world.receive(new Uint8Array(0), peer, { tag: 2 });
      expect(await next(world, world.rank, 5)).toBe(4);
      const received = new Float64Array(20_000);
      await world.receive(received, peer, { tag: 1 });
      expect(received.every((value) => value === peer)).toBe(true);
      expect(await next(other, peer, 1)).toBe(9);
    },
    FABRIC,
  );
});

test('a receive that has given up takes no message', async () => {
  await runTasks(
    2,
    async (world) => {
      if (world.rank === 1) {
        await world.compute(1e5);
        world.send(Int32Array.of(1), 0, { tag: 3 });
        return;
      }
      const wait = world.receive(new Int32Array(1), 1, { tag: 3, timeout: 5 });
      await expect(wait).rejects.toMatchObject({
        code: 'ERR_RMA_TIMEOUT',
        message: expect.stringMatching('receive\\(\\) from rank 1 \\(tag 3\\)'),
      });
      expect(await next(world, 1, 3)).toBe(1);
    },
    FABRIC,
  );
});

test('tags and options that there are not are refused', async () => {
  await runTasks(
    1,
    async (world) => {
      const one = Int32Array.of(1);
      for (const tag of [-1, 0.5, 2 ** 31, Number.NaN]) {
        expect(() => world.send(one, 0, { tag })).toThrow(RangeError);
        await expect(world.receive(one, 0, { tag })).rejects.toThrow(RangeError);
      }
      expect(() => world.send(one, 0, { tag: '1' as never })).toThrow(TypeError);
      expect(() => world.send(one, 0, { tga: 1 } as never)).toThrow(/did you mean "tag"/);
      expect(() => world.send(one, 0, 3 as never)).toThrow(/options must be \{ tag \}/);
    },
    FABRIC,
  );
});
