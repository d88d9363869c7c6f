/**
 * A window by name: memory of a service, a part for each place. Its calls have the names of those of windows of a job,
 * and do the same; but it is a class of its own. A window of a job is made by all ranks together, its locks have lines
 * of ranks, its atomics and fences go by channels that all have, and each wait of it ends when a rank fails: all that
 * would have to be undone for members that come and go. Here everything is memory of one machine, so each call is
 * complete when it returns, no epoch has to be open, and what must exclude others is robust.
 */
import { opAllowed, type TypedArray, typeCodeOf } from '../../datatype/base-types.ts';
import type { OpOn, SameElements } from '../../datatype/element-types.ts';
import { inOrder } from '../../datatype/layout.ts';
import { isOp, Op } from '../../datatype/op.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../../errors.ts';
import { lengthOf, setElements } from '../../intrinsics.ts';
import type { Lock } from '../../sync/lock/lock-scheme.ts';
import { accumulateElements, updateDouble } from '../../transfer/loads/accumulate.ts';
import { updateBigInt, updateInteger } from '../../transfer/loads/atomic.ts';
import { memoryFence, RemotePart } from '../../transfer/loads/remote-part.ts';
import { STRIPE_WORDS, STRIPES, type Stripes } from '../../transfer/loads/stripes.ts';
import { readWait, type WaitOptions } from '../../wait/operation.ts';
import { COMPLETE, type Request } from '../../window/calls/window-request.ts';
import { asking } from '../scarcity.ts';
import type { Members } from '../service-members.ts';
import { PlaceSignals } from './place-signals.ts';
import { RobustPartLock } from './robust-part-lock.ts';
import { type Interrupted, robustStripes, takeInterrupted } from './robust-stripes.ts';
import { type WindowHold, type WindowHoldAll, WindowLocks } from './window-locks.ts';
import type { WindowShape } from './window-shape.ts';

interface Part<T extends TypedArray> {
  readonly memory: RemotePart;
  readonly elements: T;
  readonly stripes: Stripes;
  readonly cuts: Int32Array;
  readonly lock: RobustPartLock;
}

const NOTIFY = 'lock and unlock, or putNotify and waitNotify';
const UNLOCK = 'lock, and unlock in "finally" (or "using", of what lock gives)';

/** What to use instead of calls that need all ranks at once; their `Sync` forms likewise. */
const COLLECTIVE = {
  fence: NOTIFY,
  fenced: NOTIFY,
  start: 'lock',
  started: 'lock',
  complete: 'unlock, or putNotify',
  post: 'lock and unlock: it is open to all at all times',
  posted: 'lock and unlock: it is open to all at all times',
  wait: 'waitNotify',
  test: 'testNotify',
  free: 'Service.leave: the memory goes with the last member',
} as const;

/** The same, of calls that only windows of a job have. */
const ELSEWHERE = {
  locked: UNLOCK,
  lockedSync: UNLOCK,
  lockedAll: 'lockAll, and unlockAll in "finally"',
  lockedAllSync: 'lockAllSync, and unlockAllSync in "finally"',
  aggregate: 'put, get and accumulate, each of which is complete when it returns',
  attach: 'another window: Service.window with another name',
  detach: 'another window: Service.window with another name',
} as const;

/** Copies of at most so many elements are loops. */
const LOOP = 32;

export class ServiceWindow<T extends TypedArray = TypedArray> {
  /** Places, each of which has a part: 0 to `places` − 1. */
  readonly places: number;
  /** The elements of each part. */
  readonly length: number;
  readonly #members: Members;
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #what: string;
  readonly #made: WindowShape<T>;
  readonly #signals: PlaceSignals;
  #parts: (Part<T> | undefined)[];
  readonly #locks: WindowLocks;

