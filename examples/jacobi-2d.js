// @ts-check
/**
 * Heat in a plate, by Jacobi's method in two dimensions. The plate is cut into as many tiles as there are ranks; in
 * each step a rank puts the edges of its tile into the halos of its neighbours: rows and columns are subarrays. Once
 * for each style of synchronization, with one result.
 *
 *     npx onesided run -n 4 examples/jacobi-2d.js -- 16 100
 */
import assert from 'node:assert/strict';
import { Datatype, init, Lock, Rank, Window } from 'onesided';

const TILE = Number(process.argv[2] ?? 16);
const STEPS = Number(process.argv[3] ?? 100);
const WIDTH = TILE + 2; // with the halo
const HOT = 100; // north of the plate; the other sides are cold

const world = await init();
const { rank, size } = world;
let across = Math.floor(Math.sqrt(size));
while (size % across !== 0) across--;
const down = size / across;
const [row, column] = [Math.floor(rank / across), rank % across];
const at = (/** @type {number} */ r, /** @type {number} */ c) =>
  r < 0 || r >= down || c < 0 || c >= across ? Rank.NULL : r * across + c;

/** An edge of a tile: `height` × `width` points from a place on. */
const edge = (
  /** @type {number} */ height,
  /** @type {number} */ width,
  /** @type {number} */ top,
  /** @type {number} */ left,
) => Datatype.subarray([WIDTH, WIDTH], [height, width], [top, left], Datatype.FLOAT64);
/** The target, my edge, and where it goes in the target's halo. A put to Rank.NULL does nothing. */
const exchanges = [
  { to: at(row - 1, column), mine: edge(1, TILE, 1, 1), theirs: edge(1, TILE, TILE + 1, 1) },
  { to: at(row + 1, column), mine: edge(1, TILE, TILE, 1), theirs: edge(1, TILE, 0, 1) },
  { to: at(row, column - 1), mine: edge(TILE, 1, 1, 1), theirs: edge(TILE, 1, 1, TILE + 1) },
  { to: at(row, column + 1), mine: edge(TILE, 1, 1, TILE), theirs: edge(TILE, 1, 1, 0) },
];
const neighbours = world.group.include(exchanges.map(({ to }) => to).filter((to) => to !== Rank.NULL));

const win = await Window.allocate(world, Float64Array, WIDTH * WIDTH);
const tile = win.local;
const put = (/** @type {(typeof exchanges)[number]} */ { to, mine, theirs }) =>
  win.put(tile, to, 0, { origin: { type: mine }, target: { type: theirs } });

/** All halos are complete after the fence, and are used before the next one. */
async function byFence() {
  await win.fence();
  for (const exchange of exchanges) put(exchange);
  await win.fence();
}
/** Only neighbours wait for each other: post permits writing to my halo, wait returns when it is complete. */
async function byNeighbours() {
  win.post(neighbours);
  await win.start(neighbours);
  for (const exchange of exchanges) put(exchange);
  await win.complete();
  await win.wait();
}
/** One neighbour at a time; then a barrier, so that every rank knows that all halos are complete. */
async function byLocks() {
  await world.barrier();
  for (const exchange of exchanges) {
    await win.lock(exchange.to, Lock.SHARED);
    put(exchange);
    await win.unlock(exchange.to);
  }
  await world.barrier();
}

for (const exchangeHalos of [byFence, byNeighbours, byLocks]) {
  await world.barrier(); // no rank puts into a tile that is still being read or set up
  win.sync();
  tile.fill(0);
  if (row === 0) tile.fill(HOT, 0, WIDTH);
  await world.barrier();
  for (let step = 0; step < STEPS; step++) {
    await exchangeHalos();
    relax(tile, WIDTH, WIDTH);
    win.sync();
  }
  // One rank alone computes the whole plate, and must find the same numbers to the last bit.
  const plate = new Float64Array((down * TILE + 2) * (across * TILE + 2)).fill(HOT, 0, across * TILE + 2);
  for (let step = 0; step < STEPS; step++) relax(plate, down * TILE + 2, across * TILE + 2);
  for (let i = 1; i <= TILE; i++) {
    const start = (row * TILE + i) * (across * TILE + 2) + column * TILE + 1;
    const whole = plate.subarray(start, start + TILE);
    assert.deepEqual(tile.subarray(i * WIDTH + 1, i * WIDTH + 1 + TILE), whole, `${exchangeHalos.name}, row ${i}`);
  }
  if (rank === 0) console.log(`${down} × ${across} tiles, ${STEPS} steps, ${exchangeHalos.name}: right`);
}
await win.free();
await world.finalize();

/** Every point inside becomes the mean of its four neighbours. */
function relax(/** @type {Float64Array} */ points, /** @type {number} */ height, /** @type {number} */ width) {
  const old = points.slice();
  for (let i = 1; i < height - 1; i++) {
    for (let j = i * width + 1; j < (i + 1) * width - 1; j++) {
      points[j] = (old[j - 1] + old[j + 1] + old[j - width] + old[j + width]) / 4;
    }
  }
}
