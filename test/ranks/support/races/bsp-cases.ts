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

/** The same in the supersteps of units: of ranks 0 and 1, or of 1 and 2, which are in two units. */
function inUnits(from: number): RaceCase['run'] {
  return async ({ world, win, value }) => {
    await win.lockAll();
    const bsp = await begin(world, { units: 2 });
    const to = from + 1;
    if (world.rank === from) {
      win.put(value, to, 0);
      await win.flush(to);
    }
    // A wait that ends early: the next call is the same one.
    if (world.rank < 2) await bsp.usync({ timeout: 0 }).catch(() => bsp.usync());
    else await bsp.usync();
    if (world.rank === to) print(win.local[0]);
    await bsp.usync();
    await bsp.end();
    await win.unlockAll();
  };
}

export const BSP_CASES: readonly RaceCase[] = [
  { name: 'supersteps, ordered', racy: false, size: 2, run: inSupersteps(true) },
  { name: 'supersteps, not ordered', racy: true, size: 2, run: inSupersteps(false) },
  { name: 'supersteps of a unit', racy: false, size: 4, run: inUnits(0) },
  { name: 'supersteps of two units', racy: true, size: 4, run: inUnits(1) },
];
