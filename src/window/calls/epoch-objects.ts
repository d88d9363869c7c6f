/**
 * Epochs as objects, for `await using`: the block's end ends the epoch, and the type offers what the epoch allows and
 * nothing else.
 *
 *     await using epoch = await win.locked(target);
 *     epoch.put(origin, disp);
 *
 * They are thin: each call goes to the window, which checks it as ever. One that has ended refuses.
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from '../../datatype/element-types.ts';
import type { FetchLayout, TransferLayout } from '../../datatype/sides.ts';
import { RmaError } from '../../errors.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import { Assert } from '../epochs/assertions.ts';
import type { Synchronization } from './synchronization.ts';
import type { Request } from './window-request.ts';

/** A window without the calls that make epochs. */
type EpochWindow<T extends TypedArray> = Synchronization<T> & { readonly name: string };

/** What all have in common: they end once. */
abstract class Epoch<T extends TypedArray> {
  readonly #window: EpochWindow<T>;
  readonly #kind: string;
  #ended = false;

  constructor(window: EpochWindow<T>, kind: string) {
    this.#window = window;
    this.#kind = kind;
  }

  /** @internal The window, while the epoch is open. */
  protected get window(): EpochWindow<T> {
    if (this.#ended) {
      throw new RmaError('ERR_RMA_SYNC', `this ${this.#kind} epoch of window ${this.#window.name} has ended`);
    }
    return this.#window;
  }

  protected abstract close(options: WaitOptions | undefined): Promise<void>;
  protected abstract closeSync(options: WaitOptions | undefined): void;

  /**
   * Ends the epoch: the operations issued in it are complete. A second call does nothing. After a timeout the epoch is
   * still open: call `end` again. Cost and errors: as the window's call that ends such an epoch (`unlock`, `unlockAll`,
   * `fence` with `Assert.NO_SUCCEED`, `complete`, `wait`).
   */
  async end(options?: WaitOptions): Promise<void> {
    if (this.#ended) return;
    await this.close(options);
    this.#ended = true;
  }

  /** Blocks until the epoch has ended; otherwise like `end`. */
  endSync(options?: WaitOptions): void {
    if (this.#ended) return;
    this.closeSync(options);
    this.#ended = true;
  }

  /** Ends it if that needs no waiting. @returns whether it has ended */
  protected endIf(close: () => boolean): boolean {
    if (!this.#ended && close()) this.#ended = true;
    return this.#ended;
  }

  /** Ends the epoch at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** Ends the epoch at the end of a `using` block, and blocks until it has ended. */
  [Symbol.dispose](): void {
    this.endSync();
  }
}

/** An epoch with access to one target under its lock: the result of `win.locked`. */
export class LockEpoch<T extends TypedArray = TypedArray> extends Epoch<T> {
  /** The rank that the epoch gives access to. */
  readonly target: number;

  /** @internal */
  constructor(window: EpochWindow<T>, target: number) {
    super(window, 'lock');
    this.target = target;
  }

  /** Writes `origin` into the part of the target: see `Window.put`. */
  put<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.put<L>(origin, this.target, disp, layout);
  }

  /** Reads from the part of the target into `origin`: see `Window.get`. */
  get<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.get<L>(origin, this.target, disp, layout);
  }

  /** Combines `origin` with the target's elements, each atomically: see `Window.accumulate`. */
  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.accumulate<A, L>(origin, this.target, disp, op, layout);
  }

  /** Accumulates, and stores the previous values of the target's elements in `result`: see `Window.getAccumulate`. */
  getAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.getAccumulate<A, L>(origin, result, this.target, disp, op, layout);
  }

  /** Combines one element with the target's, and stores its previous value in `result`: see `Window.fetchAndOp`. */
  fetchAndOp<A extends ElementsOf<T>>(
    origin: A | null,
    result: ResultOf<A, undefined>,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    this.window.fetchAndOp<A>(origin, result, this.target, disp, op);
  }

  /** Replaces one element of the target if it equals `compare[0]`: see `Window.compareAndSwap`. */
  compareAndSwap<A extends ElementsOf<T>>(
    origin: A & Swappable<A>,
    compare: ResultOf<A, undefined>,
    result: ResultOf<A, undefined>,
    disp: number,
  ): void {
    this.window.compareAndSwap<A>(origin, compare, result, this.target, disp);
  }

  /** Starts a `put` and returns a request: see `Window.rput`. */
  rput<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): Request {
    return this.window.rput<L>(origin, this.target, disp, layout);
  }

  /** Starts a `get` and returns a request: see `Window.rget`. */
  rget<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): Request {
    return this.window.rget<L>(origin, this.target, disp, layout);
  }

  /** Starts an `accumulate` and returns a request: see `Window.raccumulate`. */
  raccumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.raccumulate<A, L>(origin, this.target, disp, op, layout);
  }

  /** Starts a `getAccumulate` and returns a request: see `Window.rgetAccumulate`. */
  rgetAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.rgetAccumulate<A, L>(origin, result, this.target, disp, op, layout);
  }

  /** Performs a `put` and then increments the target's notification count: see `Window.putNotify`. */
  putNotify<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.putNotify<L>(origin, this.target, disp, layout);
  }

  /** Completes the operations issued to the target so far: see `Window.flush`. */
  async flush(options?: WaitOptions): Promise<void> {
    await this.window.flush(this.target, options);
  }

  /** Blocks until the operations are complete; otherwise like `flush`. */
  flushSync(options?: WaitOptions): void {
    this.window.flushSync(this.target, options);
  }

  /** Completes the operations issued to the target so far at this rank only: see `Window.flushLocal`. */
  async flushLocal(options?: WaitOptions): Promise<void> {
    await this.window.flushLocal(this.target, options);
  }

  /** Blocks until the operations are complete; otherwise like `flushLocal`. */
  flushLocalSync(options?: WaitOptions): void {
    this.window.flushLocalSync(this.target, options);
  }

  /** Synchronizes loads and stores with RMA operations: see `Window.sync`. */
  sync(): void {
    this.window.sync();
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.unlock(this.target, options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.unlockSync(this.target, options);
  }
}

