/** What a lock scheme says of itself: hints, refusals, documentation and tests know it from this alone. */
import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import type { CopyKernels } from '../../datatype/copy.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { OperationQueue, QueueTrace } from '../../transfer/served/operation-queue.ts';
import type { OperationServer } from '../../transfer/served/operation-server.ts';
import type { DeferredLocks } from './deferred-lock.ts';
import type { AllLock } from './lock-of-all.ts';
import type { LockOrigin } from './lock-origin.ts';
import type { LockOrder } from './lock-overtaking.ts';
import type { LockCounts, TargetLock } from './lock-scheme.ts';

/** The mode in which a lock of two modes begins. */
export const LOCK_MODES = ['cpu', 'network'] as const;
export type LockMode = (typeof LOCK_MODES)[number];

/** What the ranks of a node take in CPU mode: queue-lock.ts, one-word-lock.ts. */
export const CPU_LOCKS = ['queue', 'one-word'] as const;
export type CpuLockName = (typeof CPU_LOCKS)[number];

/** Whether `lock` leaves it to the end of the epoch to wait; `auto`: where it is likely to pay. */
export const LOCK_DEFERS = ['auto', 'false', 'true'] as const;
export type LockDefer = (typeof LOCK_DEFERS)[number];

/** What a window's hints say of its locks, besides the scheme. */
export interface LockOptions {
  readonly lock_mode: LockMode;
  readonly lock_cpu: CpuLockName;
  readonly lock_order: LockOrder;
  /** One of `MIGRATIONS`. */
  readonly lock_migration: string;
  readonly lock_defer: LockDefer;
}

/** What a window gives its locks. */
export interface LockParts {
  readonly comm: Communicator;
  /** The window, in messages. */
  readonly description: string;
  readonly options: LockOptions;
  /** There where the scheme has `deviceWords`, and wherever operations are requests. */
  readonly wire: RequestTransfer | undefined;
  /** For messages to and from agents; there for schemes with an agent. */
  readonly channel: OwnChannel | undefined;
  readonly kernels: CopyKernels | undefined;
  /** Carries out what others have queued for this rank. */
  readonly server: OperationServer;
  /** The recorder of what is queued in a queue of that name, in a job that is traced. */
  readonly queueTrace?: (name: string) => QueueTrace | undefined;
  /**
   * Whether an operation under the lock of a rank may travel with that: its owner carries out updates under a lock, and
   * this rank reaches it by requests alone. Absent where there is no such rank.
   */
  readonly travels?: ((rank: number) => boolean) | undefined;
  /** One of the scheme's `deviceWords` of a rank. */
  remoteWord(rank: number, index: number): RemoteWord;
  /**
   * `LockKind.nodeWords` of a rank; where memory cannot be loaded and stored, of this rank's only, and of those of its
   * node where ranks are tasks.
   */
  nodeWords(rank: number): Int32Array;
}

/** Completes what is queued under a lock. */
export interface PassiveQueue {
  readonly queue: OperationQueue;
  readonly origin: Pick<LockOrigin, 'deliver' | 'flush' | 'flushLast' | 'soFar'>;
  /**
   * Whether operations to a rank are queued in the epoch that is open to it: the same from its first to its last. All
   * are if it is not said.
   */
  readonly takes?: ((rank: number) => boolean) | undefined;
}

/** The locks of a window at one rank. */
export interface Locks {
  readonly counts: LockCounts;
  /** Calls that may not wait call this now and then, where an agent serves others. */
  readonly serve?: () => void;
  /** Operations under locks wait here for their unlock or flush. */
  readonly passive?: PassiveQueue;
  /** Operations under a lock that is deferred wait here for that. */
  readonly deferred?: DeferredLocks | undefined;
  make(rank: number): TargetLock;
  /** Shares the locks of all ranks at once, if the scheme can do that; else they are taken one by one. */
  readonly all?: () => AllLock;
  release?(): void;
}

export interface LockKind<N extends string = string> {
  /** Its value of the hint `lock`. */
  readonly name: N;
  /**
   * Words of each rank, of 64 bits, that only the device's atomics touch (`LockParts.remoteWord`); 0 if the lock is no
   * work of the device. They begin with 0, but for the first one (`firstWord`).
   * @param loadStore memory can be loaded and stored
   */
  deviceWords(size: number, loadStore: boolean): number;
  /** An agent at each rank serves the others: their locks wait until it is in the library. */
  readonly agent: boolean;
  /** Windows whose hints name no scheme have this one. */
  readonly isDefault?: true;
  /** It locks parts of any memory, also of dynamic windows: it moves no operations itself. */
  readonly forDynamic?: true;
  /** What the first of these words holds before any rank has touched it; 0 if not given. */
  firstWord?(size: number, options: LockOptions): number;
  /**
   * Words of each rank, of 32 bits, that the ranks of a node load and store for a lock; none if it is not said. They
   * begin on a cache line of their own.
   * @param loadStore memory can be loaded and stored: all ranks are on one node
   */
  nodeWords?(size: number, options: LockOptions, loadStore: boolean): number;
  /** Sets them up, before other ranks are told where they are. */
  setUpNode?(words: Int32Array, options: LockOptions): void;
  make(parts: LockParts): Locks;
}

export function lockKind<const N extends string>(kind: LockKind<N>): LockKind<N> {
  return kind;
}
