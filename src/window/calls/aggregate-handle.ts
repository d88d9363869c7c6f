/**
 * Aggregate handles (dissertation §9.2): any number of operations to one rank that are posted together and waited for
 * together.
 *
 *     await using batch = win.aggregate(target);
 *     for (const { values, place } of pieces) batch.put(values, place);
 *
 * Where the target's memory is mapped, the handle adds nothing: each operation is the window's own, carried out by its
 * call. Where the memory is reached by requests, they are collected on the target's connection as if there were no room
 * for them (transfer/requests/outstanding.ts). So everything that waits for operations, or follows them, knows of them.
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import type { OpOn, OriginOf } from '../../datatype/element-types.ts';
import type { TransferLayout } from '../../datatype/sides.ts';
import { argumentRangeError, argumentTypeError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import type { Accesses } from '../epochs/accesses.ts';
import type { Request } from './window-request.ts';

/** Operations that a handle holds, unless it says otherwise: as a list of requests (requests/outstanding.ts). */
const LIMIT = 64;

/** Options of `win.aggregate`. */
export interface AggregateOptions {
  /** Operations that are held before they are posted: 1 or more; default: 64. */
  readonly limit?: number;
}

/**
 * Operations to one rank that are posted together: the result of `win.aggregate`.
 *
 * What the calls check and what they throw is as for the window's calls of the same names: wrong arguments are refused
 * by the call, which then adds nothing, and the handle can go on. Each needs an epoch that gives access to the target.
 *
 * Order: none among the operations, as among separate ones, except that accumulates to the same element are carried out
 * in their order. Atomicity: each element of an accumulate by itself, as with separate ones. Until the operations are
 * complete, their origins must not change, and results are undefined.
 *
 * `flush`, `unlock`, `fence`, `complete` and the other calls that complete operations complete those of handles, too,
 * without a `wait`. An operation to the same rank outside of the handle posts what it holds, and comes behind it.
 */
export class Aggregate<T extends TypedArray = TypedArray> {
  readonly #target: number;
  readonly #limit: number;
  readonly #window: Operations<T>;
  readonly #owner: AggregateOwner;
  /** Whether each operation is no more than the window's own. */
  readonly #isDirect: boolean;
  /** Operations since they were posted last. */
  #held = 0;
  /** The numbers of the log's calls before and after each operation that was not waited for, where there is a log. */
  #logged: [before: number, after: number][] = [];

  /** @internal */
  constructor(window: Operations<T>, target: number, limit: number, owner: AggregateOwner) {
    this.#window = window;
    this.#target = target;
    this.#limit = limit;
    this.#owner = owner;
    this.#isDirect = owner.requests === undefined && owner.accesses === undefined;
  }

  /** The rank that the operations go to. */
  get target(): number {
    return this.#target;
  }

  /** Operations that are held before they are posted. */
  get limit(): number {
    return this.#limit;
  }

  /** Adds a put. Never waits. Arguments, cost and errors: as `win.put`. */
  put<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    if (this.#isDirect) this.#window.put<L>(origin, this.#target, disp, layout);
    else this.#addPut(origin, disp, layout);
  }

  /** Adds a get. Never waits. Arguments, cost and errors: as `win.get`. */
  get<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    if (this.#isDirect) this.#window.get<L>(origin, this.#target, disp, layout);
    else this.#addGet(origin, disp, layout);
  }

  /**
   * Adds an accumulate. Never waits. Arguments, cost and errors: as `win.accumulate`. On a device, sums of 64-bit
   * integers are posted with the other operations; the other ones need answers, and take their round trips.
   */
  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    if (this.#isDirect) this.#window.accumulate<A, L>(origin, this.#target, disp, op, layout);
    else this.#addUpdate<A, L>(origin, disp, op, layout);
  }

