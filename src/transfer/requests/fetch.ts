import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';

/** Where what an accumulate found goes. */
export interface Fetch {
  readonly result: TypedArray;
  readonly side: Side;
}
