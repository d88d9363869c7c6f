/**
 * What each operation gives of the target's value and the origin's (MPI 4.1, 6.9.2), said once more in the plainest
 * way: integers are exact, and cut to their width by who asks. It knows nothing of the library.
 */
interface Model {
  /** Absent: it is not defined on integers. */
  readonly integers?: (target: bigint, origin: bigint) => bigint;
  /** Absent: it is not defined on floating-point numbers. */
  readonly floats?: (target: number, origin: number) => number;
  /** It is defined on bytes, too. */
  readonly bytes?: true;
}

const truth = (x: boolean): bigint => (x ? 1n : 0n);

export const MODELS: Readonly<Record<string, Model>> = {
  SUM: { integers: (t, o) => t + o, floats: (t, o) => t + o },
  PROD: { integers: (t, o) => t * o, floats: (t, o) => t * o },
  MIN: { integers: (t, o) => (t < o ? t : o), floats: Math.min },
  MAX: { integers: (t, o) => (t > o ? t : o), floats: Math.max },
  LAND: { integers: (t, o) => truth(t !== 0n && o !== 0n) },
  LOR: { integers: (t, o) => truth(t !== 0n || o !== 0n) },
  LXOR: { integers: (t, o) => truth((t !== 0n) !== (o !== 0n)) },
  BAND: { integers: (t, o) => t & o, bytes: true },
  BOR: { integers: (t, o) => t | o, bytes: true },
  BXOR: { integers: (t, o) => t ^ o, bytes: true },
  REPLACE: { integers: (_, o) => o, floats: (_, o) => o, bytes: true },
  NO_OP: { integers: (t) => t, floats: (t) => t, bytes: true },
  MINLOC: {},
  MAXLOC: {},
};
