/** A rank that repeats calls that take no time, until something comes from another rank, lets the others run. */

import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/fabrics/index.ts';
import { type Communicator, Lock, Op, Request, Window } from '../../src/index.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';

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

/** What a rank looks at without an end: nothing of it comes while it awaits nothing of the fabric. */
const ENDLESS: Readonly<Record<string, (win: Win) => () => boolean>> = {
  'test of a request': (win) => {
    const request = win.rput(Int32Array.of(1), 1, 0);
    return () => request.test();
  },
  testNotify: (win) => () => win.testNotify(),
  'Request.testAll': (win) => {
    const requests = [win.rput(Int32Array.of(1), 1, 0), win.rput(Int32Array.of(1), 1, 0)];
    return () => Request.testAll(requests);
  },
};

describe('a rank that looks again and again, and lets no time pass', () => {
  const main =
    (begin: (win: Win) => () => boolean, turn: (() => Promise<unknown>) | undefined, passes: boolean) =>
    async (world: Communicator) => {
      const win = await Window.allocate(world, Int32Array, 1);
      await win.lockAll();
      if (world.rank === 0) {
        const look = begin(win);
        let looks = 0;
        while (!look()) {
          if (turn !== undefined) await turn();
          if (passes && ++looks % 1000 === 0) await world.compute(1);
        }
      } else {
        await world.compute(100);
        win.putNotify(Int32Array.of(1), 0, 0);
      }
      await win.unlockAll();
      await world.barrier();
      await win.free();
    };

  describe.each(Object.entries(ENDLESS))('%s', (_, begin) => {
    test.each([
      ['in one step', undefined],
      ['in turns of microtasks', () => Promise.resolve()],
    ])('%s, is told what to do', async (_, turn) => {
      await expect(runTasks(2, main(begin, turn, false), { fabric: 'infinihost-64' })).rejects.toMatchObject({
        code: 'ERR_RMA_WOULD_DEADLOCK',
        message: expect.stringMatching(/^(?=.*no virtual time has passed).*await something .*world\.compute\(1\)/),
      });
    });

    test('and is not, where time passes now and then', async () => {
      await runTasks(2, main(begin, undefined, true), { fabric: 'infinihost-64' });
    });
  });

  test('at the end of its exposure, is told so, too', async () => {
    const run = runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Int32Array, 1);
        const other = world.group.include([1 - world.rank]);
        if (world.rank === 0) {
          await win.post(other);
          while (!win.test());
        } else {
          await win.start(other);
          await win.complete();
        }
        await win.free();
      },
      { fabric: 'infinihost-64' },
    );
    await expect(run).rejects.toMatchObject({
      code: 'ERR_RMA_WOULD_DEADLOCK',
      message: expect.stringContaining('test of window #1: this rank has looked'),
    });
  });
});
