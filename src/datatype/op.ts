/**
 * MPI's predefined reduction operations (MPI 4.1, section 6.9.2) and those only RMA has (12.3.4): `Op` has a row for
 * each, from which all else follows; native/operations.h has the same table.
 */

/** A predefined operation. RMA does not allow user-defined operations (MPI 4.1, 12.3.4). */
class PredefinedOp {
  /**
   * Only what the constructor has made has it: not a copy, not a proxy, and asking for it runs no code of the caller's.
   */
  readonly #made = true;
  /** The name of the operation: `SUM`, … */
  readonly name: string;
  /** The number of the operation. */
  readonly code: number;
  /** @internal What of `INTEGERS`, … is true of it: a field of a constant, which costs the fast path nothing. */
  readonly traits: number;

  constructor(name: string, code: number, traits: number) {
    this.name = name;
    this.code = code;
    this.traits = traits;
    Object.freeze(this);
  }

  static is(value: unknown): boolean {
    return typeof value === 'object' && value !== null && #made in value;
  }

  /** Returns the name with its prefix: `Op.SUM`, … */
  toString(): string {
    return `Op.${this.name}`;
  }
}

/**
 * The elements on which an operation is defined: `move` on all elements, `arithmetic` on numbers, `logical` on
 * integers, `bitwise` on integers and bytes, `location` on pairs, which only layouts describe.
 */
export type OpKind = 'move' | 'arithmetic' | 'logical' | 'bitwise' | 'location';

declare const kind: unique symbol;

/** An operation: a member of `Op`. `K` says on which elements it is defined. */
export type Op<K extends OpKind = OpKind> = PredefinedOp & { readonly [kind]: K };

export function isOp(value: unknown): value is Op {
  return PredefinedOp.is(value);
}

/** Traits of operations: the groups of base types on which they are defined, and what else is asked about them. */
export const INTEGERS = 1;
export const FLOATS = 2;
export const BYTES = 4;
export const PAIRS = 8;
/** It changes the target, and takes something from the origin for that. */
export const CHANGES = 16;
/** It combines nothing: for windows only. */
export const MOVES = 32;

const TRAITS_OF_KIND: Readonly<Record<OpKind, number>> = {
  move: MOVES | INTEGERS | FLOATS | BYTES | PAIRS,
  arithmetic: INTEGERS | FLOATS,
  logical: INTEGERS,
  bitwise: INTEGERS | BYTES,
  location: PAIRS,
};

/**
 * What an operation gives of two values of one type, the target's and the origin's. Results are stored into a typed
 * array of that type, which wraps integers and rounds to single precision, so that these functions need not.
 */
interface OnValues {
  number(target: number, origin: number): number;
  /** Of integers of at most 32 bits, if that is not the same. */
  integer?(target: number, origin: number): number;
  /** Of integers of 64 bits. */
  bigint(target: bigint, origin: bigint): bigint;
}

/** What one on pairs says of two different values: whether the one that comes is taken, not the one that is there. */
interface OnPairs {
  takes(there: number | bigint, comes: number | bigint): boolean;
}

function logical(of: (target: boolean, origin: boolean) => boolean): OnValues {
  return {
    number: (target, origin) => (of(target !== 0, origin !== 0) ? 1 : 0),
    bigint: (target, origin) => (of(target !== 0n, origin !== 0n) ? 1n : 0n),
  };
}

/** By code, what the rows say: for arithmetic.ts. */
export const onNumbers: OnValues['number'][] = [];
export const onIntegers: OnValues['number'][] = [];
export const onBigInts: OnValues['bigint'][] = [];
export const onPairs: OnPairs['takes'][] = [];

/**
 * @param code the same in native/operations.h; less than 15, which stands for no operation (collective-signature.ts)
 */
function made<K extends OpKind>(
  name: string,
  code: number,
  kind: K,
  gives: K extends 'location' ? OnPairs : OnValues,
  changes: 0 | typeof CHANGES = CHANGES,
): Op<K> {
  if ('takes' in gives) onPairs[code] = gives.takes;
  else {
    onNumbers[code] = gives.number;
    onIntegers[code] = gives.integer ?? gives.number;
    onBigInts[code] = gives.bigint;
  }
  return new PredefinedOp(name, code, TRAITS_OF_KIND[kind] | changes) as Op<K>;
}

