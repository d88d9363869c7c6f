/** Runs on a modelled fabric that are recorded: the same trace for the same seed, in virtual time. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Communicator } from '../../src/comm/communicator.ts';
import { runTasks } from '../../src/comm/tasks.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Lock } from '../../src/sync/lock/scheme.ts';
import type { WindowInfo } from '../../src/window/info.ts';
import { Window } from '../../src/window/window.ts';
import { checkTrace } from './events.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'onesided-trace-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

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
