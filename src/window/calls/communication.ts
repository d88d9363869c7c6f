/**
 * The calls of a window that move data (MPI 4.1, 12.3): `put`, `get`, the atomic calls, their forms that return
 * requests, and notifications.
 *
 * `put`, `get` and the atomic calls have a fast path for what is most frequent (fast-path.ts), and a slow path
 * (slow-path.ts) that handles all the rest and writes the error messages. Between them is the way of whole arrays to a
 * device.
 */
import { Rank } from '../../collective/group.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from '../../datatype/element-types.ts';
import { Op } from '../../datatype/op.ts';
import type { FetchLayout, TransferLayout } from '../../datatype/sides.ts';
import { byteLengthOf, tagOf } from '../../intrinsics.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import { LastArrays } from '../elements/last-arrays.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { Paths } from '../path/paths.ts';
import type { Target } from '../path/target.ts';
import { Aggregate, type AggregateOptions, readLimit } from './aggregate-handle.ts';
import { fastLayout } from './fast-layout.ts';
import {
  fastAccumulate,
  fastCompareAndSwap,
  fastFetch,
  fastFetchMany,
  fastGet,
  fastPut,
  fastRead,
} from './fast-path.ts';
import { NotificationWaits } from './notification-waits.ts';
import type { PassiveTarget } from './passive-target.ts';
import { checkSingles, type SlowPath } from './slow-path.ts';
import type { WindowCore } from './window-core.ts';
import { COMPLETE, Request } from './window-request.ts';

export abstract class Communication<T extends TypedArray> {
  readonly #core: WindowCore;
  readonly #epochs: Epochs;
  readonly #paths: Paths;
  readonly #passive: PassiveTarget;
  readonly #slowPath: SlowPath;
  readonly #notifications: NotificationWaits;
  readonly #last = new LastArrays();

  /** @internal */
  constructor(core: WindowCore) {
    this.#core = core;
    this.#epochs = core.epochs;
    this.#paths = core.paths;
    this.#passive = core.passive;
    this.#slowPath = core.slowPath;
    this.#notifications = new NotificationWaits(core.epochs, core.parts.signals);
  }

  // ---- communication ------------------------------------------------------------------------------------------------

