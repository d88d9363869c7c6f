/**
 * SUMMA, the dense matrix product C = A · B on a grid of ranks (van de Geijn and Watts, 1997), with one-sided gets as
 * in the dissertation's §8.3: each rank has a block of each matrix. Panel after panel, it gets some columns of A from a
 * rank of its row of the grid, and as many rows of B from a rank of its column, and adds their product to its block of
 * C. Columns of a block that is stored by rows are not consecutive: what is got is a subarray. The next panel is
 * on its way while this rank computes with the current one.
 *
 * The result is compared with the direct product of what each element is by definition, all elements of it.
 */
import { type Communicator, Datatype, Op, type Request, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import type { Machine } from '../patterns/machine.ts';
import { median } from '../statistics.ts';
import { Arithmetic } from './arithmetic.ts';
import { beginOf, elementOf, type Grid, gridOf, type Panel, panelsOf } from './blocks.ts';

export interface SummaOptions {
  /** A is m × k, B is k × n. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Columns of A in a panel, at most. */
  readonly panel: number;
  /** Products that are measured. */
  readonly samples: number;
  /** Operations a nanosecond that the arithmetic is charged at, where time is virtual. */
  readonly gflops: number;
  /** It is charged, and not done: nothing is compared. */
  readonly onlyCharged?: boolean;
  readonly info: WindowInfo;
}

export interface SummaResult {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly panel: number;
  readonly grid: readonly [rows: number, columns: number];
  /** Of a product: the median, of the rank for which it was longest. */
  readonly microseconds: number;
  /** Additions and multiplications of all ranks, in a nanosecond. */
  readonly gflops: number;
  /** Of that time, what this rank has waited for panels. */
  readonly waited: number;
  /** Of each product, as it was measured: milliseconds of the whole, and of rank 0's gets with their waiting. */
  readonly milliseconds: readonly number[];
  readonly fetching: readonly number[];
  /** Elements that are not those of the direct product, of all ranks. */
  readonly errors: number;
}

/** A and B of a panel, while they come and when they are there. */
interface Fetched {
  readonly a: Float64Array;
  readonly b: Float64Array;
  requests: readonly Request[];
}

/** This rank's block of each matrix, and what the others have. */
class Product {
  readonly grid: Grid;
  readonly panels: readonly Panel[];
  readonly #world: Communicator;
  readonly #options: SummaOptions;
  readonly #machine: Machine;
  /** Where this rank's rows and columns of C begin, and how many they are. */
  readonly #top: number;
  readonly #left: number;
  readonly #height: number;
  readonly #width: number;
  readonly #row: number;
  readonly #column: number;
  readonly #c: Arithmetic;
  readonly #fetched: readonly Fetched[];

  constructor(world: Communicator, options: SummaOptions, machine: Machine) {
    const { m, n, k, panel } = options;
    this.#world = world;
    this.#options = options;
    this.#machine = machine;
    this.grid = gridOf(world.size);
    const { rows, columns } = this.grid;
    this.panels = panelsOf(k, this.grid, panel);
    this.#row = Math.floor(world.rank / columns);
    this.#column = world.rank % columns;
    this.#top = beginOf(m, rows, this.#row);
    this.#left = beginOf(n, columns, this.#column);
    this.#height = beginOf(m, rows, this.#row + 1) - this.#top;
    this.#width = beginOf(n, columns, this.#column + 1) - this.#left;
    const [height, width] = options.onlyCharged === true ? [0, 0] : [this.#height, this.#width];
    this.#c = new Arithmetic(height, width, panel);
    this.#fetched = [0, 1].map(() => ({
      a: new Float64Array(this.#height * panel),
      b: new Float64Array(panel * this.#width),
      requests: [],
    }));
  }

  /** The columns of A that a column of the grid has: where they begin, and how many they are. */
  #columnsOfA(gridColumn: number): [begin: number, count: number] {
    const { k } = this.#options;
    const begin = beginOf(k, this.grid.columns, gridColumn);
    return [begin, beginOf(k, this.grid.columns, gridColumn + 1) - begin];
  }

  #rowsOfB(gridRow: number): [begin: number, count: number] {
    const { k } = this.#options;
    const begin = beginOf(k, this.grid.rows, gridRow);
    return [begin, beginOf(k, this.grid.rows, gridRow + 1) - begin];
  }

  /** This rank's blocks of A and B, as windows with what they hold by definition. */
  async windows(): Promise<[a: Window<Float64Array>, b: Window<Float64Array>]> {
    const { info } = this.#options;
    const [left, across] = this.#columnsOfA(this.#column);
    const [top, down] = this.#rowsOfB(this.#row);
    const a = await Window.allocate(this.#world, Float64Array, this.#height * across, { info });
    const b = await Window.allocate(this.#world, Float64Array, down * this.#width, { info });
    fill(a.local, 1, this.#top, left, across);
    fill(b.local, 2, top, this.#left, this.#width);
    return [a, b];
  }

  /** Starts the gets of a panel, into one of the two places for them. */
  #fetch(turn: number, [a, b]: readonly [Window<Float64Array>, Window<Float64Array>]): Fetched {
    const panel = this.panels[turn];
    const fetched = this.#fetched[turn & 1];
    const { columns } = this.grid;
    const [height, width] = [this.#height, this.#width];
    const [firstColumn, across] = this.#columnsOfA(panel.gridColumn);
    const [firstRow] = this.#rowsOfB(panel.gridRow);
    const requests: Request[] = [];
    if (height > 0) {
      // All rows of the block, and of each the columns of the panel.
      const start = [0, panel.begin - firstColumn];
      const type = Datatype.subarray([height, across], [height, panel.width], start, Datatype.FLOAT64);
      const owner = this.#row * columns + panel.gridColumn;
      requests.push(a.rget(fetched.a.subarray(0, height * panel.width), owner, 0, { target: { type } }));
    }
    if (width > 0) {
      const owner = panel.gridRow * columns + this.#column;
      const at = (panel.begin - firstRow) * width;
      requests.push(b.rget(fetched.b.subarray(0, panel.width * width), owner, at));
    }
    fetched.requests = requests;
    return fetched;
  }

  /** One product. @returns microseconds that this rank has waited for panels, and those of its gets as well */
  async run(
    windows: readonly [Window<Float64Array>, Window<Float64Array>],
  ): Promise<{ waited: number; fetching: number }> {
    const machine = this.#machine;
    const { panels } = this;
    let waited = 0;
    let started = 0;
    const fetch = (turn: number): Fetched => {
      const began = machine.now();
      const fetched = this.#fetch(turn, windows);
      started += machine.now() - began;
      return fetched;
    };
    this.#c.clear();
    for (const win of windows) await win.lockAll();
    let coming = fetch(0);
    for (let turn = 0; turn < panels.length; turn++) {
      const { a, b, requests } = coming;
      const began = machine.now();
      for (const request of requests) {
        if (machine.form === 'sync') request.waitSync();
        else await request.wait();
      }
      waited += machine.now() - began;
      if (turn + 1 < panels.length) coming = fetch(turn + 1);
      const depth = panels[turn].width;
      if (this.#options.onlyCharged !== true) this.#c.add(a, b, depth);
      await machine.charge((2 * this.#height * this.#width * depth) / (1e3 * this.#options.gflops));
    }
    for (const win of windows) await win.unlockAll();
    return { waited, fetching: started + waited };
  }

  /** Elements of this rank's block that are not those of the direct product. */
  errors(): number {
    const { k, onlyCharged } = this.#options;
    if (onlyCharged === true) return 0;
    const b = new Float64Array(k * this.#width);
    fill(b, 2, 0, this.#left, this.#width);
    let errors = 0;
    for (let i = 0; i < this.#height; i++) {
      const sums = new Float64Array(this.#width);
      for (let l = 0; l < k; l++) {
        const factor = elementOf(1, this.#top + i, l);
        for (let j = 0; j < sums.length; j++) sums[j] += factor * b[l * this.#width + j];
      }
      for (let j = 0; j < sums.length; j++) if (sums[j] !== this.#c.element(i, j)) errors++;
    }
    return errors;
  }
}

/** Collective. */
export async function summa(world: Communicator, options: SummaOptions, machine: Machine): Promise<SummaResult> {
  const { m, n, k, panel, samples } = options;
  const calls = callsOf(world, machine.form);
  const product = new Product(world, options, machine);
  const windows = await product.windows();
  const times: number[] = [];
  const waits: number[] = [];
  const fetching: number[] = [];
  for (let sample = -1; sample < samples; sample++) {
    await calls.barrier();
    const began = machine.now();
    const spent = await product.run(windows);
    const took = Float64Array.of(machine.now() - began);
    const slowest = new Float64Array(1);
    await world.allreduce(took, slowest, Op.MAX);
    if (sample < 0) continue;
    times.push(slowest[0]);
    waits.push(spent.waited);
    fetching.push(spent.fetching / 1e3);
  }
  const errors = new Float64Array(1);
  await world.allreduce(Float64Array.of(product.errors()), errors, Op.SUM);
  for (const win of windows) await win.free();
  const microseconds = median(times);
  const { rows, columns } = product.grid;
  return {
    ...{ m, n, k, panel, microseconds, errors: errors[0] },
    grid: [rows, columns],
    gflops: (2 * m * n * k) / (1e3 * microseconds),
    waited: median(waits),
    milliseconds: times.map((time) => time / 1e3),
    fetching,
  };
}

/** Fills a block whose first element is that of a row and a column of the matrix. */
function fill(block: Float64Array, which: number, top: number, left: number, width: number): void {
  for (let at = 0; at < block.length; at++) {
    block[at] = elementOf(which, top + Math.floor(at / width), left + (at % width));
  }
}
