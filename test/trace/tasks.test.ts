/** Runs on a modelled fabric that are recorded: the same trace for the same seed, in virtual time. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { sceneOf } from '../../src/trace/scene.ts';
import { readTrace } from '../../src/trace/trace-reader.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { temporaryFolder } from '../support/folders.ts';
import { checkTrace } from './events.ts';

const folder = temporaryFolder('trace');

async function program(world: Communicator): Promise<number> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 1, { name: 'numbers', info: { lock: 'two-sided' } });
  await win.fence();
  win.put(Float64Array.of(rank), (rank + 1) % size, 0);
  await world.compute(30 * rank);
  await win.fence();
  await world.barrier();
  await win.lock(0, Lock.EXCLUSIVE);
  win.put(Float64Array.of(rank), 0, 0);
  await win.unlock(0);
  await win.free();
  return world.now();
}

test('a trace has every call, what is waited for, and an arrow for each message, at virtual times', async () => {
  const file = join(folder, 'tasks.json');
  const options = { fabric: 'infinihost-64', trace: file };
  const ends = await runTasks(3, program, options);
  const trace = checkTrace(file);
  expect(trace.other).toMatchObject({ ranks: 3, dropped: [0, 0, 0], disordered: 0, clock: 'virtual time' });
  for (let rank = 0; rank < 3; rank++) {
    const calls = trace.of(rank, 'call').map(({ name }) => name);
    for (const name of ['fence', 'lock', 'unlock', 'barrier', 'free']) expect(calls).toContain(name);
    expect(trace.of(rank, 'wait').length).toBeGreaterThan(3);
  }
  // Recording takes no time of the ranks.
  expect(await runTasks(3, program, { fabric: 'infinihost-64' })).toEqual(ends);
  const text = readFileSync(file, 'utf8');
  await runTasks(3, program, options);
  expect(readFileSync(file, 'utf8')).toBe(text);
});

// `lock_defer` is left out: what is recorded of a lock is when it was had, so it is waited for.
test.each<WindowInfo>([
  {},
  { lock: 'two-sided' },
  { lock: 'direct' },
  { lock: 'hybrid', lock_migration: 'every-request' },
])('ranks that fight for a lock take as long whether they are recorded or not: %o', async (info) => {
  const fight = async (world: Communicator): Promise<number> => {
    const win = await Window.allocate(world, Int32Array, 1, { info });
    for (let i = 0; i < 5; i++) {
      await win.lock(0, (world.rank + i) % 3 === 0 ? Lock.SHARED : Lock.EXCLUSIVE);
      await world.compute(200);
      await win.unlock(0);
    }
    await win.lockAll();
    await win.unlockAll();
    await win.free();
    return world.now();
  };
  const plain = await runTasks(5, fight, { fabric: 'infinihost-64' });
  const file = join(folder, 'fight.json');
  expect(await runTasks(5, fight, { fabric: 'infinihost-64', trace: file })).toEqual(plain);
  checkTrace(file);
});

test.each(['sgrs', 'pack'] as const)('messages of second connections are arrows from rank to rank: %s', async (way) => {
  const COLUMN = { type: Datatype.vector(80, 2, 8, Datatype.INT32) };
  const columns = async (world: Communicator): Promise<number> => {
    const win = await Window.allocate(world, Int32Array, 800, { name: 'matrix', info: { noncontiguous: way } });
    await win.lockAll();
    if (world.rank === 1) {
      const origin = new Int32Array(800);
      win.put(origin, 0, 0, { origin: COLUMN, target: COLUMN });
      await win.flush(0);
      win.get(origin, 2, 0, { origin: COLUMN, target: COLUMN });
      await win.flush(2);
    }
    await world.barrier();
    await win.unlockAll();
    await win.free();
    return world.now();
  };
  const file = join(folder, 'columns.json');
  // 80 pieces at 50 a list: two messages each way.
  const fabric = 'infinihost-express';
  const ends = await runTasks(3, columns, { fabric, trace: file });
  expect(await runTasks(3, columns, { fabric })).toEqual(ends);
  const trace = checkTrace(file);
  const arrows = trace.flowsOf('gather').map(({ from, to }) => {
    expect(from.args).toMatchObject({ windowId: to.args['windowId'] });
    expect(from.start).toBeLessThan(to.start);
    return [to.args['from'], from.args['to'], from.args['bytes']];
  });
  const lists = [400, 240];
  const expected = [...lists.map((bytes) => [1, 0, bytes]), ...lists.map((bytes) => [2, 1, bytes])];
  expect(arrows.sort()).toEqual(way === 'sgrs' ? expected.sort() : []);
  expect(trace.other.disordered).toBe(0);
});

test('a run that fails leaves its trace', async () => {
  const file = join(folder, 'failed.json');
  const run = runTasks(
    2,
    async (world) => {
      await world.barrier();
      if (world.rank === 1) throw new Error('enough');
      await world.barrier();
    },
    { fabric: 'infinihost-64', trace: file },
  );
  await expect(run).rejects.toThrow('enough');
  expect(
    checkTrace(file)
      .of(0, 'call')
      .map(({ name }) => name),
  ).toContain('barrier');
});

describe('a communication call by requests is an arrow', () => {
  const COMPUTE = 300;
  const WORDS = 4096;
  const calls: Record<string, (win: Window<Float64Array>, target: number) => unknown> = {
    put: (win, target) => win.put(Float64Array.of(7), target, 3),
    rput: (win, target) => win.rput(Float64Array.of(7), target, 3),
    get: (win, target) => win.get(new Float64Array(8), target, 0),
    accumulate: (win, target) => win.accumulate(Float64Array.of(1), target, 1, Op.SUM),
    getAccumulate: (win, target) => win.getAccumulate(Float64Array.of(1), new Float64Array(1), target, 1, Op.SUM),
    fetchAndOp: (win, target) => win.fetchAndOp(Float64Array.of(1), new Float64Array(1), target, 1, Op.SUM),
    putNotify: (win, target) => win.putNotify(Float64Array.of(7), target, 3),
  };
  const draw = async (
    file: string,
    body: (win: Window<Float64Array>, world: Communicator) => Promise<void>,
    info = {},
  ) =>
    runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, WORDS, { name: 'numbers', info });
        await body(win, world);
        await win.free();
      },
      { fabric: 'infinihost-64', trace: file },
    );

  // The calls are made in the middle of an epoch of two ranks, and both compute after them.
  test.each(Object.keys(calls))('%s, which ends when its bytes are there', async (name) => {
    const file = join(folder, `${name}.json`);
    await draw(file, async (win, world) => {
      await win.lockAll();
      await world.barrier();
      // Updates take stripes in waits only.
      const updates = !/put|get$/.test(name);
      if (world.rank === 0) {
        calls[name](win, 1);
        if (updates) await win.flush(1);
      }
      await world.compute(COMPUTE);
      await win.flushAll();
      if (name === 'putNotify' && world.rank === 1) await win.waitNotify();
      await win.unlockAll();
    });
    const trace = readTrace(file);
    const arrows = trace.arrows.filter((arrow) => arrow.name === name);
    expect(arrows.length).toBe(1);
    const [{ from, to }] = arrows;
    const isGet = name === 'get';
    expect([from.rank, to.rank]).toEqual(isGet ? [1, 0] : [0, 1]);
    const call = trace.spans.find((span) => span.category === 'operation' && span.name === name)!;
    // Not when the call returns, nor when the rank looks: on its way for some microseconds.
    expect(to.end).toBeGreaterThan(call.end + 1000);
    expect(to.end).toBeLessThan(call.start + (1000 * COMPUTE) / 3);
    // What else this rank posts is not the call's.
    const owned = trace.arrows.filter((arrow) => arrow.name === 'request' && arrow.from.args['of'] === name);
    expect(owned.length).toBeGreaterThan(0);
    for (const request of owned) expect(request.from.start).toBeLessThanOrEqual(to.end);
    expect(call.args['requests'] ?? 1).toBe(owned.length);
  });

  test('of a fence epoch, in its picture, and nothing else stands for it', async () => {
    const file = join(folder, 'fence.json');
    await draw(file, async (win, world) => {
      await win.fence();
      if (world.rank === 0) {
        win.put(new Float64Array(WORDS).fill(1), 1, 0);
        await world.compute(COMPUTE);
      } else {
        // In steps of a twentieth of a microsecond: when the last element is there.
        while (win.local[WORDS - 1] === 0) await world.compute(0.05);
      }
      await win.fence();
    });
    const trace = readTrace(file);
    const scene = sceneOf(trace, { fence: 2 });
    const puts = scene.arrows.filter(({ kind }) => kind === 'put');
    expect(puts).toMatchObject([{ from: 0, to: 1, label: `put 1: ${8 * WORDS} B at 0` }]);
    const seen = trace.spans.find(
      ({ rank, name, args }) => rank === 1 && name === 'fence' && args['fence'] === 2,
    )!.start;
    expect(puts[0].arrived).toBeLessThanOrEqual(seen);
    expect(puts[0].arrived).toBeGreaterThanOrEqual(seen - 50);
    const others = scene.arrows.filter(({ kind, sent }) => kind === 'message' && sent < puts[0].arrived);
    expect(others).toEqual([]);
  });

  // Messages bring them to the target, whose processor carries them out, or they are held before they are posted.
  test.each<[string, WindowInfo]>([
    ['are queued for the fence', { fence: 'deferred' }],
    ['are queued under the lock', { lock: 'two-sided' }],
    ['are served by the target', { update: 'by-target' }],
    ['wait for an order', { schedule: 'gets-first' }],
    ['travel with complete', { schedule: 'aggregate' }],
    ['travel with complete and are answered', { schedule: 'aggregate-gets' }],
  ])('also calls that %s', async (how, info) => {
    const file = join(folder, 'queued.json');
    await draw(
      file,
      async (win, world) => {
        const { rank, group } = world;
        const others = group.include([1 - rank]);
        const issue = (): void => {
          const schedule = 'schedule' in info ? info.schedule : undefined;
          if (schedule !== 'aggregate-gets') win.put(Float64Array.of(7), 1, 3);
          if (schedule === 'aggregate') return;
          win.get(new Float64Array(8), 1, 0);
          if (schedule === 'aggregate-gets') return;
          win.accumulate(Float64Array.of(1), 1, 1, Op.SUM);
          win.fetchAndOp(Float64Array.of(1), new Float64Array(1), 1, 1, Op.SUM);
        };
        await win.fence();
        if (how.includes('complete')) {
          if (rank === 1) await win.post(others);
          else await win.start(others);
          if (rank === 0) issue();
          await (rank === 1 ? win.wait() : win.complete());
        } else if (how.includes('fence')) {
          if (rank === 0) issue();
        } else if (rank === 0) {
          await win.lock(1, Lock.EXCLUSIVE);
          issue();
          await win.unlock(1);
        }
        await win.fence();
        // Nothing of the calls before sticks to this one.
        if (rank === 0) win.put(Float64Array.of(8), 1, 4);
        await win.fence();
      },
      info,
    );
    const { arrows, spans } = readTrace(file);
    const operations = spans.filter(({ category }) => category === 'operation');
    expect(operations.length).toBe(how.includes('complete') ? 2 : 5);
    const arrowOf = (operation: (typeof operations)[number]): (typeof arrows)[number] => {
      const own = arrows.filter(({ from, to }) => from === operation || to.args['disp'] === operation.args['disp']);
      return own.find(({ name }) => name === operation.name)!;
    };
    for (const operation of operations) {
      const arrow = arrowOf(operation);
      const isGet = operation.name === 'get';
      expect([arrow.from.rank, arrow.to.rank]).toEqual(isGet ? [1, 0] : [0, 1]);
      expect(arrow.to.end).toBeGreaterThan(operation.end);
    }
    // In order, and each within its epoch.
    const [first, last] = [operations[0], operations.at(-1)!];
    expect(arrowOf(first).to.end).toBeLessThan(last.start);
  });

  test('of pieces is one arrow, which says how many requests it took', async () => {
    const file = join(folder, 'pieces.json');
    const type = Datatype.vector(40, 1, 8, Datatype.FLOAT64);
    await draw(file, async (win, world) => {
      await win.fence();
      if (world.rank === 0) win.put(new Float64Array(WORDS), 1, 0, { origin: { type }, target: { type } });
      await win.fence();
    });
    const { arrows } = sceneOf(readTrace(file), { fence: 2 });
    expect(arrows.filter(({ kind }) => kind === 'put').map(({ label }) => label)).toEqual([
      'put 1: 320 B, 40 requests',
    ]);
    expect(arrows.filter(({ label }) => label === '40 requests')).toEqual([]);
  });
});
