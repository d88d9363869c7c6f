/** A mutex where memory is reached by requests: nobody is in it with another rank, in all forms. */
import assert from 'node:assert/strict';
import { init, Window } from 'onesided';
import { Mutex, type MutexHold } from 'onesided/sync';

const TIMES = 60;
const world = await init();
const mutex = await Mutex.create(world);
const win = await Window.allocate(world, Int32Array, 1);
const word = new Int32Array(1);
let done = 0;

/** With the mutex held: a read, a pause, a write. */
async function step(): Promise<void> {
  await win.lockAll();
  win.get(word, 0, 0);
  await win.flush(0);
  word[0]++;
  if (done % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
  win.put(word, 0, 0);
  await win.unlockAll();
  done++;
}

for (let i = 0; i < TIMES; i++) {
  const how = (i + world.rank) % 4;
  if (how === 0) await mutex.withLock(step);
  else if (how === 1) {
    const held = mutex.lockSync();
    await step();
    held.release();
  } else if (how === 2) {
    const held = mutex.tryLock();
    if (held === undefined) continue;
    await step();
    held.release();
  } else {
    let held: MutexHold;
    try {
      held = await mutex.lock({ timeout: 1 });
    } catch (error) {
      assert.equal((error as { code: unknown }).code, 'ERR_RMA_TIMEOUT');
      continue;
    }
    await step();
    held.release();
  }
}
const counts = new Int32Array(world.size);
await world.allgather(Int32Array.of(done), counts);
const total = counts.reduce((sum, count) => sum + count, 0);
await world.barrier();
if (world.rank === 0) assert.equal(win.local[0], total);
await mutex.free();
assert.throws(() => mutex.tryLock(), { code: 'ERR_WIN' });
await assert.rejects(mutex.lock(), { code: 'ERR_WIN' });
if (world.rank === 0) console.log(`counted ${total === win.local[0]}`);
await world.finalize();
