/**
 * Makes the schemes that a window's hints name, from what making the window has found out: the fence, the locks, and what carries their operations. Each is in a file
 * of its own, in src/sync; here is what it takes.
 */
import type { BarrierState } from '../comm/barrier.ts';
import type { Communicator, OwnChannel } from '../comm/communicator.ts';
import type { CopyKernels } from '../datatype/copy.ts';
import { DeferredFence } from '../sync/fence/deferred.ts';
import { ImmediateFence } from '../sync/fence/immediate.ts';
import { ImmediateNaiveFence } from '../sync/fence/immediate-naive.ts';
import { ImmediateOptimizedFence } from '../sync/fence/immediate-optimized.ts';
import { NotifyAllFence } from '../sync/fence/notify-all.ts';
import { RemoteNotifyFence } from '../sync/fence/remote-notify.ts';
import type { FenceScheme } from '../sync/fence/scheme.ts';
import { type Gate, LockAgent, NO_GATE } from '../sync/lock/agent.ts';
import type { AllLock } from '../sync/lock/all.ts';
import { DirectGate, DirectLock } from '../sync/lock/direct.ts';
import {
  CPU,
  HYBRID_WORDS,
  HybridGate,
  HybridLock,
  NETWORK,
  type NodeWords,
  setUpHybrid,
} from '../sync/lock/hybrid.ts';
import { LockWord } from '../sync/lock/lock-word.ts';
import { MigrationPolicy } from '../sync/lock/migration.ts';
import { QueueLock, queueLockWords } from '../sync/lock/queue.ts';
import { RemoteLock } from '../sync/lock/remote.ts';
import { type LockCounts, noLocks, type TargetLock } from '../sync/lock/scheme.ts';
import { TwoSidedLock } from '../sync/lock/two-sided.ts';
import { OperationQueue } from '../transfer/operation-queue.ts';
import type { OperationServer } from '../transfer/operation-server.ts';
import type { RemoteWord, RequestTransfer } from '../transfer/requests.ts';
import type { Hints } from './info.ts';

/** Whether bytes of put and get move by work requests. */
export function movesByRequests({ fence }: Hints, loadStore: boolean): boolean {
  return !loadStore || (fence !== 'immediate' && fence !== 'deferred');
}

/** Whether locks are atomics of the device. */
export function locksByRequests({ lock, noLocks: none }: Hints, loadStore: boolean): boolean {
  if (none) return false;
  return lock === 'remote' || lock === 'direct' || lock === 'hybrid' || (lock === 'queue' && !loadStore);
}

/** What the lock word of a rank's part holds before anybody has touched it. */
export function firstLockWord({ lock, lockMode }: Hints, size: number): number {
  if (lock === 'direct') return size;
  if (lock === 'hybrid') return lockMode === 'cpu' ? size + 1 : size;
  return 0;
}

/** Sets up the words that the ranks of a node share (`nodeWords`), before they are told to anybody. */
export function setUpNode(hints: Hints, words: Int32Array): void {
  if (words.length === 0) return;
  setUpHybrid(words, hints.lockMode === 'cpu' ? CPU : NETWORK, new MigrationPolicy(hints.lockMigration));
}

/** Words of a rank's block for the CPU lock of a hybrid one: the manager is one more rank there. */
export function nodeWords({ lock, noLocks: none }: Hints, size: number): number {
  return lock === 'hybrid' && !none ? HYBRID_WORDS + queueLockWords(size + 1) : 0;
}

/** Spaces of messages that the schemes need, taken before anything is waited for: then they are the same at all ranks. */
export interface SchemeChannels {
  readonly operations: OwnChannel | undefined;
  readonly answers: OwnChannel | undefined;
  readonly agent: OwnChannel | undefined;
}

export function openChannels(hints: Hints, open: () => OwnChannel): SchemeChannels {
  const deferred = hints.fence === 'deferred';
  const asks = !hints.noLocks && (hints.lock === 'two-sided' || hints.lock === 'direct' || hints.lock === 'hybrid');
  return {
    operations: deferred ? open() : undefined,
    answers: deferred ? open() : undefined,
    agent: asks ? open() : undefined,
  };
}

/** What a window has to give its schemes. */
export interface SchemeParts {
  readonly comm: Communicator;
  readonly hints: Hints;
  readonly description: string;
  readonly barrier: BarrierState;
  readonly channels: SchemeChannels;
  readonly kernels: CopyKernels | undefined;
  /** Requests, if anything takes them. */
  readonly wire: RequestTransfer | undefined;
  /** Carries out what others have queued for this rank. */
  readonly server: OperationServer;
  /** The queue lock of a rank's part; only where memory can be loaded and stored. */
  queueLock(rank: number): QueueLock;
  /** The lock of all ranks' parts; only where memory can be loaded and stored. */
  allLock(): AllLock;
  /** A word of a rank that only the device's atomics touch. */
  remoteWord(rank: number, index: number): RemoteWord;
  /** `nodeWords` of a rank's block; where memory cannot be loaded and stored, of this rank's only, and of those of its node where ranks are tasks. */
  nodeWords(rank: number): Int32Array;
}

/** Completes what is queued under a lock. */
export interface PassiveQueue {
  readonly queue: OperationQueue;
  readonly agent: Pick<LockAgent, 'deliver' | 'flush' | 'soFar'>;
}

