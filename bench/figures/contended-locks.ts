/** Many ranks want one lock at a time: the back-off of the direct lock, and the lock of our own beside the others. */
import { Assert, type Communicator, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { fight } from './contention.ts';
import { type Figure, forEach, lockFile, show } from './figure.ts';
import { alike, DIRECT, FABRIC, FILES, RANKS } from './passive-locks.ts';

/**
 * Swaps of rank 0's word for each lock that was taken by ranks that swap again at once until they have it, and hold it
 * as long as others do.
 */
async function impatient(ranks: number, locks: number): Promise<number> {
  const main = async (world: Communicator): Promise<number> => {
    // 64 bits, which the adapter swaps itself.
    const win = await Window.allocate(world, BigInt64Array, 1, { info: DIRECT });
    const [mine, free, found] = [BigInt64Array.of(BigInt(world.rank + 1)), BigInt64Array.of(0n), new BigInt64Array(1)];
    let swaps = 0;
    const swap = async (to: BigInt64Array, from: BigInt64Array): Promise<boolean> => {
      swaps++;
      win.compareAndSwap(to, from, found, 0, 0);
      await win.flush(0);
      return found[0] === from[0];
    };
    await win.lockAll(Assert.NO_CHECK);
    await world.barrier();
    for (let i = 0; i < locks; i++) {
      while (!(await swap(mine, free)));
      await world.compute(5);
      await swap(free, mine);
    }
    await world.barrier();
    await win.unlockAll();
    await win.free();
    return swaps;
  };
  const swaps = await runTasks(ranks, main, FABRIC);
  return swaps.reduce((sum, n) => sum + n, 0) / (ranks * locks);
}

export const contendedLocks: readonly Figure[] = [
  {
    id: 'D4.9',
    claim: 'exponential back-off keeps a contended direct lock from flooding the network',
    source: 'dissertation §4.1, left open there',
    caption: 'Atomic operations per acquired lock, when all ranks want the same lock and hold it for 5 µs.',
    expected: 'with 64 ranks, fewer than a fifth of the atomic operations of ranks that retry at once',
    schemes: [lockFile('direct'), 'src/sync/lock/lock-back-off.ts'],
    async measure() {
      const locks = 10;
      const patient = await forEach(RANKS, async (ranks) => {
        const { counts, taken } = await fight({ ranks, locks, info: DIRECT, options: FABRIC, isExclusive: () => true });
        return counts.atomics / taken;
      });
      const hasty = await forEach(RANKS, (ranks) => impatient(ranks, locks));
      const [with64, without64] = [patient, hasty].map((values) => values[RANKS.indexOf(64)]);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'processes', places: RANKS },
          y: { name: 'atomic operations a lock', logarithmic: true },
          series: [
            { name: 'direct, with back-off', values: patient },
            { name: 'again at once', values: hasty },
          ],
        },
        measured: `atomic operations a lock with 64 ranks: ${show(with64)} with back-off, ${show(without64)} without`,
        holds: with64 < without64 / 5,
      };
    },
  },
  {
    id: 'O.1',
    claim:
      'our own reader-writer lock without agent, `remote`, keeps up under contention with the locks of the ' +
      'dissertation, and is fair',
    source: 'ours; the locks of dissertation §4.1 and §5.2 beside it',
    caption:
      'Locks of one part, a quarter of them exclusive, held for 5 µs: ' +
      'the mean, and (dashed) the longest of all, by the number of processes that want it.',
    expected:
      'no exclusive holder beside another one with any lock; from 16 processes on, ' +
      'a lock of remote takes no longer than the fastest of the three others, ' +
      'and its longest wait is not more than three times its mean',
    schemes: [lockFile('remote'), ...FILES, lockFile('hybrid')],
    async measure() {
      const locks = ['two-sided', 'direct', 'hybrid', 'remote'] as const;
      const found = await forEach(locks, (lock) =>
        forEach(RANKS, (ranks) =>
          fight({
            ranks,
            locks: 20,
            info: { lock },
            options: FABRIC,
            isExclusive: (rank, turn) => (rank + turn) % 4 === 0,
          }),
        ),
      );
      const mean = locks.map((name, i) => ({ name, values: found[i].map(({ took }) => took) }));
      const longest = locks.map((name, i) => ({ name, values: found[i].map((one) => one.longest) }));
      const violations = found.flat().reduce((sum, one) => sum + one.violations, 0);
      const [others, [remote]] = [mean.slice(0, 3), mean.slice(3)];
      const at64 = RANKS.indexOf(64);
      const at64Longest = locks.map((_, i) => longest[i].values[at64] / mean[i].values[at64]);
      const holds =
        violations === 0 &&
        [1, 2, 3].every(
          (k) =>
            remote.values[k] <= Math.min(...others.map(({ values }) => values[k])) &&
            longest[3].values[k] <= 3 * remote.values[k],
        );
      return {
        chart: {
          kind: 'lines',
          x: { name: 'processes', places: RANKS },
          y: { name: 'lock, 5 µs, unlock (µs)', logarithmic: true },
          series: [...mean, ...alike(longest, 'longest')],
        },
        note:
          'a lock that serves ranks in order cannot let shared locks with an exclusive one between them ' +
          'hold it together; with direct and hybrid, a rank that comes at the right time overtakes the ' +
          'others, and the longest wait is ' +
          `${at64Longest.slice(1, 3).map(Math.round).join(' and ')} times the mean with ` +
          `64 processes, with remote ${at64Longest[3].toFixed(1)} times. ` +
          'The agent of two-sided needs no request of the network to see who is next',
        measured:
          `${violations} violations; µs with 64 processes, mean and longest: ` +
          locks.map((name, i) => `${name} ${show(mean[i].values[at64])}, ${show(longest[i].values[at64])}`).join('; '),
        holds,
      };
    },
  },
];
