/**
 * What test/trace/run.test.ts records: every kind of epoch, call and message, as often as it expects there. With
 * `crash`, rank 1 kills itself while it holds a lock; with `many`, rank 0 puts more often than a ring has room.
 */
import assert from 'node:assert/strict';
import { init, Lock, Op, Window } from 'onesided';

const [what] = process.argv.slice(2);
const world = await init();
const { rank, size } = world;
const next = (rank + 1) % size;
const previous = (rank + size - 1) % size;
const win = await Window.allocate(world, Float64Array, 16, { name: 'grid' });
const one = Float64Array.of(1);
assert.equal(process.env['ONESIDED_TRACE'], undefined);

async function everything(): Promise<void> {
  await win.fence();
  win.put(Float64Array.of(rank, rank), next, 2);
  win.get(new Float64Array(1), previous, 4);
  await win.fence();
  assert.equal(win.local[2], previous);
  win.accumulate(one, 0, 5, Op.SUM);
  win.fenceSync(16);
  for (let i = 0; i < 3; i++) {
    await win.lock(0, Lock.EXCLUSIVE);
    win.fetchAndOp(one, new Float64Array(1), 0, 6, Op.SUM);
    await win.unlock(0);
  }
  world.barrierSync();
  if (rank === 0) assert.equal(win.local[6], 3 * size);
  win.postSync(world.group.include([previous]));
  await win.start(world.group.include([next]));
  win.put(one, next, 7);
  await win.complete();
  await win.wait();
  win.lockAllSync();
  win.putNotify(one, next, 8);
  await win.waitNotify();
  await win.rput(one, next, 9).wait();
  win.flushAllSync();
  assert.throws(() => win.put(one, next, 1000), { code: 'ERR_RMA_RANGE' });
  await win.unlockAll();
  await world.allreduce(one, new Float64Array(1), Op.SUM);
  // Two waits that overlap without nesting.
  const received = world.receive(new Uint8Array(1), previous);
  const met = world.barrier();
  world.send(Uint8Array.of(1), next);
  await Promise.all([received, met]);
  {
    await using epoch = await win.locked(next, Lock.SHARED);
    epoch.put(one, 10);
  }
}

if (what === 'crash') {
  await win.fence();
  win.put(one, next, 0);
  await win.fence(16);
  if (rank === 1) {
    await win.lock(2 % size, Lock.EXCLUSIVE);
    win.put(one, 2 % size, 1);
    process.kill(process.pid, 'SIGKILL');
  }
  await world.barrier();
} else if (what === 'many') {
  win.fenceSync();
  for (let i = 0; i < 1000; i++) win.put(one, next, i % 16);
  win.fenceSync(16);
} else await everything();
await win.free();
await world.finalize();
console.log(JSON.stringify({ pid: process.pid }));
