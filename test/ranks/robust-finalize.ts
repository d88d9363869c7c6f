/**
 * The end of a job, `--how=…`: finalize twice, with windows open, or while calls are under way; and what calls say
 * afterwards.
 */
import assert from 'node:assert/strict';
import { init, Lock, Op, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const world = await init();
const window = await Window.allocate(world, Float64Array, 100);
const one = new Float64Array(1);
await window.fence();

const ends: Record<string, () => unknown> = {
  twice: async () => {
    await window.free();
    await world.finalize();
    await world.finalize();
    world.finalizeSync();
  },
  together: async () => {
    await window.free();
    await Promise.all([world.finalize(), world.finalize()]);
  },
  open: () => world.finalize(),
  sync: () => world.finalizeSync(),
  'in-epoch': async () => {
    window.put(one, 0, 0);
    await assert.rejects(world.finalize(), {
      code: 'ERR_RMA_SYNC',
      message: /finalize of window #1: a fence epoch has operations/,
    });
    assert.throws(() => world.finalizeSync(), { code: 'ERR_RMA_SYNC' });
    await window.fence();
    await world.finalize();
  },
  locked: async () => {
    await window.free();
    const other = await Window.allocate(world, Float64Array, 10);
    await other.lock(world.rank, Lock.EXCLUSIVE);
    await assert.rejects(world.finalize(), { code: 'ERR_RMA_SYNC', message: /holds the lock of rank \d/ });
    await other.unlock(world.rank);
    await world.finalize();
  },
  'parts-left': async () => {
    const half = (await world.split(world.rank % 2))!;
    await Window.allocate(half, Float64Array, 10);
    await half.barrier();
    await world.finalize();
  },
  disposed: async () => {
    await window[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  },
  // Nothing will ever come of it; the program must end all the same.
  'receive-pending': async () => {
    world.receive(one, (world.rank + 1) % world.size).catch((error: RmaError) => told.push(error.code));
    await world.finalize();
  },
};

const told: string[] = [];
await ends[argument('how')!]();

const after: Record<string, () => unknown> = {
  barrier: () => world.barrier(),
  barrierSync: () => world.barrierSync(),
  broadcast: () => world.broadcast(one, 0),
  allreduceSync: () => world.allreduceSync(one, new Float64Array(1), Op.SUM),
  send: () => world.send(one, 0),
  receive: () => world.receive(one, 0),
  receiveSync: () => world.receiveSync(one, 0),
  split: () => world.split(0),
  allocMem: () => world.allocMem(Float64Array, 10),
  allocate: () => Window.allocate(world, Float64Array, 10),
  create: () => Window.create(world, new Float64Array(10)),
  fence: () => window.fence(),
  fenceSync: () => window.fenceSync(),
  lock: () => window.lock(0, Lock.SHARED),
  lockSync: () => window.lockSync(0, Lock.SHARED),
  lockAll: () => window.lockAll(),
  put: () => window.put(one, 0, 0),
  get: () => window.get(one, (world.rank + 1) % world.size, 0),
  accumulate: () => window.accumulate(one, 0, 0, Op.SUM),
  free: () => window.free(),
  flush: () => window.flushSync(0),
  init: () => init(),
};
const codes: Record<string, string> = {};
for (const [name, call] of Object.entries(after)) {
  try {
    await call();
    codes[name] = 'none';
  } catch (error) {
    codes[name] = (error as RmaError).code ?? String(error);
  }
}
console.log(JSON.stringify({ codes, told, length: window.local.length }));