/**
 * Access to several targets. What these calls may be given, and what is said of them, they have from the window
 * (`AccessEpoch`); here they only go on to it.
 */
abstract class Accesses extends Epoch<TypedArray> {
  put(origin: never, target: number, disp: number, layout?: never): void {
    this.window.put(origin, target, disp, layout);
  }

  get(origin: never, target: number, disp: number, layout?: never): void {
    this.window.get(origin, target, disp, layout);
  }

  accumulate(origin: never, target: number, disp: number, op: never, layout?: never): void {
    this.window.accumulate(origin, target, disp, op, layout);
  }

  getAccumulate(origin: never, result: never, target: number, disp: number, op: never, layout?: never): void {
    this.window.getAccumulate(origin, result, target, disp, op, layout);
  }

  fetchAndOp(origin: never, result: never, target: number, disp: number, op: never): void {
    this.window.fetchAndOp(origin, result, target, disp, op);
  }

  compareAndSwap(origin: never, compare: never, result: never, target: number, disp: number): void {
    this.window.compareAndSwap(origin, compare, result, target, disp);
  }

  putNotify(origin: never, target: number, disp: number, layout?: never): void {
    this.window.putNotify(origin, target, disp, layout);
  }
}

/** The same under locks of all targets. */
abstract class PassiveAccesses extends Accesses {
  rput(origin: never, target: number, disp: number, layout?: never): Request {
    return this.window.rput(origin, target, disp, layout);
  }

  rget(origin: never, target: number, disp: number, layout?: never): Request {
    return this.window.rget(origin, target, disp, layout);
  }

  raccumulate(origin: never, target: number, disp: number, op: never, layout?: never): Request {
    return this.window.raccumulate(origin, target, disp, op, layout);
  }

  rgetAccumulate(origin: never, result: never, target: number, disp: number, op: never, layout?: never): Request {
    return this.window.rgetAccumulate(origin, result, target, disp, op, layout);
  }

  async flush(target: number, options?: WaitOptions): Promise<void> {
    await this.window.flush(target, options);
  }

  flushSync(target: number, options?: WaitOptions): void {
    this.window.flushSync(target, options);
  }

  async flushAll(options?: WaitOptions): Promise<void> {
    await this.window.flushAll(options);
  }

  flushAllSync(options?: WaitOptions): void {
    this.window.flushAllSync(options);
  }

  async flushLocal(target: number, options?: WaitOptions): Promise<void> {
    await this.window.flushLocal(target, options);
  }

  flushLocalSync(target: number, options?: WaitOptions): void {
    this.window.flushLocalSync(target, options);
  }

  async flushLocalAll(options?: WaitOptions): Promise<void> {
    await this.window.flushLocalAll(options);
  }

  flushLocalAllSync(options?: WaitOptions): void {
    this.window.flushLocalAllSync(options);
  }

  sync(): void {
    this.window.sync();
  }
}

/** Some calls of a window, with its docstrings. */
type CallsOf<Win, Name extends keyof Win> = { [Call in Name]: Win[Call] };

/** Epochs with the calls of a class, which are those of a window. */
type With<Calls> = abstract new <T extends TypedArray>(
  window: EpochWindow<T>,
  kind: string,
) => Epoch<T> & CallsOf<EpochWindow<T>, keyof Calls & keyof EpochWindow<TypedArray>>;

const AccessEpoch = Accesses as unknown as With<Accesses>;
const PassiveEpoch = PassiveAccesses as unknown as With<PassiveAccesses>;

/** An epoch with shared access to all targets: the result of `win.lockedAll`. */
export class LockAllEpoch<T extends TypedArray = TypedArray> extends PassiveEpoch<T> {
  /** @internal */
  constructor(window: EpochWindow<T>) {
    super(window, 'lockAll');
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.unlockAll(options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.unlockAllSync(options);
  }
}

/** An epoch with access to all targets between two fences: the result of `win.fenced`. */
export class FenceEpoch<T extends TypedArray = TypedArray> extends AccessEpoch<T> {
  /** @internal */
  constructor(window: EpochWindow<T>) {
    super(window, 'fence');
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.fence(Assert.NO_SUCCEED, options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.fenceSync(Assert.NO_SUCCEED, options);
  }
}

/** An epoch with access to the targets of a group: the result of `win.started`. */
export class StartEpoch<T extends TypedArray = TypedArray> extends AccessEpoch<T> {
  /** @internal */
  constructor(window: EpochWindow<T>) {
    super(window, 'start');
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.complete(options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.completeSync(options);
  }
}

/**
 * An epoch that exposes this rank's part to the origins of a group: the result of `win.posted`. Its end waits for the
 * origins.
 */
export class PostEpoch<T extends TypedArray = TypedArray> extends Epoch<T> {
  /** @internal */
  constructor(window: EpochWindow<T>) {
    super(window, 'post');
  }

  /**
   * Ends the epoch if all its origins have called `complete`, and returns whether it has ended. Never waits. Errors: as
   * `Window.test`.
   */
  test(): boolean {
    return this.endIf(() => this.window.test());
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.wait(options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.waitSync(options);
  }
}