  /**
   * Posts what is held. In a passive-target epoch, waits until all operations of the handle are complete at this rank:
   * origins may be reused, and results hold the data, as after `flushLocal`; whether they are complete at the target,
   * `flush` and `unlock` say. In an epoch of `fence` or `start`, it does not wait: the call that ends the epoch
   * completes them, as in MPI only passive-target epochs have requests (MPI 4.1, 12.3.5). Without an epoch they are
   * complete already. The handle can be used again. After a timeout or an abort nothing is lost: wait again.
   *
   * Cost: none if operations are complete when issued; otherwise one doorbell and the wait for what was issued to the
   * target so far.
   * Errors: `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`, `ERR_RMA_SYNC` (another synchronization of the window is in
   * progress), `ERR_BUFFER` (an origin was lost; the other operations are posted); on a device, `ERR_VERBS`.
   */
  wait(options?: WaitOptions): Promise<void> {
    try {
      return this.#end().wait(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Blocks until the operations are complete; otherwise like `wait`. */
  waitSync(options?: WaitOptions): void {
    this.#end().waitSync(options);
  }

  /** Waits for the operations at the end of an `await using` block: see `wait`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.wait();
  }

  /** Waits for the operations at the end of a `using` block, and blocks: see `waitSync`. */
  [Symbol.dispose](): void {
    this.waitSync();
  }

  // Functions of their own: what a closure captures is put on the heap where its function begins.

  #addPut<L extends TransferLayout | undefined>(origin: OriginOf<T, L>, disp: number, layout: L | undefined): void {
    this.#add(() => this.#window.put<L>(origin, this.#target, disp, layout));
  }

  #addGet<L extends TransferLayout | undefined>(origin: OriginOf<T, L>, disp: number, layout: L | undefined): void {
    this.#add(() => this.#window.get<L>(origin, this.#target, disp, layout));
  }

  #addUpdate<A extends OriginOf<T, L>, L extends TransferLayout | undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout: L | undefined,
  ): void {
    this.#add(() => this.#window.accumulate<A, L>(origin, this.#target, disp, op, layout));
  }

  #add(operation: () => void): void {
    const { requests, accesses } = this.#owner;
    const before = accesses?.calls;
    requests?.collectFor(this.#target);
    try {
      operation();
    } finally {
      requests?.collectFor(-1);
    }
    if (before !== undefined) this.#logged.push([before, accesses!.calls]);
    if (++this.#held >= this.#limit) this.#post();
  }

  #post(): void {
    this.#held = 0;
    this.#owner.post();
  }

  #end(): Request {
    if (this.#held > 0) this.#post();
    const { accesses } = this.#owner;
    if (accesses === undefined) return this.#owner.completed(undefined);
    const logged = this.#logged;
    return this.#owner.completed(() => {
      for (const calls of logged.splice(0)) accesses.completedHere(this.#target, calls);
      accesses.buffers?.complain();
    });
  }
}

/** The calls of the window that a handle collects. */
interface Operations<T extends TypedArray> {
  put<L extends TransferLayout | undefined>(origin: OriginOf<T, L>, target: number, disp: number, layout?: L): void;
  get<L extends TransferLayout | undefined>(origin: OriginOf<T, L>, target: number, disp: number, layout?: L): void;
  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void;
}

/** What a handle needs of its window besides. */
export interface AggregateOwner {
  /** What collects the operations; absent where their calls carry them out. */
  readonly requests: RequestTransfer | undefined;
  readonly accesses: Accesses | undefined;
  /** Posts what was collected for the target. */
  post(): void;
  /** What says that it is complete. @param told learns of it */
  completed(told: (() => void) | undefined): Request;
}

/** Errors: `TypeError`, `RangeError`, `ERR_ARG`. */
export function readLimit(options: AggregateOptions | undefined): number {
  if (options === undefined) return LIMIT;
  if (typeof options !== 'object' || options === null)
    throw argumentTypeError(`aggregate: options must be { limit }, not ${show(options)}`);
  refuseUnknown('aggregate', 'the options', options, ['limit']);
  const limit: unknown = reading('aggregate', 'limit of the options', () => options.limit);
  if (limit === undefined) return LIMIT;
  if (typeof limit !== 'number')
    throw argumentTypeError(`aggregate: limit must be a number of operations, not ${show(limit)}`);
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw argumentRangeError(`aggregate: limit must be a whole number of operations, 1 or more, not ${show(limit)}`);
  return limit;
}
