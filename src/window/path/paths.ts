/**
 * Which path leads to which target: the one place that decides how the bytes of a window move. It knows what the window
 * was made of (window/creation/window-parts.ts); all other code asks here, and calls what is returned.
 *
 *                         puts and gets              updates
 *   mapped part           loads                      loads
 *   behind a device       requests                   requests
 *   part of a neighbour   loads                      requests, since a device's atomics and the processor's need not
 *                                                    agree; where they do, the processor carries these out
 *                                                    (transfer/requests/near-memory.ts)
 *   either, with the      as without it              served by the target, all or those of some types
 *     hint `update`
 *   behind a device, with   requests, or messages      as without it
 *     `noncontiguous`         for layouts
 *   fence by requests     requests                   loads
 *     in shared memory
 *   memory of a process   user memory                user memory
 *     that cannot be mapped
 *
 * If a put or get to a neighbour and an atomic access meet in the same epoch, MPI does not define the outcome. What a
 * synchronization has ordered before an access is in memory: requests are complete at the target by then, and stores
 * are visible before the request that tells of them is posted.
 *
 * In a dynamic window each attached region has a path. In an epoch whose scheme queues operations, a queue is put
 * around the path. This is decided for each access, not when the epoch opens: an epoch opens all targets at once, and
 * most of them are never accessed, so that their `Target`s are not even made. The same goes for the list in which puts
 * and gets of windows with a schedule wait: it is put around the path of requests.
 */

import { type Piece, piecesOf } from '../../datatype/pieces.ts';
import type { Side } from '../../datatype/sides.ts';
import type { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Failed } from '../../transfer/requests/flushes.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { WholeArrays } from '../../transfer/requests/whole-arrays.ts';
import type { OperationQueue } from '../../transfer/served/operation-queue.ts';
import type { Operation } from '../../wait/operation.ts';
import type { Attachments } from '../attached/attachments.ts';
import { goneError, type WindowParts } from '../creation/window-parts.ts';
import type { Epochs } from '../epochs/epochs.ts';
import { Deferred, signalBehind } from './deferred-path.ts';
import { HeldCompletion, HeldPath } from './held-path.ts';
import { Layouts } from './layout-path.ts';
import { Loads } from './load-path.ts';
import { MixedCompletion } from './mixed-completion.ts';
import type { Completion, Moves, OwnMemory, Path, ProgressBy } from './path.ts';
import { Queued } from './queued-path.ts';
import { Requests, type Senders } from './request-path.ts';
import { Served, type ServedUpdates } from './served-path.ts';
import { STARTED, type Target } from './target.ts';
import { UserMemoryPath } from './user-memory-path.ts';

/** Each needs more than those before it. */
const ORDER: readonly ProgressBy[] = ['origin', 'device', 'kernel', 'agent', 'target'];

export class Paths {
  /** What completes operations of passive epochs; absent if all are complete when they are issued. */
  readonly completion: Completion | undefined;
  /** Completes operations so that a notification can follow them, and is told of those that fail; absent likewise. */
  readonly drain: ((failed: Failed) => Operation) | undefined;
  /** Whether some targets take whole arrays by one request (transfer/requests/whole-arrays.ts). */
  readonly sendsWhole: boolean;
  readonly #parts: WindowParts;
  readonly #epochs: Epochs;
  readonly #senders: Senders | undefined;
  readonly #served: ServedUpdates | undefined;
  readonly #queues: boolean;

  constructor(parts: WindowParts, epochs: Epochs) {
    const { requests, updates, attachments, deferred, passive, comm, served, held } = parts;
    this.#parts = parts;
    this.#epochs = epochs;
    // The rank that posts requests of the emulator carries them out, if the emulator does not pose as a device.
    const progressBy = comm.job.context.capabilities.immediateCompletion ? 'origin' : 'device';
    this.#served = served;
    this.#queues = deferred !== undefined || passive !== undefined;
    const direct = requests && held ? new HeldCompletion(requests, held) : requests;
    const locks = parts.deferredLocks;
    if (locks !== undefined) this.completion = new MixedCompletion(locks, (rank) => locks.takes(rank), direct);
    else if (passive?.takes === undefined) this.completion = passive?.origin ?? direct;
    else this.completion = new MixedCompletion(passive.origin, passive.takes, direct);
    this.drain = requests && ((failed) => requests.drain(failed));
    const plain = attachments === undefined && held === undefined && !this.#queues && epochs.accesses === undefined;
    const whole = plain ? requests?.whole : undefined;
    this.sendsWhole = whole !== undefined;
    this.#senders = requests && { requests, updates, whole, progressBy };
  }

