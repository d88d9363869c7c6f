/** Ranks that fight for one lock, and what is seen of it: who held it when, in virtual time, and what it took. */
import { type Communicator, Lock, type LockStatistics, Window, type WindowInfo } from 'onesided';
import { runTasks, type TaskOptions } from 'onesided/fabrics';
import { mean } from './programs.ts';

/** Microseconds that a lock is held. */
const HOLD = 5;

export interface Contention {
  readonly ranks: number;
  /** Locks that each rank takes, of the part of rank 0. */
  readonly locks: number;
  readonly info: WindowInfo;
  readonly options: TaskOptions;
  readonly isExclusive: (rank: number, turn: number) => boolean;
}

interface Held {
  readonly from: number;
  readonly to: number;
  readonly exclusive: boolean;
}

export interface Fought {
  /** Pairs of holders at one time of which one is exclusive: there must be none. */
  readonly violations: number;
  /** Most shared holders at one time. */
  readonly together: number;
  /** Microseconds of a lock with all that is waited for, held for 5, the mean of all. */
  readonly took: number;
  /** The longest of all. */
  readonly longest: number;
  /** Of all of them. */
  readonly times: readonly number[];
  readonly taken: number;
  /** Of all ranks together. */
  readonly counts: LockStatistics;
}

export async function fight({ ranks, locks, info, options, isExclusive }: Contention): Promise<Fought> {
  const main = async (world: Communicator) => {
    const win = await Window.allocate(world, Int32Array, 1, { info });
    const held: Held[] = [];
    const times: number[] = [];
    await world.barrier();
    for (let turn = 0; turn < locks; turn++) {
      const exclusive = isExclusive(world.rank, turn);
      const began = world.now();
      await win.lock(0, exclusive ? Lock.EXCLUSIVE : Lock.SHARED);
      const from = world.now();
      await world.compute(HOLD);
      held.push({ from, to: world.now(), exclusive });
      await win.unlock(0);
      times.push(world.now() - began);
    }
    await world.barrier();
    const { scheme: _, ...counts } = win.statistics().lock;
    await win.free();
    return { held, times, counts };
  };
  const results = await runTasks(ranks, main, options);
  const all = results.flatMap(({ held }) => held).sort((a, b) => a.from - b.from);
  const counts = results.reduce(
    (sum, one) =>
      Object.fromEntries(
        Object.entries(sum).map(([key, n]) => [key, n + one.counts[key as keyof LockStatistics]]),
      ) as unknown as LockStatistics,
    { messages: 0, operations: 0, atomics: 0, misses: 0, grants: 0, migrations: 0 },
  );
  const times = results.flatMap((one) => one.times);
  return { ...conflicts(all), took: mean(times), longest: Math.max(...times), times, taken: all.length, counts };
}

/** @param all by the time from which they held */
function conflicts(all: readonly Held[]): { readonly violations: number; readonly together: number } {
  let violations = 0;
  let together = 0;
  let holders: Held[] = [];
  for (const next of all) {
    holders = holders.filter(({ to }) => to > next.from);
    violations += holders.filter(({ exclusive }) => exclusive || next.exclusive).length;
    holders.push(next);
    if (!next.exclusive) together = Math.max(together, holders.filter(({ exclusive }) => !exclusive).length);
  }
  return { violations, together };
}
