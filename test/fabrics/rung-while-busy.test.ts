/**
 * What comes for a rank while it computes, and what it waits for then: whatever has come is looked at, though nobody
 * waited when it came.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { fabricNames, loadFabric } from '../../src/fabrics/index.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import { casesOf } from '../support/gate.ts';

const BYTES = [0, 16_384, 65_536];
type Main = (world: Communicator, win: Window<Float64Array>) => Promise<void>;
/** How rank 0 comes to wait for the notification; each after a computation. */
const WAYS: Readonly<Record<string, Main>> = {
  waitNotify: async (_, win) => {
    await win.waitNotify();
  },
  'waitNotify behind testNotify': async (_, win) => {
    if (!win.testNotify()) await win.waitNotify();
  },
  'waitNotify behind lock': async (_, win) => {
    await win.lock(0, Lock.SHARED);
    await win.unlock(0);
    await win.waitNotify();
  },
  'waitNotify behind flush': async (_, win) => {
    await win.lock(1, Lock.SHARED);
    await win.flush(1);
    await win.unlock(1);
    await win.waitNotify();
  },
  'looking and computing': async (world, win) => {
    for (let i = 0; !win.testNotify(); i++) {
      if (i > 100_000) throw new Error('nothing has come');
      await world.compute(1);
    }
  },
};
const FABRICS = casesOf(fabricNames(), (name) => name === 'infinihost-64' || name === 'ethernet-100-bus');
const CASES = FABRICS.flatMap((name) => Object.keys(WAYS).map((way) => [name, way] as const));

describe.each(CASES)('on %s, %s', (name, way) => {
  const fabric = loadFabric(name);

  test.each(BYTES)('a message of %i bytes goes on while its sender waits for something else', async (bytes) => {
    const got = await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 1);
        await world.barrier();
        const data = new Uint8Array(bytes);
        if (world.rank === 0) {
          if (bytes > 0) await world.send(data.fill(7), 1);
          await world.compute(1000);
          await WAYS[way](world, win);
        } else {
          if (bytes > 0) await world.receive(data, 0);
          await win.lockAll();
          win.putNotify(Float64Array.of(1), 0, 0);
          await win.unlockAll();
        }
        await world.barrier();
        const [value] = win.local;
        await win.free();
        return [value, bytes === 0 ? 7 : data[bytes - 1]];
      },
      { fabric },
    );
    expect(got).toEqual([
      [1, 7],
      [0, 7],
    ]);
  });
});

/** How rank 0 comes to the end of its exposure. */
const ENDS: Readonly<Record<string, Main>> = {
  wait: (_, win) => win.wait(),
  'wait behind test': async (_, win) => {
    if (!win.test()) await win.wait();
  },
  'looking and computing': async (world, win) => {
    for (let i = 0; !win.test(); i++) {
      if (i > 100_000) throw new Error('nothing has come');
      await world.compute(1);
    }
  },
};

/** How long rank 0 computes before: what comes for it comes meanwhile, or afterwards. */
const BEFORE = [1000, 1];

describe.each(
  FABRICS.flatMap((name) => Object.keys(ENDS).flatMap((end) => BEFORE.map((time) => [name, end, time] as const))),
)('on %s, the end of an exposure by %s behind %i µs', (name, end, time) => {
  test('sees what the sender of a long message is told', async () => {
    const got = await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 1);
        await world.barrier();
        const data = new Uint8Array(65_536);
        const other = world.group.include([1 - world.rank]);
        if (world.rank === 0) {
          await win.post(other);
          await world.send(data.fill(7), 1);
          await world.compute(time);
          await ENDS[end](world, win);
        } else {
          await world.receive(data, 0);
          await win.start(other);
          win.put(Float64Array.of(1), 0, 0);
          await win.complete();
        }
        await world.barrier();
        const [value] = win.local;
        await win.free();
        return [value, data[65_535]];
      },
      { fabric: loadFabric(name) },
    );
    expect(got).toEqual([
      [1, 7],
      [0, 7],
    ]);
  });
});
