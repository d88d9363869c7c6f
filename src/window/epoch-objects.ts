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
import type { FetchLayout, TransferLayout } from '../datatype/layout.ts';
import type { Op } from '../datatype/op.ts';
import { RmaError } from '../errors.ts';
import { Assert } from './assert.ts';
import type { Request } from './request.ts';
import type { Window } from './window.ts';

/** What all have in common: they end once. */
abstract class Epoch {
  readonly #window: Window;
  readonly #kind: string;
  #ended = false;

  constructor(window: Window, kind: string) {
    this.#window = window;
    this.#kind = kind;
  }

  /** The window, while the epoch is open. */
  protected get window(): Window {
    if (this.#ended) {
      throw new RmaError('ERR_RMA_SYNC', `this ${this.#kind} epoch of window ${this.#window.name} has ended`);
    }
    return this.#window;
  }

  protected abstract close(window: Window, options: WaitOptions | undefined): Promise<void>;
  protected abstract closeSync(window: Window, options: WaitOptions | undefined): void;

  /** Ends the epoch: what was issued in it is complete. Again: nothing. After a deadline it is still open. */
  async end(options?: WaitOptions): Promise<void> {
    if (this.#ended) return;
    await this.close(this.#window, options);
    this.#ended = true;
  }

  endSync(options?: WaitOptions): void {
    if (this.#ended) return;
    this.closeSync(this.#window, options);
    this.#ended = true;
  }

  /** Ends it if that needs no waiting. @returns whether it has ended */
  protected endIf(close: (window: Window) => boolean): boolean {
    if (!this.#ended && close(this.#window)) this.#ended = true;
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
export class LockEpoch extends Epoch {
  readonly target: number;

  /** @internal */
  constructor(window: Window, target: number) {
    super(window, 'lock');
    this.target = target;
  }

  put(origin: TypedArray, disp: number, layout?: TransferLayout): void {
    this.window.put(origin, this.target, disp, layout);
  }

  get(origin: TypedArray, disp: number, layout?: TransferLayout): void {
    this.window.get(origin, this.target, disp, layout);
  }

  accumulate(origin: TypedArray, disp: number, op: Op, layout?: TransferLayout): void {
    this.window.accumulate(origin, this.target, disp, op, layout);
  }

  getAccumulate(origin: TypedArray | null, result: TypedArray, disp: number, op: Op, layout?: FetchLayout): void {
    this.window.getAccumulate(origin, result, this.target, disp, op, layout);
  }

  fetchAndOp(origin: TypedArray | null, result: TypedArray, disp: number, op: Op): void {
    this.window.fetchAndOp(origin, result, this.target, disp, op);
  }

  compareAndSwap(origin: TypedArray, compare: TypedArray, result: TypedArray, disp: number): void {
    this.window.compareAndSwap(origin, compare, result, this.target, disp);
  }

  rput(origin: TypedArray, disp: number, layout?: TransferLayout): Request {
    return this.window.rput(origin, this.target, disp, layout);
  }

  rget(origin: TypedArray, disp: number, layout?: TransferLayout): Request {
    return this.window.rget(origin, this.target, disp, layout);
  }

  raccumulate(origin: TypedArray, disp: number, op: Op, layout?: TransferLayout): Request {
    return this.window.raccumulate(origin, this.target, disp, op, layout);
  }

  rgetAccumulate(origin: TypedArray | null, result: TypedArray, disp: number, op: Op, layout?: FetchLayout): Request {
    return this.window.rgetAccumulate(origin, result, this.target, disp, op, layout);
  }

  putNotify(origin: TypedArray, disp: number, layout?: TransferLayout): void {
    this.window.putNotify(origin, this.target, disp, layout);
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

  protected close(window: Window, options: WaitOptions | undefined): Promise<void> {
    return window.unlock(this.target, options);
  }

  protected closeSync(window: Window, options: WaitOptions | undefined): void {
    window.unlockSync(this.target, options);
  }
}

/** Access to several targets. */
abstract class AccessEpoch extends Epoch {
  put(origin: TypedArray, target: number, disp: number, layout?: TransferLayout): void {
    this.window.put(origin, target, disp, layout);
  }

  get(origin: TypedArray, target: number, disp: number, layout?: TransferLayout): void {
    this.window.get(origin, target, disp, layout);
  }

  accumulate(origin: TypedArray, target: number, disp: number, op: Op, layout?: TransferLayout): void {
    this.window.accumulate(origin, target, disp, op, layout);
  }

  getAccumulate(
    origin: TypedArray | null,
    result: TypedArray,
    target: number,
    disp: number,
    op: Op,
    layout?: FetchLayout,
  ): void {
    this.window.getAccumulate(origin, result, target, disp, op, layout);
  }

  fetchAndOp(origin: TypedArray | null, result: TypedArray, target: number, disp: number, op: Op): void {
    this.window.fetchAndOp(origin, result, target, disp, op);
  }

  compareAndSwap(origin: TypedArray, compare: TypedArray, result: TypedArray, target: number, disp: number): void {
    this.window.compareAndSwap(origin, compare, result, target, disp);
  }

  putNotify(origin: TypedArray, target: number, disp: number, layout?: TransferLayout): void {
    this.window.putNotify(origin, target, disp, layout);
  }
}

/** Shared access to all targets (`win.lockedAll`). */
export class LockAllEpoch extends AccessEpoch {
  /** @internal */
  constructor(window: Window) {
    super(window, 'lockAll');
  }

  rput(origin: TypedArray, target: number, disp: number, layout?: TransferLayout): Request {
    return this.window.rput(origin, target, disp, layout);
  }

  rget(origin: TypedArray, target: number, disp: number, layout?: TransferLayout): Request {
    return this.window.rget(origin, target, disp, layout);
  }

  raccumulate(origin: TypedArray, target: number, disp: number, op: Op, layout?: TransferLayout): Request {
    return this.window.raccumulate(origin, target, disp, op, layout);
  }

  rgetAccumulate(
    origin: TypedArray | null,
    result: TypedArray,
    target: number,
    disp: number,
    op: Op,
    layout?: FetchLayout,
  ): Request {
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

  protected close(window: Window, options: WaitOptions | undefined): Promise<void> {
    return window.unlockAll(options);
  }

  protected closeSync(window: Window, options: WaitOptions | undefined): void {
    window.unlockAllSync(options);
  }
}

/** Access to all targets between two fences (`win.fenced`). */
export class FenceEpoch extends AccessEpoch {
  /** @internal */
  constructor(window: Window) {
    super(window, 'fence');
  }

  protected close(window: Window, options: WaitOptions | undefined): Promise<void> {
    return window.fence(Assert.NO_SUCCEED, options);
  }

  protected closeSync(window: Window, options: WaitOptions | undefined): void {
    window.fenceSync(Assert.NO_SUCCEED, options);
  }
}

/** Access to the targets of a group (`win.started`). */
export class StartEpoch extends AccessEpoch {
  /** @internal */
  constructor(window: Window) {
    super(window, 'start');
  }

  protected close(window: Window, options: WaitOptions | undefined): Promise<void> {
    return window.complete(options);
  }

  protected closeSync(window: Window, options: WaitOptions | undefined): void {
    window.completeSync(options);
  }
}

/** Exposure to the origins of a group (`win.posted`): its end waits for them. */
export class PostEpoch extends Epoch {
  /** @internal */
  constructor(window: Window) {
    super(window, 'post');
  }

  /** Ends it if all origins have completed. @returns whether it has ended */
  test(): boolean {
    return this.endIf((window) => window.test());
  }

  protected close(window: Window, options: WaitOptions | undefined): Promise<void> {
    return window.wait(options);
  }

  protected closeSync(window: Window, options: WaitOptions | undefined): void {
    window.waitSync(options);
  }
}
