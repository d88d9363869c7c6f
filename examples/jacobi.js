// @ts-check
/**
 * Heat in a rod, by Jacobi's method: every point becomes the mean of its neighbours until nothing changes. The rod is
 * cut into as many pieces as there are ranks; in each step a rank puts its two outermost values into the halo of its
 * neighbours.
 *
 *     npx onesided run -n 4 examples/jacobi.js -- 32
 */
import assert from 'node:assert/strict';
import { init, Op, Rank, Window } from 'onesided';

const POINTS = Number(process.argv[2] ?? 32);
const HOT = 100;

const world = await init();
const { rank, size } = world;
const first = Math.floor((rank * POINTS) / size);
const count = Math.floor(((rank + 1) * POINTS) / size) - first;
assert.ok(POINTS >= size, 'every rank needs a point');

// Places 0 and count + 1 are the halo: copies of the neighbours' outermost points, or the ends of the rod.
const win = await Window.allocate(world, Float64Array, POINTS + 2);
const temperature = win.local.subarray(0, count + 2);
const next = new Float64Array(count + 2);
if (rank === 0) temperature[0] = HOT;

// A put to Rank.NULL does nothing, so the ranks at the ends need no special case.
const left = rank === 0 ? Rank.NULL : rank - 1;
const right = rank === size - 1 ? Rank.NULL : rank + 1;
const leftCount = first - Math.floor(((rank - 1) * POINTS) / size);

const change = new Float64Array(1);
const largest = new Float64Array(1);
let steps = 0;
await win.fence();
do {
  win.put(temperature.slice(1, 2), left, leftCount + 1);
  win.put(temperature.slice(count, count + 1), right, 0);
  await win.fence(); // the halo is complete, and no rank changes it before the next fence
  change[0] = 0;
  for (let i = 1; i <= count; i++) {
    next[i] = (temperature[i - 1] + temperature[i + 1]) / 2;
    change[0] = Math.max(change[0], Math.abs(next[i] - temperature[i]));
  }
  temperature.set(next.subarray(1, count + 1), 1);
  await win.fence(); // every rank has read its halo
  if (++steps % 50 === 0) await world.allreduce(change, largest, Op.MAX);
} while (steps % 50 !== 0 || largest[0] > 1e-7);

// In the end, the temperature falls evenly from one end of the rod to the other.
for (let i = 1; i <= count; i++) {
  const exact = HOT * (1 - (first + i) / (POINTS + 1));
  assert.ok(Math.abs(temperature[i] - exact) < 1e-2, `point ${first + i}: ${temperature[i]}, not ${exact}`);
}
if (rank === 0) console.log(`${POINTS} points on ${size} ranks: even after ${steps} steps`);

await win.free();
await world.finalize();
