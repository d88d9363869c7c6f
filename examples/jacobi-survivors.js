// @ts-check
/**
 * Heat in a rod, as jacobi.js, on ranks that may die: the others go on with the last state that all had kept.
 *
 *     npx onesided run -n 4 examples/jacobi-survivors.js
 *     npx onesided run -n 4 --keep-going examples/jacobi-survivors.js -- 32 2 777
 *
 * The second is 32 points, of which rank 2 kills itself in step 777.
 */
import assert from 'node:assert/strict';
import { init, Op, Rank, Window } from 'onesided';

const [POINTS, VICTIM, FATAL_STEP] = [process.argv[2] ?? 32, process.argv[3] ?? -1, process.argv[4] ?? 0].map(Number);
const HOT = 100;
/** Steps between two states that are kept. */
const KEEP = 50;

const world = await init();
let comm = world;
/** @type {Window<Float64Array> | undefined} */
let win;
/** The last two states of the whole rod: a rank can die while the others keep the next one. */
let kept = [{ step: 0, rod: new Float64Array(POINTS) }];

/** @param {number} rank @param {number} size */
const firstOf = (rank, size) => Math.floor((rank * POINTS) / size);

/**
 * Computes on the ranks of `comm` from a state on, until nothing changes.
 * @param {{ step: number, rod: Float64Array }} state
 */
async function compute({ step, rod }) {
  const { rank, size } = comm;
  const first = firstOf(rank, size);
  const count = firstOf(rank + 1, size) - first;
  win = await Window.allocate(comm, Float64Array, POINTS + 2);
  const temperature = win.local.subarray(0, count + 2);
  const next = new Float64Array(count + 2);
  temperature.set(rod.subarray(first, first + count), 1);
  if (rank === 0) temperature[0] = HOT;
  const left = rank === 0 ? Rank.NULL : rank - 1;
  const right = rank === size - 1 ? Rank.NULL : rank + 1;
  const change = new Float64Array(1);
  const largest = new Float64Array(1);
  const own = new Float64Array(POINTS);
  await win.fence();
  for (;;) {
    win.put(temperature.slice(1, 2), left, first - firstOf(rank - 1, size) + 1);
    win.put(temperature.slice(count, count + 1), right, 0);
    await win.fence();
    change[0] = 0;
    for (let i = 1; i <= count; i++) {
      next[i] = (temperature[i - 1] + temperature[i + 1]) / 2;
      change[0] = Math.max(change[0], Math.abs(next[i] - temperature[i]));
    }
    temperature.set(next.subarray(1, count + 1), 1);
    await win.fence();
    if (++step === FATAL_STEP && world.rank === VICTIM) process.kill(process.pid, 'SIGKILL');
    if (step % KEEP !== 0) continue;
    await comm.allreduce(change, largest, Op.MAX);
    const state = { step, rod: new Float64Array(POINTS) };
    own.set(temperature.subarray(1, count + 1), first);
    await comm.allreduce(own, state.rod, Op.SUM);
    kept = [state, kept[0]];
    if (largest[0] <= 1e-7) return state;
  }
}

/** The last state that all ranks have. */
async function lastOfAll() {
  const least = new Float64Array(1);
  await comm.allreduce(Float64Array.of(kept[0].step), least, Op.MIN);
  return /** @type {{ step: number, rod: Float64Array }} */ (kept.find(({ step }) => step === least[0]));
}

let result;
while (result === undefined) {
  try {
    result = await compute(await lastOfAll());
  } catch (error) {
    if (/** @type {{ code?: string }} */ (error).code !== 'ERR_RMA_RANK_FAILED') throw error;
    comm = await comm.shrink();
    // That of the old communicator: each rank frees it by itself.
    await win?.free();
  }
}

for (let i = 0; i < POINTS; i++) {
  const exact = HOT * (1 - (i + 1) / (POINTS + 1));
  assert.ok(Math.abs(result.rod[i] - exact) < 1e-2, `point ${i}: ${result.rod[i]}, not ${exact}`);
}
if (comm.rank === 0)
  console.log(`${POINTS} points, in the end on ${comm.size} of ${world.size} ranks: even after ${result.step} steps`);
await win?.free();
await world.finalize();
