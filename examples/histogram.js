// @ts-check
/**
 * A histogram that is spread over all ranks: bin b is in rank (b mod size). All ranks add to all bins at the same time;
 * accumulate is atomic for each element, so no count is lost.
 *
 *     npx onesided run -n 4 examples/histogram.js -- 20000
 */
import assert from 'node:assert/strict';
import { init, Op, Window } from 'onesided';

const SAMPLES = Number(process.argv[2] ?? 20_000);
const BINS = 64;

const world = await init();
const { rank, size } = world;
const win = await Window.allocate(world, Int32Array, Math.ceil(BINS / size));
const one = Int32Array.of(1);

await win.fence();
for (let i = 0; i < SAMPLES; i++) {
  // The sum of four uniform numbers: a bell.
  const x = (Math.random() + Math.random() + Math.random() + Math.random()) / 4;
  const bin = Math.floor(x * BINS);
  win.accumulate(one, bin % size, Math.floor(bin / size), Op.SUM);
}
await win.fence();

// Rank 0 collects the bins. Like every operation, a get is complete after the next fence.
const bins = new Int32Array(BINS);
if (rank === 0) {
  for (let bin = 0; bin < BINS; bin++) win.get(bins.subarray(bin, bin + 1), bin % size, Math.floor(bin / size));
}
await win.fence();
if (rank === 0) {
  const total = bins.reduce((sum, count) => sum + count, 0);
  const highest = Math.max(...bins);
  for (let bin = 0; bin < BINS; bin += 4) {
    console.log(`${(bin / BINS).toFixed(2)} ${'#'.repeat(Math.round((60 * bins[bin]) / highest))}`);
  }
  console.log(`${total} samples of ${size} ranks`);
  assert.equal(total, SAMPLES * size);
}

await win.free();
await world.finalize();
