/**
 * How the grids of multigrid are cut: a process grid of powers of two, at most as long in x as in y as in z, and on
 * each level blocks of whole points. A coarse grid may have fewer points along an axis than there are ranks: then only
 * one rank of each `stride` has a point, the one that has the fine point at its centre (NPB has it so).
 *
 * Coarse point c lies on fine point 2c + 1, from 0. Arrays have a layer of neighbours' points around them, their
 * `ghosts`: index 0 and `points` + 1; x changes fastest. Grids are periodic.
 */

import type { Rows } from './rows.ts';

export const AXES = [0, 1, 2] as const;
export type Axis = (typeof AXES)[number];
export type Triple = readonly [x: number, y: number, z: number];

/** From `low` up to, and with, `high`, of an array. */
export interface Box {
  readonly low: Triple;
  readonly high: Triple;
}

/** A block of numbers with its lengths. */
export interface Block {
  readonly lengths: Triple;
  /** Absent where the arithmetic is left out. */
  readonly data: Float64Array | undefined;
}

export function blockOf(lengths: Triple, rows: Rows | undefined): Block {
  return { lengths, data: rows?.doubles(numbersIn(lengths)) };
}

export function numbersIn(lengths: Triple): number {
  return lengths[0] * lengths[1] * lengths[2];
}

export function pointsIn({ low, high }: Box): number {
  return AXES.reduce<number>((all, axis) => all * Math.max(0, high[axis] - low[axis] + 1), 1);
}

/** The three numbers with another one along an axis. */
export function replaced(values: Triple, axis: Axis, value: number): Triple {
  return AXES.map((other) => (other === axis ? value : values[other])) as unknown as Triple;
}

export function triple(value: (axis: Axis) => number): Triple {
  return [value(0), value(1), value(2)];
}

/** Ranks along each axis. @throws RangeError if `size` is no power of two */
export function processGrid(size: number): Triple {
  const exponent = Math.log2(size);
  if (!Number.isInteger(exponent)) throw new RangeError(`NAS' kernels run on 1, 2, 4, 8, … ranks, not on ${size}`);
  return [2 ** Math.floor(exponent / 3), 2 ** Math.floor((exponent + 1) / 3), 2 ** Math.floor((exponent + 2) / 3)];
}

/** One rank's part of a level. */
export interface Level {
  /** Points of the grid along each axis. */
  readonly n: number;
  /** Of this rank's block, ghosts not counted. */
  readonly points: Triple;
  /** Ranks from one that has points to the next. */
  readonly stride: Triple;
  /** Whether this rank has points, by axis; it has some if all are true. */
  readonly has: readonly [boolean, boolean, boolean];
  readonly active: boolean;
  /** With ghosts. */
  readonly lengths: Triple;
  readonly interior: Box;
}

export class Place {
  readonly ranks: Triple;
  readonly at: Triple;

  constructor(rank: number, size: number) {
    this.ranks = processGrid(size);
    const [x, y] = this.ranks;
    this.at = [rank % x, Math.floor(rank / x) % y, Math.floor(rank / (x * y))];
  }

  /** The ranks in line with this one along an axis. */
  lineAlong(axis: Axis): number[] {
    return Array.from({ length: this.ranks[axis] }, (_, step) => {
      const [x, y, z] = replaced(this.at, axis, step);
      return x + this.ranks[0] * (y + this.ranks[1] * z);
    });
  }

  /** @param n points along an axis, a power of two above 1 */
  level(n: number): Level {
    const points = triple((axis) => Math.max(1, n / this.ranks[axis]));
    const stride = triple((axis) => Math.max(1, this.ranks[axis] / n));
    const has = AXES.map((axis) => this.at[axis] % stride[axis] === stride[axis] - 1);
    return {
      ...{ n, points, stride },
      has: has as unknown as Level['has'],
      active: has.every((one) => one),
      lengths: triple((axis) => points[axis] + 2),
      interior: { low: [1, 1, 1], high: points },
    };
  }
}
