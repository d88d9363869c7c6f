/**
 * Puts and gets of layouts with several pieces (hint `noncontiguous`), in virtual time: that every scheme moves the
 * same bytes, that they are complete when they should be, and what becomes of them when a rank is away, dead, or takes
 * its buffer away.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import type { Places } from '../../src/datatype/copy.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Runs } from '../../src/datatype/runs.ts';
import type { TransferLayout } from '../../src/datatype/sides.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { ReceivedLayouts, SentLayouts } from '../../src/transfer/layouts/layout-cache.ts';
import { NONCONTIGUOUS_NAMES, needsTarget } from '../../src/transfer/layouts/layout-kinds.ts';
import { entriesOf, Matching } from '../../src/transfer/layouts/matching.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';
import { casesOf } from '../support/gate.ts';

const FABRIC = { fabric: 'infinihost-express', seed: 1 } as const;
const SCHEDULES: readonly Partial<TaskOptions>[] = [
  {},
  { order: 'random', seed: 5, faults: { delay: 20 } },
  { order: 'random', seed: 6, faults: { loss: 0.02, placement: 20 } },
];
const CASES = casesOf(
  NONCONTIGUOUS_NAMES.flatMap((noncontiguous) => SCHEDULES.map((options) => ({ noncontiguous, options }))),
  ({ options }) => options === SCHEDULES[2],
);
const WITH_TARGET = NONCONTIGUOUS_NAMES.filter(needsTarget);

const INT = Datatype.INT32;
/** Forms of 96 elements within 800: regular, blocks, pieces of several lengths, several instances, in no order. */
const LAYOUTS: readonly { readonly type: Datatype; readonly count: number }[] = [
  { type: Datatype.vector(32, 3, 12, INT), count: 1 },
  { type: Datatype.vector(4, 1, 3, INT), count: 24 },
  { type: Datatype.subarray([20, 20], [12, 8], [3, 5], INT), count: 1 },
  { type: Datatype.indexedBlock(2, [90, 0, 40, 10, 60, 25], INT), count: 8 },
  { type: Datatype.indexed([5, 1, 18], [20, 0, 2], INT), count: 4 },
  { type: Datatype.hindexed([7, 1, 40, 48], [1200, 4, 800, 100], INT), count: 1 },
  { type: INT, count: 96 },
];
/** Each with itself, and with the one behind it. */
const PAIRS: readonly TransferLayout[] = LAYOUTS.flatMap((origin, i) => [
  { origin, target: origin },
  { origin, target: LAYOUTS[(i + 1) % LAYOUTS.length] },
]);
const ELEMENTS = 800;

const from = (first: number): Int32Array => Int32Array.from({ length: ELEMENTS }, (_, i) => first + i);

/** What is put under one layout, is got under it, by ranks 1 … of rank 0. @returns all that each has seen */
async function exchange(world: Communicator, noncontiguous: (typeof NONCONTIGUOUS_NAMES)[number]): Promise<number[][]> {
  const win = await Window.allocate(world, Int32Array, ELEMENTS * world.size, { info: { noncontiguous } });
  const seen: number[][] = [];
  const { rank } = world;
  await win.lockAll();
  for (const [i, layout] of PAIRS.entries()) {
    const fetched = new Int32Array(ELEMENTS);
    win.put(from(1 + 10_000 * (i + 1) + 1000 * rank), 0, ELEMENTS * rank, layout);
    await win.flush(0);
    win.get(fetched, 0, ELEMENTS * rank, layout);
    await win.flush(0);
    const whole = new Int32Array(ELEMENTS);
    win.get(whole, 0, ELEMENTS * rank);
    await win.flush(0);
    seen.push([...fetched], [...whole]);
  }
  await win.unlockAll();
  await win.free();
  return seen;
}

