/** What orders accesses, and what does not. */
import { Lock, Window } from 'onesided';
import { each, fenced, lockedAll, print, type RaceCase } from './race-case.ts';

const token = new Int32Array(1);

export const SYNC_CASES: readonly RaceCase[] = [
  {
    name: 'sync/001 fence-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.put(value, 1, 0);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'sync/002 fence-local',
    racy: false,
    size: 2,
    run: async ({ world, win, value }) => {
      await win.fence();
      if (world.rank === 0) win.put(value, 1, 0);
      await win.fence();
      if (world.rank === 0) print(value[0]);
      await win.fence();
    },
  },
  {
    name: 'sync/003 lock-local',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.get(value, 1, 0);
        print(value[0]);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/004 lock-local',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.get(value, 1, 0);
        await win.unlock(1);
        print(value[0]);
      },
    }),
  },
  {
    name: 'sync/005 lock-flush-local',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.get(value, 1, 0);
        print(value[0]);
        await win.flush(1);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/006 lock-flush-local',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.get(value, 1, 0);
        await win.flush(1);
        print(value[0]);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/007 lockall-flushlocalall-local',
    racy: true,
    size: 2,
    run: lockedAll({
      0: async ({ win, value }) => {
        win.get(value, 1, 0);
        print(value[0]);
        await win.flushLocalAll();
      },
    }),
  },
  {
    name: 'sync/008 lockall-flushlocalall-local',
    racy: false,
    size: 2,
    run: lockedAll({
      0: async ({ win, value }) => {
        win.get(value, 1, 0);
        await win.flushLocalAll();
        print(value[0]);
      },
    }),
  },
  {
    name: 'sync/009 request-local',
    racy: true,
    size: 2,
    run: lockedAll({
      0: async ({ win, value }) => {
        const request = win.rget(value, 1, 0);
        print(value[0]);
        await request.wait();
      },
    }),
  },
  {
    name: 'sync/010 request-local',
    racy: false,
    size: 2,
    run: lockedAll({
      0: async ({ win, value }) => {
        const request = win.rget(value, 1, 0);
        await request.wait();
        print(value[0]);
      },
    }),
  },
  {
    name: 'sync/011 pscw-local',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.start(win.group.include([1]));
        win.get(value, 1, 0);
        print(value[0]);
        await win.complete();
      },
      1: async ({ win }) => {
        await win.post(win.group.include([0]));
        await win.wait();
      },
    }),
  },
  {
    name: 'sync/012 pscw-local',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.start(win.group.include([1]));
        win.get(value, 1, 0);
        await win.complete();
        print(value[0]);
      },
      1: async ({ win }) => {
        await win.post(win.group.include([0]));
        await win.wait();
      },
    }),
  },
  {
    name: 'sync/013 lockall-flushall-remote',
    racy: false,
    size: 2,
    run: lockedAll({
      0: async ({ world, win, value }) => {
        win.put(value, 1, 0);
        await win.flushAll();
        await world.barrier();
      },
      1: async ({ world, win }) => {
        await world.barrier();
        print(win.local[0]);
      },
    }),
  },
  {
    name: 'sync/014 lockall-flushall-remote',
    racy: true,
    size: 2,
    run: lockedAll({
      0: async ({ win, value }) => {
        win.put(value, 1, 0);
        await win.flushAll();
      },
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'sync/015 lockall-barrier-remote',
    racy: false,
    size: 2,
    run: async ({ world, win, value }) => {
      await win.lockAll();
      if (world.rank === 0) win.put(value, 1, 0);
      await win.unlockAll();
      await world.barrier();
      if (world.rank === 1) print(win.local[0]);
    },
  },
  {
    name: 'sync/016 lockall-barrier-remote',
    racy: true,
    size: 2,
    run: async ({ world, win, value }) => {
      await win.lockAll();
      if (world.rank === 0) win.put(value, 1, 0);
      await win.unlockAll();
      if (world.rank === 1) print(win.local[0]);
      await world.barrier();
    },
  },
  {
    name: 'sync/017 lockall-remote',
    racy: true,
    size: 2,
    run: lockedAll({
      0: ({ win, value }) => win.put(value, 1, 0),
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'sync/018 fence-3procs-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      2: ({ win, value }) => win.get(value, 1, 0),
    }),
  },
  {
    name: 'sync/019 fence-3procs-remote',
    racy: false,
    size: 3,
    run: async ({ world, win, value }) => {
      await win.fence();
      if (world.rank === 0) win.put(value, 1, 0);
      await win.fence();
      if (world.rank === 2) win.get(value, 1, 0);
      await win.fence();
    },
  },
  {
    name: 'sync/020 lock-barrier-nonconsistent-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await world.barrier();
        await win.unlock(1);
      },
      1: async ({ world, win }) => {
        await world.barrier();
        print(win.local[0]);
      },
    }),
  },
  {
    name: 'sync/021 lock-barrier-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
      },
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'sync/022 lock-barrier-remote',
    racy: false,
    size: 2,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
        await world.barrier();
      },
      1: async ({ world, win }) => {
        await world.barrier();
        print(win.local[0]);
      },
    }),
  },
  {
    name: 'sync/023 lock-barrier-sameorigin-remote',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value, value2 }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.flush(1);
        win.get(value2, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/024 lock-barrier-sameorigin-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value, value2 }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        win.get(value2, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/025 lock-flushlocal-sameorigin-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.flushLocal(1);
        win.get(value, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/026 lock-flushlocal-sameorigin-remote',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.get(value, 1, 0);
        await win.flushLocal(1);
        win.get(value, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/027 lock-exclusive-remote',
    racy: false,
    size: 2,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        win.put(value, 1, 0);
        await win.unlock(1);
      },
      1: async ({ win }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        print(win.local[0]);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/028 lock-exclusive-3procs-remote',
    racy: false,
    size: 3,
    run: each({
      0: async ({ win, value }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        win.put(value, 1, 0);
        await win.unlock(1);
      },
      2: async ({ win, value }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        win.get(value, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    // Rank 1 has the second lock first: the other order would order the two.
    name: 'sync/029 lock-exclusive-remote',
    racy: true,
    size: 2,
    run: async ({ world, win, value }) => {
      const win2 = await Window.allocate(world, Int32Array, 10);
      if (world.rank === 0) {
        await win.lock(1, Lock.EXCLUSIVE);
        win.put(value, 1, 0);
        await win.unlock(1);
        await world.compute(300_000);
        await win2.lock(1, Lock.EXCLUSIVE);
        await win2.unlock(1);
      } else {
        await win2.lock(1, Lock.EXCLUSIVE);
        await win2.unlock(1);
        print(win.local[0]);
      }
      await win2.free();
    },
  },
  {
    name: 'sync/030 lock-sendrecv-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
        world.send(token, 1);
      },
      1: async ({ world, win }) => {
        print(win.local[0]);
        await world.receive(token.slice(), 0);
      },
    }),
  },
  {
    name: 'sync/031 lock-sendrecv-remote',
    racy: false,
    size: 2,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
        world.send(token, 1);
      },
      1: async ({ world, win }) => {
        await world.receive(token.slice(), 0);
        print(win.local[0]);
      },
    }),
  },
  {
    name: 'sync/032 lock-sendrecv-3procs-remote',
    racy: false,
    size: 3,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
        world.send(token, 2);
      },
      2: async ({ world, win, value }) => {
        await world.receive(token.slice(), 0);
        await win.lock(1, Lock.SHARED);
        win.put(value, 1, 0);
        await win.unlock(1);
      },
    }),
  },
  {
    name: 'sync/033 lock-sendrecv-3procs-remote',
    racy: true,
    size: 3,
    run: each({
      0: async ({ world, win, value }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        win.put(value, 1, 0);
        await win.unlock(1);
        world.send(token, 1);
      },
      1: async ({ world, win }) => {
        await world.receive(token.slice(), 2);
        print(win.local[0]);
        await world.receive(token.slice(), 0);
      },
      2: ({ world }) => world.send(token, 1),
    }),
  },
  {
    name: 'sync/034 pscw-remote',
    racy: false,
    size: 3,
    run: each({
      0: async ({ win, value }) => {
        await win.start(win.group.include([2]));
        win.put(value, 2, 0);
        await win.complete();
      },
      1: async ({ win, value }) => {
        await win.start(win.group.include([2]));
        win.get(value, 2, 0);
        await win.complete();
      },
      2: async ({ win }) => {
        await win.post(win.group.include([0]));
        await win.wait();
        await win.post(win.group.include([1]));
        await win.wait();
      },
    }),
  },
  {
    name: 'sync/035 pscw-remote',
    racy: true,
    size: 3,
    run: each({
      0: async ({ win, value }) => {
        await win.start(win.group.include([2]));
        win.put(value, 2, 0);
        await win.complete();
      },
      1: async ({ win, value }) => {
        await win.start(win.group.include([2]));
        win.get(value, 2, 0);
        await win.complete();
      },
      2: async ({ win }) => {
        await win.post(win.group.include([0, 1]));
        await win.wait();
      },
    }),
  },
  {
    name: 'sync/036 polling-remote',
    racy: true,
    size: 2,
    run: each({
      0: async ({ win }) => {
        await win.lock(1, Lock.EXCLUSIVE);
        win.put(Int32Array.of(1), 1, 0);
        await win.unlock(1);
      },
      1: async ({ world, win }) => {
        while (win.local[0] !== 1) {
          await world.compute(1000);
          await win.lock(1, Lock.EXCLUSIVE);
          await win.unlock(1);
        }
      },
    }),
  },
];
