// @ts-check
/**
 * A matrix whose rows are spread over the ranks is transposed by one put to each rank. The program copies no element:
 * the origin's datatype reads a block of the matrix column by column, and the target's writes it row by row.
 *
 *     npx onesided run -n 4 examples/transpose.js -- 64
 */
import assert from 'node:assert/strict';
import { Datatype, init, Window } from 'onesided';

const N = Number(process.argv[2] ?? 64);

const world = await init();
const { rank, size } = world;
/** The first row of a rank. @param {number} r */
const firstRow = (r) => Math.floor((r * N) / size);
const first = firstRow(rank);
const rows = firstRow(rank + 1) - first;

const matrix = new Float64Array(rows * N).map((_, i) => (first + Math.floor(i / N)) * N + (i % N));
const transposed = await Window.allocate(world, Float64Array, rows * N);

await transposed.fence();
for (let target = 0; target < size; target++) {
  const start = firstRow(target);
  const columns = firstRow(target + 1) - start;
  if (rows === 0 || columns === 0) continue;
  // One column of my rows; the next column begins one element further on.
  const column = Datatype.resized(Datatype.vector(rows, 1, N, Datatype.FLOAT64), 0, 8);
  // At the target, my rows become columns: a block as wide as my number of rows.
  const block = Datatype.subarray([columns, N], [columns, rows], [0, first], Datatype.FLOAT64);
  transposed.put(matrix.subarray(start), target, 0, {
    origin: { type: column, count: columns },
    target: { type: block },
  });
}
await transposed.fence();

for (let i = 0; i < rows; i++) {
  for (let j = 0; j < N; j++)
    assert.equal(transposed.local[i * N + j], j * N + first + i, `row ${first + i}, column ${j}`);
}
if (rank === 0) console.log(`${N} × ${N} numbers transposed by ${size} ranks, ${size} puts each`);

await transposed.free();
await world.finalize();
