/**
 * NAS MG: V-cycles of multigrid for a Poisson equation on a periodic cube (NPB 1, §2.4), on a process grid as NPB's MPI
 * version has it, in one of three styles of communication (../link.ts). Verified by NAS' own check of the norm of the
 * residual.
 *
 * Restriction, smoothing and the residual each end with an exchange of ghosts. The non-blocking style computes the
 * surface of a block first and lets its faces travel while the inside is computed, and posts what goes along the next
 * axis while it works on the current one, which brought the dissertation "most of the improvement" (§9.3.3).
 *
 * Without `arithmetic`, all messages are sent and all time is charged, and nothing is computed: for large classes on
 * modelled fabrics.
 */
import { type Communicator, Op } from 'onesided';
import { callsOf } from '../../calls.ts';
import type { Machine } from '../../patterns/machine.ts';
import { median } from '../../statistics.ts';
import { type ClassName, MG_CLASSES, mgIsRight } from '../classes.ts';
import { Links, type StyleName } from '../links.ts';
import type { KernelName, NasOptions } from '../options.ts';
import { placeCharges } from './charges.ts';
import { Exchange, lengthsAround } from './exchange.ts';
import { type Block, blockOf, type Level, numbersIn, Place, pointsIn, type Triple, triple } from './grid.ts';
import { interpolate, MINUS_A, OPERATIONS, RESTRICTION, squares, stencil } from './kernels.ts';
import { type Rows, typescriptRows, type Weights } from './rows.ts';
import { wasmRows } from './rows-wasm.ts';

export interface MgResult {
  readonly class: ClassName;
  readonly style: StyleName;
  readonly n: number;
  readonly iterations: number;
  readonly grid: Triple;
  /** Of all iterations and the first residual, of the rank for which they were longest; and of an iteration alone. */
  readonly microseconds: number;
  readonly each: number;
  /** Of each sample, the first of these; those above are medians. */
  readonly milliseconds: readonly number[];
  /** Of the residual in the end; NaN without arithmetic. */
  readonly norm: number;
  /** Of the class, for comparison. */
  readonly expected: number;
  /** 1 if NAS' check fails. */
  readonly errors: number;
}

/** A level with its numbers. */
interface Grid {
  readonly level: Level;
  readonly u: Block;
  readonly r: Block;
}

function lengthsOf(level: Level): Triple {
  return level.active ? level.lengths : [0, 0, 0];
}

/** With room for u and r of each level, the right-hand side, and what comes from others where a rank has no points. */
function rowsFor(levels: readonly Level[], kernel: KernelName = 'typescript'): Rows {
  const longest = Math.max(...levels.map(({ lengths }) => lengths[0]));
  if (kernel === 'typescript') return typescriptRows(longest);
  return wasmRows(longest, [
    ...levels.flatMap((level) => [lengthsOf(level), lengthsOf(level), lengthsAround(level)]).map(numbersIn),
    numbersIn(lengthsOf(levels[levels.length - 1])),
  ]);
}

class Multigrid {
  readonly place: Place;
  readonly grids: readonly Grid[];
  /** The right-hand side. */
  readonly v: Block;
  readonly #smoother: Weights;
  readonly #exchange: Exchange;
  /** Undefined without arithmetic. */
  readonly #rows: Rows | undefined;
  readonly #charge: (operations: number) => void | Promise<void>;

  private constructor(
    place: Place,
    grids: readonly Grid[],
    smoother: Weights,
    exchange: Exchange,
    rows: Rows | undefined,
    charge: (operations: number) => void | Promise<void>,
  ) {
    this.place = place;
    this.grids = grids;
    this.#smoother = smoother;
    this.#exchange = exchange;
    this.#rows = rows;
    this.#charge = charge;
    this.v = blockOf(lengthsOf(grids[grids.length - 1].level), rows);
  }

  /** Collective. */
  static async make(world: Communicator, options: NasOptions, machine: Machine, links: Links): Promise<Multigrid> {
    const { n, smoother } = MG_CLASSES[options.class];
    const place = new Place(world.rank, world.size);
    if (Math.max(...place.ranks) > n) throw new RangeError(`class ${options.class} has no ${world.size} blocks`);
    const levels: Level[] = [];
    for (let points = 2; points <= n; points *= 2) levels.push(place.level(points));
    const rows = options.arithmetic ? rowsFor(levels, options.kernel) : undefined;
    const exchange = await Exchange.make(world, place, levels, links, rows);
    const grids = levels.map((level) => {
      const lengths = lengthsOf(level);
      return { level, u: blockOf(lengths, rows), r: blockOf(lengths, rows) };
    });
    return new Multigrid(place, grids, smoother, exchange, rows, (operations) =>
      machine.charge(operations / (1e3 * options.gflops)),
    );
  }

