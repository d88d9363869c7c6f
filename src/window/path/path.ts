/**
 * How operations reach one target's memory. A path is chosen once for each target (paths.ts), one for puts and gets and
 * one for updates, since these can differ. The code that moves bytes calls it, and asks nothing about providers,
 * schemes or mappings.
 *
 * The caller has checked everything that does not depend on the path: arguments, the epoch, the range. `at` is a byte
 * of the target's part (in a dynamic window: an address there) from which the places of `to` are counted.
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { WholeArrays } from '../../transfer/requests/whole-arrays.ts';
import type { Poster } from '../../transfer/schedule/held-operations.ts';
import type { Operation } from '../../wait/operation.ts';

/**
 * What makes progress on a call: the result of `win.progress`.
 *
 * - `origin`: the caller's processor, by loads, stores and atomic instructions
 * - `device`: the devices of the network, without a processor of the target
 * - `kernel`: the operating system, which copies between the processes
 * - `agent`: a thread of the library in the target's process, whatever the target's program does
 * - `target`: the target, which must call the library, too
 */
export type ProgressBy = 'origin' | 'device' | 'kernel' | 'agent' | 'target';

/** The kinds of operations that can differ in their path. */
export type Moves = 'transfer' | 'update';

/** Memory of this rank itself, in which an origin could overlap the target. */
export interface OwnMemory {
  readonly memory: TypedArray;
  /** The displacement of its first byte. */
  readonly address: number;
}

export interface Path {
  /** There if the target is the caller. */
  readonly own: OwnMemory | undefined;
  /** There if loads and stores reach the memory, and so the fast path may, too. */
  readonly mapped?: true;
  /** This path, if its operations are requests, which complete later than their calls; a schedule may hold them. */
  readonly later?: Later;
  /** What puts and gets whole arrays there by one request each, if anything does. */
  readonly whole?: WholeArrays | undefined;
  /** Makes the target's memory accessible, and refuses memory that is gone. Comes before every operation. */
  open(): void;
  /** A number that is as aligned as byte `at` is in memory. */
  aligned(at: number): number;
  put(origin: TypedArray, from: Side, at: number, to: Side): void;
  get(origin: TypedArray, from: Side, at: number, to: Side): void;
  /** @param fetch where what was there before goes */
  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void;
  /** A compare-and-swap of one element. */
  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void;
  /** What must act so that such an operation is carried out. */
  progressBy(moves: Moves): ProgressBy;
}

/** A path of requests. */
export interface Later extends Path, Poster {}

/** Completes operations that are not complete when they are issued, at this rank and at the target. */
export interface Completion {
  /** Of operations to `rank`, or, without it, to all. */
  flush(rank?: number): Operation;
  /** One look, without an operation of its own: whether all is complete. */
  tryFlush?(rank: number | undefined, extent: 'here' | 'in memory'): boolean;
  /** The same at this rank only, where that is less. */
  flushLocal?(rank?: number): Operation;
  /** The same before a lock is given back, if that makes a difference. */
  flushLast?(rank?: number): Operation;
  /** Complete when what has been issued to `rank` so far is complete. */
  soFar(rank: number): Operation;
  endHolding?(): void;
}
