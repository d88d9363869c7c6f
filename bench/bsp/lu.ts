/**
 * LU decomposition with partial pivoting as a bulk-synchronous program (BSP-IB §4.2 measures BSPedupack's). Element
 * (i, j) is at process (i mod M, j mod N) of a grid of M × N. Three supersteps for each column k:
 *
 *     1. who has a part of column k puts the largest element of it, and its row, to all processes;
 *     2. all know the pivot's row r and its value; rows r and k change places, where they are at different processes;
 *     3. who has column k divides it by the pivot and puts it along the rows of the grid, who has row k puts that along
 *        the columns.
 *
 * Then each process subtracts the product of both from its part. One process does the same operations on an element in
 * the same order, so the result must have the same bits; it is compared with that.
 */
import { type Communicator, Op } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import type { Machine } from '../patterns/machine.ts';
import { type Measured, median } from './measured.ts';

export interface LuOptions extends BspOptions {
  readonly n: number;
  readonly samples: number;
  /** Million operations a second that the arithmetic is charged at, where time is virtual. */
  readonly mflops: number;
}

export interface LuResult extends Measured {
  readonly n: number;
  readonly grid: readonly [rows: number, columns: number];
}

/** The matrix, by place: no row is the largest in all columns, so that rows do change places. */
const element = (i: number, j: number): number => Math.sin(1 + 3 * i + 7 * j + ((i * j) % 11)) + (i === j ? 0.5 : 0);

/** A process's part of the matrix, by its rows, and where it lies. */
class Part {
  readonly rows: number;
  readonly columns: number;
  /** Its row and column in the grid. */
  readonly s: number;
  readonly t: number;
  readonly values: Float64Array;

  constructor(pid: number, [M, N]: readonly [number, number], n: number) {
    [this.s, this.t] = [Math.floor(pid / N), pid % N];
    this.rows = Math.ceil((n - this.s) / M);
    this.columns = Math.ceil((n - this.t) / N);
    this.values = new Float64Array(this.rows * this.columns);
    for (let i = 0; i < this.rows; i++) {
      for (let j = 0; j < this.columns; j++)
        this.values[i * this.columns + j] = element(i * M + this.s, j * N + this.t);
    }
  }

  row(i: number): Float64Array {
    return this.values.subarray(i * this.columns, (i + 1) * this.columns);
  }
}

/** What a process gets from others, registered. */
interface Incoming {
  /** By row of the grid: the largest element of the column there, and its row. */
  readonly largest: Float64Array;
  /** The other one of two rows that change places. */
  readonly swapped: Float64Array;
  /** Column k and row k, as far as they concern this process. */
  readonly column: Float64Array;
  readonly row: Float64Array;
}

/** As square as can be. */
function gridOf(p: number): readonly [number, number] {
  let M = Math.floor(Math.sqrt(p));
  while (p % M !== 0) M--;
  return [M, p / M];
}

/** Collective. */
export async function lu(world: Communicator, options: LuOptions, machine: Machine): Promise<LuResult> {
  const { n, samples, mflops, ...given } = options;
  const bsp = await begin(world, given);
  const grid = gridOf(bsp.nprocs);
  const longest = new Float64Array(samples);
  const times = new Float64Array(samples);
  let part = new Part(bsp.pid, grid, n);
  const into: Incoming = {
    largest: new Float64Array(2 * grid[0]),
    swapped: new Float64Array(part.columns),
    column: new Float64Array(part.rows),
    row: new Float64Array(part.columns),
  };
  for (const one of Object.values(into)) bsp.pushReg(one);
  await bsp.sync();
  const sync = async (): Promise<void> => (machine.form === 'sync' ? bsp.syncSync() : bsp.sync());
  for (let sample = 0; sample < samples; sample++) {
    part = new Part(bsp.pid, grid, n);
    await sync();
    const began = machine.now();
    for (let k = 0; k < n; k++) await eliminate(bsp, part, into, grid, k, sync, (ops) => machine.charge(ops / mflops));
    times[sample] = machine.now() - began;
  }
  await world.allreduce(times, longest, Op.MAX);
  const errors = new Float64Array(1);
  await world.allreduce(Float64Array.of(wrong(part, grid, n)), errors, Op.SUM);
  await bsp.end();
  const took = median([...longest]);
  return { n, grid, processes: bsp.nprocs, microseconds: took, mflops: (2 * n ** 3) / 3 / took, errors: errors[0] };
}