describe('layouts of several pieces', () => {
  const expected = runTasks(3, (world) => exchange(world, 'multi-write'), FABRIC);

  test.each(CASES)('move the same bytes: $noncontiguous, $options', async ({ noncontiguous, options }) => {
    const seen = await runTasks(3, (world) => exchange(world, noncontiguous), { ...FABRIC, ...options });
    expect(seen).toEqual(await expected);
    expect(new Set(seen[1].flat()).size).toBeGreaterThan(96);
  });

  test.each(CASES)(
    'are there behind whatever completes them: $noncontiguous, $options',
    async ({ noncontiguous, options }) => {
      const fences = ['remote-notify', 'notify-all', 'immediate-optimized', 'immediate-naive', 'deferred'] as const;
      const main = async (world: Communicator, fence: (typeof fences)[number]): Promise<void> => {
        const win = await Window.allocate(world, Int32Array, 400, { info: { noncontiguous, fence } });
        const { rank, size } = world;
        const type = Datatype.vector(100, 1, 4, INT);
        const [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
        const layout = { target: { type } };
        const mine = (round: number) => new Int32Array(100).fill(10 * round + rank);
        const check = (round: number): void => {
          const there = win.local.filter((_, i) => i % 4 === 0);
          expect([...new Set(there)], `${fence}, round ${round}`).toEqual([10 * round + before]);
        };
        await win.fence(Assert.NO_PRECEDE);
        for (const round of [1, 2]) {
          win.put(mine(round), next, 0, layout);
          await win.fence();
          check(round);
          await win.fence(round < 2 ? 0 : Assert.NO_SUCCEED);
        }
        win.post(world.group.include([before]));
        await win.start(world.group.include([next]));
        win.put(mine(3), next, 0, layout);
        await win.complete();
        await win.wait();
        check(3);
        await world.barrier();
        await win.lockAll();
        await win.rput(mine(4), next, 0, layout).wait();
        await win.flush(next);
        const got = new Int32Array(100);
        await win.rget(got, next, 0, layout).wait();
        expect([...new Set(got)]).toEqual([40 + rank]);
        await world.barrier();
        check(4);
        await world.barrier();
        win.putNotify(mine(5), next, 0, layout);
        await win.waitNotify();
        check(5);
        await world.barrier();
        // To itself, and twice to the same rank without a flush between.
        win.put(mine(6), rank, 0, layout);
        win.put(new Int32Array(100).fill(7), next, 1, layout);
        win.put(new Int32Array(100).fill(8), next, 2, layout);
        await win.unlockAll();
        await world.barrier();
        expect([...new Set(win.local)]).toEqual([60 + rank, 7, 8, 0]);
        await win.free();
      };
      for (const fence of fences) await runTasks(3, (world) => main(world, fence), { ...FABRIC, ...options });
    },
  );

  test.each(CASES)(
    'may be larger than a message, and many: $noncontiguous, $options',
    async ({ noncontiguous, options }) => {
      const ROWS = 700;
      const main = async (world: Communicator): Promise<void> => {
        const win = await Window.allocate(world, Float64Array, ROWS * 64, { info: { noncontiguous } });
        const regular = { type: Datatype.vector(ROWS, 30, 64, Datatype.FLOAT64), count: 1 };
        const places = Int32Array.from({ length: ROWS * 3 }, (_, i) => 21 * ((i * 11) % (ROWS * 3)));
        const scattered = { type: Datatype.indexedBlock(10, places, Datatype.FLOAT64), count: 1 };
        const values = Float64Array.from({ length: ROWS * 30 }, (_, i) => i + 1);
        await win.lockAll();
        if (world.rank === 1) {
          const back = new Float64Array(ROWS * 64);
          for (const target of [regular, scattered]) {
            win.put(values, 0, 0, { target });
            await win.flush(0);
            win.get(back, 0, 0, { origin: scattered, target });
            const plain = new Float64Array(ROWS * 30);
            win.get(plain, 0, 0, { target });
            await win.flush(0);
            expect(plain).toEqual(values);
            for (let i = 0; i < values.length; i++) {
              if (back[places[Math.floor(i / 10)] + (i % 10)] !== i + 1) throw new Error(`element ${i} is wrong`);
            }
          }
        }
        await win.unlockAll();
        await world.barrier();
        await win.free();
      };
      await runTasks(2, main, { ...FABRIC, ...options });
    },
  );

  test.each(NONCONTIGUOUS_NAMES)('%s says who makes progress', async (noncontiguous) => {
    const waits = needsTarget(noncontiguous);
    const main = async (world: Communicator): Promise<number> => {
      const win = await Window.allocate(world, Int32Array, 64, { info: { noncontiguous } });
      const layout = { target: { type: Datatype.vector(16, 1, 4, INT) } };
      for (const call of ['put', 'get', 'rput', 'rget', 'flush'] as const)
        expect(win.progress(call, 1 - world.rank), call).toBe(waits ? 'target' : 'device');
      expect(win.progress('accumulate', 1 - world.rank)).toBe('device');
      await win.lockAll();
      await world.barrier();
      const began = world.now();
      if (world.rank === 0) {
        win.put(new Int32Array(16), 1, 0, layout);
        await win.flush(1);
      } else await world.compute(5000);
      const took = world.now() - began;
      await win.unlockAll();
      await win.free();
      return took;
    };
    const [took] = await runTasks(2, main, FABRIC);
    expect(took > 5000).toBe(waits);
  });

  test.each(WITH_TARGET)('%s: a target that dies is told to whoever waits for it', async (noncontiguous) => {
    for (const call of ['put', 'get'] as const) {
      const main = async (world: Communicator): Promise<void> => {
        const win = await Window.allocate(world, Int32Array, 64, { info: { noncontiguous } });
        const layout = { target: { type: Datatype.vector(16, 1, 4, INT) } };
        await win.lockAll();
        await world.barrier();
        if (world.rank === 0) await world.compute(10_000);
        else {
          await world.compute(100);
          win[call](new Int32Array(16), 0, 0, layout);
          await win.flush(0);
        }
      };
      const died = runTasks(2, main, { ...FABRIC, faults: { deaths: [{ rank: 0, time: 5000 }] } });
      await expect(died).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    }
  });

  // `auto` takes one of them.
  test.each(['pack', 'sgrs', 'host-assisted'] as const)(
    '%s: whoever dies, and when, the other is told',
    async (name) => {
      const layout = { target: { type: Datatype.vector(16, 1, 4, INT) } };
      for (const call of ['put', 'get'] as const) {
        let [begun, ended] = [0, 0];
        const main = async (world: Communicator): Promise<void> => {
          const win = await Window.allocate(world, Int32Array, 64, { info: { noncontiguous: name } });
          await win.lockAll();
          await world.barrier();
          if (world.rank === 1) {
            begun = world.now();
            win[call](new Int32Array(16), 0, 0, layout);
            await win.flush(0);
            ended = world.now();
          }
          await world.barrier();
          await win.unlockAll();
          await win.free();
        };
        await runTasks(2, main, FABRIC);
        const [first, last] = [begun, ended];
        expect(last - first).toBeGreaterThan(5);
        for (let time = first; time < last; time += (last - first) / 24) {
          for (const rank of [0, 1]) {
            const died = runTasks(2, main, { ...FABRIC, faults: { deaths: [{ rank, time }] } });
            await expect(died, `rank ${rank} at ${time}`).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
          }
        }
      }
    },
  );

  test.each(WITH_TARGET)('%s: a deadline passes while the target is away, and nothing is lost', async (name) => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Int32Array, 64, { info: { noncontiguous: name } });
      const layout = { target: { type: Datatype.vector(16, 1, 4, INT) } };
      await win.lock(0, Lock.SHARED);
      await world.barrier();
      if (world.rank === 0) await world.compute(30_000);
      else {
        await world.compute(100);
        for (let i = 0; i < 3; i++) {
          win.put(new Int32Array(16).fill(i + 1), 0, i, layout);
          await expect(win.flush(0, { timeout: 5 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
        }
        await win.flush(0);
      }
      await world.barrier();
      if (world.rank === 0) expect([...win.local.subarray(0, 4)]).toEqual([1, 2, 3, 0]);
      await win.unlock(0);
      await win.free();
    };
    await runTasks(2, main, FABRIC);
  });

  test.each(WITH_TARGET)('%s: an origin that was taken away is told, and others go on', async (noncontiguous) => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Int32Array, 64, { info: { noncontiguous } });
      const layout = { target: { type: Datatype.vector(16, 1, 4, INT) } };
      const lose = (array: Int32Array<ArrayBuffer>): void =>
        void structuredClone(array.buffer, { transfer: [array.buffer] });
      await win.lockAll();
      if (world.rank === 1) {
        const lost = new Int32Array(16).fill(9);
        const kept = new Int32Array(16);
        win.put(new Int32Array(16).fill(3), 0, 0, layout);
        await win.flush(0);
        // A put that was packed by its call needs it no more; where a device has it, it is not told.
        if (noncontiguous !== 'sgrs') win.get(lost, 0, 0, layout);
        else win.put(lost, 0, 2, layout);
        win.get(kept, 0, 0, layout);
        lose(lost);
        await expect(win.flush(0)).rejects.toMatchObject({ code: 'ERR_BUFFER' });
        await win.flush(0);
        expect([...new Set(kept)]).toEqual([3]);
        win.put(new Int32Array(16).fill(4), 0, 1, layout);
        await win.flush(0);
      }
      await world.barrier();
      if (world.rank === 0) expect([...win.local.subarray(0, 3)]).toEqual([3, 4, 0]);
      await win.unlockAll();
      await win.free();
    };
    await runTasks(2, main, FABRIC);
  });

  test.each(CASES)('go both ways at once, among all: $noncontiguous, $options', async ({ noncontiguous, options }) => {
    const ROUNDS = 12;
    const main = async (world: Communicator): Promise<void> => {
      const { rank, size } = world;
      const win = await Window.allocate(world, Int32Array, 200 * size * ROUNDS, { info: { noncontiguous } });
      const type = Datatype.vector(65, 2, 3, INT);
      await win.lockAll();
      const results: Int32Array[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        for (let target = 0; target < size; target++) {
          const values = Int32Array.from({ length: 130 }, (_, i) => 1_000_000 * rank + 1000 * round + i);
          win.put(values, target, 200 * (size * round + rank), { target: { type } });
        }
      }
      await win.flushAll();
      await world.barrier();
      for (let round = 0; round < ROUNDS; round++) {
        for (let target = 0; target < size; target++) {
          const result = new Int32Array(200);
          results.push(result);
          win.get(result, target, 200 * (size * round + rank), { origin: { type }, target: { type } });
          // Between the gets, puts in the other direction of the same connection, which change nothing.
          const same = Int32Array.from({ length: 130 }, (_, i) => 1_000_000 * rank + 1000 * round + i);
          win.put(same, target, 200 * (size * round + rank), { target: { type } });
        }
      }
      await win.flushAll();
      await world.barrier();
      for (const [n, result] of results.entries()) {
        const round = Math.floor(n / size);
        for (let i = 0; i < 130; i++) {
          const got = result[3 * Math.floor(i / 2) + (i % 2)];
          if (got !== 1_000_000 * rank + 1000 * round + i) throw new Error(`round ${round}, element ${i}: ${got}`);
        }
      }
      await win.unlockAll();
      await win.free();
    };
    await runTasks(4, main, { ...FABRIC, ...options });
  });

  test.each(['maxSge', 'maxReads'])(
    'sgrs brings the same where a device has one of %s (with one entry, it goes packed)',
    async (limit) => {
      const known = loadFabric('infinihost-express');
      const one = { seed: 1, fabric: { ...known, adapter: { ...known.adapter, [limit]: 1 } } };
      expect(await runTasks(3, (world) => exchange(world, 'sgrs'), one)).toEqual(
        await runTasks(3, (world) => exchange(world, 'multi-write'), one),
      );
    },
  );
});

