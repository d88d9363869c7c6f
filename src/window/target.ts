/** What a window knows of one target rank. */

import type { CopyKernels } from '../datatype/copy.ts';
import type { TargetLock } from '../sync/lock/scheme.ts';
import type { BulkKernels } from '../transfer/accumulate.ts';
import { RemotePart } from '../transfer/remote-part.ts';
import type { Stripes } from '../transfer/stripes.ts';

const NOTHING = new RemotePart(new ArrayBuffer(0), 0, 0);

/** `Target.held`: the bits of `Lock`, */
export const LOCKED = 3;
/** one for a lock that was not taken because of `Assert.NO_CHECK`, */
export const UNCHECKED = 4;
/** and one for an access epoch that `start` has opened. */
export const STARTED = 8;

/** How a target's memory is accessed: by loads and stores (and `Atomics`), */
export const LOADS = 0;
/** by requests, */
export const REQUESTS = 1;
/**
 * or both: a neighbour's, where others are behind a device. Puts and gets are loads and stores; whatever is atomic goes by the device, as that of all others does,
 * since its atomics and the processor's may not agree. A put or get may meet an atomic access of the same epoch in no way that MPI defines; what a synchronization has
 * ordered before it is in memory: requests have completed at the target by then, and stores are visible before the request that tells of them is posted.
 */
export const MIXED_WAYS = 2;
export type Way = typeof LOADS | typeof REQUESTS | typeof MIXED_WAYS;

export class Target {
  readonly rank: number;
  readonly byteLength: number;
  readonly dispUnit: number;
  readonly way: Way;
  /**
   * Displacements up to this one take the short way of put and get; −1 closes it: the part is not mapped yet, or bytes move by
   * requests. Chosen so that displacement × unit is a 31-bit integer.
   */
  shortLimit = -1;
  /** The same for accumulates. */
  shortUpdates = -1;
  part: RemotePart = NOTHING;
  /** `part.skew`. */
  skew = 0;
  /** The caller's own memory, if the target is the caller: origin and target could overlap in it. */
  own: ArrayBufferLike | undefined;
  mapped = false;
  /** For accumulates; there when the part is mapped. */
  stripes: Stripes | undefined;
  /** Of the addon, if there is one; there when the part is mapped. */
  kernels: (BulkKernels & CopyKernels) | undefined;
  lock: TargetLock | undefined;
  /** What opens this target to this rank: the `Lock` type that it holds here, perhaps with `UNCHECKED`; `STARTED`; or 0. */
  held = 0;
  /** A promise waits for the lock. */
  waiting = false;

  constructor(rank: number, byteLength: number, dispUnit: number, way: Way) {
    this.rank = rank;
    this.way = way;
    this.byteLength = byteLength;
    this.dispUnit = dispUnit;
  }

  map(
    part: RemotePart,
    stripes: Stripes | undefined,
    kernels: (BulkKernels & CopyKernels) | undefined,
    short: boolean,
    own: boolean,
  ): void {
    this.stripes = stripes;
    this.kernels = kernels;
    this.part = part;
    this.skew = part.skew;
    this.own = own ? part.buffer : undefined;
    this.mapped = true;
    if (!short || this.way === REQUESTS) return;
    // With a unit of 0, any displacement is the beginning.
    this.shortLimit =
      this.dispUnit === 0 ? 2 ** 31 - 8 : Math.floor(Math.min(this.byteLength, 2 ** 31 - 8) / this.dispUnit);
    if (this.way === LOADS) this.shortUpdates = this.shortLimit;
  }

  unmap(): void {
    this.part = NOTHING;
    this.own = undefined;
    this.mapped = false;
    this.shortLimit = -1;
    this.shortUpdates = -1;
  }
}

/** The targets of a window. Each is made when it is first asked for: of many ranks, most access few. */
export class Targets {
  /** By rank; `undefined` for those that were not asked for. The fast path reads it. */
  readonly made: readonly (Target | undefined)[];
  readonly #made: (Target | undefined)[];
  readonly #make: (rank: number) => Target;

  constructor(size: number, make: (rank: number) => Target) {
    this.#made = new Array<undefined>(size).fill(undefined);
    this.made = this.#made;
    this.#make = make;
  }

  /** `undefined` for what is no rank. */
  of(rank: number): Target | undefined {
    const known = this.#made[rank];
    if (known !== undefined || !(Number.isInteger(rank) && rank >= 0 && rank < this.#made.length)) return known;
    const target = this.#make(rank);
    this.#made[rank] = target;
    return target;
  }

  /** Of all ranks. */
  all(): readonly Target[] {
    return Array.from(this.#made, (_, rank) => this.of(rank)!);
  }
}
