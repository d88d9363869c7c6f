/** Accumulates on 64-bit integers by requests: how many requests they take, and what they give under interference. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { QueuePairCore } from '../../src/providers/core/queue-pair-base.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Window } from '../../src/window/calls/window.ts';

const N = 1000;
const FABRIC = { fabric: 'infinihost-64', seed: 1 };

afterEach(() => {
  vi.restoreAllMocks();
});

/** Counts the requests of all ranks while `call` of rank 0 is carried out on a window of `N` integers. */
async function requestsOf(call: (win: Window<BigInt64Array>) => void): Promise<Record<string, number>> {
  const names = ['wrAtomicFetchAdd', 'wrAtomicCmpSwp', 'wrRdmaRead'] as const;
  const spies = names.map((name) => vi.spyOn(QueuePairCore.prototype, name));
  const [counts] = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, BigInt64Array, N);
      win.local.set(BigInt64Array.from({ length: N }, (_, i) => BigInt(i) << 40n));
      await win.lockAll();
      await world.barrier();
      let counts: number[] = [];
      if (world.rank === 0) {
        for (const spy of spies) spy.mockClear();
        call(win);
        await win.flush(1);
        counts = spies.map((spy) => spy.mock.calls.length);
      }
      await world.barrier();
      await win.unlockAll();
      await win.free();
      return counts;
    },
    FABRIC,
  );
  return Object.fromEntries(counts.map((count, i) => [names[i], count]));
}

const ONES = new BigInt64Array(N).fill(1n);

describe('a thousand integers take', () => {
  test('one read, and one compare-and-swap each, where their value decides what is written', async () => {
    for (const op of [Op.REPLACE, Op.MAX, Op.BXOR]) {
      const counts = await requestsOf((win) => win.accumulate(ONES, 1, 0, op));
      expect(counts, op.name).toEqual({ wrAtomicFetchAdd: 0, wrAtomicCmpSwp: N, wrRdmaRead: 1 });
    }
  });

  test('one addition each, where nothing but that happens', async () => {
    const found = new BigInt64Array(N);
    const sum = await requestsOf((win) => win.accumulate(ONES, 1, 0, Op.SUM));
    expect(sum).toEqual({ wrAtomicFetchAdd: N, wrAtomicCmpSwp: 0, wrRdmaRead: 0 });
    const none = await requestsOf((win) => win.getAccumulate(null, found, 1, 0, Op.NO_OP));
    expect(none).toEqual({ wrAtomicFetchAdd: N, wrAtomicCmpSwp: 0, wrRdmaRead: 0 });
    expect(found).toEqual(BigInt64Array.from({ length: N }, (_, i) => BigInt(i) << 40n));
  });

  test('no read of what lies far between them', async () => {
    const type = Datatype.vector(10, 1, 100, Datatype.INT64);
    const layout = { target: { type } };
    const counts = await requestsOf((win) => win.accumulate(ONES.slice(0, 10), 1, 0, Op.REPLACE, layout));
    expect(counts).toEqual({ wrAtomicFetchAdd: 10, wrAtomicCmpSwp: 10, wrRdmaRead: 0 });
  });
});

test('what three ranks replace and fetch at once is a chain: each value is found once, or stays', async () => {
  const rounds = 20;
  const ranks = 4;
  const chains = await runTasks(
    ranks,
    async (world) => {
      const win = await Window.allocate(world, BigUint64Array, world.rank === 0 ? 16 : 0);
      await win.lockAll();
      await world.barrier();
      const found: bigint[][] = [];
      for (let round = 1; world.rank > 0 && round <= rounds; round++) {
        const mine = new BigUint64Array(16).fill((BigInt(world.rank) << 60n) + BigInt(round));
        const result = new BigUint64Array(16);
        win.getAccumulate(mine, result, 0, 0, Op.REPLACE);
        await win.flush(0);
        found.push([...result]);
      }
      await world.barrier();
      const last = world.rank === 0 ? [[...win.local]] : [];
      await win.unlockAll();
      await win.free();
      return [...found, ...last];
    },
    FABRIC,
  );
  const all = chains.flat();
  for (let i = 0; i < 16; i++) {
    const seen = all.map((values) => values[i]).sort();
    const written = [0n];
    for (let rank = 1; rank < ranks; rank++) {
      for (let round = 1; round <= rounds; round++) written.push((BigInt(rank) << 60n) + BigInt(round));
    }
    expect(seen).toEqual(written.sort());
  }
});
