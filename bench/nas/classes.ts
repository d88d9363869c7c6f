/**
 * The classes of the NAS kernels MG and CG as NPB 3 has them, and what their results must be: NAS' own check, which is
 * the same on any number of processes.
 */

export const CLASSES = ['S', 'W', 'A', 'B'] as const;
export type ClassName = (typeof CLASSES)[number];

export interface MgClass {
  /** Of the finest grid, n × n × n: a power of two. */
  readonly n: number;
  readonly iterations: number;
  /** Of the smoother: of a point, its 6, 12 and 8 neighbours at growing distance. */
  readonly smoother: readonly [number, number, number, number];
  /** The norm of the residual in the end. */
  readonly norm: number;
}

const SMALL = [-3 / 8, 1 / 32, -1 / 64, 0] as const;
const LARGE = [-3 / 17, 1 / 33, -1 / 61, 0] as const;

export const MG_CLASSES: Readonly<Record<ClassName, MgClass>> = {
  S: { n: 32, iterations: 4, smoother: SMALL, norm: 0.5307707005734e-4 },
  W: { n: 128, iterations: 4, smoother: SMALL, norm: 0.6467329375339e-5 },
  A: { n: 256, iterations: 4, smoother: SMALL, norm: 0.2433365309069e-5 },
  B: { n: 256, iterations: 20, smoother: LARGE, norm: 0.1800564401355e-5 },
};

export interface CgClass {
  /** Order of the matrix. */
  readonly n: number;
  /** Non-zero elements that are drawn for each of the vectors whose products make the matrix. */
  readonly nonzeros: number;
  readonly iterations: number;
  readonly shift: number;
  /** The estimate of the eigenvalue in the end. */
  readonly zeta: number;
}

export const CG_CLASSES: Readonly<Record<ClassName, CgClass>> = {
  S: { n: 1400, nonzeros: 7, iterations: 15, shift: 10, zeta: 8.5971775078648 },
  W: { n: 7000, nonzeros: 8, iterations: 15, shift: 12, zeta: 10.362595087124 },
  A: { n: 14000, nonzeros: 11, iterations: 15, shift: 20, zeta: 17.130235054029 },
  B: { n: 75000, nonzeros: 13, iterations: 75, shift: 60, zeta: 22.712745482631 },
};

/** Relative errors that NPB lets pass. */
const MG_ERROR = 1e-8;
const CG_ERROR = 1e-10;

function isNear(value: number, expected: number, error: number): boolean {
  return Math.abs(value - expected) <= error * expected;
}

/** NAS' check of MG. Nothing that is not a number passes. */
export function mgIsRight(name: ClassName, norm: number): boolean {
  return isNear(norm, MG_CLASSES[name].norm, MG_ERROR);
}

/** NAS' check of CG. */
export function cgIsRight(name: ClassName, zeta: number): boolean {
  return isNear(zeta, CG_CLASSES[name].zeta, CG_ERROR);
}