/**
 * The operations of accumulates and reductions. The library checks that an operation is defined on the elements;
 * without a layout, the compiler checks it, too.
 */
export const Op = Object.freeze({
  /** Adds (`MPI_SUM`). Integers wrap around. */
  SUM: made('SUM', 0, 'arithmetic', { number: (t, o) => t + o, bigint: (t, o) => t + o }),
  /** Multiplies (`MPI_PROD`). Integers wrap around. */
  PROD: made('PROD', 1, 'arithmetic', { number: (t, o) => t * o, integer: Math.imul, bigint: (t, o) => t * o }),
  /** Takes the smaller value (`MPI_MIN`); NaN if either value is NaN. */
  MIN: made('MIN', 2, 'arithmetic', { number: Math.min, bigint: (t, o) => (t < o ? t : o) }),
  /** Takes the larger value (`MPI_MAX`); NaN if either value is NaN. */
  MAX: made('MAX', 3, 'arithmetic', { number: Math.max, bigint: (t, o) => (t > o ? t : o) }),
  /** Logical and (`MPI_LAND`): 1 if both values are nonzero, otherwise 0. Integers only. */
  LAND: made(
    'LAND',
    4,
    'logical',
    logical((t, o) => t && o),
  ),
  /** Logical or (`MPI_LOR`): 1 if at least one value is nonzero, otherwise 0. Integers only. */
  LOR: made(
    'LOR',
    5,
    'logical',
    logical((t, o) => t || o),
  ),
  /** Logical exclusive or (`MPI_LXOR`): 1 if exactly one value is nonzero, otherwise 0. Integers only. */
  LXOR: made(
    'LXOR',
    6,
    'logical',
    logical((t, o) => t !== o),
  ),
  /** Bitwise and (`MPI_BAND`). Integers and bytes only. */
  BAND: made('BAND', 7, 'bitwise', { number: (t, o) => t & o, bigint: (t, o) => t & o }),
  /** Bitwise or (`MPI_BOR`). Integers and bytes only. */
  BOR: made('BOR', 8, 'bitwise', { number: (t, o) => t | o, bigint: (t, o) => t | o }),
  /** Bitwise exclusive or (`MPI_BXOR`). Integers and bytes only. */
  BXOR: made('BXOR', 9, 'bitwise', { number: (t, o) => t ^ o, bigint: (t, o) => t ^ o }),
  /** Replaces the target's value by the origin's (`MPI_REPLACE`): an atomic put. Windows only. */
  REPLACE: made('REPLACE', 10, 'move', { number: (_, o) => o, bigint: (_, o) => o }),
  /** Leaves the target's value unchanged (`MPI_NO_OP`): an atomic get. Windows only. */
  NO_OP: made('NO_OP', 11, 'move', { number: (t) => t, bigint: (t) => t }, 0),
  /**
   * Takes the pair with the smaller value (`MPI_MINLOC`); of equal values, the pair with the smaller index. NaN wins.
   */
  MINLOC: made('MINLOC', 12, 'location', { takes: (there, comes) => comes < there }),
  /**
   * Takes the pair with the larger value (`MPI_MAXLOC`); of equal values, the pair with the smaller index. NaN wins.
   */
  MAXLOC: made('MAXLOC', 13, 'location', { takes: (there, comes) => comes > there }),
});

/** The codes of the operations, by name. */
export const OpCode = Object.freeze(
  Object.fromEntries(Object.values(Op).map(({ name, code }) => [name, code])),
) as Readonly<Record<keyof typeof Op, number>>;

const TRAITS = Uint8Array.from(Object.values(Op), ({ traits }) => traits);

/** The traits of the operation of a code. */
export function traitsOf(code: number): number {
  return TRAITS[code];
}

/** Whether the operation of a code changes the target; if not, it takes nothing from the origin. */
export function changesTarget(code: number): boolean {
  return (TRAITS[code] & CHANGES) !== 0;
}
