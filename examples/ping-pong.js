// @ts-check
/**
 * The fastest exchange between two ranks: one writes a number into the other's window; the other polls for it and
 * answers. There is no fence; a flush after each write completes it. Polling takes a whole core, so it suits short
 * waits only. (A single rank plays with itself.)
 *
 *     npx onesided run -n 2 examples/ping-pong.js -- 10000
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { init, Op, Window } from 'onesided';

const ROUNDS = Number(process.argv[2] ?? 500);

const world = await init();
const { rank, size } = world;
const PONG = size > 1 ? 1 : 0;
const win = await Window.allocate(world, Int32Array, 2);
/** Word 0 is for the ball that comes from rank 0, word 1 for the one that comes back. */
const ball = new Int32Array(1);
const seen = new Int32Array(1);
const unused = new Int32Array(1);

/**
 * Writes the ball. REPLACE is an atomic put, because the other rank reads the word meanwhile.
 * @param {number} target
 * @param {number} place
 */
function throwTo(target, place) {
  win.accumulate(ball, target, place, Op.REPLACE);
  win.flushSync(target);
}

/**
 * Reads a word of my own part, atomically, until it has the value.
 * @param {number} place
 * @param {number} value
 */
async function watch(place, value) {
  for (let looks = 1; ; looks++) {
    win.fetchAndOp(unused, seen, rank, place, Op.NO_OP);
    win.flushSync(rank);
    if (seen[0] === value) return;
    assert.equal(seen[0], value - 1, 'a ball got lost, or overtook another');
    if (looks % 1000 === 0) await sleep(1); // with more ranks than cores, the other rank needs this core
  }
}

await win.lockAll();
await world.barrier();
const start = performance.now();
for (let round = 1; round <= ROUNDS; round++) {
  ball[0] = round;
  if (rank === 0) throwTo(PONG, 0);
  if (rank === PONG) {
    await watch(0, round);
    throwTo(0, 1);
  }
  if (rank === 0) await watch(1, round);
}
const microseconds = (1000 * (performance.now() - start)) / ROUNDS;
await win.unlockAll();

if (rank === 0) console.log(`${ROUNDS} rounds, ${microseconds.toFixed(2)} µs each`);

await win.free();
await world.finalize();
