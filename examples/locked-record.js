// @ts-check
/**
 * A record of several fields that must change together. A writer takes the exclusive lock of the rank that holds the
 * record: it reads, changes, writes and unlocks. Readers take a shared lock. No reader sees a half-written record, and
 * no update is lost.
 *
 *     npx onesided run -n 4 examples/locked-record.js
 */
import assert from 'node:assert/strict';
import { init, Lock, Window } from 'onesided';

const DEPOSITS = 100;
/** Fields: how many deposits, their sum, the largest, and the sum of squares. */
const FIELDS = 4;
const OWNER = 0;

const world = await init();
const { rank, size } = world;
const win = await Window.allocate(world, Float64Array, rank === OWNER ? FIELDS : 0);
const record = new Float64Array(FIELDS);

/** The sum of squares of n deposits of 1, 2, …, which must agree with the other fields at every read. */
function check() {
  const [count, sum, largest, squares] = record;
  assert.ok(squares >= (sum * sum) / Math.max(1, count), 'a record that was half written');
  assert.ok(largest * count >= sum, 'a record that was half written');
}

for (let amount = 1; amount <= DEPOSITS; amount++) {
  await win.lock(OWNER, Lock.EXCLUSIVE);
  win.get(record, OWNER, 0);
  await win.flush(OWNER); // under a lock, a get is complete after a flush
  check();
  record[0] += 1;
  record[1] += amount;
  record[2] = Math.max(record[2], amount);
  record[3] += amount * amount;
  win.put(record, OWNER, 0);
  await win.unlock(OWNER); // completes the put

  if (amount % 10 === 0) {
    await win.lock(OWNER, Lock.SHARED);
    win.get(record, OWNER, 0);
    await win.unlock(OWNER);
    check();
  }
}

await world.barrier();
await win.lock(OWNER, Lock.SHARED);
win.get(record, OWNER, 0);
await win.unlock(OWNER);
const [count, sum, largest] = record;
assert.equal(count, DEPOSITS * size);
assert.equal(sum, (size * DEPOSITS * (DEPOSITS + 1)) / 2);
assert.equal(largest, DEPOSITS);
if (rank === 0) console.log(`${count} deposits, ${sum} in all, the largest ${largest}`);

await win.free();
await world.finalize();
