/**
 * Windows (MPI 4.1, chapter 12): memory that other ranks read and write without its owner's doing. Here are the calls
 * that make windows, ask what they are, and free them; a window inherits those that move data (communication.ts) and
 * those that open and end epochs (synchronization.ts).
 */
import type { Communicator } from '../../collective/communicator.ts';
import { type Group, Rank } from '../../collective/group.ts';
import {
  arrayOver,
  ownView,
  type RawMemory,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../../datatype/base-types.ts';
import { argumentTypeError, RmaError, show } from '../../errors.ts';
import type { FenceStatistics } from '../../sync/fence/fence-scheme.ts';
import { Lock, type LockStatistics } from '../../sync/lock/lock-scheme.ts';
import type { LayoutStatistics } from '../../transfer/requests/layout-statistics.ts';
import { type Operation, readWait, type WaitOptions } from '../../wait/operation.ts';
import type { Attachments } from '../attached/attachments.ts';
import { beginAllocate } from '../creation/allocate.ts';
import { beginAllocateShared } from '../creation/allocate-shared.ts';
import { refuseSync, type WindowInTheMaking } from '../creation/begin-window.ts';
import { beginCreate } from '../creation/create.ts';
import { beginCreateDynamic } from '../creation/create-dynamic.ts';
import { reachable } from '../creation/own-memory.ts';
import { changeInfo, showInfo, type WindowInfo, type WindowInfoInForce } from '../creation/window-info.ts';
import type { WindowOptions, WindowParts } from '../creation/window-parts.ts';
import { Assert, checkAssert } from '../epochs/assertions.ts';
import type { Epochs } from '../epochs/epochs.ts';
import { type ProgressBy, progressOf, type WindowCall } from '../epochs/progress-makers.ts';
import type { Paths } from '../path/paths.ts';
import { FenceEpoch, LockAllEpoch, LockEpoch, PostEpoch, StartEpoch } from './epoch-objects.ts';
import { PART_LOCK, type PartLock } from './part-lock.ts';
import type { PassiveTarget } from './passive-target.ts';
import type { SlowPath } from './slow-path.ts';
import { Synchronization } from './synchronization.ts';
import { traceWindow } from './traced-window.ts';
import { WindowCore } from './window-core.ts';

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
  /**
   * How layouts of several pieces have moved. Absent where each piece is a request, or a copy (`noncontiguous:
   * 'multi-write'`, shared memory), and where a thread of the addon serves them (`host-assisted` on devices).
   */
  readonly layouts?: LayoutStatistics;
  /**
   * Communication calls that took the general way, some 50 times as long as the short one for a few elements: the first
   * to each target, those with layouts that were not used before, and types that the short way does not know.
   */
  readonly slowCalls: number;
}

/**
 * Memory that each rank of a communicator offers to the other ranks, which read, write and update it without a call of
 * its owner (MPI 4.1, chapter 12).
 *
 * A rank accesses a window within an epoch, which `fence`, `start`, `lock` or `lockAll` opens. `Window.allocate`,
 * `create`, `allocateShared` and `createDynamic` create windows.
 *
 * Besides the errors that are listed with each call, all calls that access the window or wait throw `ERR_COMM` (this
 * rank has finalized the job, or the window's communicator can no longer be used) and, on a device, `ERR_VERBS` (it has
 * failed, or a connection was lost). Calls that take `WaitOptions` throw `ERR_ARG` for options that there are not, and
 * the reason of a signal that aborts them. A failed promise form rejects; a `Sync` form throws, and throws
 * `ERR_RMA_WOULD_DEADLOCK` where ranks are tasks.
 * @typeParam T the typed array of this rank's part
 */
