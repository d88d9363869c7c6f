/**
 * Jacobi's iteration for Laplace's equation on a square grid, as a bulk-synchronous program (Martin and Tiskin 1999,
 * section 1): each process has a strip of whole rows, or a square, and puts its borders to its neighbours. The machine
 * is probed first, so that the time of an iteration can be predicted, and compared with what it took.
 *
 * The result is compared with that of one process, all elements of it.
 */
import { type Communicator, Op } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import { type GridParts, jacobi as jacobiCost, microseconds, probe } from 'onesided/bsp/model';
import type { Machine } from '../patterns/machine.ts';

export interface JacobiOptions extends BspOptions {
  /** Points of a side of the grid, without its fixed border. */
  readonly n: number;
  readonly parts: GridParts;
  /** That are timed. */
  readonly iterations: number;
  /** Million operations a second that the arithmetic is charged at, where time is virtual. */
  readonly mflops: number;
}

export interface JacobiResult {
  readonly n: number;
  readonly parts: GridParts;
  readonly processes: number;
  /** Of an iteration, of the process that took longest. */
  readonly microseconds: number;
  /** What the model says, with the speed of these loops and the g and l that were probed. */
  readonly predicted: number;
  /** What was probed, in microseconds: of a superstep, and of a word. */
  readonly l: number;
  readonly g: number;
  /** Million operations a second of these loops. */
  readonly mflops: number;
  /** Elements that are not those of one process, of all processes. */
  readonly errors: number;
}

/**
 * Iterations before those that are timed, as many as the probe has supersteps before it times any: in the first ones
 * links to neighbours are made, and `delivery: 'auto'` tries each way.
 */
const WARM = 7;

/** What the fixed border is at a point. */
const border = (row: number, column: number): number => Math.sin(row) + Math.cos(2 * column);

/** How the processes lie on the grid, and this one's part of it. */
class Part {
  readonly rows: number;
  readonly columns: number;
  readonly firstRow: number;
  readonly firstColumn: number;
  /** Processes above, below, left and right; −1 at the border. */
  readonly neighbours: readonly [above: number, below: number, left: number, right: number];

  constructor({ pid, nprocs }: Bsp, n: number, parts: GridParts) {
    const across = parts === 'strips' ? 1 : Math.sqrt(nprocs);
    const down = nprocs / across;
    if (!Number.isInteger(across) || n % down !== 0 || n % across !== 0) {
      throw new RangeError(
        `${nprocs} processes cannot have ${parts} of a grid of ${n} × ${n}: ${down} × ${across} of them`,
      );
    }
    const [row, column] = [Math.floor(pid / across), pid % across];
    this.rows = n / down;
    this.columns = n / across;
    this.firstRow = row * this.rows;
    this.firstColumn = column * this.columns;
    this.neighbours = [
      row > 0 ? pid - across : -1,
      row < down - 1 ? pid + across : -1,
      column > 0 ? pid - 1 : -1,
      column < across - 1 ? pid + 1 : -1,
    ];
  }
}

/** A part with a line of points around it. */
class Field {
  readonly width: number;
  now: Float64Array;
  next: Float64Array;
  readonly #part: Part;

  constructor(part: Part) {
    this.#part = part;
    this.width = part.columns + 2;
    this.now = new Float64Array((part.rows + 2) * this.width);
    for (let i = 0; i < part.rows + 2; i++) {
      for (let j = 0; j < this.width; j++)
        this.now[i * this.width + j] = border(part.firstRow + i, part.firstColumn + j);
    }
    for (let i = 1; i <= part.rows; i++) this.now.fill(0, i * this.width + 1, i * this.width + 1 + part.columns);
    this.next = this.now.slice();
  }

  iterate(): void {
    const { rows, columns } = this.#part;
    const { now, next, width } = this;
    for (let i = 1; i <= rows; i++) {
      for (let at = i * width + 1; at <= i * width + columns; at++) {
        next[at] = 0.25 * (now[at - width] + now[at + width] + now[at - 1] + now[at + 1]);
      }
    }
    this.now = next;
    this.next = now;
  }

  row(i: number): Float64Array {
    return this.now.subarray(i * this.width + 1, i * this.width + 1 + this.#part.columns);
  }

  readColumn(j: number, into: Float64Array): void {
    for (let i = 0; i < into.length; i++) into[i] = this.now[(i + 1) * this.width + j];
  }

  writeColumn(j: number, from: Float64Array): void {
    for (let i = 0; i < from.length; i++) this.now[(i + 1) * this.width + j] = from[i];
  }
}

/** What a process gets from its neighbours: lines of points above, below, left and right of its part. */
class Borders {
  readonly #bsp: Bsp;
  readonly #part: Part;
  readonly #incoming: readonly Float64Array[];
  readonly #column: Float64Array;

