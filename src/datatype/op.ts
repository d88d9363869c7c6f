/** MPI's predefined reduction operations (MPI 4.1, section 6.9.2) and those only RMA has (12.3.4). */
import { OpCode } from './codes.ts';

/** A predefined operation. RMA does not allow user-defined operations (MPI 4.1, 12.3.4). */
class PredefinedOp {
  /** Only what the constructor has made has it: not a copy, not a proxy, and asking for it runs no code of the caller's. */
  readonly #made = true;
  /** The name of the operation: `SUM`, … */
  readonly name: string;
  /** The number of the operation. */
  readonly code: number;

  constructor(name: string, code: number) {
    this.name = name;
    this.code = code;
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

function made<K extends OpKind>(name: string, code: number): Op<K> {
  return new PredefinedOp(name, code) as Op<K>;
}

/**
 * The operations of accumulates and reductions. The library checks that an operation is defined on the elements;
 * without a layout, the compiler checks it, too.
 */
export const Op = Object.freeze({
  /** Adds (`MPI_SUM`). Integers wrap around. */
  SUM: made<'arithmetic'>('SUM', OpCode.SUM),
  /** Multiplies (`MPI_PROD`). Integers wrap around. */
  PROD: made<'arithmetic'>('PROD', OpCode.PROD),
  /** Takes the smaller value (`MPI_MIN`); NaN if either value is NaN. */
  MIN: made<'arithmetic'>('MIN', OpCode.MIN),
  /** Takes the larger value (`MPI_MAX`); NaN if either value is NaN. */
  MAX: made<'arithmetic'>('MAX', OpCode.MAX),
  /** Logical and (`MPI_LAND`): 1 if both values are nonzero, otherwise 0. Integers only. */
  LAND: made<'logical'>('LAND', OpCode.LAND),
  /** Logical or (`MPI_LOR`): 1 if at least one value is nonzero, otherwise 0. Integers only. */
  LOR: made<'logical'>('LOR', OpCode.LOR),
  /** Logical exclusive or (`MPI_LXOR`): 1 if exactly one value is nonzero, otherwise 0. Integers only. */
  LXOR: made<'logical'>('LXOR', OpCode.LXOR),
  /** Bitwise and (`MPI_BAND`). Integers and bytes only. */
  BAND: made<'bitwise'>('BAND', OpCode.BAND),
  /** Bitwise or (`MPI_BOR`). Integers and bytes only. */
  BOR: made<'bitwise'>('BOR', OpCode.BOR),
  /** Bitwise exclusive or (`MPI_BXOR`). Integers and bytes only. */
  BXOR: made<'bitwise'>('BXOR', OpCode.BXOR),
  /** Replaces the target's value by the origin's (`MPI_REPLACE`): an atomic put. Windows only. */
  REPLACE: made<'move'>('REPLACE', OpCode.REPLACE),
  /** Leaves the target's value unchanged (`MPI_NO_OP`): an atomic get. Windows only. */
  NO_OP: made<'move'>('NO_OP', OpCode.NO_OP),
  /**
   * Takes the pair with the smaller value (`MPI_MINLOC`); of equal values, the pair with the smaller index. NaN wins.
   */
  MINLOC: made<'location'>('MINLOC', OpCode.MINLOC),
  /**
   * Takes the pair with the larger value (`MPI_MAXLOC`); of equal values, the pair with the smaller index. NaN wins.
   */
  MAXLOC: made<'location'>('MAXLOC', OpCode.MAXLOC),
});
