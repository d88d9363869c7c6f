// @ts-check
/**
 * π from random points: the share of them that falls into a quarter of a circle. Every rank throws its own points;
 * allreduce adds up the hits of all ranks, and returns the sum to every rank.
 *
 *     npx onesided run -n 4 examples/pi.js -- 1000000
 */
import assert from 'node:assert/strict';
import { init, Op } from 'onesided';

const POINTS = Number(process.argv[2] ?? 500_000);

const world = await init();

/** Hits and points. */
const mine = new Float64Array(2);
for (let i = 0; i < POINTS; i++) {
  const x = Math.random();
  const y = Math.random();
  if (x * x + y * y < 1) mine[0]++;
  mine[1]++;
}
const all = new Float64Array(2);
await world.allreduce(mine, all, Op.SUM);

const [hits, points] = all;
const pi = (4 * hits) / points;
// Six standard deviations of the mean: a wrong sum is found, an unlucky throw practically never.
const tolerance = 6 * Math.sqrt((Math.PI * (4 - Math.PI)) / points);
assert.equal(points, POINTS * world.size);
assert.ok(Math.abs(pi - Math.PI) < tolerance, `${pi} is not π within ${tolerance}`);
if (world.rank === 0)
  console.log(`π ≈ ${pi.toFixed(5)} ± ${(tolerance / 6).toFixed(5)}, from ${points} points of ${world.size} ranks`);

await world.finalize();
