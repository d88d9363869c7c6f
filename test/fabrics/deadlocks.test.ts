/**
 * Ranks that wait for each other for ever, in every kind of lock: the run says so, and says who waits in which call;
 * and it does not say so where somebody will get on after all.
 */

import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { loadFabric } from '../../src/fabrics/index.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { FENCE_SCHEMES, fenceNamed } from '../../src/sync/fence/fence-kinds.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { LOCKS } from '../ranks/support/explorer.ts';

const FABRIC = 'infinihost-64';
const TABLE = LOCKS.map((info) => [JSON.stringify(info), info] as const);

type Main = (world: Communicator, win: Window<Int32Array>) => Promise<void>;

const withWindow = (info: WindowInfo, main: Main) => async (world: Communicator) => {
  const win = await Window.allocate(world, Int32Array, 1, { info });
  await main(world, win);
  await win.free();
};

async function messageOf(size: number, info: WindowInfo, main: Main, options: Partial<TaskOptions> = {}) {
  const error = await runTasks(size, withWindow(info, main), { fabric: FABRIC, ...options }).catch((e: unknown) => e);
  expect(error).toMatchObject({ code: 'ERR_RMA_WOULD_DEADLOCK' });
  return (error as Error).message;
}

/** Takes another rank's lock for a put: a lock that is deferred is waited for at the unlock. */
async function put(win: Window<Int32Array>, rank: number, type: Lock): Promise<void> {
  await win.lock(rank, type);
  win.put(Int32Array.of(1), rank, 0);
  await win.unlock(rank);
}

/** What a rank says that waits for the lock of another one. */
const inLock = (rank: number, owner: number, { lock, lock_defer }: WindowInfo, type = Lock.EXCLUSIVE): RegExp => {
  const deferred = lock_defer && (lock !== 'hybrid' || type === Lock.EXCLUSIVE);
  return new RegExp(`rank ${rank} waits in ${deferred ? `operations at rank ${owner}` : `lock of rank ${owner}`}`);
};

describe.each(TABLE)('with locks %s', (_, info) => {
  test('two ranks each of which has the lock that the other one wants', async () => {
    const message = await messageOf(2, info, async (world, win) => {
      await win.lock(world.rank, Lock.EXCLUSIVE);
      await world.barrier();
      await put(win, 1 - world.rank, Lock.EXCLUSIVE);
    });
    for (const rank of [0, 1]) {
      // A lock is not deferred beside another one.
      expect(message).toMatch(inLock(rank, 1 - rank, { ...info, lock_defer: false }));
      expect(message).toContain(
        `rank ${rank} holds the lock of rank ${rank} in window #1, and rank ${1 - rank} waits for it`,
      );
    }
  });

  test.each(['exclusive', 'shared'])(
    'a rank that waits in a barrier for those that want its lock (%s)',
    async (kind) => {
      const type = kind === 'shared' ? Lock.SHARED : Lock.EXCLUSIVE;
      const message = await messageOf(3, info, async (world, win) => {
        if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
        await world.barrier();
        if (world.rank > 0) await put(win, 0, type);
        await world.barrier();
        if (world.rank === 0) await win.unlock(0);
      });
      expect(message).toMatch(/rank 0 waits in barrier/);
      for (const rank of [1, 2]) expect(message).toMatch(inLock(rank, 0, info, type));
      expect(message).toContain('rank 0 holds the lock of rank 0 in window #1, and ranks 1, 2 wait for it');
    },
  );

  test('a lock that is shared, one that is held in another window, and a lockAll', async () => {
    const message = await messageOf(4, info, async (world, win) => {
      const other = await Window.allocate(world, Int32Array, 1, { name: 'other', info });
      if (world.rank < 2) await win.lock(3, Lock.SHARED);
      if (world.rank === 3) await other.lock(3, Lock.EXCLUSIVE);
      if (world.rank < 2) {
        win.get(new Int32Array(1), 3, 0);
        await win.flush(3);
      }
      await world.barrier();
      if (world.rank === 2) await put(win, 3, Lock.EXCLUSIVE);
      if (world.rank === 0) await other.lockAll();
      await world.barrier();
    });
    expect(message).toContain('ranks 0, 1 share the lock of rank 3 in window #1, and rank 2 waits for it');
    expect(message).toContain('rank 3 holds the lock of rank 3 in window other, and rank 0 waits for it');
    expect(message).toMatch(/rank 0 waits in lockAll of window other \(waiting for rank 3/);
    expect(message).toMatch(/rank 1 waits in barrier/);
  });

  test('is told also where messages are lost', async () => {
    const main: Main = async (world, win) => {
      await win.lock(world.rank, Lock.EXCLUSIVE);
      await world.barrier();
      await put(win, 1 - world.rank, Lock.EXCLUSIVE);
    };
    await messageOf(2, info, main, { faults: { loss: 0.05 } });
  });

  test('a lock that is held for a long time, and then given back, is no deadlock', async () => {
    const later: Main = async (world, win) => {
      if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank > 0) await put(win, 0, world.rank % 2 === 0 ? Lock.SHARED : Lock.EXCLUSIVE);
      else {
        await world.compute(1_000_000);
        await win.unlock(0);
      }
      await world.barrier();
    };
    for (const faults of [{}, { loss: 0.2, delay: 50 }])
      await runTasks(3, withWindow(info, later), { fabric: FABRIC, faults });
  });
});

