/** The path of memory that this rank has mapped: loads, stores and the processor's atomics. All is complete at once. */
import type { TypedArray } from '../../datatype/base-types.ts';
import { type CopyKernels, copyPlaces } from '../../datatype/copy.ts';
import type { Side } from '../../datatype/sides.ts';
import { accumulateElements, type BulkKernels } from '../../transfer/loads/accumulate.ts';
import type { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Stripes } from '../../transfer/loads/stripes.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { OwnMemory, Path, ProgressBy } from './path.ts';

/** What is mapped: a target's part, or a region that it has attached. */
export interface Mapped {
  readonly part: RemotePart;
  /** What is added to `at` to get the place in the views of `part`. */
  readonly skew: number;
  readonly stripes: Stripes | undefined;
}

export class Loads implements Path {
  readonly own: OwnMemory | undefined;
  readonly mapped = true;
  readonly #mapped: Mapped;
  readonly #epochs: Epochs;
  readonly #kernels: (BulkKernels & CopyKernels) | undefined;
  readonly #open: (() => void) | undefined;

  /** @param open maps what is not mapped yet, and refuses what is gone; absent: `mapped` is there */
  constructor(
    mapped: Mapped,
    own: OwnMemory | undefined,
    epochs: Epochs,
    kernels: (BulkKernels & CopyKernels) | undefined,
    open: (() => void) | undefined,
  ) {
    this.#mapped = mapped;
    this.own = own;
    this.#epochs = epochs;
    this.#kernels = kernels;
    this.#open = open;
  }

  open(): void {
    this.#open?.();
  }

  aligned(at: number): number {
    return at + this.#mapped.skew;
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    const { part, skew } = this.#mapped;
    copyPlaces(from, origin, 0, to, part.u8, at + skew, this.#kernels);
    this.#epochs.noteStores();
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    const { part, skew } = this.#mapped;
    copyPlaces(to, part.u8, at + skew, from, origin, 0, this.#kernels);
  }

  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    const { part, skew, stripes } = this.#mapped;
    accumulateElements(part, at + skew, to, origin, from, op, fetch?.result, fetch?.side, stripes!, this.#kernels);
  }

  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    const { part, skew } = this.#mapped;
    const view = part.view(to.base) as Int32Array;
    const index = (at + skew) / to.elementSize;
    result[0] = Atomics.compareExchange(view, index, compare[0] as number, origin[0] as number);
  }

  progressBy(): ProgressBy {
    return 'origin';
  }
}