  constructor(bsp: Bsp, part: Part) {
    this.#bsp = bsp;
    this.#part = part;
    const { rows, columns } = part;
    this.#incoming = [columns, columns, rows, rows].map((length) => new Float64Array(length));
    this.#column = new Float64Array(rows);
    for (const line of this.#incoming) bsp.pushReg(line);
  }

  /** To each neighbour, the line that lies beside it: what is above for it is the last row here, and so on. */
  put(field: Field): void {
    const { rows, columns, neighbours } = this.#part;
    const [above, below, left, right] = neighbours;
    const [fromAbove, fromBelow, fromLeft, fromRight] = this.#incoming;
    if (above >= 0) this.#bsp.put(above, field.row(1), fromBelow);
    if (below >= 0) this.#bsp.put(below, field.row(rows), fromAbove);
    for (const [to, j, line] of [[left, 1, fromRight] as const, [right, columns, fromLeft] as const]) {
      if (to < 0) continue;
      field.readColumn(j, this.#column);
      this.#bsp.put(to, this.#column, line);
    }
  }

  take(field: Field): void {
    const { rows, columns, neighbours } = this.#part;
    const [fromAbove, fromBelow, fromLeft, fromRight] = this.#incoming;
    if (neighbours[0] >= 0) field.row(0).set(fromAbove);
    if (neighbours[1] >= 0) field.row(rows + 1).set(fromBelow);
    if (neighbours[2] >= 0) field.writeColumn(0, fromLeft);
    if (neighbours[3] >= 0) field.writeColumn(columns + 1, fromRight);
  }
}

/** Collective. */
export async function jacobi(world: Communicator, options: JacobiOptions, machine: Machine): Promise<JacobiResult> {
  const { n, parts, iterations, mflops, ...given } = options;
  const bsp = await begin(world, given);
  const part = new Part(bsp, n, parts);
  // Borders are put as a whole: so are the words of the probe.
  const grain = parts === 'strips' ? part.columns : part.rows;
  const { microseconds: probed } = await probe(bsp, { relation: 'sparse', grain, most: 4 * grain, mflops });
  const field = new Field(part);
  const borders = new Borders(bsp, part);
  await bsp.sync();
  const work = 4 * part.rows * part.columns;
  const sync = machine.form === 'sync' ? () => bsp.syncSync() : () => bsp.sync();
  let computed = 0;
  const iterate = async (): Promise<void> => {
    borders.put(field);
    await sync();
    borders.take(field);
    const from = machine.now();
    field.iterate();
    await machine.charge(work / mflops);
    computed += machine.now() - from;
  };
  for (let i = 0; i < WARM; i++) await iterate();
  computed = 0;
  const began = machine.now();
  for (let i = 0; i < iterations; i++) await iterate();
  const took = Float64Array.of((machine.now() - began) / iterations, computed / iterations);
  const longest = new Float64Array(2);
  await world.allreduce(took, longest, Op.MAX);
  const errors = new Float64Array(1);
  await world.allreduce(Float64Array.of(wrong(field, part, n, WARM + iterations)), errors, Op.SUM);
  await bsp.end();
  const s = work / longest[1];
  const model = { s, p: bsp.nprocs, l: probed.l * s, g: probed.g * s };
  return {
    ...{ n, parts, processes: bsp.nprocs },
    microseconds: longest[0],
    predicted: microseconds(model, jacobiCost(model, n, parts)),
    ...{ l: probed.l, g: probed.g, mflops: s, errors: errors[0] },
  };
}

/** Elements of this part that differ from those of one process. */
function wrong(field: Field, part: Part, n: number, iterations: number): number {
  const all = new Field({ rows: n, columns: n, firstRow: 0, firstColumn: 0 } as Part);
  for (let i = 0; i < iterations; i++) all.iterate();
  let errors = 0;
  for (let i = 1; i <= part.rows; i++) {
    for (let j = 1; j <= part.columns; j++) {
      const there = all.now[(part.firstRow + i) * all.width + part.firstColumn + j];
      if (field.now[i * field.width + j] !== there) errors++;
    }
  }
  return errors;
}