describe.each(TABLE.filter(([, { lock_defer }]) => lock_defer))('with deferred locks %s', (_, info) => {
  test.each(['flush', 'unlock', 'request'])('a lock that a %s waits for is named, and who has it', async (call) => {
    const message = await messageOf(2, info, async (world, win) => {
      if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 0) await world.barrier();
      await win.lock(0, Lock.EXCLUSIVE);
      const request = win.rput(Int32Array.of(1), 0, 0);
      if (call === 'flush') await win.flush(0);
      if (call === 'unlock') await win.unlock(0);
      await request.wait();
      await world.barrier();
    });
    const what = call === 'request' ? '.*' : 'operations at rank 0';
    expect(message).toMatch(
      new RegExp(`rank 1 waits in ${what} in window #1 \\(waiting for the lock of rank 0 from its agent`),
    );
    expect(message).toContain('rank 0 holds the lock of rank 0 in window #1, and rank 1 waits for it');
    expect(message).not.toContain('rank 1 holds');
  });

  test('a lock that was deferred, and the one that is asked for behind it', async () => {
    const message = await messageOf(3, info, async (world, win) => {
      if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 0) await world.barrier();
      await win.lock(0, Lock.EXCLUSIVE);
      if (world.rank === 1) await win.lock(2, Lock.EXCLUSIVE);
      win.put(Int32Array.of(1), 0, 0);
      await win.unlock(0);
    });
    expect(message).toContain('rank 1 waits in lock of rank 2 in window #1, before it the lock of rank 0 in window #1');
    expect(message).toMatch(/rank 0 holds the lock of rank 0 in window #1, and ranks? 1.* waits? for it/);
  });
});

describe('in a fence', () => {
  const FENCES = FENCE_SCHEMES.filter((name) => fenceNamed(name).moves !== 'immediately');

  test.each(FENCES)('%s, which one rank does not come to', async (fence) => {
    const message = await messageOf(4, { fence }, async (world, win) => {
      await win.fence();
      win.put(Int32Array.of(1), (world.rank + 1) % 4, 0);
      if (world.rank === 2) await world.receive(new Int32Array(1), 0);
      await win.fence();
    });
    expect(message).toMatch(/rank 2 waits in receive\(\) from rank 0/);
    for (const rank of [0, 1, 3]) expect(message).toMatch(new RegExp(`rank ${rank} waits in fence of window #1`));
    // Somebody waits for that rank itself, except where notifications come from anybody.
    if (fence !== 'notify-all') expect(message).toMatch(/rank [013] waits in fence of window #1 \([^;]* rank 2\)/);
  });
});

describe('ranks that ask again and again', () => {
  const QUARREL: Main = async (world, win) => {
    for (let i = 0; i < 3; i++) await put(win, 0, (world.rank + i) % 2 === 0 ? Lock.SHARED : Lock.EXCLUSIVE);
  };

  test.each(TABLE)('know soon that it is in vain, also if they are many: %s', async (_, info) => {
    const message = await messageOf(64, info, async (world, win) => {
      await win.lock(world.rank, Lock.EXCLUSIVE);
      await world.barrier();
      await put(win, (world.rank + 1) % 64, Lock.EXCLUSIVE);
    });
    expect(Number(/deadlock at ([\d.]+)/.exec(message)![1])).toBeLessThan(80_000);
  });

  test.each(TABLE)('wait as long as it takes where each step takes longer than a rest: %s', async (_, info) => {
    const { host, link, ...fabric } = loadFabric(FABRIC);
    const slow = { ...fabric, host: { ...host, lookAgain: 50 }, link: { ...link, latency: 5000 } };
    await runTasks(4, withWindow(info, QUARREL), { fabric: slow, order: 'random' });
    const late = { ...slow, retry: { timeout: 20_000 } };
    await runTasks(4, withWindow(info, QUARREL), { fabric: late, faults: { loss: 0.2, delay: 3000 } });
  });

  test('wait for a rank that waits for something else than the fabric, as long as that may come', async () => {
    const timer: Main = async (world, win) => {
      if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank > 0) await put(win, 0, Lock.EXCLUSIVE);
      else {
        await new Promise((resolve) => setTimeout(resolve, 500));
        await win.unlock(0);
      }
    };
    for (const [, info] of TABLE) await runTasks(3, withWindow(info, timer), { fabric: FABRIC });
  });
});