export interface Schemes {
  readonly fence: FenceScheme;
  /** Operations of fence epochs wait here for the fence. */
  readonly deferred: OperationQueue | undefined;
  /** Operations under locks wait here for their unlock or flush. */
  readonly passive: PassiveQueue | undefined;
  readonly lockCounts: LockCounts;
  /** To be called in calls that may not wait, where an agent serves others. */
  readonly serve: (() => void) | undefined;
  makeLock(rank: number): TargetLock | undefined;
  /** Shares the locks of all ranks at once, if the scheme can do that; else they are taken one by one. */
  readonly allLock: (() => AllLock) | undefined;
  release(): void;
}

export function makeSchemes(parts: SchemeParts): Schemes {
  const { comm, hints, wire } = parts;
  const { progress } = comm.job;
  const deferred = hints.fence === 'deferred' ? new OperationQueue(comm.size, parts.kernels) : undefined;
  const locks = makeLocks(parts);
  const stops = [locks.release];
  // Whatever this rank waits for, notifications are taken in, so that there are receives for those that come.
  if (wire !== undefined) {
    stops.push(
      progress.serve(() => {
        wire.poll();
        return Number.POSITIVE_INFINITY;
      }, false),
    );
  }
  return {
    fence: makeFence(parts, deferred),
    deferred,
    passive: locks.passive,
    lockCounts: locks.counts,
    serve: locks.serve,
    makeLock: (rank) => (hints.noLocks ? undefined : locks.make(rank)),
    allLock: hints.noLocks ? undefined : locks.all,
    release() {
      for (const stop of stops) stop();
    },
  };
}

function makeFence(parts: SchemeParts, deferred: OperationQueue | undefined): FenceScheme {
  const { comm, barrier, wire, description, server } = parts;
  switch (parts.hints.fence) {
    case 'deferred': {
      const { operations, answers } = parts.channels;
      return new DeferredFence(comm, deferred!, server, operations!, answers!, description);
    }
    case 'immediate-naive':
      return new ImmediateNaiveFence(comm, wire!, description);
    case 'immediate-optimized':
      return new ImmediateOptimizedFence(comm, wire!, barrier, description);
    case 'remote-notify':
      return new RemoteNotifyFence(comm, wire!, barrier, description);
    case 'notify-all':
      return new NotifyAllFence(wire!, comm.rank, comm.size, description);
    default:
      return new ImmediateFence(barrier, description);
  }
}

interface Locks {
  readonly counts: LockCounts;
  readonly serve?: () => void;
  readonly passive: PassiveQueue | undefined;
  make(rank: number): TargetLock;
  readonly all?: () => AllLock;
  release(): void;
}

function makeLocks(parts: SchemeParts): Locks {
  const { comm, hints, wire, channels } = parts;
  const { rank: me, size, job } = comm;
  const { context, messenger, progress } = job;
  const now = (): number => progress.now();
  if (channels.agent === undefined) {
    const rest = { counts: noLocks(), passive: undefined, release() {} };
    if (locksByRequests(hints, context.capabilities.loadStore)) {
      const wordsOf = (rank: number) => (index: number) => parts.remoteWord(rank, index);
      return { ...rest, make: (rank) => new RemoteLock(wire!, me, rank, size, wordsOf(rank), now) };
    }
    let made: AllLock | undefined;
    const all = (): AllLock => {
      made ??= parts.allLock();
      return made;
    };
    return { ...rest, make: (rank) => all().beside(parts.queueLock(rank)), all };
  }
  const counts = noLocks();
  // One seed for each pair, and one for the agent.
  const wordOf = (rank: number, seed = size * me + rank): LockWord =>
    new LockWord(wire!, parts.remoteWord(rank, 0), size, now, seed, counts);
  const lids = comm.group.worldRanks;
  const isNear = (rank: number): boolean =>
    rank === me || (context.near?.(lids[rank]) ?? context.capabilities.loadStore);
  const nodeOf = (rank: number, as: number): NodeWords => {
    const words = parts.nodeWords(rank);
    const lock = new QueueLock(words.subarray(HYBRID_WORDS), as, [...lids, lids[rank]], context);
    return { words, lock, processor: context.processor };
  };
  const policy = new MigrationPolicy(hints.lockMigration);
  let gate: Gate = NO_GATE;
  if (hints.lock === 'direct') gate = new DirectGate(wordOf(me, -1 - me));
  if (hints.lock === 'hybrid') {
    gate = new HybridGate(nodeOf(me, size), wordOf(me, -1 - me), policy, isNear, counts);
  }
  const queue = hints.lock === 'two-sided' ? new OperationQueue(size, parts.kernels) : undefined;
  const poll = (): void => {
    messenger.poll();
    wire?.poll();
  };
  const agent = new LockAgent(channels.agent, gate, counts, poll, (rank) => wordOf(rank).give(me), queue, parts.server);
  const stop = progress.serve(() => agent.advance(), true);
  return {
    counts,
    serve: () => agent.turn(),
    passive: queue && { queue, agent },
    make(rank) {
      if (hints.lock === 'direct') return new DirectLock(agent, wordOf(rank), me, rank);
      if (hints.lock === 'two-sided') return new TwoSidedLock(agent, rank, rank === me, hints.lockDefer);
      const node = isNear(rank) ? nodeOf(rank, me) : undefined;
      return new HybridLock(agent, wordOf(rank), me, rank, node, policy.migrates);
    },
    release() {
      stop();
      agent.close();
    },
  };
}
