/** How often who waits for a lock is overtaken by ranks that take it, give it back, and take it again at once. */
import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/fabrics/index.ts';
import { type Communicator, Lock, Window, type WindowInfo } from '../../src/index.ts';

interface Contention {
  readonly size: number;
  readonly info?: WindowInfo;
  readonly dynamic?: boolean;
  /** Rank 1 wants the lock for itself, the others share it; else all want it for themselves. */
  readonly mixed?: boolean;
  /** Whether rank 0, whose lock it is, wants it, too: that takes it no time with some schemes. */
  readonly owner?: boolean;
  readonly times: number;
}

/** A window, and a place in rank 0's part of it. */
async function windowOf(world: Communicator, { dynamic = false, info = {} }: Contention) {
  if (!dynamic) return { win: await Window.allocate(world, Int32Array, 1, { info }), disp: 0 };
  const win = await Window.createDynamic(world, { info });
  const place = BigInt64Array.of(world.rank === 0 ? BigInt(win.attach(new Int32Array(8))) : 0n);
  await world.broadcast(place, 0);
  return { win, disp: Number(place[0]) };
}

/** How often other ranks have had the lock, at most, between the call of a rank and its having it. */
async function overtaken(contention: Contention): Promise<number> {
  const { size, mixed = false, owner = true, times } = contention;
  const had = new Array<number>(size).fill(0);
  const others = (me: number): number => had.reduce((sum, n, rank) => (rank === me ? sum : sum + n), 0);
  let most = 0;
  const contend = async (world: Communicator): Promise<void> => {
    const { win, disp } = await windowOf(world, contention);
    const type = mixed && world.rank !== 1 ? Lock.SHARED : Lock.EXCLUSIVE;
    await world.barrier();
    for (let i = 0; i < times && (owner || world.rank > 0); i++) {
      const before = others(world.rank);
      await win.lock(0, type);
      most = Math.max(most, others(world.rank) - before);
      had[world.rank]++;
      win.get(new Int32Array(1), 0, disp);
      await win.unlock(0);
    }
    await world.barrier();
    await win.free();
  };
  await runTasks(size, contend, { fabric: 'infinihost-64', seed: 1 });
  return most;
}

/**
 * All others that were before it in line, and what they can do while its first requests are on their way: to ask for
 * the lock, and to get into line. (It was 203 with 4 ranks that do it 80 times, one of them exclusively.)
 */
const inTurn = (size: number): number => 3 * size + 8;

describe('with the lock that windows have by themselves', () => {
  describe.each([
    ['', false],
    ['dynamic ', true],
  ])('(%swindows)', (_, dynamic) => {
    test.each([2, 4, 8])('who wants it exclusively, among %s ranks that do, has its turn', async (size) => {
      expect(await overtaken({ size, dynamic, times: 40 })).toBeLessThanOrEqual(inTurn(size));
    });

    test.each([2, 4, 8])('who wants it exclusively, among %s ranks that share it, has its turn', async (size) => {
      expect(await overtaken({ size, dynamic, mixed: true, times: 40 })).toBeLessThanOrEqual(inTurn(size));
    });
  });
});

test.each([false, true])('with `two-sided`, who waits has its turn (beside ranks that share it: %s)', async (mixed) => {
  const info = { lock: 'two-sided' } as const;
  expect(await overtaken({ size: 4, info, mixed, owner: false, times: 40 })).toBeLessThanOrEqual(inTurn(4));
});

/**
 * A rank that takes it back at once does so for 8 ms (lock-word.ts), after up to 2 ms in which the other one waits so
 * long that it says so; each time takes 14 µs.
 */
const OUT_OF_TURN = 1000;

const OUT_OF_LINE: readonly WindowInfo[] = [
  { lock: 'direct' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'never' },
];

test.each(OUT_OF_LINE)('with `$lock`, a rank that takes it back at once steps aside', async (info) => {
  const most = await overtaken({ size: 3, info, owner: false, times: 2 * OUT_OF_TURN });
  expect(most).toBeLessThanOrEqual(OUT_OF_TURN);
});
