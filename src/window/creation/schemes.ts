/**
 * The schemes that a window's hints name: what they need, and how they are made from what making the window has found
 * out.
 */

import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import { POISON } from '../../datatype/poison.ts';
import { DeliveringFence } from '../../sync/fence/delivering-fence.ts';
import type { FenceWords } from '../../sync/fence/fence-kind.ts';
import { fenceNamed } from '../../sync/fence/fence-kinds.ts';
import type { FenceScheme } from '../../sync/fence/fence-scheme.ts';
import { FenceWait } from '../../sync/fence/fence-wait.ts';
import type { DeferredLocks } from '../../sync/lock/deferred-lock.ts';
import type { LockKind, LockParts, PassiveQueue } from '../../sync/lock/lock-kind.ts';
import { lockNamed } from '../../sync/lock/lock-kinds.ts';
import type { AllLock } from '../../sync/lock/lock-of-all.ts';
import { type LockCounts, noLocks, type TargetLock } from '../../sync/lock/lock-scheme.ts';
import { HeldOperations } from '../../transfer/schedule/held-operations.ts';
import { scheduleOf } from '../../transfer/schedule/schedule-kinds.ts';
import { OperationQueue } from '../../transfer/served/operation-queue.ts';
import type { Operation } from '../../wait/operation.ts';
import type { Hints } from './window-info.ts';

/** Whether bytes of put and get move by work requests. */
export function movesByRequests({ fence }: Hints, loadStore: boolean): boolean {
  return !loadStore || fenceNamed(fence).moves === 'by requests';
}

/** Where puts and gets wait for what completes them; absent if none does. @param messages complete epochs */
export function heldOf({ schedule }: Hints, messages: boolean): HeldOperations | undefined {
  const { orders, folds, order } = scheduleOf(schedule);
  const folded = messages ? folds : undefined;
  return orders || folded !== undefined ? new HeldOperations({ orders, folds: folded, order }) : undefined;
}

/** The scheme of the locks; `undefined` for a window that has none. */
function lockOf({ lock, no_locks: none }: Hints): LockKind | undefined {
  return none ? undefined : lockNamed(lock);
}

/** 64-bit words of a rank that only devices touch: those of the lock scheme. */
export function lockWords(hints: Hints, size: number, loadStore: boolean): number {
  return lockOf(hints)?.deviceWords(size, loadStore) ?? 0;
}

/** Those of the fence scheme. */
export function fenceWords({ fence }: Hints, size: number): number {
  return fenceNamed(fence).deviceWords?.(size) ?? 0;
}

/** What the first word of the lock scheme holds before any rank has touched it. */
export function firstLockWord(hints: Hints, size: number): number {
  return lockOf(hints)?.firstWord?.(size, hints) ?? 0;
}

/** Words of a rank's block that the ranks of its node share for a lock. */
export function nodeWords(hints: Hints, size: number, loadStore: boolean): number {
  return lockOf(hints)?.nodeWords?.(size, hints, loadStore) ?? 0;
}

/** Sets up the words that the ranks of a node share (`nodeWords`), before other ranks are told where they are. */
export function setUpNode(hints: Hints, words: Int32Array): void {
  lockOf(hints)?.setUpNode?.(words, hints);
}

/**
 * Spaces of messages that the schemes need, taken before anything is waited for: then they are the same at all ranks.
 */
export interface SchemeChannels {
  readonly fence: readonly OwnChannel[];
  readonly agent: OwnChannel | undefined;
}

export function openChannels(hints: Hints, open: () => OwnChannel): SchemeChannels {
  const { channels = 0 } = fenceNamed(hints.fence);
  return {
    fence: Array.from({ length: channels }, open),
    agent: lockOf(hints)?.agent ? open() : undefined,
  };
}

/** What a window has to give its schemes. */
export interface SchemeParts extends Omit<LockParts, 'options' | 'channel'> {
  readonly comm: Communicator;
  readonly hints: Hints;
  readonly barrier: BarrierState;
  readonly channels: SchemeChannels;
  /** Absent if no words of this window are for devices alone. */
  readonly fenceWords: FenceWords | undefined;
}

export interface Schemes {
  readonly fence: FenceScheme;
  /** The fence, for a call that waits in it for more than some looks. */
  readonly fenceWait: Operation;
  /** Operations of fence epochs wait here for the fence. */
  readonly deferred: OperationQueue | undefined;
  /** Operations under locks wait here for their unlock or flush. */
  readonly passive: PassiveQueue | undefined;
  /** Operations under a lock that is deferred wait here for that. */
  readonly deferredLocks: DeferredLocks | undefined;
  readonly lockCounts: LockCounts;
  /** Calls that may not wait call this now and then, where an agent serves others. */
  readonly serve: (() => void) | undefined;
  makeLock(rank: number): TargetLock | undefined;
  /** Shares the locks of all ranks at once, if the scheme can do that; else they are taken one by one. */
  readonly allLock: (() => AllLock) | undefined;
  release(): void;
}

/** Milliseconds from one look to the next of a rank that waits for something else and has what others wait for. */
const HOLDING_MS = 0.1;

export function makeSchemes(parts: SchemeParts): Schemes {
  const { comm, hints, wire, channels, server, barrier, description } = parts;
  const locks = lockOf(hints)?.make({ ...parts, options: hints, channel: channels.agent });
  const kind = fenceNamed(hints.fence);
  const queued =
    kind.moves === 'in the fence'
      ? { queue: new OperationQueue(comm.size, parts.kernels, parts.queueTrace?.('fence')), server }
      : undefined;
  const stops = [() => locks?.release?.()];
  // Whatever this rank waits for, notifications are taken in, so that there are receives for those that come. Tasks
  // that have something for which others wait go on. On a modelled fabric, its answers wake this rank.
  if (wire !== undefined) {
    const { processor } = comm.job;
    const look = (): number => {
      wire.poll();
      return !processor.isVirtual && wire.isHolding ? HOLDING_MS : Number.POSITIVE_INFINITY;
    };
    const stirred = comm.members.serveUnlessQuiet(look, () => wire.isQuiet);
    wire.whenBusy(stirred.stir);
    stops.push(stirred.end);
  }
  const words = parts.fenceWords;
  const made = kind.make({ comm, description, barrier, wire, queued, channels: channels.fence, words });
  const fence = POISON && kind.moves === 'by requests' ? new DeliveringFence(made, wire!) : made;
  stops.push(comm.fenceOrder.open(comm.windows, fence.statistics));
  return {
    fence,
    fenceWait: new FenceWait(fence, comm, comm.windows),
    deferred: queued?.queue,
    passive: locks?.passive,
    deferredLocks: locks?.deferred,
    lockCounts: locks?.counts ?? noLocks(),
    serve: locks?.serve,
    makeLock: (rank) => locks?.make(rank),
    allLock: locks?.all,
    release() {
      for (const stop of stops) stop();
    },
  };
}