describe('two layouts cut into messages', () => {
  const places = (lengths: readonly number[], gap: number): Places => {
    const starts: number[] = [];
    let at = 0;
    for (const length of lengths) {
      starts.push(at);
      at += length + (length % 3 === 0 ? 0 : gap);
    }
    const runs = Runs.list(Float64Array.from(starts), Float64Array.from(lengths));
    return { bytes: runs.bytes, runs, count: 1, stride: 0 };
  };
  const split = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 60 });

  test('have equal messages, and no more pieces than entries', () => {
    fc.assert(
      fc.property(
        split,
        split,
        fc.integer({ min: 2, max: 7 }),
        fc.integer({ min: 5, max: 60 }),
        (a, b, entries, most) => {
          const bytes = Math.min(...[a, b].map((it) => it.reduce((sum, n) => sum + n, 0)));
          const cut = (lengths: readonly number[]): number[] => {
            const kept: number[] = [];
            let left = bytes;
            for (const n of lengths) {
              if (left > 0) kept.push(Math.min(n, left));
              left -= n;
            }
            return kept;
          };
          const sides = [places(cut(a), 5), places(cut(b), 2)];
          const lengths = new Matching(sides[0], sides[1], entries, most).next(Number.POSITIVE_INFINITY);
          expect(lengths.reduce((sum, n) => sum + n, 0)).toBe(bytes);
          expect(Math.max(...lengths)).toBeLessThanOrEqual(most);
          const full = [false, false];
          for (const side of sides) {
            const walk = entriesOf(side, 0);
            const seen: number[] = [];
            for (const [i, length] of lengths.entries()) {
              let pieces = 0;
              walk(length, (offset, n) => {
                pieces++;
                for (let k = 0; k < n; k++) seen.push(offset + k);
              });
              expect(pieces).toBeLessThanOrEqual(entries);
              full[i] ||= pieces === entries || length === most;
            }
            const every: number[] = [];
            entriesOf(side, 0)(bytes, (offset, n) => {
              for (let k = 0; k < n; k++) every.push(offset + k);
            });
            expect(seen).toEqual(every);
          }
          // None is shorter than it has to be.
          for (let i = 0; i < lengths.length - 1; i++) expect(full[i], `message ${i} of ${lengths}`).toBe(true);
        },
      ),
    );
  });

  test('layouts that were said keep their numbers until others need them', () => {
    const sent = new SentLayouts();
    const received = new ReceivedLayouts();
    const layouts = Array.from({ length: 40 }, (_, i) => places([i + 1, 2, 40 - i], 7));
    const say = (layout: Places): boolean => {
      const before = sent.hits;
      const heard = received.hear(sent.say(layout)!);
      const [want, got] = [layout, heard].map((it) => {
        const pieces: number[] = [];
        entriesOf(it, 0)(it.bytes, (offset, n) => void pieces.push(offset, n));
        return pieces;
      });
      expect(got).toEqual(want);
      return sent.hits > before;
    };
    expect(layouts.slice(0, 32).map(say)).not.toContain(true);
    expect(layouts.slice(0, 32).map(say)).not.toContain(false);
    // Each of the others takes the place of the oldest.
    expect(layouts.slice(32).map(say)).not.toContain(true);
    expect(layouts.slice(8).map(say)).not.toContain(false);
    expect(say(layouts[0])).toBe(false);
    const long = places(
      Array.from({ length: 400 }, (_, i) => 1 + (i % 2)),
      3,
    );
    expect(sent.say(long)).toBeUndefined();
  });
});

test.each(['pack', 'auto', 'sgrs'] as const)('very many single bytes in no order move by %s', async (noncontiguous) => {
  const n = 70_000;
  const [, right] = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Int8Array, 3 * n, { info: { noncontiguous } });
      const places = Array.from({ length: n }, (_, i) => 3 * i + (i % 2));
      await win.lockAll();
      await world.barrier();
      if (world.rank === 0) {
        const type = Datatype.indexedBlock(1, places, Datatype.INT8);
        const origin = Int8Array.from({ length: n }, (_, i) => 1 + (i % 100));
        win.put(origin, 1, 0, { origin: { type: Datatype.INT8, count: n }, target: { type } });
        await win.flush(1);
      }
      await world.barrier();
      const all = places.every((place, i) => win.local[place] === 1 + (i % 100));
      await win.unlockAll();
      await win.free();
      return all;
    },
    FABRIC,
  );
  expect(right).toBe(true);
});
