/**
 * SPLASH-2's LU on a window: a dense matrix of n × n is factored into L·U without pivoting, in blocks, which are
 * scattered over the ranks in two dimensions (Woo et al. 1995; on windows: dissertation §4.4.2). Whoever owns a block
 * computes it. Step k:
 *
 * 1. the owner of block (k, k) factors it; barrier;
 * 2. who has blocks below it or to its right (the perimeter) fetches it and solves for them; barrier;
 * 3. who has blocks beyond (the interior) fetches what it needs of the perimeter and subtracts the products.
 *
 * Blocks are fetched one by one: lock, get, unlock. A rank computes in memory of its own, and copies a block into its
 * part of the window when that block is finished, which is once. Which blocks a rank fetches is an option: those that
 * it needs, each once a step, or as the dissertation's program did. In each step, every rank of that gets the diagonal
 * block and all blocks below it, whether it needs them or not, and gets the block of the row anew for each interior
 * block that it owns. Those are the numbers of its table 5.1, all eight, with blocks of 32.
 *
 * The barrier is what says that it is there; the next
 * step's blocks (k + 1, …) go to other places than those that are still being fetched, so none is needed after 3.
 */
import { type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { type Calls, callsOf, type Form } from '../calls.ts';
import { inRange, oneOf } from '../options.ts';
import { Grid } from './grid.ts';
import { factor, type Kernel } from './kernel.ts';
import { noKernel } from './kernel-none.ts';
import { typescriptKernel } from './kernel-typescript.ts';
import { wasmKernel } from './kernel-wasm.ts';
import { digestOf, elementOf } from './matrix.ts';
import { residualOf } from './residual.ts';
import { byRows, TILE } from './tiles.ts';

const KERNELS: Readonly<Record<string, (length: number) => Kernel>> = {
  wasm: wasmKernel,
  typescript: typescriptKernel,
  none: noKernel,
};
/** Those that calculate, so that their result can be verified. */
export const VERIFIED_KERNELS = Object.keys(KERNELS).filter((name) => name !== 'none');
/** Which blocks a rank fetches: what it needs, once; or as the dissertation's program. */
const FETCHES = ['needed', 'dissertation'] as const;
const LOCK_TYPES: Readonly<Record<string, Lock>> = { exclusive: Lock.EXCLUSIVE, shared: Lock.SHARED };

/** Above this the factorization is wrong. */
const ALLOWED_RESIDUAL = 1;
/** Milliseconds that the kernel runs before anything counts: V8 compiles it twice, and well the second time. */
const WARM_UP = 150;

export interface LuOptions {
  /** Rows and columns of the matrix. */
  readonly n: number;
  /** Rows and columns of a block: a multiple of 4. */
  readonly block: number;
  /** Of the matrix: a 32-bit integer. */
  readonly seed: number;
  /** One of {@link KERNELS}. */
  readonly kernel: string;
  /** One of {@link LOCK_TYPES}. */
  readonly lockType: string;
  /** One of {@link FETCHES}; the first by default. */
  readonly fetch?: string | undefined;
  /** Ranks of a node, to tell apart what is fetched within one. Default: all. */
  readonly perNode?: number | undefined;
  readonly form: Form;
  readonly info?: WindowInfo;
  /** How often the same matrix is factored; if several times, once more before them as a warm-up. */
  readonly samples: number;
  /** Microseconds; by default those of the clock. */
  readonly now?: () => number;
  /**
   * Called after arithmetic with the number of its operations, for machines on which time passes when it is said to.
   */
  readonly charge?: (operations: number) => void | Promise<void>;
  /** Told by every rank how many of its steps it has made, of all samples. */
  readonly progress?: (done: number, of: number) => void;
}

/** Milliseconds, the mean of all ranks and samples. */
export interface Breakdown {
  lock: number;
  get: number;
  unlock: number;
  barrier: number;
  /** The rest. */
  compute: number;
}

export interface LuResult {
  readonly n: number;
  readonly block: number;
  readonly seed: number;
  readonly ranks: number;
  /** Rows and columns of the grid of ranks. */
  readonly grid: readonly [number, number];
  readonly kernel: string;
  readonly lockType: string;
  /** Of each sample, from barrier to barrier. */
  readonly milliseconds: readonly number[];
  /** Of the fastest sample. */
  readonly gflops: number;
  readonly breakdown: Breakdown;
  /** Blocks that were fetched from other ranks in one sample, with a lock each, and their bytes. */
  readonly fetched: number;
  /** Those of them whose owner is on the same node. */
  readonly near: number;
  readonly bytes: number;
  /** How often locks have changed their mode, where they have modes, since the window was made. */
  readonly migrations: number;
  /** ‖A − L·U‖, relative: see residual.ts. */
  readonly residual: number;
  readonly verified: boolean;
  /** Of the factors' bits, the same for any number of ranks. */
  readonly digest: string;
}

/** The options for ranks that are tasks on a modelled fabric. @param gflops operations of a rank in a nanosecond */
export function chargedOn(world: Communicator, gflops: number): Pick<LuOptions, 'form' | 'now' | 'charge'> {
  return {
    form: 'promise',
    now: () => world.now(),
    charge: (operations) => world.compute(operations / (1e3 * gflops)),
  };
}

/** @throws RangeError if there can be no such factorization, with what to do */
export function checkLuOptions({ n, block, samples, seed, kernel, lockType, fetch }: LuOptions): void {
  inRange('--n', n, 1, 2 ** 20);
  inRange('--block', block, TILE, 1024);
  if (block % TILE !== 0)
    throw new RangeError(`--block is a multiple of ${TILE}, not ${block}: the arithmetic works on tiles of that size`);
  inRange('--samples', samples, 1, 10_000);
  inRange('--seed', seed, 0, 2 ** 32 - 1);
  oneOf('--kernel', kernel, Object.keys(KERNELS));
  oneOf('--lock-type', lockType, Object.keys(LOCK_TYPES));
  if (fetch !== undefined) oneOf('--fetch', fetch, FETCHES);
}

/** Collective. Factors the matrix on all ranks of the communicator, and verifies the last sample. */
export async function lu(world: Communicator, options: LuOptions): Promise<LuResult> {
  checkLuOptions(options);
  const { n, block, seed, kernel, lockType, samples, now = () => 1e3 * performance.now() } = options;
  const grid = new Grid(n, block, world.size);
  const calls = callsOf(world, options.form);
  await using window = await Window.allocate(world, Float64Array, LuRank.length(grid, world.rank, block), {
    ...(options.info === undefined ? {} : { info: options.info }),
  });
  const rank = new LuRank(world, grid, window, calls, options);
  if (options.charge === undefined) rank.warmUp();

  const milliseconds: number[] = [];
  const warmUps = samples > 1 ? 1 : 0;
  const steps = (warmUps + samples) * grid.blocks;
  for (let sample = -warmUps; sample < samples; sample++) {
    if (sample === 0) rank.forget();
    rank.fill();
    await calls.barrier();
    const start = now();
    await rank.factor((step) => options.progress?.((sample + warmUps) * grid.blocks + step, steps));
    await calls.barrier();
    if (sample >= 0) milliseconds.push((now() - start) / 1e3);
  }
  const total = milliseconds.reduce((sum, value) => sum + value, 0) / samples;
  // Without arithmetic there is nothing to verify.
  const residual = kernel === 'none' ? Number.NaN : await residualOf(world, rank, options);
  const digest = new Int32Array(1);
  await world.allreduce(Int32Array.of(rank.digest()), digest, Op.BXOR);
  const { lock, get, unlock, barrier } = rank.spent;
  const { migrations } = window.statistics().lock;
  const sums = new Float64Array(8);
  await world.allreduce(
    Float64Array.of(lock, get, unlock, barrier, rank.fetched, rank.bytes, migrations, rank.near),
    sums,
    Op.SUM,
  );
  const [meanLock, meanGet, meanUnlock, meanBarrier] = sums.map((sum) => sum / 1e3 / samples / world.size);
  return {
    n,
    block,
    seed,
    ranks: world.size,
    grid: [grid.rows, grid.columns],
    kernel,
    lockType,
    milliseconds,
    gflops: (2 * n ** 3) / 3 / Math.min(...milliseconds) / 1e6,
    breakdown: {
      lock: meanLock,
      get: meanGet,
      unlock: meanUnlock,
      barrier: meanBarrier,
      compute: total - meanLock - meanGet - meanUnlock - meanBarrier,
    },
    fetched: sums[4] / samples,
    near: sums[7] / samples,
    bytes: sums[5] / samples,
    migrations: sums[6],
    residual,
    verified: residual < ALLOWED_RESIDUAL,
    digest: (digest[0] >>> 0).toString(16).padStart(8, '0'),
  };
}

/**
 * One rank's share of a factorization. Its memory: its own blocks, in the order of their indices, and one place more,
 * in which a block that must lie by columns is turned; places for a column and a row of the perimeter; for the diagonal
 * block, by rows and by columns; 1 / U(j, j); ones.
 */
class LuRank {
  /** Microseconds in the calls. */
  readonly spent = { lock: 0, get: 0, unlock: 0, barrier: 0 };
  fetched = 0;
  near = 0;
  bytes = 0;
  readonly grid: Grid;
  readonly memory: Float64Array;
  readonly #kernel: Kernel;
  readonly #rank: number;
  readonly #window: Window;
  readonly #calls: Calls;
  readonly #now: () => number;
  readonly #charge: (operations: number) => void | Promise<void>;
  readonly #options: LuOptions;
  readonly #lockType: Lock;
  /** As in the dissertation: more than is needed. */
  readonly #fetchesAll: boolean;
  readonly #perNode: number;
  /** Elements of a whole block, which is also the distance of two blocks. */
  readonly #size: number;
  /** Where each own block lies, by index; the last one is free. */
  readonly #places: number[];
  readonly #left: number;
  readonly #above: number;
  readonly #diagonal: number;
  readonly #turned: number;
  readonly #inverses: number;
  readonly #ones: number;

  /** Elements of a rank's part of the window. */
  static length(grid: Grid, rank: number, block: number): number {
    const { down, across } = grid.share(rank);
    return down * across * block * block;
  }

  constructor(world: Communicator, grid: Grid, window: Window, calls: Calls, options: LuOptions) {
    const { block, kernel, lockType, now = () => 1e3 * performance.now(), charge = () => {} } = options;
    const { down, across } = grid.share(world.rank);
    const size = block * block;
    this.grid = grid;
    this.#rank = world.rank;
    this.#window = window;
    this.#calls = calls;
    this.#now = now;
    this.#charge = charge;
    this.#options = options;
    this.#lockType = LOCK_TYPES[lockType];
    this.#fetchesAll = options.fetch === 'dissertation';
    this.#perNode = options.perNode ?? world.size;
    this.#size = size;
    this.#places = Array.from({ length: down * across + 1 }, (_, i) => i * size);
    this.#left = this.#places.length * size;
    this.#above = this.#left + down * size;
    this.#diagonal = this.#above + across * size;
    this.#turned = this.#diagonal + size;
    this.#inverses = this.#turned + size;
    this.#ones = this.#inverses + block;
    this.#kernel = KERNELS[kernel](this.#ones + block);
    this.memory = this.#kernel.memory;
    this.memory.fill(1, this.#ones, this.#ones + block);
  }

  /** Counts and times from now on only. */
  forget(): void {
    Object.assign(this.spent, { lock: 0, get: 0, unlock: 0, barrier: 0 });
    this.fetched = 0;
    this.near = 0;
    this.bytes = 0;
  }

  /** Puts the matrix into this rank's blocks. */
  fill(): void {
    const { n, block, seed } = this.#options;
    this.#eachBlock((i, j, rows, columns) => {
      const at = this.place(i, j);
      for (let r = 0; r < rows; r++) {
        for (let c = 0; c < columns; c++) {
          this.memory[at + byRows(r, c, columns)] = elementOf(seed, n, i * block + r, j * block + c);
        }
      }
    });
  }

  place = (i: number, j: number): number => this.#places[this.grid.index(i, j)];

  warmUp(): void {
    const { block } = this.#options;
    const end = performance.now() + WARM_UP;
    do {
      this.memory.fill(0, this.#diagonal, this.#inverses);
      for (let i = 0; i < block; i++) this.memory[this.#diagonal + byRows(i, i, block)] = 2;
      factor(this.#kernel, this.#diagonal, this.#turned, this.#inverses, this.#ones, block);
      this.#kernel.update(this.#diagonal, this.#turned, this.#turned, block, block, block);
    } while (performance.now() < end);
  }

  /** Collective. @param progress told the number of steps that have been made */
  async factor(progress: (step: number) => void): Promise<void> {
    const { blocks } = this.grid;
    for (let k = 0; k < blocks; k++) {
      await this.#factorDiagonal(k);
      await this.#barrier();
      if (this.#fetchesAll && this.grid.owner(k, k) !== this.#rank) await this.#fetch(k, k, this.#diagonal);
      if (k === blocks - 1) break;
      await this.#solvePerimeter(k);
      await this.#barrier();
      await this.#updateInterior(k);
      progress(k + 1);
    }
    progress(blocks);
  }

  async #factorDiagonal(k: number): Promise<void> {
    if (this.grid.owner(k, k) !== this.#rank) return;
    const extent = this.grid.extent(k);
    factor(this.#kernel, this.place(k, k), this.#turned, this.#inverses, this.#ones, extent);
    await this.#charge((2 / 3) * extent ** 3);
    await this.#publish(k, k);
  }

  async #solvePerimeter(k: number): Promise<void> {
    const { grid, memory } = this;
    const kernel = this.#kernel;
    const below = grid.hasColumn(this.#rank, k) ? [...grid.rowsOf(this.#rank, k + 1)] : [];
    const right = grid.hasRow(this.#rank, k) ? [...grid.columnsOf(this.#rank, k + 1)] : [];
    if (below.length === 0 && right.length === 0) return;
    const extent = grid.extent(k);
    let diagonal = this.#diagonal;
    if (grid.owner(k, k) === this.#rank) {
      // Whoever has factored it has the inverses, and the block by columns, in their places already.
      diagonal = this.place(k, k);
    } else {
      if (!this.#fetchesAll) await this.#fetch(k, k, diagonal);
      kernel.turn(this.#turned, diagonal, extent, extent);
      for (let i = 0; i < extent; i++) memory[this.#inverses + i] = 1 / memory[diagonal + byRows(i, i, extent)];
    }
    for (const i of below) {
      const rows = grid.extent(i);
      kernel.solve(this.place(i, k), this.#turned, this.#inverses, rows, extent, 0, extent);
      await this.#charge(rows * extent ** 2);
      await this.#publish(i, k);
    }
    for (const j of right) {
      // X ← L⁻¹·X is Xᵀ ← Xᵀ·(Lᵀ)⁻¹: a block by columns is its transpose by rows.
      const columns = grid.extent(j);
      const index = grid.index(k, j);
      const free = this.#places.length - 1;
      kernel.turn(this.#places[free], this.#places[index], extent, columns);
      [this.#places[index], this.#places[free]] = [this.#places[free], this.#places[index]];
      kernel.solve(this.#places[index], diagonal, this.#ones, columns, extent, 0, extent);
      await this.#charge(columns * extent ** 2);
      await this.#publish(k, j);
    }
  }

  async #updateInterior(k: number): Promise<void> {
    const { grid } = this;
    const extent = grid.extent(k);
    const rows = [...grid.rowsOf(this.#rank, k + 1)];
    /** Where the blocks to the left of each row are, once they are needed. */
    const left: number[] = [];
    if (this.#fetchesAll) {
      for (let i = k + 1; i < grid.blocks; i++) {
        const r = rows.indexOf(i);
        // What is not needed goes where the diagonal block was.
        const place = await this.#have(i, k, r < 0 ? this.#diagonal : this.#left + r * this.#size);
        if (r >= 0) left[r] = place;
      }
    }
    for (const [at, j] of [...grid.columnsOf(this.#rank, k + 1)].entries()) {
      if (rows.length === 0) return;
      let above = await this.#have(k, j, this.#above + at * this.#size);
      for (const [r, i] of rows.entries()) {
        left[r] ??= await this.#have(i, k, this.#left + r * this.#size);
        if (this.#fetchesAll && r > 0) above = await this.#have(k, j, this.#above + at * this.#size);
        this.#kernel.update(this.place(i, j), left[r], above, grid.extent(i), grid.extent(j), extent);
        await this.#charge(2 * grid.extent(i) * grid.extent(j) * extent);
      }
    }
  }

  /** A finished block, fetched to a place if it is another rank's. @returns where it is */
  async #have(i: number, j: number, to: number): Promise<number> {
    if (this.grid.owner(i, j) === this.#rank) return this.place(i, j);
    await this.#fetch(i, j, to);
    return to;
  }

  async #fetch(i: number, j: number, to: number): Promise<void> {
    const { grid, spent } = this;
    const owner = grid.owner(i, j);
    const length = grid.extent(i) * grid.extent(j);
    const origin = this.memory.subarray(to, to + length);
    const began = this.#now();
    await this.#calls.lock(this.#window, owner, this.#lockType);
    const locked = this.#now();
    this.#window.get(origin, owner, grid.index(i, j) * this.#size);
    const issued = this.#now();
    await this.#calls.unlock(this.#window, owner);
    spent.unlock += this.#now() - issued;
    spent.get += issued - locked;
    spent.lock += locked - began;
    this.fetched++;
    if (Math.floor(owner / this.#perNode) === Math.floor(this.#rank / this.#perNode)) this.near++;
    this.bytes += 8 * length;
  }

  /**
   * Copies a finished block to where others can get it. Stores into a window belong between a lock and an unlock, too.
   */
  async #publish(i: number, j: number): Promise<void> {
    const { grid, spent } = this;
    const at = this.place(i, j);
    const began = this.#now();
    await this.#calls.lock(this.#window, this.#rank, Lock.EXCLUSIVE);
    const locked = this.#now();
    const block = this.memory.subarray(at, at + grid.extent(i) * grid.extent(j));
    (this.#window.local as Float64Array).set(block, grid.index(i, j) * this.#size);
    const copied = this.#now();
    await this.#calls.unlock(this.#window, this.#rank);
    spent.unlock += this.#now() - copied;
    spent.lock += locked - began;
  }

  async #barrier(): Promise<void> {
    const began = this.#now();
    await this.#calls.barrier();
    this.spent.barrier += this.#now() - began;
  }

  digest(): number {
    const { block } = this.#options;
    let digest = 0;
    this.#eachBlock((i, j, m, n) => {
      digest ^= digestOf(this.memory, this.place(i, j), { i: i * block, j: j * block, m, n, rows: i >= j });
    });
    return digest;
  }

  #eachBlock(each: (i: number, j: number, rows: number, columns: number) => void): void {
    const { grid } = this;
    for (const i of grid.rowsOf(this.#rank, 0)) {
      for (const j of grid.columnsOf(this.#rank, 0)) each(i, j, grid.extent(i), grid.extent(j));
    }
  }
}
