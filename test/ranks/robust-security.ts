/**
 * Keys of regions are random and checked; and, with `--wait`, a rank that has memory others share and waits for a line
 * on rank 0's standard input.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { init, RmaError, Window } from 'onesided';
import { Access, contextOf, type MemoryRegion } from 'onesided/verbs';
import { argument } from './support/cases.ts';
import { Random } from './support/random.ts';

const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
const REGIONS = 2000;
/** Keys drawn blindly that were right: one of two thousand among four billion, twenty thousand times. */
let guessed = 0;

const world = await init();
const window = await Window.allocate(world, Float64Array, 1000);
window.local.fill(42);
await window.fence();

if (argument('wait') !== undefined) {
  const descriptors = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('/memfd:onesided');
    } catch {
      return false;
    }
  });
  console.log(JSON.stringify({ pid: process.pid, descriptors }));
  if (world.rank === 0) await once(process.stdin, 'data');
  await world.barrier();
  process.stdin.destroy();
} else {
  const context = contextOf(world);
  const pd = context.allocPd();
  const memory = context.allocateMemory(4096);
  const regions = Array.from({ length: REGIONS }, () => pd.registerMemory(memory, 0, 4096, ALL));
  checkRandomness(regions);
  await checkKeys(regions);
  for (const region of regions) region.deregister();
  memory.free();
}
await window.free();
await world.finalize();

function checkRandomness(regions: readonly MemoryRegion[]): void {
  const keys = regions.map(({ rkey }) => rkey);
  assert.equal(new Set(keys).size, REGIONS, 'no key twice');
  for (let bit = 0; bit < 32; bit++) {
    const set = keys.filter((key) => ((key >>> bit) & 1) === 1).length;
    // Eight standard deviations (22) around a half: once in 10^15 runs.
    assert.ok(Math.abs(set - REGIONS / 2) < 180, `bit ${bit} is set in ${set} of ${REGIONS} keys`);
  }
  const rising = keys.filter((key, i) => i > 0 && key > keys[i - 1]).length;
  assert.ok(Math.abs(rising - REGIONS / 2) < 180, `${rising} of ${REGIONS} keys are greater than the one before`);
  console.log(JSON.stringify({ keys: keys.slice(0, 4) }));
}

/** Every rank tries what the next one has not allowed. */
async function checkKeys(regions: readonly MemoryRegion[]): Promise<void> {
  const context = contextOf(world);
  const pd = context.allocPd();
  const memory = context.allocateMemory(4096);
  const readable = pd.registerMemory(memory, 1024, 1024, Access.REMOTE_READ);
  const revoked = pd.registerMemory(memory, 0, 4096, ALL);
  const mine = Float64Array.of(
    regions[0].rkey,
    regions[0].address,
    readable.rkey,
    readable.address,
    revoked.rkey,
    revoked.address,
  );
  const all = new Float64Array(mine.length * world.size);
  await world.allgather(mine, all);
  revoked.deregister();
  await world.barrier();
  const target = (world.rank + 1) % world.size;
  const [key, address, readKey, readAddress, oldKey, oldAddress] = all.subarray(mine.length * target);
  const refused = (rkey: number, at: number, length: number, access: number): void => {
    assert.throws(
      () => context.remotePointer(target, rkey, at, length, access).release(),
      (error) => error instanceof RmaError || error instanceof RangeError || error instanceof TypeError,
      `key ${rkey}, ${length} bytes at ${at}, access ${access}`,
    );
  };
  context.remotePointer(target, key, address, 4096, ALL).release();
  context.remotePointer(target, readKey, readAddress, 1024, Access.REMOTE_READ).release();
  for (let bit = 0; bit < 32; bit++) refused((key ^ (1 << bit)) >>> 0, address, 8, Access.REMOTE_READ);
  for (const wrong of [0, -1, 0.5, 2 ** 32, Number.NaN, 2 ** 32 + key]) refused(wrong, address, 8, Access.REMOTE_READ);
  const random = new Random(key);
  const taken = new Set([key, readKey]);
  for (let i = 0; i < 20_000; i++) {
    const guess = random.bits();
    if (!taken.has(guess)) tryKey(guess);
  }
  assert.ok(guessed <= 1, `${guessed} of 20,000 guessed keys were right`);
  refused(key, address, 4097, Access.REMOTE_READ);
  refused(key, address + 1, 4096, Access.REMOTE_READ);
  refused(key, address - 1, 1, Access.REMOTE_READ);
  refused(readKey, readAddress, 1025, Access.REMOTE_READ);
  refused(readKey, readAddress - 1, 8, Access.REMOTE_READ);
  refused(readKey, readAddress, 8, Access.REMOTE_WRITE);
  refused(readKey, readAddress, 8, Access.REMOTE_READ | Access.REMOTE_ATOMIC);
  refused(oldKey, oldAddress, 8, Access.REMOTE_READ);
  await world.barrier();
  readable.deregister();
  memory.free();

  function tryKey(guess: number): void {
    try {
      context.remotePointer(target, guess, address, 8, Access.REMOTE_READ).release();
      guessed++;
    } catch (error) {
      assert.ok(error instanceof RmaError);
    }
  }
}