  /**
   * Writes `origin` into the part of `target` at displacement `disp`. Returns at once; the operation is complete after
   * the next synchronization call (fence, unlock, flush). MPI 4.1, 12.3.1.
   *
   * Cost: one check, and one store per element, for a few elements of a common type; `memcpy` for many.
   * Errors: `ERR_WIN`, `ERR_BUFFER`, `ERR_RANK`, `ERR_DISP`, `ERR_TYPE`, `ERR_RMA_SYNC` (no epoch), `ERR_RMA_RANGE`;
   * nothing is written then.
   */
  put<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    if (
      t !== undefined &&
      (layout === undefined ? fastPut(t, origin, disp) : fastLayout(epochs, t, origin, disp, layout, true))
    )
      epochs.noteStores();
    else this.#transfer('put', origin, target, disp, layout);
  }

  /**
   * Reads from the part of `target` at displacement `disp` into `origin`. Returns at once; `origin` holds the data
   * after the next synchronization call. MPI 4.1, 12.3.2. Cost and errors: as `put`.
   */
  get<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    if (
      t !== undefined &&
      (layout === undefined ? fastGet(t, origin, disp) : fastLayout(epochs, t, origin, disp, layout, false))
    )
      epochs.noteUse();
    else this.#transfer('get', origin, target, disp, layout);
  }

  /**
   * Combines `origin` with the elements in the part of `target` at displacement `disp`. The update of each element is
   * atomic with respect to all other accumulate calls on the window. The elements at the target must be aligned to
   * their size. MPI 4.1, 12.3.4.
   *
   * Cost: one atomic instruction per element if the processor has one for `op`, otherwise a compare-and-swap loop; one
   * native call for many elements.
   * Errors: as `put`, and `ERR_OP`.
   */
  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    if (t !== undefined && layout === undefined && fastAccumulate(t, origin, disp, op)) {
      epochs.noteUse();
      return;
    }
    this.#slowPath.accumulate('accumulate', origin, target, disp, op, layout);
  }

  /**
   * Combines `origin[0]` with one element of the target and stores the previous value of that element in `result[0]`,
   * atomically. `origin` and `result` have one element of the same type each. With `Op.NO_OP`, `origin` may be `null`.
   * MPI 4.1, 12.3.4. Cost and errors: as `accumulate`.
   */
  fetchAndOp<A extends ElementsOf<T>>(
    origin: A | null,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    const kind = this.#last.kindOf(origin, result);
    if (t !== undefined && kind !== undefined && fastFetch(t, kind, origin!, result, disp, op)) {
      epochs.noteUse();
      return;
    }
    if (origin !== null || !this.#readFast(result, target, disp, op))
      this.#fetchChecked(origin, result, target, disp, op);
  }

  /**
   * Replaces one element of the target by `origin[0]` if it equals `compare[0]`, and stores its previous value in
   * `result[0]`, atomically. Integers and bytes only. MPI 4.1, 12.3.4. Cost: one compare-and-swap. Errors: as
   * `accumulate`.
   */
  compareAndSwap<A extends ElementsOf<T>>(
    origin: A & Swappable<A>,
    compare: ResultOf<A, undefined>,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    const kind = this.#last.kindOfAll(origin, compare, result);
    if (t !== undefined && kind !== undefined && fastCompareAndSwap(t, kind, origin, compare, result, disp)) {
      epochs.noteUse();
      return;
    }
    this.#swapChecked(origin, compare, result, target, disp);
  }

  /**
   * Accumulates like `accumulate` and stores the previous values of the target's elements in `result`. `result` has as
   * many elements of the same type and overlaps neither `origin` nor the target; `layout.result` describes where they
   * go. With `Op.NO_OP`, the call is an atomic get and ignores `origin`, which may be `null`. MPI 4.1, 12.3.4. Cost and
   * errors: as `accumulate`.
   */
  getAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    if (
      t !== undefined &&
      layout === undefined &&
      (op === Op.NO_OP ? fastRead(t, result, disp) : this.#fetchFast(t, origin, result, disp, op))
    ) {
      epochs.noteUse();
      return;
    }
    this.#slowPath.getAccumulate('getAccumulate', origin, result, target, disp, op, layout);
  }

  // ---- requests and notifications -----------------------------------------------------------------------------------

  /**
   * Starts a `put` and returns a request that is complete when `origin` may be reused. Requires a passive-target epoch
   * (MPI 4.1, 12.3.5). Cost and errors: as `put`. If the operations of the window are complete when issued, every call
   * returns the same request.
   */
  rput<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    this.#passive.check('rput', target);
    const before = this.#epochs.accesses?.calls;
    this.put<L>(origin, target, disp, layout);
    return this.#request(target, before);
  }

  /** Starts a `get` and returns a request that is complete when `origin` holds the data. Otherwise like `rput`. */
  rget<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    this.#passive.check('rget', target);
    const before = this.#epochs.accesses?.calls;
    this.get<L>(origin, target, disp, layout);
    return this.#request(target, before);
  }

  /**
   * Starts an `accumulate` and returns a request that is complete when `origin` may be reused. Otherwise like `rput`.
   */
  raccumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    this.#passive.check('raccumulate', target);
    const before = this.#epochs.accesses?.calls;
    this.accumulate<A, L>(origin, target, disp, op, layout);
    return this.#request(target, before);
  }

  /**
   * Starts a `getAccumulate` and returns a request that is complete when `result` holds the data. Otherwise like
   * `rput`.
   */
  rgetAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    this.#passive.check('rgetAccumulate', target);
    const before = this.#epochs.accesses?.calls;
    this.#slowPath.getAccumulate('rgetAccumulate', origin, result, target, disp, op, layout);
    return this.#request(target, before);
  }

  /**
   * Returns an aggregate handle for operations to `target`: those that it issues are posted together, as one list, when
   * it is waited for, when it holds `limit` of them, or when anything else completes or follows them. It may be used in
   * any epochs, and again after a wait. See {@link Aggregate}.
   *
   * Cost: one object. Errors: `ERR_WIN`, `ERR_RANK`, `TypeError`/`RangeError` (`limit`), `ERR_ARG` (other options),
   * `ERR_RMA_SYNC` (another synchronization of the window is in progress).
   * @param options `limit`: operations that it holds at most, 1 or more; default: 64
   */
  aggregate(target: number, options?: AggregateOptions): Aggregate<T> {
    const epochs = this.#epochs;
    epochs.checkUsable('aggregate');
    const limit = readLimit(options);
    const paths = this.#paths;
    const requests = target === Rank.NULL ? undefined : paths.collects(epochs.target('aggregate', target));
    return new Aggregate<T>(this, target, limit, {
      requests,
      accesses: epochs.accesses,
      post: () => epochs.attempt(() => requests?.postCollected(target)),
      completed: (told) => this.#completed(target, told),
    });
  }

  /** What an aggregate handle waits for: what has been issued to its target, where that is not for the epoch's end. */
  #completed(target: number, told: (() => void) | undefined): Request {
    const t = this.#epochs.find(target);
    if (t === undefined || !this.#epochs.isPassive(t)) return COMPLETE;
    this.#epochs.checkUsable('wait');
    return this.#soFar(target, told);
  }

  /** @param before how many calls had been noted, where they are */
  #request(target: number, before: number | undefined): Request {
    return this.#soFar(
      target,
      before === undefined || target === Rank.NULL ? undefined : this.#tellLog(target, before),
    );
  }

  /** For what has been issued to a rank so far. @param told learns of its completion */
  #soFar(target: number, told: ((remote: boolean) => void) | undefined): Request {
    const { completion } = this.#paths;
    if (completion === undefined || target === Rank.NULL) {
      this.#epochs.settle(undefined, undefined);
      return told === undefined ? COMPLETE : new Request(undefined, undefined, told);
    }
    const { job, members } = this.#core.parts.comm;
    const placed = job.context.capabilities.completionImpliesPlacement ? undefined : () => completion.flush(target);
    return new Request(members, completion.soFar(target), told, placed);
  }

  /** Tells the log of accesses of a request that was waited for. */
  #tellLog(target: number, before: number): (remote: boolean) => void {
    const accesses = this.#epochs.accesses!;
    const { calls } = accesses;
    return (remote) => {
      if (remote) accesses.completedCalls(target, before, calls);
      else accesses.completedHere(target, [before, calls]);
      accesses.buffers?.complain();
    };
  }

  /**
   * Performs a `put` and then increments the target's notification count. A rank that has taken the notification
   * (`waitNotify`) finds in its part the data and everything that this rank put there before. Requires an epoch as
   * `put` does; the target requires none.
   *
   * If puts are requests, it is an RDMA write with immediate. If operations are queued, it leaves with the queue (lock
   * `two-sided`) or is executed in the closing fence (`deferred`). Cost: as `put`, and one atomic addition at the
   * target. Errors: as `put`.
   */
  putNotify<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    this.put<L>(origin, target, disp, layout);
    if (target === Rank.NULL) return;
    this.#paths.signal(this.#epochs.target('putNotify', target));
  }

  /**
   * Waits until `count` notifications that were not taken before have arrived at this rank, from any origins, and takes
   * them. Cost: one load once they have arrived.
   * Errors: `ERR_WIN`, `TypeError`/`RangeError` (count), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (the call takes no
   * notification then).
   */
  waitNotify(count = 1, options?: WaitOptions): Promise<void> {
    return this.#notifications.wait(count, options);
  }

  /** Blocks until `count` notifications have arrived; otherwise like `waitNotify`. */
  waitNotifySync(count = 1, options?: WaitOptions): void {
    this.#notifications.waitSync(count, options);
  }

  /**
   * Takes `count` notifications if that many have arrived, and returns whether it did. Never waits. Errors: as
   * `waitNotify`, except `ERR_RMA_TIMEOUT`.
   */
  testNotify(count = 1): boolean {
    return this.#notifications.test(count);
  }

  /** A put or get that the fast path has not taken on: to a device, or what is less common. */
  #transfer(call: 'put' | 'get', origin: TypedArray, target: number, disp: number, layout?: TransferLayout): void {
    this.#epochs.checkUsable(call);
    if (layout === undefined && this.#paths.sendsWhole && this.#transferWhole(call, origin, target, disp)) return;
    this.#slowPath.transfer(call, origin, target, disp, layout);
  }

  /**
   * All of an array, by one request. It decides nothing: what it does not take on (it then returns
   * false and has done nothing) goes on in the slow path, which also writes the error messages.
   */
  #transferWhole(call: 'put' | 'get', origin: TypedArray, target: number, disp: number): boolean {
    const epochs = this.#epochs;
    const t = epochs.find(target);
    if (t === undefined || !epochs.allows(t) || !Number.isSafeInteger(disp) || disp < 0) return false;
    if (tagOf(origin) === undefined) return false;
    const bytes = byteLengthOf(origin);
    const at = disp * t.dispUnit;
    if (bytes === 0 || at + bytes > t.byteLength) return false;
    try {
      const whole = this.#paths.whole(t);
      const { rank } = t;
      if (!(call === 'put' ? whole?.put(origin, rank, at, epochs.isFenced) : whole?.get(origin, rank, at)))
        return false;
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
    epochs.noteUse();
    return true;
  }

  #readFast(result: TypedArray, target: number, disp: number, op: Op): boolean {
    const epochs = this.#epochs;
    const t = epochs.opened(target);
    if (t === undefined || op !== Op.NO_OP || !fastRead(t, result, disp)) return false;
    epochs.noteUse();
    return true;
  }

  #fetchFast(t: Target, origin: TypedArray | null, result: TypedArray, disp: number, op: Op): boolean {
    const kind = this.#last.kindOf(origin, result);
    if (kind === undefined) return false;
    return fastFetch(t, kind, origin!, result, disp, op) || fastFetchMany(t, kind, origin!, result, disp, op);
  }

  #fetchChecked(origin: TypedArray | null, result: TypedArray, target: number, disp: number, op: Op): void {
    this.#epochs.checkUsable('fetchAndOp');
    if (origin === null && op === Op.NO_OP) checkSingles('fetchAndOp', { result });
    else checkSingles('fetchAndOp', { origin: origin as TypedArray, result });
    this.#slowPath.getAccumulate('fetchAndOp', origin, result, target, disp, op, undefined);
  }

  #swapChecked(origin: TypedArray, compare: TypedArray, result: TypedArray, target: number, disp: number): void {
    this.#epochs.checkUsable('compareAndSwap');
    checkSingles('compareAndSwap', { origin, compare, result });
    this.#slowPath.compareAndSwap(origin, compare, result, target, disp);
  }
}