  /** The path of puts and gets to bytes `at + to.low … at + to.high`, ready. @param call for messages */
  transfers(call: string, t: Target, at: number, to: Pick<Side, 'low' | 'high'>): Path {
    const path = this.#ready(t, this.#direct(call, t, at, to, 'transfer'));
    const { held } = this.#parts;
    if (held === undefined || path.later === undefined) return path;
    return held.orders || t.held === STARTED ? new HeldPath(path.later, held, t.rank) : path;
  }

  /** The same for updates. */
  updates(call: string, t: Target, at: number, to: Side): Path {
    return this.#ready(t, this.#direct(call, t, at, to, 'update'));
  }

  #ready(t: Target, direct: Path): Path {
    direct.open();
    const { deferredLocks, updates } = this.#parts;
    if (deferredLocks?.takes(t.rank)) return new Deferred(direct, deferredLocks, updates!, t.rank);
    const queue = this.#queueFor(t);
    return queue === undefined ? direct : new Queued(direct, queue, t.rank);
  }

  #direct(call: string, t: Target, at: number, to: Pick<Side, 'low' | 'high'>, moves: Moves): Path {
    const { attachments } = this.#parts;
    return attachments === undefined ? this.#toPart(t, moves) : this.#toRegion(attachments, call, t, at, to);
  }

  #toPart(t: Target, moves: Moves): Path {
    if (t.transfers === undefined) this.#choose(t);
    return moves === 'transfer' ? t.transfers! : t.updates!;
  }

  #choose(t: Target): void {
    const { userMemory, comm, local, isNeighbour, kernels } = this.#parts;
    const senders = this.#senders;
    const own = t.rank === comm.rank ? { memory: local, address: 0 } : undefined;
    if (userMemory?.reaches(t.rank)) {
      t.transfers = new UserMemoryPath(userMemory, t.rank, userMemory.baseOf(t.rank), own);
      t.updates = t.transfers;
      return;
    }
    const loads = new Loads(t, own, this.#epochs, kernels, () => this.map(t));
    const requests = senders && new Requests(senders, t.rank, undefined, own, this.#epochs);
    const { noncontiguous } = this.#parts;
    if (requests === undefined || isNeighbour(t.rank)) t.transfers = loads;
    else if (noncontiguous === undefined || own !== undefined) t.transfers = requests;
    else t.transfers = new Layouts(noncontiguous, senders!, t.rank, this.#epochs);
    if (requests === undefined || senders!.updates === undefined) t.updates = loads;
    else if (this.#served === undefined) t.updates = requests;
    else t.updates = new Served(this.#served, senders!, t.rank, own, this.#epochs);
  }

  #toRegion(attachments: Attachments, call: string, t: Target, at: number, to: Pick<Side, 'low' | 'high'>): Path {
    const epochs = this.#epochs;
    const { userMemory, kernels } = this.#parts;
    const found = epochs.attempt(() =>
      attachments.find(`${call} to rank ${t.rank} in ${epochs.what}`, t.rank, at + to.low, at + to.high),
    );
    const { part, stripes, region, address, memory } = found;
    const own: OwnMemory | undefined = memory && { memory, address };
    if (region !== undefined) return new Requests(this.#senders!, t.rank, region, own, epochs);
    if (part === undefined) return new UserMemoryPath(userMemory!, t.rank, 0, undefined);
    return new Loads({ part, skew: part.skew - address, stripes }, own, epochs, kernels, undefined);
  }

  /** What puts and gets whole arrays at a target by one request each, if anything does. */
  whole(t: Target): WholeArrays | undefined {
    if (this.#parts.deferredLocks?.takes(t.rank)) return undefined;
    return this.#toPart(t, 'transfer').whole;
  }

  /** Where operations of the open epoch wait for the target to carry them out; `undefined` if they leave at once. */
  #queueFor(t: Target): OperationQueue | undefined {
    if (!this.#queues) return undefined;
    const { deferred, passive } = this.#parts;
    if (this.#epochs.isFenced) return deferred;
    if (passive === undefined || !this.#epochs.isPassive(t) || passive.takes?.(t.rank) === false) return undefined;
    return passive.queue;
  }

  /** Raises the target's count of notifications, behind everything that was issued to it. */
  signal(t: Target): void {
    const epochs = this.#epochs;
    const { signals, passive, held, deferredLocks } = this.#parts;
    if (deferredLocks?.takes(t.rank)) {
      deferredLocks.hold(signalBehind(() => signals.raise(t.rank)));
      return;
    }
    const queue = this.#queueFor(t);
    if (queue === undefined) {
      try {
        held?.post();
        signals.raise(t.rank);
      } catch (error) {
        throw epochs.comm.members.explain(error);
      }
      return;
    }
    queue.signal(t.rank);
    // A rank may wait for it without waiting for this rank's unlock. In a deferred fence all wait for all.
    if (queue === passive?.queue) passive.origin.deliver(t.rank);
  }

  /**
   * Collects operations to a target that are posted together; absent where their call carries them out, or they are
   * queued and sent together anyway.
   */
  collects(t: Target): RequestTransfer | undefined {
    const { attachments, requests } = this.#parts;
    if (requests === undefined || this.#queues) return undefined;
    const some = attachments !== undefined || this.becomesRequests(t, 'transfer') || this.becomesRequests(t, 'update');
    return some ? requests : undefined;
  }

  /** Whether displacements are bounded by the target's part: in dynamic windows, what is attached bounds them. */
  get bounded(): boolean {
    return this.#parts.attachments === undefined;
  }

  /**
   * In a dynamic window, an access may reach over several of the target's regions (MPI 4.1, 12.2.4: displacements are
   * addresses). Then the access is cut at their borders; all regions are looked for before a byte moves. `undefined` if
   * the access is within one region, as everywhere else.
   */
  piecesOf(
    call: string,
    t: Target,
    at: number,
    from: Side,
    to: Side,
    into: Side | undefined,
  ): readonly Piece[] | undefined {
    const { attachments } = this.#parts;
    if (attachments === undefined || to.elements === 0) return undefined;
    const epochs = this.#epochs;
    const has = (low: number, high: number): boolean => epochs.attempt(() => attachments.has(t.rank, low, high));
    if (has(at + to.low, at + to.high)) return undefined;
    // If the access has no gaps, both of its ends are looked for first: it is seldom that regions meet, and the message
    // should name all of it.
    const [low, high] = [at + to.low, at + to.high];
    if (to.runs === undefined && !(has(low, low + 1) && has(high - 1, high))) return undefined;
    const where = `${call} to rank ${t.rank} in ${epochs.what}`;
    return piecesOf(call, from, to, into, (low, high) => {
      const region = epochs.attempt(() => attachments.find(where, t.rank, at + low, at + high));
      return region.address + region.bytes - at;
    });
  }

  /** Maps the target's memory, unless it is mapped. Refuses if it is this rank's own and no longer there. */
  map(t: Target): RemotePart {
    const { map, makeStripes, kernels, comm } = this.#parts;
    if (t.mapped) {
      if (t.part.u8.length < t.byteLength) throw goneError(this.#epochs.what);
      return t.part;
    }
    // Both may find that the rank has just died, and its memory with it.
    const part = this.#epochs.attempt(() => map(t.rank));
    const stripes = this.#epochs.attempt(() => makeStripes(t.rank));
    t.map(part, stripes, kernels, t.rank === comm.rank);
    if (this.#queues || this.#epochs.accesses !== undefined) return part;
    t.openFastPath(this.#toPart(t, 'transfer').mapped === true, this.#toPart(t, 'update').mapped === true);
    return part;
  }

  /** Whether such an operation becomes requests, which complete later. */
  becomesRequests(t: Target, moves: Moves): boolean {
    return this.#parts.attachments === undefined
      ? this.#toPart(t, moves).later !== undefined
      : this.#senders !== undefined;
  }

  /**
   * What must act so that such an operation is carried out, in the epochs of the scheme (others may need less), at the
   * target that needs most.
   * @param disp in a dynamic window, the memory it is about; absent: any that may be attached there
   */
  progressBy(moves: Moves, target: Target | undefined, disp: number | undefined): ProgressBy {
    if (this.#queues || (this.#parts.held?.folds && moves === 'transfer')) return 'target';
    const targets = target === undefined ? this.#epochs.allTargets() : [target];
    const needs = targets.map((t) => {
      const path =
        disp === undefined ? this.#toPart(t, moves) : this.#direct('progress', t, disp, { low: 0, high: 1 }, moves);
      return ORDER.indexOf(path.progressBy(moves));
    });
    return ORDER[Math.max(...needs)];
  }

  /** What must act so that an operation that was issued is completed. */
  get completedBy(): ProgressBy {
    const { passive, held, served, noncontiguous } = this.#parts;
    if ((passive ?? served) !== undefined || noncontiguous?.needsTarget || held?.folds) return 'target';
    return this.#senders?.progressBy ?? 'origin';
  }
}
