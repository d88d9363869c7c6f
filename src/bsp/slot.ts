import type { TypedArray } from '../datatype/base-types.ts';
import type { MemoryRegion } from '../verbs/memory.ts';

/** A registered variable, at one process. */
export interface Slot {
  readonly id: number;
  /** This process's; absent if it has registered `null`. */
  readonly array: TypedArray | undefined;
  readonly tag: string;
  /** Bytes of an element. */
  readonly width: number;
  readonly bytes: number;
  readonly u8: Uint8Array;
  /** The same bytes as words, if they begin at a multiple of four. */
  readonly i32: Int32Array | undefined;
  /** Bytes that it has at each process, or at all of them; `NO_VARIABLE` where there is none. */
  readonly lengths: number | Float64Array;
  /** How it is reached here, and the others' keys and addresses (variables.ts); no keys where nothing reaches it. */
  readonly reach: Reach | undefined;
  readonly keys: number | Float64Array;
  readonly addresses: number | Float64Array;
  /** It is removed when the superstep ends. */
  removed: boolean;
}

/** How a variable is reached, at this process. */
export interface Reach {
  readonly region: MemoryRegion | undefined;
  /** For the others: `BY_CHUNKS`, `BY_OWNER`, or 1 + the key for requests; and the address. */
  readonly key: number;
  readonly address: number;
}
