/**
 * Windows (MPI 4.1, chapter 12): memory that other ranks read and write without its owner's doing.
 *
 * `put`, `get` and the atomic calls have a short way for what is most frequent (short-way.ts), and a long way (long-way.ts) that
 * handles all the rest and writes the error messages. Synchronization is in active-target.ts and passive-target.ts; what
 * all of them share is which epochs are open (epochs.ts).
 */

import type { Communicator } from '../comm/communicator.ts';
import { type Group, Rank } from '../comm/group.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import {
  arrayOver,
  type RawMemory,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base.ts';
import type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from '../datatype/elements.ts';
import type { FetchLayout, TransferLayout } from '../datatype/layout.ts';
import { Op } from '../datatype/op.ts';
import { argumentTypeError, RmaError, show } from '../errors.ts';
import type { FenceStatistics } from '../sync/fence/scheme.ts';
import { Lock, type LockStatistics } from '../sync/lock/scheme.ts';
import { memoryFence } from '../transfer/remote-part.ts';
import { ActiveTarget } from './active-target.ts';
import { Assert, checkAssert } from './assert.ts';
import type { Attachments } from './attachments.ts';
import {
  beginAllocate,
  beginAllocateShared,
  beginCreate,
  beginCreateDynamic,
  reachable,
  refuseSync,
  type WindowOptions,
  type WindowParts,
} from './create.ts';
import { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './epoch-objects.ts';
import { Epochs, INTERRUPTED } from './epochs.ts';
import { changeInfo, showInfo, type WindowInfo, type WindowInfoInForce } from './info.ts';
import { checkSingles, LongWay } from './long-way.ts';
import { Notifications } from './notifications.ts';
import { PassiveTarget } from './passive-target.ts';
import { type ProgressBy, progressOf, type WindowCall } from './progress.ts';
import { COMPLETE, Request } from './request.ts';
import {
  shortAccumulate,
  shortCompareAndSwap,
  shortFetchAndOp,
  shortGet,
  shortGetAccumulate,
  shortPut,
} from './short-way.ts';
import { tracedSchemes, traceWindow } from './traced.ts';

/** `NO_SUCCEED` would open no epoch. */
const FENCED_ASSERTIONS = Assert.NO_STORE | Assert.NO_PUT | Assert.NO_PRECEDE;

/** What `Window.statistics` gives. */
export interface WindowStatistics {
  readonly fence: FenceStatistics & { readonly scheme: string };
  readonly lock: LockStatistics & { readonly scheme: string };
  /** How often receives for notifications ran low, so that more were posted. */
  readonly refills: number;
  /** How often a notification has found no receive, and its sender had to try again; absent where nobody counts that: modelled fabrics do. */
  readonly refused?: number;
}

/** A result that no caller has. */
const NOTHING = new Uint8Array(0);

export class Window<T extends TypedArray = TypedArray> {
  readonly group: Group;
  readonly flavor: WindowParts['flavor'];
  /** MPI's memory model: what is stored by whatever rank is seen by loads and gets after synchronization, in one copy. MPI 4.1, 12.4. */
  readonly model = 'unified';
  readonly dispUnit: number;
  /** This rank's part. Its memory is gone (length 0, where the platform can detach it) once the window is freed. */
  readonly local: T;
  #parts: WindowParts;
  #epochs: Epochs;
  #active: ActiveTarget;
  #passive: PassiveTarget;
  #longWay: LongWay;
  #notifications: Notifications;
  /** Takes the window from the list of what its communicator gives back in the end; says whether it stood there. */
  #cancelRelease: () => boolean;
  /**
   * The buffers of the last fetchAndOp, getAccumulate or compareAndSwap, found to be typed arrays of one type that do not overlap. Programs use the same ones again and again, and
   * asking an array for its buffer costs more than the operation.
   */
  #apartOrigin: TypedArray = NOTHING;
  #apartCompare: TypedArray = NOTHING;
  #apartResult: TypedArray = NOTHING;

  /**
   * Collective: a window over memory from the library, `length` elements at this rank (each rank chooses its own), zeroed.
   * MPI 4.1, 12.2.2.
   * Errors: `TypeError`, `RangeError` (type, length), `ERR_INFO_KEY`, `ERR_INFO_VALUE`; a rank whose arguments are refused makes the call fail everywhere.
   */
  static async allocate<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Promise<Window<T>> {
    const { operation, options: wait } = beginAllocate(comm, type, length, options);
    await comm.job.progress.wait(operation, wait);
    return new Window<T>(operation.result);
  }

  static allocateSync<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Window<T> {
    refuseSync(comm, 'Window.allocate');
    const { operation, options: wait } = beginAllocate(comm, type, length, options);
    comm.job.progress.waitSync(operation, wait);
    return new Window<T>(operation.result);
  }

  /**
   * Collective: a window over memory that the caller has, each rank whatever it likes: memory from `comm.allocMem`, a plain `ArrayBuffer`, a
   * `Buffer`, a `SharedArrayBuffer`, or a view of any of them that begins anywhere; `null` for none. What has no elements of its own, a buffer or a `DataView`, is taken as bytes: `local` is a `Uint8Array`. The others access it
   * without the owner's doing. MPI 4.1, 12.2.1.
   *
   * Cost of access: loads and stores to memory from `comm.allocMem`, to `SharedArrayBuffer`s, if ranks are threads, and, if they are processes, to large `ArrayBuffer`s: those that have pages
   * for themselves, mostly from 128 KiB on, which are copied once when the window is made (0.7 ns a byte that is not zero) and freed. No asynchronous read into one may be under way then (docs/decisions/026-lent-memory.md). To other memory, a put or get
   * is one system call, about 0.5 µs and 0.1 ns a byte, and an accumulate is done by a thread of the owner's process, about 10 µs for 8 KiB; all of
   * these are complete when the call returns. The owner's own accesses are loads and stores. Atomic calls need elements that are aligned in memory.
   *
   * The memory belongs to the caller; the window keeps it alive until it is freed. If its buffer is transferred meanwhile (`transfer()`, `postMessage`),
   * others still access the memory as it was, which the owner may not see any more, and the owner's own accesses are refused with `ERR_BUFFER`.
   * Errors: as `allocate`, and `ERR_BUFFER` for a resizable `ArrayBuffer`, or, between threads without the addon, one that is not shared.
   */
  static async create<T extends TypedArray>(comm: Communicator, memory: T, options?: WindowOptions): Promise<Window<T>>;
  static async create(
    comm: Communicator,
    memory: RawMemory | null,
    options?: WindowOptions,
  ): Promise<Window<Uint8Array>>;
  static async create(
    comm: Communicator,
    memory: TypedArray | RawMemory | null,
    options?: WindowOptions,
  ): Promise<Window> {
    const { operation, options: wait } = beginCreate(comm, memory, options);
    await comm.job.progress.wait(operation, wait);
    return new Window(operation.result);
  }

  static createSync<T extends TypedArray>(comm: Communicator, memory: T, options?: WindowOptions): Window<T>;
  static createSync(comm: Communicator, memory: RawMemory | null, options?: WindowOptions): Window<Uint8Array>;
  static createSync(comm: Communicator, memory: TypedArray | RawMemory | null, options?: WindowOptions): Window {
    refuseSync(comm, 'Window.create');
    const { operation, options: wait } = beginCreate(comm, memory, options);
    comm.job.progress.waitSync(operation, wait);
    return new Window(operation.result);
  }

  /**
   * Collective: a window over memory from the library that every rank can load and store directly, `length` elements at this rank, zeroed. The parts lie one
   * right behind the other, in the order of the ranks, unless the hint `alloc_shared_noncontig` is given; `sharedQuery` gives them. MPI 4.1, 12.2.3.
   * All ranks of `comm` must be able to load and store each other's memory: `comm.splitType('shared')` gives those that are. In a job whose ranks are connected by devices
   * each part is memory of its own, as with that hint.
   * Errors: as `allocate`; `ERR_RMA_SHARED` if some rank's memory can only be reached through a device; `ERR_SIZE` if a part could not begin at a multiple of its element size.
   */
  static async allocateShared<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Promise<Window<T>> {
    const { operation, options: wait } = beginAllocateShared(comm, type, length, options);
    await comm.job.progress.wait(operation, wait);
    return new Window<T>(operation.result);
  }

  static allocateSharedSync<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Window<T> {
    refuseSync(comm, 'Window.allocateShared');
    const { operation, options: wait } = beginAllocateShared(comm, type, length, options);
    comm.job.progress.waitSync(operation, wait);
    return new Window<T>(operation.result);
  }

  /**
   * Collective: a window without memory, to which each rank attaches memory, and from which it detaches it, when it likes. Displacements are the
   * addresses that `attach` gives at the target, plus bytes. `local` is empty. MPI 4.1, 12.2.4. Cost of access as for `create`, and a look whether
   * what is attached has changed. Errors: as `allocate`; `ERR_INFO_VALUE` for another fence than the one that is the default.
   */
  static async createDynamic(comm: Communicator, options?: WindowOptions): Promise<Window<Uint8Array>> {
    const { operation, options: wait } = beginCreateDynamic(comm, options);
    await comm.job.progress.wait(operation, wait);
    return new Window<Uint8Array>(operation.result);
  }

  static createDynamicSync(comm: Communicator, options?: WindowOptions): Window<Uint8Array> {
    refuseSync(comm, 'Window.createDynamic');
    const { operation, options: wait } = beginCreateDynamic(comm, options);
    comm.job.progress.waitSync(operation, wait);
    return new Window<Uint8Array>(operation.result);
  }

  private constructor(made: WindowParts) {
    const parts = tracedSchemes(made);
    const epochs = new Epochs(parts);
    this.group = epochs.group;
    this.flavor = parts.flavor;
    this.dispUnit = parts.dispUnit;
    this.local = parts.local as T;
    this.#parts = parts;
    this.#epochs = epochs;
    this.#active = new ActiveTarget(parts, epochs);
    this.#passive = new PassiveTarget(parts, epochs);
    this.#longWay = new LongWay(parts, epochs);
    this.#notifications = new Notifications(parts, epochs);
    parts.comm.job.tasks?.locks.add(epochs.locks);
    this.#cancelRelease = parts.comm.onRelease(
      () => {
        this.#close();
        this.#giveBack();
      },
      () => epochs.refusalOfOpen('finalize'),
    );
    traceWindow(this, parts);
  }

  /**
   * Another rank's part (or this one's), to be loaded and stored directly: an array of the same type as `local`, which covers the whole part. For
   * `Rank.NULL` it is that of the lowest rank whose part is not empty. Its memory is gone once the window is freed. MPI 4.1, 12.2.3.
   *
   * Stores are seen by others as MPI says: order them by a synchronization call and `sync`. Cost: the first time a rank's part is mapped.
   * Errors: `ERR_WIN`, `ERR_RANK`, `ERR_RMA_SHARED` (the part cannot be loaded and stored, or not as elements of this type).
   */
  sharedQuery(rank: number): T {
    const epochs = this.#epochs;
    epochs.checkAlive('sharedQuery');
    if (this.#parts.attachments !== undefined) {
      throw new RmaError(
        'ERR_RMA_FLAVOR',
        `sharedQuery in ${epochs.what}: a rank of a dynamic window has no single part; use get and put to access attached memory`,
      );
    }
    const t =
      rank === Rank.NULL
        ? (epochs.targets.find((target) => target.byteLength > 0) ?? epochs.targets[0])
        : epochs.target('sharedQuery', rank);
    const type = this.local.constructor as TypedArrayConstructor<T>;
    if (t.byteLength === 0) return new type(new ArrayBuffer(0));
    epochs.map(t);
    const { part } = t;
    const begin = part.u8.byteOffset + part.skew;
    const size = this.local.BYTES_PER_ELEMENT;
    if (begin % size !== 0 || t.byteLength % size !== 0) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `sharedQuery of rank ${t.rank} in ${epochs.what}: the part does not consist of elements of ${size} bytes, as this rank's part does; use get and put`,
      );
    }
    return new type(part.buffer, begin, t.byteLength / size);
  }

  /**
   * Lets the others access `memory`, which may be whatever `create` takes, through this dynamic window. Local: others learn the address from the caller, and
   * may use it at once. As many regions as there is memory for, where it is shared; as many as the device takes, where it is not. MPI 4.1, 12.2.4.
   * @returns the address: a displacement, to which bytes are added
   *
   * The window keeps the memory alive until it is detached or the window freed.
   * Errors: `ERR_WIN`, `ERR_RMA_FLAVOR` (the window is not dynamic), `ERR_BUFFER`, `ERR_RMA_ATTACH` (empty, it overlaps what is attached here, or a device cannot register it).
   */
  attach(memory: TypedArray | RawMemory): number {
    const attachments = this.#attachments('attach');
    const array = arrayOver('attach', memory);
    const { comm } = this.#parts;
    return this.#epochs.attempt(() => attachments.attach(array, () => reachable(comm, 'attach', array)));
  }

  /**
   * Ends what `attach` has begun, for the same array or another one over the same bytes. No rank may be accessing it. Local; on a device, those that
   * have accessed this rank's memory are told of it first, by a write of the device.
   * Errors: `ERR_WIN`, `ERR_RMA_FLAVOR`, `ERR_BUFFER`, `ERR_RMA_ATTACH` (it is not attached, or a rank holds the lock of this rank's part).
   */
  detach(memory: TypedArray | RawMemory): void {
    const attachments = this.#attachments('detach');
    // An array whose memory is gone is still the one that was attached.
    const array = typeCodeOf(memory) < 0 ? arrayOver('detach', memory) : (memory as TypedArray);
    const { comm, makeLock } = this.#parts;
    // Who would lock it meanwhile waits for the end of this call.
    const lock = this.#epochs.attempt(() => makeLock(comm.rank));
    if (lock !== undefined && !this.#passive.acquireAtOnce(lock)) {
      throw new RmaError(
        'ERR_RMA_ATTACH',
        `detach from ${this.#epochs.what}: a rank holds the lock of this rank's part and may be accessing it; detach after that rank's unlock`,
      );
    }
    try {
      this.#epochs.attempt(() => attachments.detach(array));
    } finally {
      lock?.release(true);
    }
  }

  #attachments(call: string): Attachments {
    this.#epochs.checkAlive(call);
    const { attachments } = this.#parts;
    if (attachments !== undefined) return attachments;
    throw new RmaError(
      'ERR_RMA_FLAVOR',
      `${call}: ${this.#epochs.what} is not dynamic (${this.flavor}); only windows from Window.createDynamic have attached memory`,
    );
  }

  /** Bytes that a displacement of one stands for at a rank. */
  dispUnitOf(rank: number): number {
    this.#epochs.checkAlive('dispUnitOf');
    return this.#epochs.target('dispUnitOf', rank).dispUnit;
  }

  /**
   * Who makes the progress of a call to `target`: what has to act, besides this rank, so that it is carried out and the call that completes it returns. `origin`, `device`, `kernel` and `agent` need
   * nothing of the target's program, which may compute, or wait for whatever else; `target` means that it must call the library. Without a target it is said of the one that needs
   * most; in a dynamic window `disp` says which memory it is about, and without it, it is said of any that could be attached there. MPI 4.1, 12.7.3.
   * @param call the name of the method: `'put'`, `'fetchAndOp'`, `'lock'`, …
   * Errors: `ERR_WIN`, `RangeError` (call), `ERR_RANK`, `ERR_DISP` and `ERR_RMA_RANGE` (dynamic windows only).
   */
  progress(call: WindowCall, target?: number, disp?: number): ProgressBy {
    const epochs = this.#epochs;
    epochs.checkAlive('progress');
    if (target === undefined || target === Rank.NULL) return progressOf(this.#parts, call, target, undefined);
    epochs.target('progress', target);
    const attached = disp === undefined ? undefined : this.#longWay.attachedAt('progress', target, disp);
    return progressOf(this.#parts, call, target, attached);
  }

  /** The hints in force. MPI 4.1, 12.2.7. */
  getInfo(): WindowInfoInForce {
    this.#epochs.checkAlive('getInfo');
    return showInfo(this.#parts.hints);
  }

  /**
   * Changes hints; all ranks should give the same. Those that choose a scheme are fixed when the window is made. MPI 4.1, 12.2.7.
   * Errors: `ERR_WIN`, `ERR_INFO_KEY`, `ERR_INFO_VALUE`; nothing is changed then.
   */
  setInfo(info: WindowInfo): void {
    this.#epochs.checkAlive('setInfo');
    changeInfo('setInfo', this.#parts.hints, info);
  }

  /**
   * What the window's schemes have sent and waited for at this rank since it was made: see `FenceStatistics` and `LockStatistics`. A copy. Schemes that are loads and stores
   * count nothing, so that they cost nothing. Errors: `ERR_WIN`.
   */
  statistics(): WindowStatistics {
    this.#epochs.checkAlive('statistics');
    const { hints, fence, lockCounts, wire } = this.#parts;
    const refused = wire?.refused;
    return {
      fence: { scheme: hints.fence, ...fence.statistics },
      lock: { scheme: hints.lock, ...lockCounts },
      refills: wire?.refills ?? 0,
      ...(refused === undefined ? {} : { refused }),
    };
  }

  /** The name, for error messages (`MPI_Win_get_name`). */
  get name(): string {
    return this.#epochs.name;
  }

  set name(name: string) {
    if (typeof name !== 'string') throw argumentTypeError(`the name of a window must be a string, not ${show(name)}`);
    this.#epochs.name = name;
  }

  // ---- communication --------------------------------------------------------------------------------------------------

  /**
   * Writes `origin` into `target`'s part, beginning at displacement `disp`. Starts, never waits; complete after the next
   * synchronization (fence, unlock, flush). MPI 4.1, 12.3.1.
   *
   * Cost: for some elements of a common type one check and one store each; `memcpy` for many.
   * Errors: `ERR_WIN`, `ERR_BUFFER`, `ERR_RANK`, `ERR_DISP`, `ERR_TYPE`, `ERR_RMA_SYNC` (no epoch), `ERR_RMA_RANGE`; nothing is written then.
   */
  put<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (t !== undefined && layout === undefined && (epochs.open | t.held) !== 0 && shortPut(t, origin, disp)) {
      epochs.dirty = true;
      epochs.used = true;
      return;
    }
    this.#longWay.put(origin, target, disp, layout);
  }

  /**
   * Reads from `target`'s part into `origin`. Starts, never waits; `origin` holds the data after the next synchronization.
   * MPI 4.1, 12.3.2. Cost and errors as `put`.
   */
  get<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    const epochs = this.#epochs;
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (t !== undefined && layout === undefined && (epochs.open | t.held) !== 0 && shortGet(t, origin, disp)) {
      epochs.used = true;
      return;
    }
    this.#longWay.get(origin, target, disp, layout);
  }

  /**
   * Combines `origin` into `target`'s part, element by element, each atomically towards all other accumulate calls on the
   * window. MPI 4.1, 12.3.4. Elements at the target must be aligned to their size.
   *
   * Cost: one atomic instruction an element where the processor has one for `op`, else a compare-and-swap loop; many
   * elements in one native call.
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
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (
      t !== undefined &&
      layout === undefined &&
      (epochs.open | t.held) !== 0 &&
      shortAccumulate(t, origin, disp, op)
    ) {
      epochs.used = true;
      return;
    }
    this.#longWay.accumulate('accumulate', origin, target, disp, op, layout);
  }

  /**
   * Combines one element into the target's and gives the one before: `result[0]`. MPI 4.1, 12.3.4.
   * `origin` and `result` have one element of the same type. Cost and errors as `accumulate`.
   */
  fetchAndOp<A extends ElementsOf<T>>(
    origin: A | null,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
    op: OpOn<A, undefined>,
  ): void {
    const epochs = this.#epochs;
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (
      t !== undefined &&
      (epochs.open | t.held) !== 0 &&
      origin !== null &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      shortFetchAndOp(t, origin, result, disp, op)
    ) {
      epochs.used = true;
      return;
    }
    this.#fetchChecked(origin, result, target, disp, op);
  }

  /**
   * Replaces the target's element by `origin[0]` if it equals `compare[0]`; gives the one before in `result[0]`.
   * Integers and bytes only. MPI 4.1, 12.3.4. Cost: one compare-and-swap.
   */
  compareAndSwap<A extends ElementsOf<T>>(
    origin: A & Swappable<A>,
    compare: ResultOf<A, undefined>,
    result: ResultOf<A, undefined>,
    target: number,
    disp: number,
  ): void {
    const epochs = this.#epochs;
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (
      t !== undefined &&
      (epochs.open | t.held) !== 0 &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      compare === this.#apartCompare &&
      shortCompareAndSwap(t, origin, compare, result, disp)
    ) {
      epochs.used = true;
      return;
    }
    this.#swapChecked(origin, compare, result, target, disp);
  }

  /**
   * As `accumulate`, and gives what was there before in `result`, which has as many elements of the same type and overlaps neither `origin` nor the
   * target; `layout.result` says where in it they go.
   * With `Op.NO_OP` it is an atomic get, and `origin` does not matter: it may be `null`. MPI 4.1, 12.3.4. Cost and errors as `accumulate`.
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
    const t = typeof target === 'number' ? epochs.targets[target] : undefined;
    if (
      t !== undefined &&
      layout === undefined &&
      (epochs.open | t.held) !== 0 &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      shortGetAccumulate(t, this.#apartOrigin, result, disp, op)
    ) {
      epochs.used = true;
      return;
    }
    this.#longWay.getAccumulate('getAccumulate', origin, result, target, disp, op, layout);
    // They do not overlap, and are of one type: refused otherwise.
    if (op !== Op.NO_OP && layout === undefined && t !== undefined) this.#remember(origin!, NOTHING, result);
  }

  // ---- requests and notifications -------------------------------------------------------------------------------------

  /**
   * `put`, with a request that is complete when `origin` may be used again. Only in a passive epoch (MPI 4.1, 12.3.5).
   * Cost and errors as `put`; on windows whose operations are complete when issued, the request is always the same one.
   */
  rput<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    this.#passive.check('rput', target);
    this.put<L>(origin, target, disp, layout);
    return this.#request(target);
  }

  /** `get`, with a request that is complete when `origin` holds the data. As `rput`. */
  rget<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): Request {
    this.#passive.check('rget', target);
    this.get<L>(origin, target, disp, layout);
    return this.#request(target);
  }

  /** `accumulate`, with a request that is complete when `origin` may be used again. As `rput`. */
  raccumulate<A extends OriginOf<T, L>, L extends TransferLayout | undefined = undefined>(
    origin: A,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    this.#passive.check('raccumulate', target);
    this.accumulate<A, L>(origin, target, disp, op, layout);
    return this.#request(target);
  }

  /** `getAccumulate`, with a request that is complete when `result` holds the data. As `rput`. */
  rgetAccumulate<A extends OriginOf<T, L>, L extends FetchLayout | undefined = undefined>(
    origin: A | null,
    result: ResultOf<A, L>,
    target: number,
    disp: number,
    op: OpOn<A, L>,
    layout?: L,
  ): Request {
    this.#passive.check('rgetAccumulate', target);
    this.#longWay.getAccumulate('rgetAccumulate', origin, result, target, disp, op, layout);
    return this.#request(target);
  }

  #request(target: number): Request {
    const { passive, comm } = this.#parts;
    const requests = passive?.agent ?? this.#parts.requests;
    if (requests === undefined || target === Rank.NULL) {
      this.#epochs.settle('', undefined);
      return COMPLETE;
    }
    return new Request(comm.job.progress, requests.soFar(target));
  }

  /**
   * `put`, and then raises the target's count of notifications by one: who has taken the notification (`waitNotify`) finds the data in its part, and all that
   * this rank has put there before. Needs an epoch as `put` does; the target needs none. RDMA write with immediate, where puts are
   * requests. Where operations are queued, they leave with it (lock `two-sided`), or it is carried out in the closing fence (`deferred`). Cost: as `put`, and an atomic addition at the target. Errors as `put`.
   */
  putNotify<L extends TransferLayout | undefined = undefined>(
    origin: OriginOf<T, L>,
    target: number,
    disp: number,
    layout?: L,
  ): void {
    this.put<L>(origin, target, disp, layout);
    if (target === Rank.NULL) return;
    const t = this.#epochs.targets[target];
    const queue = this.#longWay.queueFor(t);
    if (queue === undefined) {
      this.#notifications.signal(t);
      return;
    }
    queue.signal(target);
    // Somebody may wait for it without waiting for this rank's unlock. In a deferred fence all wait for all.
    const { passive } = this.#parts;
    if (queue === passive?.queue) passive.agent.deliver(target);
  }

  /**
   * Waits until `count` notifications have arrived at this rank that were not taken before, from whatever origins, and takes them.
   * Errors: `ERR_WIN`, `TypeError`/`RangeError` (count), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (none is taken then).
   */
  waitNotify(count = 1, options?: WaitOptions): Promise<void> {
    return this.#notifications.wait(count, options);
  }

  waitNotifySync(count = 1, options?: WaitOptions): void {
    this.#notifications.waitSync(count, options);
  }

  /** Takes `count` notifications if so many have arrived, and says whether. Never waits. */
  testNotify(count = 1): boolean {
    return this.#notifications.test(count);
  }

  // ---- fence ---------------------------------------------------------------------------------------------------------

  /**
   * Collective. Ends the epoch before it: everything that any rank has issued is complete, here and at the targets. Opens the next one, unless
   * `Assert.NO_SUCCEED` is given. MPI 4.1, 12.5.1.
   *
   * `Assert.NO_PRECEDE` and `NO_SUCCEED` skip what they allow: a fence with the one waits for nothing that was issued, one with the other returns when this rank's
   * part and its own operations are complete, and with both it does nothing.
   *
   * After a deadline or an abort the fence is still under way: call it again to go on waiting.
   * Cost: a barrier, where operations are complete when issued; see the fence schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_RMA_SYNC` (a lock is held), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  fence(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.fence(assert, options);
  }

  fenceSync(assert = 0, options?: WaitOptions): void {
    this.#active.fenceSync(assert, options);
  }

  // ---- start, complete, post, wait ------------------------------------------------------------------------------------

  /**
   * Opens an access epoch to the members of `group`, each of which posts to a group with this rank in it. Waits for their posts. MPI 4.1, 12.5.2.
   *
   * Cost: one cache line from each target. `Assert.NO_CHECK` says that all have posted already; it is checked where posts are seen at once, in shared memory.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an access epoch is open), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (no
   * epoch is open then, and no post is used up).
   */
  start(group: Group, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.start(group, assert, options);
  }

  startSync(group: Group, assert = 0, options?: WaitOptions): void {
    this.#active.startSync(group, assert, options);
  }

  /** Ends the epoch that `start` opened: everything issued in it is complete here, and at a target once it has waited. Cost: one store to each target. */
  complete(options?: WaitOptions): Promise<void> {
    return this.#active.complete(options);
  }

  completeSync(options?: WaitOptions): void {
    this.#active.completeSync(options);
  }

  /**
   * Opens an exposure epoch of this rank's part to the members of `group`, each of which starts an access epoch to a group with this rank in
   * it. Never waits. MPI 4.1, 12.5.2. Cost: one store to each origin.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an exposure epoch is open).
   */
  async post(group: Group, assert = 0): Promise<void> {
    this.#active.post(group, assert);
  }

  postSync(group: Group, assert = 0): void {
    this.#active.post(group, assert);
  }

  /**
   * Ends the epoch that `post` opened: waits until all of its origins have completed; what they put can be loaded from `local`.
   * After a deadline or an abort the epoch is still open: call it again.
   */
  wait(options?: WaitOptions): Promise<void> {
    return this.#active.wait(options);
  }

  waitSync(options?: WaitOptions): void {
    this.#active.waitSync(options);
  }

  /** The same without waiting: whether the epoch has ended. */
  test(): boolean {
    return this.#active.test();
  }

  // ---- locks ---------------------------------------------------------------------------------------------------------

  /**
   * Opens a passive access epoch to `target`: `Lock.EXCLUSIVE` keeps all other locks away, `Lock.SHARED` only exclusive ones.
   * First come, first served, unless the hint `lock` says otherwise. MPI 4.1, 12.5.3.
   *
   * Cost: one compare-and-swap at the target if nobody holds or waits for it, and for an exclusive one an addition beside it; see the lock schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_LOCKTYPE`, `ERR_RANK`, `ERR_ASSERT`, `ERR_RMA_SYNC` (this rank holds it already, or is in a fence epoch),
   * `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (the lock is not held then).
   */
  lock(target: number, type: Lock, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lock(target, type as unknown as number, assert, options);
  }

  lockSync(target: number, type: Lock, assert = 0, options?: WaitOptions): void {
    this.#passive.lockSync(target, type as unknown as number, assert, options);
  }

  /** Ends the epoch that `lock` opened: everything issued to `target` is complete, here and there. Cost: one atomic subtraction; of an exclusive lock, two. */
  unlock(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.unlock(target, options);
  }

  unlockSync(target: number, options?: WaitOptions): void {
    this.#passive.unlockSync(target, options);
  }

  /**
   * Opens a shared passive epoch to all ranks. While it waits for one rank's lock it holds none of the others, so that ranks which lock
   * several targets cannot block each other through it. MPI 4.1, 12.5.3. Cost: one atomic addition; while somebody holds an exclusive lock or waits for one, one compare-and-swap a rank.
   */
  lockAll(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lockAll(assert, options);
  }

  lockAllSync(assert = 0, options?: WaitOptions): void {
    this.#passive.lockAllSync(assert, options);
  }

  /** Ends the epoch that `lockAll` opened: everything issued is complete. */
  unlockAll(options?: WaitOptions): Promise<void> {
    return this.#passive.unlockAll(options);
  }

  unlockAllSync(options?: WaitOptions): void {
    this.#passive.unlockAllSync(options);
  }

  // ---- flush ---------------------------------------------------------------------------------------------------------

  /**
   * Completes everything issued to `target` so far, here and there, within a passive epoch. MPI 4.1, 12.5.4.
   * Cost: one fence instruction if there were puts, where operations are complete when issued.
   */
  flush(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flush', target, options);
  }

  flushSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flush', target, options);
  }

  /** Completes everything issued to any rank. */
  flushAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushAll', options);
  }

  flushAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushAll', options);
  }

  /** Completes everything issued to `target` here: origins may be reused, results are there. It says nothing about the target. */
  flushLocal(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flushLocal', target, options);
  }

  flushLocalSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flushLocal', target, options);
  }

  flushLocalAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushLocalAll', options);
  }

  flushLocalAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushLocalAll', options);
  }

  /** Within a passive epoch: what others have written here and completed can be loaded after it, and the other way round. */
  sync(): void {
    this.#epochs.checkUsable('sync');
    memoryFence();
  }

  // ---- epochs as objects ----------------------------------------------------------------------------------------------

  /**
   * `lock` as an object whose type offers what the epoch allows, for `await using epoch = await win.locked(target)`: the unlock is the end of the
   * block. Cost and errors as `lock`.
   */
  async locked(target: number, type: Lock = Lock.EXCLUSIVE, assert = 0, options?: WaitOptions): Promise<LockEpoch<T>> {
    await this.lock(target, type, assert, options);
    return new LockEpoch(this, target);
  }

  lockedSync(target: number, type: Lock = Lock.EXCLUSIVE, assert = 0, options?: WaitOptions): LockEpoch<T> {
    this.lockSync(target, type, assert, options);
    return new LockEpoch(this, target);
  }

  /** `lockAll` as an object. */
  async lockedAll(assert = 0, options?: WaitOptions): Promise<LockAllEpoch<T>> {
    await this.lockAll(assert, options);
    return new LockAllEpoch(this);
  }

  lockedAllSync(assert = 0, options?: WaitOptions): LockAllEpoch<T> {
    this.lockAllSync(assert, options);
    return new LockAllEpoch(this);
  }

  /** `fence` as an object; its end is another fence, with `Assert.NO_SUCCEED`. Collective. */
  async fenced(assert = 0, options?: WaitOptions): Promise<FenceEpoch<T>> {
    checkAssert('fenced', assert, FENCED_ASSERTIONS);
    await this.fence(assert, options);
    return new FenceEpoch(this);
  }

  fencedSync(assert = 0, options?: WaitOptions): FenceEpoch<T> {
    checkAssert('fenced', assert, FENCED_ASSERTIONS);
    this.fenceSync(assert, options);
    return new FenceEpoch(this);
  }

  /** `start` as an object; its end is `complete`. */
  async started(group: Group, assert = 0, options?: WaitOptions): Promise<StartEpoch<T>> {
    await this.start(group, assert, options);
    return new StartEpoch(this);
  }

  startedSync(group: Group, assert = 0, options?: WaitOptions): StartEpoch<T> {
    this.startSync(group, assert, options);
    return new StartEpoch(this);
  }

  /** `post` as an object; its end is `wait`. */
  async posted(group: Group, assert = 0): Promise<PostEpoch<T>> {
    await this.post(group, assert);
    return new PostEpoch(this);
  }

  postedSync(group: Group, assert = 0): PostEpoch<T> {
    this.postSync(group, assert);
    return new PostEpoch(this);
  }

  // ---- end ------------------------------------------------------------------------------------------------------------

  /**
   * Collective. Gives the window back: no rank may be in an epoch on it. MPI 4.1, 12.2.5. `local` of an allocated window is gone afterwards.
   * If a rank has failed, the call fails too, but what this rank holds is released all the same.
   */
  async free(options?: WaitOptions): Promise<void> {
    if (this.#epochs.freed) return;
    const wait = readWait('free', options);
    const end = this.#beginFree();
    try {
      await this.#parts.comm.job.progress.wait(end.farewell, wait);
    } finally {
      end.release();
    }
  }

  freeSync(options?: WaitOptions): void {
    this.#epochs.comm.job.refuseSync('free');
    if (this.#epochs.freed) return;
    const wait = readWait('free', options);
    const end = this.#beginFree();
    try {
      this.#parts.comm.job.progress.waitSync(end.farewell, wait);
    } finally {
      end.release();
    }
  }

  #beginFree(): { farewell: Operation; release: () => void } {
    const epochs = this.#epochs;
    // A fence that cannot end any more, because a rank has failed, must not keep this rank from giving back what it holds.
    if (epochs.busy === INTERRUPTED) epochs.checkAlive('free');
    else epochs.checkUsable('free');
    const refusal = epochs.refusalOfOpen('free');
    if (refusal !== undefined) throw refusal;
    const { comm } = this.#parts;
    const farewell = comm.begin(comm.farewell(), `free of ${epochs.what}`, {
      name: 'win.free',
      count: this.#parts.number,
    });
    this.#close();
    return { farewell, release: () => this.#giveBack() };
  }

  /** Nothing can be done with the window any more, but others may still access this rank's part. */
  #close(): void {
    this.#epochs.freed = true;
    this.#epochs.open = 0;
    this.#epochs.targets = [];
  }

  /** Gives back what this rank holds: nobody needs it any more, or a rank has failed. Happens once. */
  #giveBack(): void {
    this.#parts.comm.job.tasks?.locks.delete(this.#epochs.locks);
    if (!this.#cancelRelease()) return;
    for (const t of this.#parts.targets) t.unmap();
    this.#parts.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  #fetchChecked(origin: TypedArray | null, result: TypedArray, target: number, disp: number, op: Op): void {
    this.#epochs.checkUsable('fetchAndOp');
    if (origin === null && op === Op.NO_OP) checkSingles('fetchAndOp', { result });
    else {
      checkSingles('fetchAndOp', { origin: origin as TypedArray, result });
      this.#remember(origin as TypedArray, NOTHING, result);
    }
    this.#longWay.getAccumulate('fetchAndOp', origin, result, target, disp, op, undefined);
  }

  #swapChecked(origin: TypedArray, compare: TypedArray, result: TypedArray, target: number, disp: number): void {
    this.#epochs.checkUsable('compareAndSwap');
    checkSingles('compareAndSwap', { origin, compare, result });
    this.#remember(origin, compare, result);
    this.#longWay.compareAndSwap(origin, compare, result, target, disp);
  }

  #remember(origin: TypedArray, compare: TypedArray, result: TypedArray): void {
    this.#apartOrigin = origin;
    this.#apartCompare = compare;
    this.#apartResult = result;
  }
}
