/** MPI's predefined reduction operations (MPI 4.1, section 6.9.2) and those only RMA has (12.3.4). */
import { OpCode } from './codes.ts';

/** A predefined operation; there are no others: RMA does not allow user-defined ones (MPI 4.1, 12.3.4). */
class PredefinedOp {
  /** Only what the constructor has made has it: not a copy, not a proxy, and asking for it runs no code of the caller's. */
  readonly #made = true;
  readonly name: string;
  readonly code: number;

  constructor(name: string, code: number) {
    this.name = name;
    this.code = code;
    Object.freeze(this);
  }

  static is(value: unknown): boolean {
    return typeof value === 'object' && value !== null && #made in value;
  }

  toString(): string {
    return `Op.${this.name}`;
  }
}

/**
 * What an operation is defined on: `move` on all elements, `arithmetic` on numbers, `logical` on integers, `bitwise` on integers and bytes, `location` on pairs, which only layouts
 * describe.
 */
export type OpKind = 'move' | 'arithmetic' | 'logical' | 'bitwise' | 'location';

declare const kind: unique symbol;

/** One of `Op`'s; `K` says on which elements it is defined. */
export type Op<K extends OpKind = OpKind> = PredefinedOp & { readonly [kind]: K };

export function isOp(value: unknown): value is Op {
  return PredefinedOp.is(value);
}

function made<K extends OpKind>(name: string, code: number): Op<K> {
  return new PredefinedOp(name, code) as Op<K>;
}

/**
 * The operations of accumulates and reductions. Results of integers wrap around. Which elements each is defined on is checked, by types too where these are known:
 * with a layout they are not.
 */
export const Op = Object.freeze({
  /** The sum. Integers wrap around. */
  SUM: made<'arithmetic'>('SUM', OpCode.SUM),
  /** The product. Integers wrap around. */
  PROD: made<'arithmetic'>('PROD', OpCode.PROD),
  /** The smaller one; NaN if either is. */
  MIN: made<'arithmetic'>('MIN', OpCode.MIN),
  /** The larger one; NaN if either is. */
  MAX: made<'arithmetic'>('MAX', OpCode.MAX),
  /** 1 if both are not 0, else 0. Integers only. */
  LAND: made<'logical'>('LAND', OpCode.LAND),
  /** 1 if one of them is not 0, else 0. Integers only. */
  LOR: made<'logical'>('LOR', OpCode.LOR),
  /** 1 if just one of them is not 0, else 0. Integers only. */
  LXOR: made<'logical'>('LXOR', OpCode.LXOR),
  /** The bits that both have. Integers and bytes only. */
  BAND: made<'bitwise'>('BAND', OpCode.BAND),
  /** The bits that one of them has. Integers and bytes only. */
  BOR: made<'bitwise'>('BOR', OpCode.BOR),
  /** The bits that just one of them has. Integers and bytes only. */
  BXOR: made<'bitwise'>('BXOR', OpCode.BXOR),
  /** The origin's: an atomic put. For windows only. */
  REPLACE: made<'move'>('REPLACE', OpCode.REPLACE),
  /** The target's, which stays as it is: an atomic get. For windows only. */
  NO_OP: made<'move'>('NO_OP', OpCode.NO_OP),
  /** Of pairs of a value and an index: the one with the smaller value; of equal ones, the smaller index. A NaN wins. */
  MINLOC: made<'location'>('MINLOC', OpCode.MINLOC),
  /** The same with the larger value. */
  MAXLOC: made<'location'>('MAXLOC', OpCode.MAXLOC),
});