  /** u ← 0 on the finest grid, and the residual of that. */
  async begin(): Promise<void> {
    const finest = this.grids[this.grids.length - 1];
    finest.u.data?.fill(0);
    await this.residual(finest, this.v);
  }

  /** r ← base − A u. @param base may be r itself */
  async residual({ level, u, r }: Grid, base: Block): Promise<void> {
    await this.#exchange.produce(level, r, (box) => {
      if (this.#rows !== undefined) stencil(this.#rows, r, base, u, MINUS_A, box);
      return this.#charge(OPERATIONS.residual * pointsIn(box));
    });
  }

  /** u ← u + S r. */
  async #smooth({ level, u, r }: Grid): Promise<void> {
    await this.#exchange.produce(level, u, (box) => {
      if (this.#rows !== undefined) stencil(this.#rows, u, u, r, this.#smoother, box);
      return this.#charge(OPERATIONS.smooth * pointsIn(box));
    });
  }

  /** The residual of the next coarser grid: of ranks that have points of it. */
  async #restrict(fine: Grid, coarse: Grid): Promise<void> {
    // Coarse index j is on fine index 2j; on the 1, where the block has that one fine point along an axis.
    const offset = triple((axis) => (fine.level.points[axis] === 1 ? 1 : 0));
    await this.#exchange.produce(coarse.level, coarse.r, (box) => {
      if (this.#rows !== undefined) stencil(this.#rows, coarse.r, undefined, fine.r, RESTRICTION, box, offset);
      return this.#charge(OPERATIONS.restrict * pointsIn(box));
    });
  }

  /** One V-cycle, with the residual of the finest grid given and u corrected. */
  async cycle(): Promise<void> {
    const { grids } = this;
    const finest = grids.length - 1;
    for (let k = finest; k > 0; k--) if (grids[k - 1].level.active) await this.#restrict(grids[k], grids[k - 1]);
    if (grids[0].level.active) {
      grids[0].u.data?.fill(0);
      await this.#smooth(grids[0]);
    }
    for (let k = 1; k <= finest; k++) {
      const grid = grids[k];
      if (!grid.level.active) continue;
      const [coarse, shift] = await this.#exchange.spread(grid.level, grids[k - 1].level, grids[k - 1].u);
      if (k < finest) grid.u.data?.fill(0);
      if (this.#rows !== undefined) interpolate(this.#rows, grid.u, coarse, shift);
      await this.#charge(OPERATIONS.interpolate * pointsIn(grid.level.interior));
      await this.residual(grid, k < finest ? grid.r : this.v);
      await this.#smooth(grid);
    }
  }
}

/** Collective. @throws RangeError if the number of ranks is no power of two */
export async function mg(world: Communicator, options: NasOptions, machine: Machine): Promise<MgResult> {
  const { n, norm: expected, ...usual } = MG_CLASSES[options.class];
  const { iterations = usual.iterations, samples = 1, warmUps = 0, arithmetic, style } = options;
  const calls = callsOf(world, machine.form);
  const links = new Links(machine.form, style, options.info);
  const multigrid = await Multigrid.make(world, options, machine, links);
  const { place, grids, v } = multigrid;
  const finest = grids[grids.length - 1];
  await placeCharges(world, place, finest.level, v);
  // A cycle first that is not timed, as NPB does it: connections are made, and code is compiled.
  await multigrid.begin();
  await multigrid.cycle();
  const [times, each]: [number[], number[]] = [[], []];
  for (let sample = -warmUps; sample < samples; sample++) {
    await calls.barrier();
    const start = machine.now();
    await multigrid.begin();
    const began = machine.now();
    for (let iteration = 0; iteration < iterations; iteration++) {
      await multigrid.cycle();
      await multigrid.residual(finest, v);
    }
    const end = machine.now();
    const slowest = new Float64Array(2);
    await world.allreduce(Float64Array.of(end - start, (end - began) / iterations), slowest, Op.MAX);
    if (sample < 0) continue;
    times.push(slowest[0]);
    each.push(slowest[1]);
  }
  const sum = new Float64Array(1);
  const mine = arithmetic ? squares(finest.r, finest.level.interior) : Number.NaN;
  await world.allreduce(Float64Array.of(mine), sum, Op.SUM);
  await links.free();
  const norm = Math.sqrt(sum[0] / n ** 3);
  return {
    ...{ class: options.class, style, n, iterations, grid: place.ranks, norm, expected },
    microseconds: median(times),
    each: median(each),
    milliseconds: times.map((time) => time / 1e3),
    errors: arithmetic && !mgIsRight(options.class, norm) ? 1 : 0,
  };
}
