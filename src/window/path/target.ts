/** What a window knows of one target rank. */

import type { CopyKernels } from '../../datatype/copy.ts';
import type { TargetLock } from '../../sync/lock/lock-scheme.ts';
import type { BulkKernels } from '../../transfer/loads/accumulate.ts';
import { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Stripes } from '../../transfer/loads/stripes.ts';
import type { Path } from './path.ts';

const NOTHING = new RemotePart(new ArrayBuffer(0), 0, 0);

/** `Target.held`: the bits of `Lock`, */
export const LOCKED = 3;
/** one for a lock that was not taken because of `Assert.NO_CHECK`, */
export const UNCHECKED = 4;
/** and one for an access epoch that `start` has opened. */
export const STARTED = 8;

export class Target {
  readonly rank: number;
  readonly byteLength: number;
  readonly dispUnit: number;
  /**
   * Displacements up to this one take the fast path of put and get; −1 closes it: the part is not mapped yet, or bytes
   * do not move by loads and stores. Chosen so that displacement × unit is a 31-bit integer.
   */
  fastLimit = -1;
  /** The same for accumulates. */
  fastUpdates = -1;
  /** The path of puts and gets, once it is chosen (path/paths.ts). */
  transfers: Path | undefined;
  /** The path of updates, likewise. */
  updates: Path | undefined;
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
  /**
   * What opens this target to this rank: the `Lock` type that it holds here, perhaps with `UNCHECKED`; `STARTED`; or 0.
   */
  held = 0;
  /** A promise waits for the lock, or for its unlock; or `ending`. */
  waiting = false;
  /**
   * What was held, where an unlock has given the lock back and its wait has ended early; else 0. Nothing but another
   * unlock goes on then.
   */
  ending = 0;

  constructor(rank: number, byteLength: number, dispUnit: number) {
    this.rank = rank;
    this.byteLength = byteLength;
    this.dispUnit = dispUnit;
  }

  map(
    part: RemotePart,
    stripes: Stripes | undefined,
    kernels: (BulkKernels & CopyKernels) | undefined,
    own: boolean,
  ): void {
    this.stripes = stripes;
    this.kernels = kernels;
    this.part = part;
    this.skew = part.skew;
    this.own = own ? part.buffer : undefined;
    this.mapped = true;
  }

  /** Opens the fast path, of what is loaded and stored. */
  openFastPath(transfers: boolean, updates: boolean): void {
    // With a unit of 0, any displacement is the beginning.
    const limit =
      this.dispUnit === 0 ? 2 ** 31 - 8 : Math.floor(Math.min(this.byteLength, 2 ** 31 - 8) / this.dispUnit);
    if (transfers) this.fastLimit = limit;
    if (updates) this.fastUpdates = limit;
  }

  unmap(): void {
    this.part = NOTHING;
    this.own = undefined;
    this.mapped = false;
    this.fastLimit = -1;
    this.fastUpdates = -1;
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
