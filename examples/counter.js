// @ts-check
/**
 * A counter that all ranks share. fetchAndOp adds to it and returns the previous value, in one step that no other
 * operation can interrupt, so every ticket is drawn exactly once.
 *
 *     npx onesided run -n 4 examples/counter.js -- 1000
 */
import assert from 'node:assert/strict';
import { init, Op, Window } from 'onesided';

const TICKETS = Number(process.argv[2] ?? 1000);

const world = await init();
// The counter is one word of rank 0. The other ranks contribute no memory, and can use the window all the same.
const win = await Window.allocate(world, BigInt64Array, world.rank === 0 ? 1 : 0);

const one = BigInt64Array.of(1n);
const ticket = new BigInt64Array(1);
const mine = new BigInt64Array(TICKETS);

// A shared lock on every rank: it excludes no other shared lock, and permits atomic operations.
await win.lockAll();
for (let i = 0; i < TICKETS; i++) {
  win.fetchAndOp(one, ticket, 0, 0, Op.SUM);
  await win.flush(0); // only now is the result here
  mine[i] = ticket[0];
}
await win.unlockAll();

const all = new BigInt64Array(TICKETS * world.size);
await world.allgather(mine, all);
all.sort();
assert.ok(
  all.every((value, i) => value === BigInt(i)),
  'a ticket is missing, or was drawn twice',
);
if (world.rank === 0) console.log(`${world.size} ranks drew ${all.length} tickets, each of them once`);

await win.free();
await world.finalize();
