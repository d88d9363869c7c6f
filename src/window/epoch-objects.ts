/**
 * Epochs as objects, for `await using`: the block's end ends the epoch, and the type offers what the epoch allows and nothing else.
 *
 *     await using epoch = await win.locked(target);
 *     epoch.put(origin, disp);
 *
 * They are thin: each call goes to the window, which checks it as ever. One that has ended refuses.
 */
import type { WaitOptions } from '../comm/operation.ts';
import type { TypedArray } from '../datatype/base.ts';
import type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from '../datatype/elements.ts';
import type { FetchLayout, TransferLayout } from '../datatype/layout.ts';
import { RmaError } from '../errors.ts';
import { Assert } from './assert.ts';
import type { Request } from './request.ts';
import type { Window } from './window.ts';

/** What all have in common: they end once. */
abstract class Epoch<T extends TypedArray> {
  readonly #window: Window<T>;
  readonly #kind: string;
  #ended = false;

  constructor(window: Window<T>, kind: string) {
    this.#window = window;
    this.#kind = kind;
  }

  /** The window, while the epoch is open. */
  protected get window(): Window<T> {
    if (this.#ended) {
      throw new RmaError('ERR_RMA_SYNC', `this ${this.#kind} epoch of window ${this.#window.name} has ended`);
    }
    return this.#window;
  }

  protected abstract close(options: WaitOptions | undefined): Promise<void>;
  protected abstract closeSync(options: WaitOptions | undefined): void;

  /** Ends the epoch: what was issued in it is complete. Again: nothing. After a deadline it is still open. */
  async end(options?: WaitOptions): Promise<void> {
    if (this.#ended) return;
    await this.close(options);
    this.#ended = true;
  }

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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  [Symbol.dispose](): void {
    this.endSync();
  }
}

/** Access to one target under its lock (`win.locked`). */
export class LockEpoch<T extends TypedArray = TypedArray> extends Epoch<T> {
  readonly target: number;

  /** @internal */
  constructor(window: Window<T>, target: number) {
    super(window, 'lock');
    this.target = target;
  }

  put<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.put<L>(origin, this.target, disp, layout);
  }

  get<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.get<L>(origin, this.target, disp, layout);
  }

  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.accumulate<A, L>(origin, this.target, disp, op, layout);
  }

  getAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.getAccumulate<A, L>(origin, result, this.target, disp, op, layout);
  }

  fetchAndOp<A extends ElementsOf<T>>(
    origin: A | null,
    result: ResultOf<A, undefined>,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    this.window.fetchAndOp<A>(origin, result, this.target, disp, op);
  }

  compareAndSwap<A extends ElementsOf<T>>(
    origin: A & Swappable<A>,
    compare: ResultOf<A, undefined>,
    result: ResultOf<A, undefined>,
    disp: number,
  ): void {
    this.window.compareAndSwap<A>(origin, compare, result, this.target, disp);
  }

  rput<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): Request {
    return this.window.rput<L>(origin, this.target, disp, layout);
  }

  rget<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): Request {
    return this.window.rget<L>(origin, this.target, disp, layout);
  }

  raccumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.raccumulate<A, L>(origin, this.target, disp, op, layout);
  }

  rgetAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.rgetAccumulate<A, L>(origin, result, this.target, disp, op, layout);
  }

  putNotify<L extends TransferLayout | undefined = undefined>(origin: OriginOf<T, L>, disp: number, layout?: L): void {
    this.window.putNotify<L>(origin, this.target, disp, layout);
  }

  async flush(options?: WaitOptions): Promise<void> {
    await this.window.flush(this.target, options);
  }

  flushSync(options?: WaitOptions): void {
    this.window.flushSync(this.target, options);
  }

  async flushLocal(options?: WaitOptions): Promise<void> {
    await this.window.flushLocal(this.target, options);
  }

  flushLocalSync(options?: WaitOptions): void {
    this.window.flushLocalSync(this.target, options);
  }

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

/** Access to several targets. */
abstract class AccessEpoch<T extends TypedArray> extends Epoch<T> {
  put<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    this.window.put<L>(origin, target, disp, layout);
  }

  get<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    this.window.get<L>(origin, target, disp, layout);
  }

  accumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.accumulate<A, L>(origin, target, disp, op, layout);
  }

  getAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): void {
    this.window.getAccumulate<A, L>(origin, result, target, disp, op, layout);
  }

  fetchAndOp<A extends ElementsOf<T>>(
    origin: A | null,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    this.window.fetchAndOp<A>(origin, result, target, disp, op);
  }

  compareAndSwap<A extends ElementsOf<T>>(
    origin: A & Swappable<A>,
    compare: ResultOf<A, undefined>,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
  ): void {
    this.window.compareAndSwap<A>(origin, compare, result, target, disp);
  }

  putNotify<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    this.window.putNotify<L>(origin, target, disp, layout);
  }
}

/** Shared access to all targets (`win.lockedAll`). */
export class LockAllEpoch<T extends TypedArray = TypedArray> extends AccessEpoch<T> {
  /** @internal */
  constructor(window: Window<T>) {
    super(window, 'lockAll');
  }

  rput<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    return this.window.rput<L>(origin, target, disp, layout);
  }

  rget<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    return this.window.rget<L>(origin, target, disp, layout);
  }

  raccumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.raccumulate<A, L>(origin, target, disp, op, layout);
  }

  rgetAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    return this.window.rgetAccumulate<A, L>(origin, result, target, disp, op, layout);
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

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.unlockAll(options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.unlockAllSync(options);
  }
}

/** Access to all targets between two fences (`win.fenced`). */
export class FenceEpoch<T extends TypedArray = TypedArray> extends AccessEpoch<T> {
  /** @internal */
  constructor(window: Window<T>) {
    super(window, 'fence');
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.fence(Assert.NO_SUCCEED, options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.fenceSync(Assert.NO_SUCCEED, options);
  }
}

/** Access to the targets of a group (`win.started`). */
export class StartEpoch<T extends TypedArray = TypedArray> extends AccessEpoch<T> {
  /** @internal */
  constructor(window: Window<T>) {
    super(window, 'start');
  }

  protected close(options: WaitOptions | undefined): Promise<void> {
    return this.window.complete(options);
  }

  protected closeSync(options: WaitOptions | undefined): void {
    this.window.completeSync(options);
  }
}

/** Exposure to the origins of a group (`win.posted`): its end waits for them. */
export class PostEpoch<T extends TypedArray = TypedArray> extends Epoch<T> {
  /** @internal */
  constructor(window: Window<T>) {
    super(window, 'post');
  }

  /** Ends it if all origins have completed. @returns whether it has ended */
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
