/** The sides of a call: as a program describes them, and as they are once they are checked. */
import type { Places } from './copy.ts';
import type { Datatype } from './datatype.ts';

/** Describes the elements of one buffer of a call: `count` instances of a datatype. */
export interface Layout {
  /** The datatype of an instance. */
  readonly type: Datatype;
  /** The number of instances; default: 1. */
  readonly count?: number;
}

/** Describes where the elements of a call lie if they are not consecutive. */
export interface TransferLayout {
  /** The elements in the origin buffer; default: the whole buffer. */
  readonly origin?: Layout;
  /**
   * The elements in the target's part, from the displacement on; default: consecutive elements of the origin's type.
   */
  readonly target?: Layout;
}

/** Describes where the elements of a call lie that fetches the previous values of the target. */
export interface FetchLayout extends TransferLayout {
  /** The elements in the result buffer; default: consecutive elements that fill the whole buffer. */
  readonly result?: Layout;
}

/** A side of a call: `count` instances of `type`, or, without a type, `elements` consecutive ones of a base type. */
export interface Side extends Places {
  readonly type: Datatype | undefined;
  readonly elements: number;
  /** `TypeCode` of the elements, or `MIXED`. */
  readonly base: number;
  /** Bytes of an element in memory; 1 if they are mixed. */
  readonly elementSize: number;
  /** Bytes from the starting point to the first and past the last byte that is touched. */
  readonly low: number;
  readonly high: number;
}
