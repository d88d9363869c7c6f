/**
 * Windows (MPI 4.1, chapter 12): memory that other ranks read and write without its owner's doing.
 *
 * `put`, `get` and the atomic calls have a fast path for what is most frequent (fast-path.ts), and a slow path
 * (slow-path.ts) that handles all the rest and writes the error messages. Synchronization is in active-target.ts and
 * passive-target.ts; what all of them share is which epochs are open (epochs.ts).
 */

import type { Communicator } from '../comm/communicator.ts';
import { type Group, Rank } from '../comm/group.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import {
  arrayOver,
  ownView,
  type RawMemory,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base.ts';
import type { ElementsOf, OpOn, OriginOf, ResultOf, Swappable } from '../datatype/elements.ts';
import type { FetchLayout, TransferLayout } from '../datatype/layout.ts';
import { Op } from '../datatype/op.ts';
import { argumentTypeError, RmaError, show } from '../errors.ts';
import { tagOf } from '../intrinsics.ts';
import type { FenceStatistics } from '../sync/fence/scheme.ts';
import { Lock, type LockStatistics } from '../sync/lock/scheme.ts';
import { memoryFence } from '../transfer/remote-part.ts';
import { ActiveTarget } from './active-target.ts';
import { Assert, checkAssert } from './assert.ts';
import type { Attachments } from './attachments.ts';
import { refuseSync } from './creation/begin.ts';
import { beginAllocate } from './creation/flavours/allocate.ts';
import { beginCreateDynamic } from './creation/flavours/dynamic.ts';
import { beginCreate } from './creation/flavours/given.ts';
import { beginAllocateShared } from './creation/flavours/shared.ts';
import { reachable } from './creation/own-memory.ts';
import type { WindowOptions, WindowParts } from './creation/parts.ts';
import { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './epoch-objects.ts';
import { Epochs } from './epochs.ts';
import {
  fastAccumulate,
  fastCompareAndSwap,
  fastFetchAndOp,
  fastGet,
  fastGetAccumulate,
  fastPut,
} from './fast-path.ts';
import { changeInfo, showInfo, type WindowInfo, type WindowInfoInForce } from './info.ts';
import { Notifications } from './notifications.ts';
import { PassiveTarget } from './passive-target.ts';
import { Paths } from './path/paths.ts';
import { type ProgressBy, progressOf, type WindowCall } from './progress.ts';
import { COMPLETE, Request } from './request.ts';
import { checkSingles, SlowPath } from './slow-path.ts';
import { tracedSchemes, traceWindow } from './traced.ts';

/** `NO_SUCCEED` would open no epoch. */
const FENCED_ASSERTIONS = Assert.NO_STORE | Assert.NO_PUT | Assert.NO_PRECEDE;

/** The counters that `Window.statistics` returns. */
export interface WindowStatistics {
  /** What the fence scheme has sent and waited for, and the name of the scheme. */
  readonly fence: FenceStatistics & { readonly scheme: string };
  /** What the lock scheme has sent and waited for, and the name of the scheme. */
  readonly lock: LockStatistics & { readonly scheme: string };
  /** How often the window ran low on posted receives for notifications and posted more. */
  readonly refills: number;
  /**
   * How often a notification found no receive, so that its sender had to try again. Absent if the fabric does not count
   * this; modelled fabrics do.
   */
  readonly refused?: number;
}

/** A result that no caller has. */
const NOTHING = new Uint8Array(0);

/**
 * Memory that each rank of a communicator offers to the other ranks, which read, write and update it without a call of
 * its owner (MPI 4.1, chapter 12).
 *
 * A rank accesses a window within an epoch, which `fence`, `start`, `lock` or `lockAll` opens. `Window.allocate`,
 * `create`, `allocateShared` and `createDynamic` create windows.
 * @typeParam T the typed array of this rank's part
 */
export class Window<T extends TypedArray = TypedArray> {
  /** The group of the window: the ranks that created it, in the order of their communicator. */
  readonly group: Group;
  /** How the window was created (`MPI_WIN_CREATE_FLAVOR`). */
  readonly flavor: WindowParts['flavor'];
  /**
   * MPI's memory model of the window: `unified`. Memory exists in one copy, so after synchronization loads and gets see
   * what any rank has stored. MPI 4.1, 12.4.
   */
  readonly model = 'unified';
  /** The displacement unit of this rank's part in bytes: byte offset = displacement × unit. */
  readonly dispUnit: number;
  /** This rank's part of the window. After `free`, its memory is gone (length 0, if the platform can detach it). */
  readonly local: T;
  #parts: WindowParts;
  #epochs: Epochs;
  #paths: Paths;
  #active: ActiveTarget;
  #passive: PassiveTarget;
  #slowPath: SlowPath;
  #notifications: Notifications;
  /** Takes the window from the list of what its communicator gives back in the end; says whether it stood there. */
  #cancelRelease: () => boolean;
  /**
   * The buffers of the last fetchAndOp, getAccumulate or compareAndSwap, found to be typed arrays of one type that do
   * not overlap. Programs use the same ones again and again, and asking an array for its buffer costs more than the
   * operation.
   */
  #apartOrigin: TypedArray = NOTHING;
  #apartCompare: TypedArray = NOTHING;
  #apartResult: TypedArray = NOTHING;
  /** The type that all of them have; an array's never changes. */
  #apartTag = '';

  /**
   * Creates a window over zeroed memory that the library allocates. Collective. `length` is the number of elements of
   * this rank's part, and may differ between ranks. MPI 4.1, 12.2.2.
   *
   * Errors: `TypeError`, `RangeError` (type, length), `ERR_INFO_KEY`, `ERR_INFO_VALUE`. If one rank refuses its
   * arguments, the call fails on all ranks.
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

  /** Blocks until the call is complete; otherwise like `allocate`. */
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
   * Creates a window over memory that the caller provides. Collective. Each rank chooses its own: memory from
   * `comm.allocMem`, a plain `ArrayBuffer`, a `Buffer`, a `SharedArrayBuffer`, a view of any of them at any offset, or
   * `null` for none. A buffer or a `DataView` has no elements of its own, so it is taken as bytes, and `local` is a
   * `Uint8Array`. The other ranks access the memory without a call of its owner. MPI 4.1, 12.2.1.
   *
   * Cost of access: loads and stores for memory from `comm.allocMem`; if ranks are threads, also for
   * `SharedArrayBuffer`s; if they are processes, also for large `ArrayBuffer`s. These are the ones that occupy whole
   * pages, usually from 128 KiB on. They are copied once when the window is created (0.7 ns per byte that is not zero)
   * and once when it is freed; no asynchronous read into one may be in progress at that time
   * (docs/decisions/026-remapped-memory.md). For other memory, a put or get is one system call, about 0.5 µs and 0.1 ns
   * per byte, and a thread of the owner's process executes each accumulate, about 10 µs for 8 KiB; all of these are
   * complete when the call returns. The owner accesses its own memory by loads and stores. Atomic calls require
   * elements that are aligned in memory.
   *
   * The memory belongs to the caller, and the window keeps it alive until `free`. If its buffer is transferred
   * meanwhile (`transfer()`, `postMessage`), the other ranks still access the original memory, which the owner may no
   * longer see, and the owner's own accesses fail with `ERR_BUFFER`.
   *
   * Errors: as `allocate`, and `ERR_BUFFER` for a resizable `ArrayBuffer`, or, between threads without the addon, for
   * one that is not shared.
   */
  static async create<T extends TypedArray>(comm: Communicator, memory: T, options?: WindowOptions): Promise<Window<T>>;
  /**
   * Creates a window over bytes that the caller provides, or, with `null`, over no memory on this rank. See the other
   * form for cost and errors.
   */
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

  /** Blocks until the call is complete; otherwise like `create`. */
  static createSync<T extends TypedArray>(comm: Communicator, memory: T, options?: WindowOptions): Window<T>;
  /** Blocks until the call is complete; otherwise like `create` with bytes or `null`. */
  static createSync(comm: Communicator, memory: RawMemory | null, options?: WindowOptions): Window<Uint8Array>;
  static createSync(comm: Communicator, memory: TypedArray | RawMemory | null, options?: WindowOptions): Window {
    refuseSync(comm, 'Window.create');
    const { operation, options: wait } = beginCreate(comm, memory, options);
    comm.job.progress.waitSync(operation, wait);
    return new Window(operation.result);
  }

  /**
   * Creates a window over zeroed memory that every rank can load and store directly. Collective. `length` is the number
   * of elements of this rank's part. The parts are contiguous, in rank order, unless the hint `alloc_shared_noncontig`
   * is set; `sharedQuery` returns them. MPI 4.1, 12.2.3.
   *
   * All ranks of `comm` must be able to load and store each other's memory; `comm.splitType('shared')` returns a
   * communicator of such ranks. If devices connect the ranks of the job, each part is separate memory, as with that
   * hint.
   *
   * Errors: as `allocate`; `ERR_RMA_SHARED` if a rank's memory can be reached only through a device; `ERR_SIZE` if a
   * part would not begin at a multiple of its element size.
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

  /** Blocks until the call is complete; otherwise like `allocateShared`. */
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
   * Creates a window without memory. Collective. Each rank attaches memory to it, and detaches memory from it, at any
   * time. A displacement is an address that `attach` returned on the target, plus a number of bytes. `local` is empty.
   * MPI 4.1, 12.2.4.
   *
   * Cost of access: as for `create`, and a check whether the attached memory has changed. Errors: as `allocate`;
   * `ERR_INFO_VALUE` for a fence scheme other than the default.
   */
  static async createDynamic(comm: Communicator, options?: WindowOptions): Promise<Window<Uint8Array>> {
    const { operation, options: wait } = beginCreateDynamic(comm, options);
    await comm.job.progress.wait(operation, wait);
    return new Window<Uint8Array>(operation.result);
  }

  /** Blocks until the call is complete; otherwise like `createDynamic`. */
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
    this.local = (parts.given ?? ownView('local', 'the part', parts.local)) as T;
    this.#parts = parts;
    this.#epochs = epochs;
    const paths = new Paths(parts, epochs);
    this.#paths = paths;
    this.#active = new ActiveTarget(parts, epochs, paths);
    this.#passive = new PassiveTarget(parts, epochs, paths);
    this.#slowPath = new SlowPath(epochs, paths);
    this.#notifications = new Notifications(epochs, parts.signals);
    parts.comm.job.tasks?.locks.add(epochs.locks);
    this.#cancelRelease = parts.comm.onRelease(
      () => {
        epochs.freed();
        this.#giveBack();
      },
      () => epochs.refusalOfOpen('finalize'),
    );
    traceWindow(this, parts, paths);
  }

  /**
   * Returns the whole part of a rank, for direct loads and stores, as an array of the same type as `local`. For
   * `Rank.NULL` it returns the part of the lowest rank whose part is not empty. The memory is gone after `free`. MPI
   * 4.1, 12.2.3.
   *
   * Other ranks see stores as MPI defines: order them by a synchronization call and `sync`. Cost: the first call for a
   * rank maps its part.
   * Errors: `ERR_WIN`, `ERR_RANK`, `ERR_RMA_SHARED` (the part cannot be loaded and stored, or not as elements of this
   * type), `ERR_RMA_FLAVOR` (the window is dynamic).
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
        ? (epochs.allTargets().find((target) => target.byteLength > 0) ?? epochs.target('sharedQuery', 0))
        : epochs.target('sharedQuery', rank);
    const { local } = this.#parts;
    const type = local.constructor as TypedArrayConstructor<T>;
    if (t.byteLength === 0) return new type(new ArrayBuffer(0));
    const part = this.#paths.map(t);
    const begin = part.u8.byteOffset + part.skew;
    const size = local.BYTES_PER_ELEMENT;
    if (begin % size !== 0 || t.byteLength % size !== 0) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `sharedQuery of rank ${t.rank} in ${epochs.what}: the part does not consist of elements of ${size} bytes, as this rank's part does; use get and put`,
      );
    }
    return new type(part.buffer, begin, t.byteLength / size);
  }

  /**
   * Attaches `memory` to this dynamic window, so that other ranks can access it. `memory` is anything that `create`
   * accepts. Local: the caller tells the other ranks the address, and they may use it at once. The number of regions is
   * limited by memory if memory is shared, and by the device otherwise. The window keeps the memory alive until it is
   * detached or the window is freed. MPI 4.1, 12.2.4.
   *
   * Errors: `ERR_WIN`, `ERR_RMA_FLAVOR` (the window is not dynamic), `ERR_BUFFER`, `ERR_RMA_ATTACH` (the memory is
   * empty, it overlaps attached memory of this rank, or a device cannot register it).
   * @returns the address: add bytes to it to get a displacement
   */
  attach(memory: TypedArray | RawMemory): number {
    const attachments = this.#attachments('attach');
    const array = arrayOver('attach', memory);
    const { comm } = this.#parts;
    return this.#epochs.attempt(() => attachments.attach(memory, array, () => reachable(comm, 'attach', array)));
  }

  /**
   * Detaches memory that `attach` attached. Pass the same array, or another one over the same bytes. No rank may be
   * accessing it. Local; on a device, the call first notifies the ranks that have accessed this rank's memory, by a
   * write of the device.
   *
   * Errors: `ERR_WIN`, `ERR_RMA_FLAVOR`, `ERR_BUFFER`, `ERR_RMA_ATTACH` (the memory is not attached, or a rank holds
   * the lock of this rank's part).
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

  /** Returns the displacement unit of a rank in bytes. Errors: `ERR_WIN`, `ERR_RANK`. */
  dispUnitOf(rank: number): number {
    this.#epochs.checkAlive('dispUnitOf');
    return this.#epochs.target('dispUnitOf', rank).dispUnit;
  }

  /**
   * Says who makes progress on a call to `target`: what, besides this rank, must act so that the operation is executed
   * and the call that completes it returns. `origin`, `device`, `kernel` and `agent` require nothing of the target's
   * program, which may compute or wait for something else; `target` means that the target must call the library.
   * Without `target`, the answer is for the rank that requires most. In a dynamic window, `disp` selects the memory;
   * without it, the answer is for any memory that could be attached. MPI 4.1, 12.7.3.
   *
   * Errors: `ERR_WIN`, `RangeError` (call), `ERR_RANK`, `ERR_DISP` and `ERR_RMA_RANGE` (dynamic windows only).
   * @param call the name of the method: `'put'`, `'fetchAndOp'`, `'lock'`, …
   */
  progress(call: WindowCall, target?: number, disp?: number): ProgressBy {
    const epochs = this.#epochs;
    epochs.checkAlive('progress');
    if (target === undefined) return progressOf(this.#parts, this.#paths, call, 'all', undefined);
    if (target === Rank.NULL) return progressOf(this.#parts, this.#paths, call, 'nobody', undefined);
    const t = epochs.target('progress', target);
    const dynamic = disp !== undefined && !this.#paths.bounded;
    const at = dynamic ? this.#slowPath.byteAt('progress', target, disp) : undefined;
    return progressOf(this.#parts, this.#paths, call, t, at);
  }

  /** Returns the hints in force (`MPI_Win_get_info`). MPI 4.1, 12.2.7. Errors: `ERR_WIN`. */
  getInfo(): WindowInfoInForce {
    this.#epochs.checkAlive('getInfo');
    return showInfo(this.#parts.hints);
  }

  /**
   * Changes hints of the window; all ranks should pass the same hints. Of those that `Window.allocate` and its like
   * know, `accumulate_ordering` and `accumulate_ops` can change. The others are fixed when
   * the window is created, and are ignored here; `getInfo` returns what is in force. MPI 4.1, 12.2.7.
   * Errors: `ERR_WIN`, `ERR_INFO_KEY`, `ERR_INFO_VALUE` (a value that no hint of this name has); nothing changes then.
   */
  setInfo(info: WindowInfo): void {
    this.#epochs.checkAlive('setInfo');
    changeInfo('setInfo', this.#parts.hints, info);
  }

  /**
   * Returns a copy of the counters of this rank: what the window's schemes have sent and waited for since the window
   * was created. See `FenceStatistics` and `LockStatistics`. Schemes that use loads and stores count nothing, so
   * counting costs them nothing. Errors: `ERR_WIN`.
   */
  statistics(): WindowStatistics {
    this.#epochs.checkAlive('statistics');
    const { hints, fence, lockCounts, wire } = this.#parts;
    const refused = wire?.arrivals.srq.refused;
    return {
      fence: { scheme: hints.fence, ...fence.statistics },
      lock: { scheme: hints.lock, ...lockCounts },
      refills: wire?.arrivals.refills ?? 0,
      ...(refused === undefined ? {} : { refused }),
    };
  }

  /** The name of the window in error messages (`MPI_Win_get_name`, `MPI_Win_set_name`). */
  get name(): string {
    return this.#epochs.name;
  }

  set name(name: string) {
    if (typeof name !== 'string') throw argumentTypeError(`the name of a window must be a string, not ${show(name)}`);
    this.#epochs.name = name;
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
    const t = epochs.known(target);
    if (t !== undefined && layout === undefined && epochs.allows(t) && fastPut(t, origin, disp)) {
      epochs.noteStores();
      return;
    }
    this.#slowPath.put(origin, target, disp, layout);
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
    const t = epochs.known(target);
    if (t !== undefined && layout === undefined && epochs.allows(t) && fastGet(t, origin, disp)) {
      epochs.noteUse();
      return;
    }
    this.#slowPath.get(origin, target, disp, layout);
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
    const t = epochs.known(target);
    if (t !== undefined && layout === undefined && epochs.allows(t) && fastAccumulate(t, origin, disp, op)) {
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
    const t = epochs.known(target);
    if (
      t !== undefined &&
      epochs.allows(t) &&
      origin !== null &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      fastFetchAndOp(t, this.#apartTag, origin, result, disp, op)
    ) {
      epochs.noteUse();
      return;
    }
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
    const t = epochs.known(target);
    if (
      t !== undefined &&
      epochs.allows(t) &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      compare === this.#apartCompare &&
      fastCompareAndSwap(t, this.#apartTag, origin, compare, result, disp)
    ) {
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
    const t = epochs.known(target);
    if (
      t !== undefined &&
      layout === undefined &&
      epochs.allows(t) &&
      result === this.#apartResult &&
      origin === this.#apartOrigin &&
      fastGetAccumulate(t, this.#apartTag, this.#apartOrigin, result, disp, op)
    ) {
      epochs.noteUse();
      return;
    }
    this.#slowPath.getAccumulate('getAccumulate', origin, result, target, disp, op, layout);
    // They do not overlap, and are of one type: refused otherwise.
    if (op !== Op.NO_OP && layout === undefined && t !== undefined) this.#remember(origin!, NOTHING, result);
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

  /** @param before how many calls had been noted, where they are */
  #request(target: number, before: number | undefined): Request {
    const { completion } = this.#paths;
    const told = before === undefined || target === Rank.NULL ? undefined : this.#tellLog(target, before);
    if (completion === undefined || target === Rank.NULL) {
      this.#epochs.settle('', undefined);
      return told === undefined ? COMPLETE : new Request(undefined, undefined, told);
    }
    return new Request(this.#parts.comm.job.progress, completion.soFar(target), told);
  }

  /** Tells the log of accesses of a request that was waited for. */
  #tellLog(target: number, before: number): (remote: boolean) => void {
    const accesses = this.#epochs.accesses!;
    const { calls } = accesses;
    return (remote) => {
      if (remote) accesses.completedCalls(target, before, calls);
      else accesses.completedHere(target, [before, calls]);
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
   * them.
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

  /** Takes `count` notifications if that many have arrived, and returns whether it did. Never waits. */
  testNotify(count = 1): boolean {
    return this.#notifications.test(count);
  }

  // ---- fence --------------------------------------------------------------------------------------------------------

  /**
   * Ends the current epoch and opens the next one, unless `Assert.NO_SUCCEED` is passed. Collective. Afterwards all
   * operations that any rank issued in the ended epoch are complete, at their origins and targets. MPI 4.1, 12.5.1.
   *
   * `Assert.NO_PRECEDE` and `NO_SUCCEED` skip the work that they make unnecessary: a fence with `NO_PRECEDE` waits for
   * no operations; a fence with `NO_SUCCEED` returns when this rank's part and this rank's operations are complete; a
   * fence with both does nothing.
   *
   * After a timeout or an abort the fence is still in progress: call it again to continue the wait.
   * Cost: a barrier if operations are complete when issued; otherwise see the fence schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_RMA_SYNC` (a lock is held), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  fence(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.fence(assert, options);
  }

  /** Blocks until the fence is complete; otherwise like `fence`. */
  fenceSync(assert = 0, options?: WaitOptions): void {
    this.#active.fenceSync(assert, options);
  }

  // ---- start, complete, post, wait ----------------------------------------------------------------------------------

  /**
   * Opens an access epoch to the members of `group`, and waits until each of them has posted to a group that contains
   * this rank. MPI 4.1, 12.5.2.
   *
   * Cost: one cache line from each target. `Assert.NO_CHECK` asserts that all members have already posted; it is
   * verified if posts are visible at once, in shared memory.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an access epoch is open), `ERR_RMA_RANK_FAILED`,
   * `ERR_RMA_TIMEOUT` (no epoch is open then, and no post is consumed).
   */
  start(group: Group, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.start(group, assert, options);
  }

  /** Blocks until all members of `group` have posted; otherwise like `start`. */
  startSync(group: Group, assert = 0, options?: WaitOptions): void {
    this.#active.startSync(group, assert, options);
  }

  /**
   * Ends the access epoch that `start` opened. All operations issued in it are complete at this rank, and complete at a
   * target once that target has called `wait`. Cost: one store to each target. Errors: `ERR_WIN`, `ERR_RMA_SYNC` (no
   * such epoch is open), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  complete(options?: WaitOptions): Promise<void> {
    return this.#active.complete(options);
  }

  /** Blocks until the access epoch has ended; otherwise like `complete`. */
  completeSync(options?: WaitOptions): void {
    this.#active.completeSync(options);
  }

  /**
   * Opens an exposure epoch: the members of `group`, each of which calls `start` with a group that contains this rank,
   * may access this rank's part. Never waits. MPI 4.1, 12.5.2. Cost: one store to each origin.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an exposure epoch is open).
   */
  async post(group: Group, assert = 0): Promise<void> {
    this.#active.post(group, assert);
  }

  /** Opens an exposure epoch, like `post`. Never waits. */
  postSync(group: Group, assert = 0): void {
    this.#active.post(group, assert);
  }

  /**
   * Ends the exposure epoch that `post` opened: waits until all its origins have called `complete`. Afterwards `local`
   * holds what they put. After a timeout or an abort the epoch is still open: call `wait` again. Errors: `ERR_WIN`,
   * `ERR_RMA_SYNC` (no such epoch is open), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  wait(options?: WaitOptions): Promise<void> {
    return this.#active.wait(options);
  }

  /** Blocks until the exposure epoch has ended; otherwise like `wait`. */
  waitSync(options?: WaitOptions): void {
    this.#active.waitSync(options);
  }

  /**
   * Ends the exposure epoch if all its origins have called `complete`, and returns whether it has ended. Never waits.
   */
  test(): boolean {
    return this.#active.test();
  }

  // ---- locks --------------------------------------------------------------------------------------------------------

  /**
   * Opens a passive-target epoch to `target`. `Lock.EXCLUSIVE` excludes all other locks, `Lock.SHARED` only exclusive
   * ones. Locks are granted in the order of the requests, unless the hint `lock` selects another scheme. MPI 4.1,
   * 12.5.3.
   *
   * Cost: one compare-and-swap at the target if no rank holds the lock or waits for it, and one additional addition for
   * an exclusive lock; see the lock schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_LOCKTYPE`, `ERR_RANK`, `ERR_ASSERT`, `ERR_RMA_SYNC` (this rank already holds the lock, or
   * is in a fence epoch), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (this rank does not hold the lock then).
   */
  lock(target: number, type: Lock, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lock(target, type as unknown as number, assert, options);
  }

  /** Blocks until this rank holds the lock; otherwise like `lock`. */
  lockSync(target: number, type: Lock, assert = 0, options?: WaitOptions): void {
    this.#passive.lockSync(target, type as unknown as number, assert, options);
  }

  /**
   * Ends the passive-target epoch that `lock` opened. All operations issued to `target` are complete, at this rank and
   * at the target. Cost: one atomic subtraction; two for an exclusive lock. Errors: `ERR_WIN`, `ERR_RANK`,
   * `ERR_RMA_SYNC` (this rank does not hold the lock), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  unlock(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.unlock(target, options);
  }

  /** Blocks until the epoch has ended; otherwise like `unlock`. */
  unlockSync(target: number, options?: WaitOptions): void {
    this.#passive.unlockSync(target, options);
  }

  /**
   * Opens a passive-target epoch with shared locks to all ranks. While it waits for the lock of one rank it holds none
   * of the others, so ranks that lock several targets cannot block each other through it. MPI 4.1, 12.5.3.
   *
   * Cost: one atomic addition; one compare-and-swap per rank while a rank holds an exclusive lock or waits for one.
   * Errors: as `lock`.
   */
  lockAll(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lockAll(assert, options);
  }

  /** Blocks until this rank holds the locks; otherwise like `lockAll`. */
  lockAllSync(assert = 0, options?: WaitOptions): void {
    this.#passive.lockAllSync(assert, options);
  }

  /** Ends the epoch that `lockAll` opened. All operations issued in it are complete. Errors: as `unlock`. */
  unlockAll(options?: WaitOptions): Promise<void> {
    return this.#passive.unlockAll(options);
  }

  /** Blocks until the epoch has ended; otherwise like `unlockAll`. */
  unlockAllSync(options?: WaitOptions): void {
    this.#passive.unlockAllSync(options);
  }

  // ---- flush --------------------------------------------------------------------------------------------------------

  /**
   * Completes all operations issued to `target` so far, at this rank and at the target. Requires a passive-target
   * epoch. MPI 4.1, 12.5.4.
   * Cost: if operations are complete when issued, one fence instruction if there were puts.
   */
  flush(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flush', target, options);
  }

  /** Blocks until the operations to `target` are complete; otherwise like `flush`. */
  flushSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flush', target, options);
  }

  /** Completes all operations issued to any rank so far, at this rank and at the targets. Otherwise like `flush`. */
  flushAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushAll', options);
  }

  /** Blocks until all operations are complete; otherwise like `flushAll`. */
  flushAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushAll', options);
  }

  /**
   * Completes all operations issued to `target` so far at this rank only: origins may be reused, and results hold their
   * data. They may be incomplete at the target.
   */
  flushLocal(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flushLocal', target, options);
  }

  /** Blocks until the operations to `target` are complete at this rank; otherwise like `flushLocal`. */
  flushLocalSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flushLocal', target, options);
  }

  /** Completes all operations issued to any rank so far at this rank only. Otherwise like `flushLocal`. */
  flushLocalAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushLocalAll', options);
  }

  /** Blocks until all operations are complete at this rank; otherwise like `flushLocalAll`. */
  flushLocalAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushLocalAll', options);
  }

  /**
   * Synchronizes loads and stores with RMA operations in a passive-target epoch: later loads see what other ranks have
   * written to this rank's part and completed, and later operations see earlier stores.
   */
  sync(): void {
    this.#epochs.checkUsable('sync');
    memoryFence();
  }

  // ---- epochs as objects --------------------------------------------------------------------------------------------

  /**
   * Opens the epoch of `lock` and returns it as an object that offers only the calls that the epoch allows. With `await
   * using epoch = await win.locked(target)`, the end of the block unlocks. Cost and errors: as `lock`.
   */
  async locked(target: number, type: Lock = Lock.EXCLUSIVE, assert = 0, options?: WaitOptions): Promise<LockEpoch<T>> {
    await this.lock(target, type, assert, options);
    return new LockEpoch(this, target);
  }

  /** Blocks until this rank holds the lock; otherwise like `locked`. */
  lockedSync(target: number, type: Lock = Lock.EXCLUSIVE, assert = 0, options?: WaitOptions): LockEpoch<T> {
    this.lockSync(target, type, assert, options);
    return new LockEpoch(this, target);
  }

  /**
   * Opens the epoch of `lockAll` and returns it as an object; its end is `unlockAll`. Cost and errors: as `lockAll`.
   */
  async lockedAll(assert = 0, options?: WaitOptions): Promise<LockAllEpoch<T>> {
    await this.lockAll(assert, options);
    return new LockAllEpoch(this);
  }

  /** Blocks until this rank holds the locks; otherwise like `lockedAll`. */
  lockedAllSync(assert = 0, options?: WaitOptions): LockAllEpoch<T> {
    this.lockAllSync(assert, options);
    return new LockAllEpoch(this);
  }

  /**
   * Opens an epoch with `fence` and returns it as an object; its end is a fence with `Assert.NO_SUCCEED`. Collective.
   * Cost and errors: as `fence`.
   */
  async fenced(assert = 0, options?: WaitOptions): Promise<FenceEpoch<T>> {
    checkAssert('fenced', assert, FENCED_ASSERTIONS);
    await this.fence(assert, options);
    return new FenceEpoch(this);
  }

  /** Blocks until the fence is complete; otherwise like `fenced`. */
  fencedSync(assert = 0, options?: WaitOptions): FenceEpoch<T> {
    checkAssert('fenced', assert, FENCED_ASSERTIONS);
    this.fenceSync(assert, options);
    return new FenceEpoch(this);
  }

  /**
   * Opens the access epoch of `start` and returns it as an object; its end is `complete`. Cost and errors: as `start`.
   */
  async started(group: Group, assert = 0, options?: WaitOptions): Promise<StartEpoch<T>> {
    await this.start(group, assert, options);
    return new StartEpoch(this);
  }

  /** Blocks until all members of `group` have posted; otherwise like `started`. */
  startedSync(group: Group, assert = 0, options?: WaitOptions): StartEpoch<T> {
    this.startSync(group, assert, options);
    return new StartEpoch(this);
  }

  /** Opens the exposure epoch of `post` and returns it as an object; its end is `wait`. Cost and errors: as `post`. */
  async posted(group: Group, assert = 0): Promise<PostEpoch<T>> {
    await this.post(group, assert);
    return new PostEpoch(this);
  }

  /** Opens an exposure epoch and returns it as an object, like `posted`. Never waits. */
  postedSync(group: Group, assert = 0): PostEpoch<T> {
    this.postSync(group, assert);
    return new PostEpoch(this);
  }

  // ---- end ----------------------------------------------------------------------------------------------------------

  /**
   * Frees the window. Collective: no rank may be in an epoch on it. Afterwards the `local` of an allocated window is
   * gone. If a rank has failed, the call fails, but this rank still releases what it holds. A second call does nothing.
   * MPI 4.1, 12.2.5.
   */
  async free(options?: WaitOptions): Promise<void> {
    if (this.#epochs.isFreed) return;
    const wait = readWait('free', options);
    const end = this.#beginFree();
    try {
      await this.#parts.comm.job.progress.wait(end.farewell, wait);
    } finally {
      end.release();
    }
  }

  /** Blocks until the window is freed; otherwise like `free`. */
  freeSync(options?: WaitOptions): void {
    this.#epochs.comm.job.refuseSync('free');
    if (this.#epochs.isFreed) return;
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
    epochs.checkFree();
    const { comm } = this.#parts;
    const farewell = comm.begin(comm.farewell(), `free of ${epochs.what}`, {
      name: 'win.free',
      count: this.#parts.number,
    });
    // Others may still access this rank's part.
    epochs.freed();
    return { farewell, release: () => this.#giveBack() };
  }

  /** Gives back what this rank holds: nobody needs it any more, or a rank has failed. Happens once. */
  #giveBack(): void {
    this.#parts.comm.job.tasks?.locks.delete(this.#epochs.locks);
    if (!this.#cancelRelease()) return;
    for (const t of this.#parts.targets.made) t?.unmap();
    this.#parts.release();
  }

  /** Frees the window at the end of an `await using` block: see `free`. */
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
    this.#slowPath.getAccumulate('fetchAndOp', origin, result, target, disp, op, undefined);
  }

  #swapChecked(origin: TypedArray, compare: TypedArray, result: TypedArray, target: number, disp: number): void {
    this.#epochs.checkUsable('compareAndSwap');
    checkSingles('compareAndSwap', { origin, compare, result });
    this.#remember(origin, compare, result);
    this.#slowPath.compareAndSwap(origin, compare, result, target, disp);
  }

  /** @param compare `NOTHING` where there is none */
  #remember(origin: TypedArray, compare: TypedArray, result: TypedArray): void {
    const tag = tagOf(origin);
    if (tag === undefined || tagOf(result) !== tag || (compare !== NOTHING && tagOf(compare) !== tag)) return;
    this.#apartTag = tag;
    this.#apartOrigin = origin;
    this.#apartCompare = compare;
    this.#apartResult = result;
  }
}
