/**
 * What the ranks of CG tell each other. They are a grid, as high as wide or half as high (NPB has it so). The matrix is
 * cut into a block for each; a rank has the part of each vector that belongs to the columns of its block, and so have
 * all ranks of its column of the grid.
 *
 * A product with the matrix gives each rank a part of the sums of its rows: the ranks of a row add them up in a
 * butterfly, and each hands on what the rank across the diagonal needs for its columns. On a grid that is half as high
 * as wide, the columns of a block are half of some rows, so the first step of the butterfly is an exchange of halves.
 */
import type { Communicator } from 'onesided';
import type { Link } from '../link.ts';
import type { Links } from '../links.ts';
import type { Range } from './matrix.ts';

export interface CgGrid {
  readonly rows: number;
  readonly columns: number;
}

/** @throws RangeError if `size` is no power of two */
export function cgGrid(size: number): CgGrid {
  const exponent = Math.log2(size);
  if (!Number.isInteger(exponent)) throw new RangeError(`NAS' kernels run on 1, 2, 4, 8, … ranks, not on ${size}`);
  const rows = 2 ** Math.floor(exponent / 2);
  return { rows, columns: size / rows };
}

function part(n: number, parts: number, i: number): Range {
  return { begin: Math.floor((i * n) / parts), end: Math.floor(((i + 1) * n) / parts) };
}

/** The first or the second half. */
function halfOf({ begin, end }: Range, second: boolean): Range {
  const middle = begin + Math.floor((end - begin) / 2);
  return second ? { begin: middle, end } : { begin, end: middle };
}

/** Which rows and columns a rank's block has, and what of its rows' sums it is to have. */
export class CgPlace {
  readonly grid: CgGrid;
  readonly row: number;
  readonly column: number;
  readonly rows: Range;
  readonly columns: Range;
  /** From the first row of the block on. */
  readonly kept: Range;
  /** What the partner of the first step keeps; undefined where both keep all. */
  readonly given: Range | undefined;
  /** The rank that has this rank's columns among its rows. */
  readonly across: number;

  constructor(n: number, rank: number, size: number) {
    this.grid = cgGrid(size);
    const { rows, columns } = this.grid;
    this.row = Math.floor(rank / columns);
    this.column = rank % columns;
    this.rows = part(n, rows, this.row);
    const local = { begin: 0, end: this.rows.end - this.rows.begin };
    if (rows === columns) {
      this.columns = part(n, columns, this.column);
      this.kept = local;
      this.given = undefined;
      this.across = this.column * columns + this.row;
    } else {
      const second = this.column % 2 === 1;
      this.columns = halfOf(part(n, rows, this.column >> 1), second);
      this.kept = halfOf(local, second);
      this.given = halfOf(local, !second);
      this.across = (this.column >> 1) * columns + 2 * this.row + (second ? 1 : 0);
    }
  }
}

/** Computes the sums of some rows of the block. */
export type ComputeRows = (rows: Range) => void | Promise<void>;

export class CgGroup {
  readonly #place: CgPlace;
  readonly #overlaps: boolean;
  readonly #arithmetic: boolean;
  /** To the partner of each step; what is sent and what is added has the same length. */
  readonly #steps: readonly Link[];
  /** Undefined where this rank is on the diagonal. */
  readonly #diagonal: Link | undefined;

  private constructor(
    place: CgPlace,
    links: Links,
    arithmetic: boolean,
    steps: readonly Link[],
    diagonal: Link | undefined,
  ) {
    this.#place = place;
    this.#overlaps = links.style.overlaps;
    this.#arithmetic = arithmetic;
    this.#steps = steps;
    this.#diagonal = diagonal;
  }

  /** Collective. @param n order of the matrix */
  static async make(
    world: Communicator,
    n: number,
    place: CgPlace,
    links: Links,
    arithmetic: boolean,
  ): Promise<CgGroup> {
    const { rows, columns } = place.grid;
    const capacity = Math.ceil(n / rows);
    const row = await links.group(
      world,
      Array.from({ length: columns }, (_, column) => place.row * columns + column),
    );
    const steps: Link[] = [];
    for (let bit = 1; bit < columns; bit *= 2) {
      const partner = place.column ^ bit;
      steps.push(await links.make({ group: row, capacity, to: partner, from: partner }));
    }
    const pair = [...new Set([world.rank, place.across])].sort((a, b) => a - b);
    const group = await links.group(world, pair);
    const partner = 1 - pair.indexOf(world.rank);
    const diagonal = pair.length === 1 ? undefined : await links.make({ group, capacity, to: partner, from: partner });
    return new CgGroup(place, links, arithmetic, steps, diagonal);
  }

  /**
   * The product with the matrix: computes the sums of this rank's rows, and adds up those of its row of the grid.
   * @param sums of this rank's rows; changed @param to of its columns, of which there are `length`
   */
  async product(compute: ComputeRows, sums: Float64Array, to: Float64Array, length: number): Promise<void> {
    const { kept, given } = this.#place;
    const [first, ...others] = this.#steps;
    if (first === undefined) await compute(kept);
    else {
      // What the partner needs is computed first. Where it may travel meanwhile, it leaves in two parts.
      const sent = given ?? kept;
      const parts = this.#overlaps && given === undefined ? [halfOf(sent, false), halfOf(sent, true)] : [sent];
      if (!this.#overlaps && given !== undefined) await compute(kept);
      for (const one of parts) {
        await compute(one);
        await this.#post(first, sums, one);
      }
      if (this.#overlaps && given !== undefined) await compute(kept);
      for (const one of given === undefined ? parts : [kept]) await this.#add(first, sums, one);
      await first.settle();
    }
    for (const link of others) {
      await this.#post(link, sums, kept);
      await this.#add(link, sums, kept);
      await link.settle();
    }
    if (this.#diagonal === undefined) {
      if (this.#arithmetic) to.set(sums.subarray(kept.begin, kept.end));
      return;
    }
    await this.#post(this.#diagonal, sums, kept);
    const message = await this.#diagonal.take(length);
    if (this.#arithmetic) to.set(message);
    await this.#diagonal.settle();
  }

  /** Adds up a few numbers of each rank of a row of the grid, in place. */
  async sum(values: Float64Array): Promise<void> {
    for (const link of this.#steps) {
      const room = await link.room(values.length);
      room.set(values);
      await link.post(values.length);
      const message = await link.take(values.length);
      for (let i = 0; i < values.length; i++) values[i] += message[i];
    }
  }

  async #post(link: Link, values: Float64Array, { begin, end }: Range): Promise<void> {
    const room = await link.room(end - begin);
    if (this.#arithmetic) room.set(values.subarray(begin, end));
    await link.post(end - begin);
  }

  async #add(link: Link, values: Float64Array, { begin, end }: Range): Promise<void> {
    const message = await link.take(end - begin);
    if (this.#arithmetic) for (let i = begin; i < end; i++) values[i] += message[i - begin];
  }
}
