/** Supersteps, which order what their processes do with windows. */
import { begin } from 'onesided/bsp';
import { print, type RaceCase } from './race-case.ts';

/** Rank 0 puts before a superstep ends, rank 1 reads in the next one, or in the same one; in two computations. */
function inSupersteps(isOrdered: boolean): RaceCase['run'] {
  return async ({ world, win, value }) => {
    await win.lockAll();
    for (let computation = 0; computation < 2; computation++) {
      const bsp = await begin(world);
      if (world.rank === 0) {
        win.put(value, 1, computation);
        await win.flush(1);
      }
      if (isOrdered) await bsp.sync();
      if (world.rank === 1) print(win.local[computation]);
      await bsp.sync();
      await bsp.end();
    }
    await win.unlockAll();
  };
}

export const BSP_CASES: readonly RaceCase[] = [
  { name: 'supersteps, ordered', racy: false, size: 2, run: inSupersteps(true) },
  { name: 'supersteps, not ordered', racy: true, size: 2, run: inSupersteps(false) },
];