/** Column k. @param charge the time of so many operations */
async function eliminate(
  bsp: Bsp,
  part: Part,
  into: Incoming,
  [M, N]: readonly [number, number],
  k: number,
  sync: () => Promise<void>,
  charge: (operations: number) => void | Promise<void>,
): Promise<void> {
  const { s, t, rows, columns, values } = part;
  const jk = Math.floor(k / N);
  const hasColumn = k % N === t;
  /** The first local row from a row on, and so for columns. */
  const rowFrom = (i: number): number => Math.ceil(Math.max(0, i - s) / M);
  const columnFrom = (j: number): number => Math.ceil(Math.max(0, j - t) / N);
  if (hasColumn) {
    const [value, row] = largestIn(part, jk, rowFrom(k), M);
    for (let pid = 0; pid < M * N; pid++) bsp.put(pid, Float64Array.of(value, row), into.largest, 2 * s);
    await charge(rows - rowFrom(k));
  }
  await sync();
  const [pivot, r] = largestOf(into.largest);
  const [ik, ir] = [Math.floor(k / M), Math.floor(r / M)];
  const [hasK, hasR] = [k % M === s, r % M === s];
  if (r !== k && hasK !== hasR) {
    bsp.put(((hasK ? r : k) % M) * N + t, part.row(hasK ? ik : ir), into.swapped);
    await sync();
    part.row(hasK ? ik : ir).set(into.swapped);
  } else {
    if (r !== k && hasK) {
      into.swapped.set(part.row(ik));
      part.row(ik).set(part.row(ir));
      part.row(ir).set(into.swapped);
    }
    await sync();
  }
  const [i0, j0] = [rowFrom(k + 1), columnFrom(k + 1)];
  if (hasColumn) {
    for (let i = i0; i < rows; i++) into.column[i] = values[i * columns + jk] /= pivot;
    await charge(rows - i0);
    for (let other = 0; other < N; other++) {
      if (other !== t && i0 < rows) bsp.put(s * N + other, into.column, into.column, i0, rows - i0, i0);
    }
  }
  if (hasK) {
    into.row.set(part.row(ik));
    for (let other = 0; other < M; other++) {
      if (other !== s && j0 < columns) bsp.put(other * N + t, into.row, into.row, j0, columns - j0, j0);
    }
  }
  await sync();
  for (let i = i0; i < rows; i++) {
    const factor = into.column[i];
    for (let j = j0, at = i * columns + j0; j < columns; j++, at++) values[at] -= factor * into.row[j];
  }
  await charge(2 * (rows - i0) * (columns - j0));
}

/** The element of a local column that is largest, from a local row on, and its row in the matrix. */
function largestIn({ values, columns, rows, s }: Part, j: number, from: number, M: number): readonly [number, number] {
  let [value, row] = [0, -1];
  for (let i = from; i < rows; i++) {
    const one = values[i * columns + j];
    if (row < 0 || Math.abs(one) > Math.abs(value)) [value, row] = [one, i * M + s];
  }
  return [value, row];
}

/** Of all rows of the grid; the first row in the matrix where several are as large, as one process finds it. */
function largestOf(all: Float64Array): readonly [number, number] {
  let [value, row] = [0, -1];
  for (let i = 0; i < all.length; i += 2) {
    if (all[i + 1] < 0) continue;
    const [more, same] = [Math.abs(all[i]) > Math.abs(value), Math.abs(all[i]) === Math.abs(value)];
    if (row < 0 || more || (same && all[i + 1] < row)) [value, row] = [all[i], all[i + 1]];
  }
  return [value, row];
}

const decomposed = new Map<number, Float64Array>();

/** By one process, without a grid. Kept for the other tasks of this process. */
function decompose(n: number): Float64Array {
  const known = decomposed.get(n);
  if (known !== undefined) return known;
  const part = new Part(0, [1, 1], n);
  const { values } = part;
  const kept = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    const [pivot, r] = largestIn(part, k, k, 1);
    if (r !== k) {
      kept.set(part.row(k));
      part.row(k).set(part.row(r));
      part.row(r).set(kept);
    }
    for (let i = k + 1; i < n; i++) {
      const factor = (values[i * n + k] /= pivot);
      for (let j = k + 1; j < n; j++) values[i * n + j] -= factor * values[k * n + j];
    }
  }
  decomposed.set(n, values);
  return values;
}

function wrong({ values, rows, columns, s, t }: Part, [M, N]: readonly [number, number], n: number): number {
  const expected = decompose(n);
  let errors = 0;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      if (values[i * columns + j] !== expected[(i * M + s) * n + j * N + t]) errors++;
    }
  }
  return errors;
}