export class Window<T extends TypedArray = TypedArray> extends Synchronization<T> {
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
  #passive: PassiveTarget;
  #slowPath: SlowPath;
  /** Takes the window from the list of what its communicator gives back in the end; says whether it stood there. */
  #cancelRelease: () => boolean;
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
    return Window.#made(comm, beginAllocate(comm, type, length, options));
  }

  /** Blocks until the call is complete; otherwise like `allocate`. */
  static allocateSync<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Window<T> {
    refuseSync(comm, 'Window.allocate');
    return Window.#madeSync(comm, beginAllocate(comm, type, length, options));
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
    return Window.#made(comm, beginCreate(comm, memory, options));
  }

  /** Blocks until the call is complete; otherwise like `create`. */
  static createSync<T extends TypedArray>(comm: Communicator, memory: T, options?: WindowOptions): Window<T>;
  /** Blocks until the call is complete; otherwise like `create` with bytes or `null`. */
  static createSync(comm: Communicator, memory: RawMemory | null, options?: WindowOptions): Window<Uint8Array>;
  static createSync(comm: Communicator, memory: TypedArray | RawMemory | null, options?: WindowOptions): Window {
    refuseSync(comm, 'Window.create');
    return Window.#madeSync(comm, beginCreate(comm, memory, options));
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
    return Window.#made(comm, beginAllocateShared(comm, type, length, options));
  }

  /** Blocks until the call is complete; otherwise like `allocateShared`. */
  static allocateSharedSync<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    length: number,
    options?: WindowOptions,
  ): Window<T> {
    refuseSync(comm, 'Window.allocateShared');
    return Window.#madeSync(comm, beginAllocateShared(comm, type, length, options));
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
    return Window.#made(comm, beginCreateDynamic(comm, options));
  }

  /** Blocks until the call is complete; otherwise like `createDynamic`. */
  static createDynamicSync(comm: Communicator, options?: WindowOptions): Window<Uint8Array> {
    refuseSync(comm, 'Window.createDynamic');
    return Window.#madeSync(comm, beginCreateDynamic(comm, options));
  }

  static async #made<T extends TypedArray>(comm: Communicator, making: WindowInTheMaking): Promise<Window<T>> {
    await comm.members.wait(making.operation, making.options);
    return new Window<T>(making.operation.result);
  }

  static #madeSync<T extends TypedArray>(comm: Communicator, making: WindowInTheMaking): Window<T> {
    comm.members.waitSync(making.operation, making.options);
    return new Window<T>(making.operation.result);
  }

  private constructor(made: WindowParts) {
    const core = new WindowCore(made);
    super(core);
    const { parts, epochs, paths, passive, slowPath } = core;
    this.group = epochs.group;
    this.flavor = parts.flavor;
    this.dispUnit = parts.dispUnit;
    this.local = (parts.given ?? ownView('local', 'the part', parts.local)) as T;
    this.#parts = parts;
    this.#epochs = epochs;
    this.#paths = paths;
    this.#passive = passive;
    this.#slowPath = slowPath;
    parts.comm.job.locks.windows.add(epochs.locks);
    this.#cancelRelease = parts.comm.onRelease(
      () => {
        epochs.freed();
        this.#giveBack();
      },
      () => epochs.refusalOfOpen('finalize'),
    );
    traceWindow(this, parts, paths);
    parts.comm.job.races?.window(this, parts);
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
        `sharedQuery in ${epochs.what}: a rank of a dynamic window has no single part; ` +
          'use get and put to access attached memory',
      );
    }
    const t =
      rank === Rank.NULL
        ? (epochs.allTargets().find((target) => target.byteLength > 0) ?? epochs.target('sharedQuery', 0))
        : epochs.target('sharedQuery', rank);
    const { local } = this.#parts;
    const type = local.constructor as TypedArrayConstructor<T>;
    const part = this.#paths.map(t);
    const begin = part.u8.byteOffset + part.skew;
    const size = local.BYTES_PER_ELEMENT;
    if (t.byteLength === 0 && begin % size !== 0) return new type(new ArrayBuffer(0));
    if (begin % size !== 0 || t.byteLength % size !== 0) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `sharedQuery of rank ${t.rank} in ${epochs.what}: the part does not consist of elements of ${size} ` +
          "bytes, as this rank's part does; use get and put",
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
   * accessing it; epochs of other ranks may be open, also those of `lockAll`, as long as they access other memory.
   * Local; on a device, the call first notifies the ranks that have accessed this rank's memory, by a write of the
   * device.
   *
   * Errors: `ERR_WIN`, `ERR_RMA_FLAVOR`, `ERR_BUFFER`, `ERR_RMA_ATTACH` (the memory is not attached, or a rank holds
   * the lock of this rank's part exclusively, or no rank does and one is next to have it so).
   */
  detach(memory: TypedArray | RawMemory): void {
    const attachments = this.#attachments('detach');
    // An array whose memory is gone is still the one that was attached.
    const array = typeCodeOf(memory) < 0 ? arrayOver('detach', memory) : (memory as TypedArray);
    const { comm, makeLock } = this.#parts;
    // Ranks that share the lock need not come to this part, or to this memory: `lockAll` may last as long as the
    // window. They find what is detached by the directory, as in epochs without locks. One that has the lock alone has
    // come for this part; another one that would have it so meanwhile waits for the end of this call.
    const lock = this.#epochs.attempt(() => makeLock(comm.rank));
    const release = lock && this.#passive.holdAtOnce(lock);
    if (lock !== undefined && release === undefined) {
      throw new RmaError(
        'ERR_RMA_ATTACH',
        `detach from ${this.#epochs.what}: a rank holds the lock of this rank's part exclusively, or is about to, ` +
          "and may be accessing it; detach after that rank's unlock",
      );
    }
    try {
      this.#epochs.attempt(() => attachments.detach(array));
    } finally {
      release?.();
    }
  }

  /** @internal The lock of a rank's part, for a structure that is one. Errors: `ERR_WIN`. */
  [PART_LOCK](call: string, rank: number): PartLock {
    this.#epochs.checkAlive(call);
    return this.#passive.partLock(call, rank);
  }

  #attachments(call: string): Attachments {
    this.#epochs.checkAlive(call);
    const { attachments } = this.#parts;
    if (attachments !== undefined) return attachments;
    throw new RmaError(
      'ERR_RMA_FLAVOR',
      `${call}: ${this.#epochs.what} is not dynamic (${this.flavor}); ` +
        'only windows from Window.createDynamic have attached memory',
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
   * was created. See `FenceStatistics`, `LockStatistics` and `LayoutStatistics`. Schemes that use loads and stores
   * count nothing, so counting costs them nothing. Errors: `ERR_WIN`.
   */
  statistics(): WindowStatistics {
    this.#epochs.checkAlive('statistics');
    const { hints, fence, lockCounts, wire, noncontiguous } = this.#parts;
    const refused = wire?.notifications.arrivals.srq.refused;
    const layouts = noncontiguous?.statistics;
    return {
      fence: { scheme: hints.fence, ...fence.statistics },
      lock: { scheme: hints.lock, ...lockCounts },
      refills: wire?.notifications.arrivals.refills ?? 0,
      slowCalls: this.#slowPath.calls,
      ...(refused === undefined ? {} : { refused }),
      ...(layouts === undefined ? {} : { layouts }),
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
   * gone. A second call does nothing. MPI 4.1, 12.2.5.
   *
   * Cost: a barrier by messages (⌈log₂ p⌉ rounds), and the unmapping of the parts that were mapped.
   * Errors: `ERR_RMA_SYNC` (an epoch is open, or a synchronization of the window is in progress; nothing is freed
   * then); `ERR_COLLECTIVE` (other ranks fence or free another window), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (the
   * window is freed at this rank all the same).
   */
  async free(options?: WaitOptions): Promise<void> {
    if (this.#epochs.isFreed) return;
    const wait = readWait('free', options);
    if (this.#freeAlone()) return;
    const end = this.#beginFree();
    try {
      await this.#parts.comm.members.wait(end.farewell, wait);
    } finally {
      end.release();
    }
  }

  /** Blocks until the window is freed; otherwise like `free`. */
  freeSync(options?: WaitOptions): void {
    this.#epochs.comm.job.refuseSync('free');
    if (this.#epochs.isFreed) return;
    const wait = readWait('free', options);
    if (this.#freeAlone()) return;
    const end = this.#beginFree();
    try {
      this.#parts.comm.members.waitSync(end.farewell, wait);
    } finally {
      end.release();
    }
  }

  /** If a rank has failed and the others have gone on without it, each frees the window by itself. */
  #freeAlone(): boolean {
    if (this.#parts.comm.shrunk === undefined) return false;
    this.#epochs.freed();
    this.#giveBack();
    return true;
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

  /** Gives back what this rank holds: no rank needs it any more, or a rank has failed. Happens once. */
  #giveBack(): void {
    this.#parts.comm.job.locks.windows.delete(this.#epochs.locks);
    if (!this.#cancelRelease()) return;
    for (const t of this.#parts.targets.made) t?.unmap();
    this.#parts.release();
  }

  /** Frees the window at the end of an `await using` block: see `free`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }
}
