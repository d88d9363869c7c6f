/** A rank that repeats calls that take no time, until something comes from another rank, lets the others run. */

import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/fabrics/index.ts';
import { Lock, Op, Window } from '../../src/index.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/kinds.ts';

type Win = Window<Int32Array>;

/** Each looks at the caller's own part, rank 0's. */
const LOOKS: Readonly<Record<string, { all: boolean; look: (win: Win) => Promise<void> }>> = {
  'flush with nothing outstanding': { all: true, look: (win) => win.flush(0) },
  flushAll: { all: true, look: (win) => win.flushAll() },
  'fetchAndOp and flush': {
    all: true,
    look: (win) => {
      win.fetchAndOp(null, new Int32Array(1), 0, 0, Op.NO_OP);
      return win.flush(0);
    },
  },
  'an exclusive lock of its own part': {
    all: false,
    look: async (win) => {
      await win.lock(0, Lock.EXCLUSIVE);
      await win.unlock(0);
    },
  },
  'a shared lock of its own part': {
    all: false,
    look: async (win) => {
      await win.lock(0, Lock.SHARED);
      win.get(new Int32Array(1), 0, 0);
      await win.unlock(0);
    },
  },
};

/** More looks than any scheme needs until the others have had their turn. */
const ENOUGH = 100_000;

describe('a rank that repeats', () => {
  for (const [name, { all, look }] of Object.entries(LOOKS)) {
    test.each([...LOCK_SCHEMES])(`${name} (lock: %s)`, async (lock) => {
      const looks = await runTasks(
        3,
        async (world) => {
          const win = await Window.allocate(world, Int32Array, 1, { info: { lock } });
          let count = 0;
          if (world.rank === 0) {
            if (all) await win.lockAll();
            while (win.local[0] < 2) {
              if (++count > ENOUGH) throw new Error('the others have not had their turn');
              await look(win);
            }
            if (all) await win.unlockAll();
          } else {
            await world.compute(20);
            await win.lock(0, Lock.SHARED);
            win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
            await win.unlock(0);
          }
          await world.barrier();
          await win.free();
          return count;
        },
        { fabric: 'infinihost-64', seed: 1 },
      );
      expect(looks[0]).toBeGreaterThan(0);
    });
  }
});
