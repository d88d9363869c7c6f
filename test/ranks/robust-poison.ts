/**
 * With `ONESIDED_DEBUG=poison`: rank 2 of three dies while operations to it, and to rank 1, are not complete. Nothing
 * completes them any more, so the others may use the arrays for something else. They print `used` then.
 */
import assert from 'node:assert/strict';
import { init, Window } from 'onesided';

const world = await init();
const pair = (await world.split(world.rank === 2 ? 1 : 0))!;
const win = await Window.allocate(world, Float64Array, 4);
const own = await Window.allocate(pair, Float64Array, 4);
await win.lockAll();
const arrays = [new Float64Array(2), Float64Array.of(1, 2), new Float64Array(2)];
win.get(arrays[0], 2, 0);
win.put(arrays[1], 2, 2);
win.get(arrays[2], 1, 0);
const conflict = { code: 'ERR_RMA_CONFLICT' };
assert.throws(() => pair.send(arrays[0], 0), conflict);
if (world.rank === 2) {
  for (const rank of [0, 1]) await world.receive(new Float64Array(1), rank);
  process.exit(3);
}
world.send(new Float64Array(1), 2);
await assert.rejects(world.barrier(), { code: 'ERR_RMA_RANK_FAILED', rank: 2 });

const other = 1 - pair.rank;
await own.lockAll();
for (const array of arrays) {
  array.fill(world.rank);
  own.put(array, other, 0);
  await own.flush(other);
  own.get(array, other, 2);
  await own.flush(other);
  pair.send(array, other);
  await pair.receive(array, other);
}
// Operations of a window of which no rank has failed are still watched.
own.get(arrays[0], other, 0);
assert.throws(() => pair.send(arrays[0], other), conflict);
await own.unlockAll();
await new Promise((said) => process.stdout.write('used\n', said));
process.exit(0);
