// @ts-check
/**
 * The product of two matrices that are spread in blocks over a grid of ranks (SUMMA). No rank sends anything: panel by
 * panel, each rank gets columns of A from its row of the grid, and rows of B from its column. The columns of a block
 * are a subarray. The next panel arrives while the current one is multiplied.
 *
 *     npx onesided run -n 4 examples/matrix-product.js -- 120
 */
import assert from 'node:assert/strict';
import { Datatype, init, Window } from 'onesided';

const N = Number(process.argv[2] ?? 120);
const PANEL = 16;

const world = await init();
const { rank, size } = world;
let down = Math.floor(Math.sqrt(size));
while (size % down !== 0) down--;
const across = size / down;
const [row, column] = [Math.floor(rank / across), rank % across];

/** Where part `i` of `parts` begins. */
const begin = (/** @type {number} */ parts, /** @type {number} */ i) => Math.floor((i * N) / parts);
/** The part that an index is in. */
const partOf = (/** @type {number} */ parts, /** @type {number} */ at) => {
  let part = 0;
  while (begin(parts, part + 1) <= at) part++;
  return part;
};
const [top, left] = [begin(down, row), begin(across, column)];
const [height, width] = [begin(down, row + 1) - top, begin(across, column + 1) - left];

/** What the matrices hold. */
const a = (/** @type {number} */ i, /** @type {number} */ j) => ((i * 7 + j * 3) % 11) - 5;
const b = (/** @type {number} */ i, /** @type {number} */ j) => ((i * 5 + j * 13) % 9) - 4;

const winA = await Window.allocate(world, Float64Array, height * width);
const winB = await Window.allocate(world, Float64Array, height * width);
for (let at = 0; at < height * width; at++) {
  const [i, j] = [top + Math.floor(at / width), left + (at % width)];
  winA.local[at] = a(i, j);
  winB.local[at] = b(i, j);
}
const product = new Float64Array(height * width);

/**
 * Panels: columns of A, and the same rows of B. No panel crosses the end of a block.
 * @type {{ first: number; depth: number; c: number; r: number }[]}
 */
const panels = [];
for (let first = 0; first < N; ) {
  const [c, r] = [partOf(across, first), partOf(down, first)];
  const end = Math.min(first + PANEL, begin(across, c + 1), begin(down, r + 1));
  panels.push({ first, depth: end - first, c, r });
  first = end;
}

/** Starts the gets of a panel. @param {(typeof panels)[number]} panel */
function fetch({ first, depth, c, r }) {
  const partA = new Float64Array(height * depth);
  const partB = new Float64Array(depth * width);
  const requests = [];
  if (height > 0 && width > 0) {
    // From the block in my row of the grid: all rows of the panel's columns.
    const stride = begin(across, c + 1) - begin(across, c);
    const columns = Datatype.subarray(
      [height, stride],
      [height, depth],
      [0, first - begin(across, c)],
      Datatype.FLOAT64,
    );
    requests.push(winA.rget(partA, row * across + c, 0, { target: { type: columns } }));
    // Rows of the block in my column are consecutive.
    requests.push(winB.rget(partB, r * across + column, (first - begin(down, r)) * width));
  }
  return { partA, partB, depth, requests };
}

await world.barrier(); // all ranks have filled their blocks
await winA.lockAll();
await winB.lockAll();
let coming = panels.length > 0 ? fetch(panels[0]) : undefined;
for (let p = 0; coming !== undefined; p++) {
  const { partA, partB, depth, requests } = coming;
  for (const request of requests) await request.wait();
  coming = p + 1 < panels.length ? fetch(panels[p + 1]) : undefined;
  for (let i = 0; i < height; i++) {
    for (let l = 0; l < depth; l++) {
      const factor = partA[i * depth + l];
      for (let j = 0; j < width; j++) product[i * width + j] += factor * partB[l * width + j];
    }
  }
}
await winA.unlockAll();
await winB.unlockAll();

for (let i = 0; i < height; i++) {
  for (let j = 0; j < width; j++) {
    let sum = 0;
    for (let l = 0; l < N; l++) sum += a(top + i, l) * b(l, left + j);
    assert.equal(product[i * width + j], sum, `row ${top + i}, column ${left + j}`);
  }
}
if (rank === 0) console.log(`${N} × ${N} matrices on ${down} × ${across} ranks, ${panels.length} panels: right`);
await winA.free();
await winB.free();
await world.finalize();