  /**
   * @param at where the window is in the service's file
   * @param what for messages
   */
  constructor(members: Members, memory: ArrayBuffer, at: number, what: string, made: WindowShape<T>) {
    this.#members = members;
    this.#words = new Int32Array(memory, 0, made.cuts + made.places * STRIPES);
    this.#at = at;
    this.#what = what;
    this.#made = made;
    this.places = made.places;
    this.length = made.length;
    this.#parts = new Array(made.places).fill(undefined);
    this.#locks = new WindowLocks({
      members,
      places: made.places,
      named: (call) => this.#named(call),
      lockOf: (call, target) => this.#part(call, target).lock,
    });
    this.#signals = new PlaceSignals(members, this.#words, made, what);
  }

  /** The part of this member's place, for loads and stores. It is as the last member at the place left it. */
  get local(): T {
    return this.#part('local', this.#members.place).elements;
  }

  /** The part of a place, for loads and stores. Cost: the first call for a place maps its part. Errors: `ERR_RANK`. */
  sharedQuery(place: number): T {
    return this.#part('sharedQuery', place).elements;
  }

  // ---- communication ------------------------------------------------------------------------------------------------

  /**
   * Writes `origin` into the part of `target` from `disp` on. Errors: `ERR_RANK`, `ERR_TYPE`, `ERR_RMA_RANGE`,
   * `ERR_SERVICE` (`layout`, of this and the other calls: there are none).
   */
  put(origin: SameElements<T>, target: number, disp = 0, layout?: undefined): void {
    if (layout !== undefined) throw this.#noLayout('put', layout);
    const { elements } = this.#part('put', target);
    const n = this.#check('put', 'origin', origin, target, disp);
    if (n > LOOP) setElements(elements, origin, disp);
    else for (let i = 0; i < n; i++) elements[disp + i] = origin[i];
  }

  /** Fills `origin` from the part of `target`, from element `disp` on. Errors: as `put`. */
  get(origin: SameElements<T>, target: number, disp = 0, layout?: undefined): void {
    if (layout !== undefined) throw this.#noLayout('get', layout);
    const { elements } = this.#part('get', target);
    const n = this.#check('get', 'origin', origin, target, disp);
    if (n > LOOP) setElements(origin, elements.subarray(disp, disp + n), 0);
    else for (let i = 0; i < n; i++) origin[i] = elements[disp + i];
  }

  /** As `put`, and then raises a notification at `target`. A member that comes to that place later finds it, too. */
  putNotify(origin: SameElements<T>, target: number, disp = 0, layout?: undefined): void {
    if (layout !== undefined) throw this.#noLayout('putNotify', layout);
    this.put(origin, target, disp);
    this.#signals.raise(target);
  }

  /**
   * Combines `origin` with elements of the part of `target`, each atomically. Errors: as `put`, `ERR_OP`,
   * `ERR_RMA_TIMEOUT` (a member that is stopped is in the middle of one; numbers with fractions only).
   */
  accumulate<A extends SameElements<T>>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
    layout?: undefined,
  ): void {
    if (layout !== undefined) throw this.#noLayout('accumulate', layout);
    this.#update('accumulate', origin, undefined, target, disp, op);
  }

  /** As `accumulate`, and `result` gets what was there. With `Op.NO_OP`, `origin` may be `null`. Errors: as that. */
  getAccumulate<A extends SameElements<T>>(
    origin: SameElements<T> | null,
    result: A,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
    layout?: undefined,
  ): void {
    if (layout !== undefined) throw this.#noLayout('getAccumulate', layout);
    this.#update('getAccumulate', origin, result, target, disp, op);
  }

  /** `getAccumulate` of one element. Errors: as `accumulate`. */
  fetchAndOp<A extends SameElements<T>>(
    origin: SameElements<T> | null,
    result: A,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    this.#single('fetchAndOp', 'result', result);
    this.#update('fetchAndOp', origin, result, target, disp, op);
  }

  /**
   * Replaces one element by `origin[0]` if it equals `compare[0]`, atomically; `result[0]` gets what was there. Whole
   * numbers only. Errors: as `put`.
   */
  compareAndSwap(
    origin: SameElements<T>,
    compare: SameElements<T>,
    result: SameElements<T>,
    target: number,
    disp: number,
  ): void {
    const call = 'compareAndSwap';
    const { elements } = this.#part(call, target);
    for (const [name, array] of [
      ['compare', compare],
      ['result', result],
      ['origin', origin],
    ] as const) {
      this.#single(call, name, array);
      this.#check(call, name, array, target, disp);
    }
    const { typeCode, type } = this.#made;
    if (typeCode === TypeCode.FLOAT32 || typeCode === TypeCode.FLOAT64)
      throw new RmaError('ERR_TYPE', `${this.#named(call)} is for whole numbers; elements of it are of ${type.name}`);
    const view = elements as Int32Array;
    result[0] = Atomics.compareExchange(view, disp, compare[0] as number, origin[0] as number);
  }

  /** `put`, which is complete when it returns: so is the request, here and at the target. Errors: as `put`. */
  rput(origin: SameElements<T>, target: number, disp: number, layout?: undefined): Request {
    this.put(origin, target, disp, layout);
    return COMPLETE;
  }

  /** `get`, as `rput`. Errors: as `get`. */
  rget(origin: SameElements<T>, target: number, disp: number, layout?: undefined): Request {
    this.get(origin, target, disp, layout);
    return COMPLETE;
  }

  /** `accumulate`, as `rput`. Errors: as `accumulate`. */
  raccumulate<A extends SameElements<T>>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
    layout?: undefined,
  ): Request {
    this.accumulate(origin, target, disp, op, layout);
    return COMPLETE;
  }

  /** `getAccumulate`, as `rput`. Errors: as `getAccumulate`. */
  rgetAccumulate<A extends SameElements<T>>(
    origin: SameElements<T> | null,
    result: A,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
    layout?: undefined,
  ): Request {
    this.getAccumulate(origin, result, target, disp, op, layout);
    return COMPLETE;
  }

  /** Waits for `count` notifications of this place, takes them. Errors: `ERR_ARG`, `ERR_RMA_TIMEOUT`, the signal's. */
  waitNotify(count = 1, options?: WaitOptions): Promise<void> {
    return this.#signals.wait('ServiceWindow.waitNotify', count, options);
  }

  /** As `waitNotify`, and blocks the thread. @param options without `timeout`: 10 s */
  waitNotifySync(count = 1, options?: WaitOptions): void {
    this.#signals.waitSync('ServiceWindow.waitNotifySync', count, options);
  }

  /** Takes `count` notifications of this place if so many are there, and returns whether it did. Never waits. */
  testNotify(count = 1): boolean {
    return this.#signals.test('ServiceWindow.testNotify', count);
  }

  // ---- locks --------------------------------------------------------------------------------------------------------

  /**
   * Takes the lock of a part: `Lock.EXCLUSIVE` excludes all other locks of it, `Lock.SHARED` only exclusive ones. Locks
   * exclude only those that lock. Errors: `ERR_RANK`, `ERR_LOCKTYPE`, `ERR_RMA_SYNC` (this member holds it or waits for
   * it), `ERR_RMA_TIMEOUT`, the signal's reason, `ERR_SERVICE_LEFT`.
   */
  lock(target: number, type: Lock, assert = 0, options?: WaitOptions): Promise<WindowHold> {
    return this.#locks.lock(target, type, assert, options);
  }

  /** As `lock`, and blocks the thread. @param options without `timeout`: 10 s, and not for a member that is stopped */
  lockSync(target: number, type: Lock, assert = 0, options?: WaitOptions): WindowHold {
    return this.#locks.lockSync(target, type, assert, options);
  }

  /** Gives the lock of a part back. Errors: `ERR_RMA_SYNC` (this member does not hold it). */
  async unlock(target: number, options?: WaitOptions): Promise<void> {
    this.unlockSync(target, options);
  }

  /** As `unlock`: neither waits. */
  unlockSync(target: number, options?: WaitOptions): void {
    readWait(this.#named('unlock'), options);
    this.#locks.unlock('unlock', target);
  }

  /** Takes shared locks of all parts, one after the other. Errors: as `lock`; then it holds none of them. */
  lockAll(assert = 0, options?: WaitOptions): Promise<WindowHoldAll> {
    return this.#locks.lockAll(assert, options);
  }

  /** As `lockAll`, and blocks the thread. @param options as of `lockSync` */
  lockAllSync(assert = 0, options?: WaitOptions): WindowHoldAll {
    return this.#locks.lockAllSync(assert, options);
  }

  /** Gives back the locks of `lockAll`. Errors: `ERR_RMA_SYNC` (this member does not hold them). */
  async unlockAll(options?: WaitOptions): Promise<void> {
    this.unlockAllSync(options);
  }

  /** As `unlockAll`: neither waits. */
  unlockAllSync(options?: WaitOptions): void {
    readWait(this.#named('unlockAll'), options);
    this.#locks.unlockAll('unlockAll');
  }

  /**
   * Which members died in the middle of an accumulate of numbers with fractions on a part, since any member asked last:
   * some elements of these ranges may be updated, and others not. Each element is whole. Errors: `ERR_RANK`.
   */
  interrupted(target: number): Interrupted[] {
    const { cuts } = this.#part('interrupted', target);
    return takeInterrupted(cuts, this.length, this.#made.type.BYTES_PER_ELEMENT);
  }

  // ---- what windows of a job have, too ------------------------------------------------------------------------------

  /** All calls are complete when they return; this one orders them with loads and stores. Errors: `ERR_RANK`. */
  async flush(target: number, options?: WaitOptions): Promise<void> {
    this.flushSync(target, options);
  }

  /** As `flush`: neither waits. */
  flushSync(target: number, options?: WaitOptions): void {
    readWait(this.#named('flush'), options);
    this.#part('flush', target);
    memoryFence();
  }

  /** As `flush`, of all parts. */
  async flushAll(options?: WaitOptions): Promise<void> {
    this.flushAllSync(options);
  }

  /** As `flushAll`: neither waits. */
  flushAllSync(options?: WaitOptions): void {
    readWait(this.#named('flushAll'), options);
    this.sync();
  }

  /** `flush`: a call that has returned needs no origin any more. Errors: as `flush`. */
  async flushLocal(target: number, options?: WaitOptions): Promise<void> {
    this.flushSync(target, options);
  }

  /** As `flushLocal`: neither waits. */
  flushLocalSync(target: number, options?: WaitOptions): void {
    this.flushSync(target, options);
  }

  /** As `flushLocal`, of all parts. */
  async flushLocalAll(options?: WaitOptions): Promise<void> {
    this.flushAllSync(options);
  }

  /** As `flushLocalAll`: neither waits. */
  flushLocalAllSync(options?: WaitOptions): void {
    this.flushAllSync(options);
  }

  /** Orders loads and stores of this member. */
  sync(): void {
    this.#members.checkIn('ServiceWindow.sync');
    memoryFence();
  }

  /** Collective: a service has no such calls. It throws `ERR_SERVICE`, with what to use instead. */
  declare readonly fence: () => never;
  /** Collective, as `fence`. */
  declare readonly start: () => never;
  /** Collective, as `fence`. */
  declare readonly complete: () => never;
  /** Collective, as `fence`. */
  declare readonly post: () => never;
  /** Collective, as `fence`. */
  declare readonly wait: () => never;
  /** Collective, as `fence`. */
  declare readonly test: () => never;
  /** Collective, as `fence`: its memory stays as long as the service. */
  declare readonly free: () => never;

  static {
    const refuse = (call: string, why: string, instead: string): void => {
      const value = function (this: ServiceWindow): never {
        throw new RmaError('ERR_SERVICE', `${this.#named(call)}: ${why}; use ${instead}`);
      };
      Object.defineProperty(ServiceWindow.prototype, call, { value });
    };
    for (const [call, instead] of Object.entries(COLLECTIVE)) {
      const why = 'a service has no collective calls, since its members come and go';
      refuse(call, why, instead);
      refuse(`${call}Sync`, why, instead);
    }
    for (const [call, instead] of Object.entries(ELSEWHERE)) refuse(call, 'only windows of a job have it', instead);
  }

  /** @internal The member leaves the service: what it holds others take over. */
  left(): void {
    this.#parts = [];
    this.#signals.close();
  }

  // ---- checks -------------------------------------------------------------------------------------------------------

  #named(call: string): string {
    return `ServiceWindow.${call} of ${this.#what}`;
  }

  #noLayout(call: string, layout: unknown): RmaError {
    const why = `windows of a service have no layouts, as ${show(layout)}`;
    return new RmaError('ERR_SERVICE', `${this.#named(call)}: ${why}; use a call for each piece, or sharedQuery`);
  }

  #part(call: string, target: number): Part<T> {
    // An object in its place would run its own code to become a key.
    return (typeof target === 'number' ? this.#parts[target] : undefined) ?? this.#open(call, target);
  }

  /** Errors: `ERR_RANK`, `ERR_SERVICE_LEFT`. */
  #open(call: string, target: number): Part<T> {
    this.#members.checkIn(this.#named(call));
    if (!Number.isInteger(target) || target < 0 || target >= this.places) {
      const rule = `the target must be a place from 0 to ${this.places - 1}`;
      throw argumentRangeError(`${this.#named(call)}: ${rule}, not ${show(target)}`, 'ERR_RANK');
    }
    const { parts, stride, partBytes, stripes, cuts } = this.#made;
    const { native, fd } = this.#members.memory;
    const what = `the part of place ${target} of ${this.#what}`;
    const map = (): ArrayBuffer => native.memoryMap(fd, this.#at + parts + target * stride, partBytes);
    const buffer = asking(this.#named(call), `cannot map ${what}`, map);
    const from = stripes + target * STRIPE_WORDS;
    const cutsFrom = cuts + target * STRIPES;
    const ownCuts = this.#words.subarray(cutsFrom, cutsFrom + STRIPES);
    const memory = new RemotePart(buffer, 0, partBytes);
    const part: Part<T> = {
      memory,
      elements: memory.view(this.#made.typeCode) as T,
      stripes: robustStripes(this.#members, this.#words.subarray(from, from + STRIPE_WORDS), ownCuts, what),
      cuts: ownCuts,
      lock: new RobustPartLock(this.#members, this.#words, this.#made, target, what),
    };
    this.#parts[target] = part;
    return part;
  }

  /** The elements of an array that fits. Errors: `ERR_TYPE`, `ERR_BUFFER`, `ERR_DISP`, `ERR_RMA_RANGE`. */
  #check(call: string, name: string, array: SameElements<T>, target: number, disp: number): number {
    const { typeCode, type } = this.#made;
    if (typeCodeOf(array) !== typeCode) {
      const why = `${name} must be of type ${type.name}, as its parts, not ${show(array)}`;
      throw argumentTypeError(`${this.#named(call)}: ${why}`, 'ERR_TYPE');
    }
    const n = lengthOf(array);
    if (!Number.isInteger(disp) || disp < 0) {
      const rule = 'the displacement must be an integer of at least 0';
      throw argumentRangeError(`${this.#named(call)}: ${rule}, not ${show(disp)}`, 'ERR_DISP');
    }
    if (disp + n > this.length) {
      const what = n === 1 ? `element ${disp} does` : `elements ${disp} … ${disp + n - 1} do`;
      throw new RmaError(
        'ERR_RMA_RANGE',
        `${this.#named(call)}: ${what} not fit into the part of place ${target}, of ${this.length} elements`,
      );
    }
    return n;
  }

  #single(call: string, name: string, array: SameElements<T>): void {
    if (typeCodeOf(array) < 0 || lengthOf(array) === 1) return;
    throw argumentRangeError(
      `${this.#named(call)}: ${name} must have one element, not ${lengthOf(array)}`,
      'ERR_BUFFER',
    );
  }

  #update(
    call: string,
    origin: SameElements<T> | null,
    result: SameElements<T> | undefined,
    target: number,
    disp: number,
    op: Op,
  ): void {
    const { memory, elements, stripes } = this.#part(call, target);
    const { typeCode, type } = this.#made;
    const code = isOp(op) ? op.code : undefined;
    if (code === undefined)
      throw argumentTypeError(`${this.#named(call)}: op must be an Op, not ${show(op)}`, 'ERR_OP');
    if (!opAllowed(code, typeCode))
      throw new RmaError('ERR_OP', `${this.#named(call)}: ${op} is not defined on elements of ${type.name}`);
    const own = origin === null && op === Op.NO_OP ? result! : (origin as SameElements<T>);
    const n = this.#check(call, 'origin', own, target, disp);
    if (
      result !== undefined &&
      (this.#check(call, 'result', result, target, disp) !== n || (result.buffer === own.buffer && result !== own))
    ) {
      const rule = 'result must have as many elements as origin, and other memory';
      throw argumentRangeError(`${this.#named(call)}: ${rule}`, 'ERR_BUFFER');
    }
    if (n === 1 && typeCode !== TypeCode.FLOAT32) {
      const before = this.#updateOne(elements, disp, code, own[0], stripes);
      if (result !== undefined) result[0] = before;
      return;
    }
    const side = inOrder(call, { base: typeCode, elements: n });
    const size = type.BYTES_PER_ELEMENT;
    const { native } = this.#members.memory;
    accumulateElements(memory, disp * size, side, own, side, code, result, result && side, stripes, native);
  }

  #updateOne(elements: T, disp: number, op: number, value: number | bigint, stripes: Stripes): number | bigint {
    switch (this.#made.typeCode) {
      case TypeCode.FLOAT64:
        return updateDouble(elements as Float64Array, disp, 8 * disp, op, value as number, stripes);
      case TypeCode.INT64:
      case TypeCode.UINT64:
        return updateBigInt(elements as BigInt64Array, disp, op, value as bigint);
      default:
        return updateInteger(elements as Int32Array, disp, op, value as number);
    }
  }
}
