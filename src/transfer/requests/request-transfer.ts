/**
 * Put and get by work requests: RDMA writes and reads on one queue pair a target (connections.ts), for windows whose
 * scheme counts notifications, or whose provider cannot map remote memory.
 *
 * A put is an RDMA write for each run of bytes. Within a fence epoch it is a write with immediate, which raises a
 * completion at the target (notifications.ts; dissertation §6.3.3). Short runs go inline. For longer ones, and for
 * gets, the origin's memory is registered, and the registration is kept for the next time (origin-registrations.ts). At
 * most `DEPTH` requests are outstanding to a target; further ones wait (outstanding.ts), so put and get never wait
 * themselves. (The program limits the number of those requests by `flush`: each takes some 200 bytes.) Nor do put and
 * get fail when a connection is lost: every wait for an operation that was lost says so, each time.
 *
 * What the library itself reads, writes and asks for in other ranks' memory is in remote-access.ts. A sequence of
 * several requests, one after the other, is a task (request-tasks.ts).
 *
 * A put or get of a whole array has a way of its own that allocates nothing (whole-arrays.ts). Whatever else is posted
 * takes the one way through `Outstanding.post`.
 */

import { forEachSegment } from '../../datatype/layout.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Origins } from '../../job/origins.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain } from '../../verbs/memory.ts';
import type { Processor } from '../../verbs/processor.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { Operation } from '../../wait/operation.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import { ALONE, AnswerWaits } from './answer-waits.ts';
import { Arrivals, COUNTED } from './arrivals.ts';
import { type ConnectionRegistry, Connections, DEPTH } from './connections.ts';
import { type Extent, type Failed, Flush, Flushes } from './flushes.ts';
import { lostError } from './lost-arrays.ts';
import { Notifications } from './notifications.ts';
import type { OriginRegistrations } from './origin-registrations.ts';
import { Outstanding, type RequestTrace } from './outstanding.ts';
import type { Regions, RemoteRegion } from './regions.ts';
import { inMessages, RemoteAccess } from './remote-access.ts';
import { type Ahead, type Hold, type HoldingSteps, RequestTasks } from './request-tasks.ts';
import type { Scratch } from './scratch.ts';
import { type Confirmation, SECOND_ENTRIES, type SecondConnections } from './second-connections.ts';
import { WholeArrays } from './whole-arrays.ts';

/** Flushes that are complete at once before the notifications are looked at, too: peers wait for their receives. */
const FLUSHES = 16;

/** What goes by a request each: bytes of the origin's, and of the target's side, and how many. */
interface Pieces {
  readonly count: number;
  readonly sources: readonly number[];
  readonly targets: readonly number[];
  readonly lengths: readonly number[];
  readonly longest: number;
}

export class RequestTransfer {
  readonly #context: Context;
  readonly #sendCq: CompletionQueue;
  /** What this rank tells the others, and they tell it. */
  readonly notifications: Notifications;
  /** What the library itself does in their memory. */
  readonly remote: RemoteAccess;
  /** Puts and gets of whole arrays. */
  readonly whole: WholeArrays;
  readonly #connections: Connections;
  readonly #outstanding: Outstanding;
  readonly #registrations: OriginRegistrations;
  readonly #tasks: RequestTasks;
  readonly #flushes: Flushes;
  readonly #waits: AnswerWaits;
  #regions: Regions | undefined;
  /** Whether puts of fence epochs are notified. */
  readonly #notifies: boolean;
  readonly #processor: Processor;
  /** Completions do not say that data are in memory. */
  readonly #confirms: boolean;
  /** Where the reads that confirm it put their byte. */
  #sink: Scratch | undefined;
  #flushed = 0;
  #stir: () => void = () => {};
  readonly #endHandling: () => void;

  /**
   * @param notifies puts of fence epochs are writes with immediate
   * @param trace where requests are recorded, in a job that is traced
   * @param job what calls that wait for answers by themselves look at; without it they wait for ever
   * @param seconds there may be second connections
   */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    origins: Origins,
    size: number,
    notifies: boolean,
    trace?: RequestTrace,
    job = ALONE,
    seconds = false,
  ) {
    this.#context = context;
    this.#notifies = notifies;
    this.#processor = job.processor;
    const entries = seconds ? DEPTH + SECOND_ENTRIES : DEPTH;
    this.#sendCq = context.createCq(Math.min(entries * size, context.device.maxCqe));
    const arrivals = this.#arrivals(pd);
    this.#connections = new Connections(context, pd, this.#sendCq, arrivals.cq, arrivals.srq, trace);
    this.#outstanding = new Outstanding(
      context,
      pd,
      this.#sendCq,
      this.#connections,
      origins,
      trace,
      job.processor,
      1 - DEPTH / entries,
    );
    this.#registrations = this.#outstanding.registrations;
    const failed = (error: unknown, rank: number, turn: number): void =>
      this.#outstanding.noteFailure(error, rank, turn);
    this.#tasks = new RequestTasks(failed, this.#outstanding.failures);
    this.#confirms = !context.capabilities.completionImpliesPlacement;
    this.#flushes = new Flushes(this.#connections, this.#outstanding, this.#tasks, this.#confirms);
    this.whole = new WholeArrays(context, this.#connections, this.#outstanding, this.#flushes, notifies);
    this.#waits = new AnswerWaits(this.#outstanding, job);
    this.notifications = new Notifications(arrivals, this.#connections, this.#outstanding, this.#tasks, size);
    this.remote = new RemoteAccess(context, pd, this.#outstanding);
    this.#endHandling = job.processor.handleEvents(() => this.notifications.take());
  }

  #arrivals(pd: ProtectionDomain): Arrivals {
    try {
      return new Arrivals(this.#context, pd);
    } catch (error) {
      this.#sendCq.destroy();
      throw error;
    }
  }

  /** The number of the queue pair that rank `rank` connects to; it is made, if there is none. */
  queuePairFor(rank: number): number {
    return this.#connections.numberFor(rank);
  }

  /** Connects to all ranks; afterwards all must wait for each other before the first request. */
  connect(members: readonly number[], numbers: ArrayLike<number>, regions: Regions): void {
    this.#setRegions(regions);
    this.#connections.connect(members, numbers);
    this.#sendCq.reqNotify();
    this.notifications.arrivals.cq.reqNotify();
  }

  /** Connects to each rank when something is first sent to it. All must wait for each other after this. */
  connectLater(registry: ConnectionRegistry, members: readonly number[], regions: Regions): void {
    this.#setRegions(regions);
    this.#connections.connectLater(registry, members);
  }

  #setRegions(regions: Regions): void {
    this.#regions = regions;
    this.notifications.regions = regions;
    this.remote.regions = regions;
    this.whole.regions = regions;
  }

  /**
   * @param at the byte of the region, which is the rank's part if none is given; as for all calls with a region
   * @param fenced the next fence completes it
   */
  put(
    origin: Uint8Array,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    fenced: boolean,
    region = this.#regions!.of(rank),
  ): void {
    const { rkey, address } = region;
    const { maxInlineData } = this.#connections.queuePairTo(rank);
    const connection = this.#connections.to(rank);
    const notify = fenced && this.#notifies;
    // Also if they wait here for room: what is sent to the rank later comes behind them.
    if (fenced) connection.fenced = true;
    const pieces = this.#piecesOf(from, to);
    if (pieces.count === 0) return;
    const { sources, targets, lengths } = pieces;
    const build = (qp: QueuePair, i: number, id: number, flags: number): void => {
      if (origin.length < sources[i] + lengths[i]) throw lostError('origin', 'a put', rank);
      const remote = address + at + targets[i];
      if (notify) qp.wrRdmaWriteImm(id, flags, rkey, remote, COUNTED);
      else qp.wrRdmaWrite(id, flags, rkey, remote);
      if (lengths[i] <= maxInlineData) qp.wrSetInlineData(origin, sources[i], lengths[i]);
      else this.#setSge(qp, origin, sources[i], lengths[i]);
    };
    if (!fenced) this.#flushes.noteUnplaced(connection, rkey, address + at + targets[pieces.count - 1]);
    this.#outstanding.postList(
      rank,
      pieces.count,
      build,
      pieces.longest <= maxInlineData ? undefined : origin.buffer,
      notify,
      true,
    );
  }

  get(origin: Uint8Array, from: Side, rank: number, at: number, to: Side, region = this.#regions!.of(rank)): void {
    const { rkey, address } = region;
    const connection = this.#connections.to(rank);
    const { count, sources, targets, lengths } = this.#piecesOf(from, to);
    if (count === 0) return;
    const build = (qp: QueuePair, i: number, id: number, flags: number): void => {
      if (origin.length < sources[i] + lengths[i]) throw lostError('origin', 'a get', rank);
      connection.reading = true;
      qp.wrRdmaRead(id, flags, rkey, address + at + targets[i]);
      this.#setSge(qp, origin, sources[i], lengths[i]);
    };
    this.#outstanding.postList(rank, count, build, origin.buffer, false, true);
  }

  /** Collects what is posted to a rank from now on, or, with −1, no longer (`Outstanding.collectFor`). */
  collectFor(rank: number): void {
    this.#outstanding.collectFor(rank);
  }

  /**
   * Whether an operation of one request may be posted by itself: what is posted to the rank is collected, and no task
   * that was begun there before has requests left to post.
   */
  collectsFor(rank: number): boolean {
    return this.#outstanding.collectsFor(rank) && this.#tasks.left(rank) === 0;
  }

  /** Whether nothing that was begun there has requests left to post. */
  isTaskless(rank: number): boolean {
    return !this.#tasks.has(rank);
  }

  /** Posts what was collected for a rank. Errors: those of the device. */
  postCollected(rank: number): void {
    this.#outstanding.postCollected(rank);
  }

  /** That of what is issued now (operation-failures.ts). */
  get turn(): number {
    return this.#outstanding.failures.turn;
  }

  set turn(turn: number) {
    this.#outstanding.failures.turn = turn;
  }

  /**
   * Begins a turn (operation-failures.ts), so that requests of one call can be told from others. A recorder of calls
   * does so before and after each.
   * @returns its number
   */
  nextTurn(): number {
    const { failures } = this.#outstanding;
    failures.endTurn();
    return failures.turn;
  }

  /** Connections for messages that are gathered and scattered, if the window was made with them. */
  get second(): SecondConnections {
    return this.#outstanding.second;
  }

  /** Bytes of one message. */
  get maxMsgSize(): number {
    return this.#context.device.maxMsgSize;
  }

  /** What is read behind messages, to byte `at` of a rank's part among others, before they count as complete. */
  confirmationAt(rank: number, at: number): Confirmation | undefined {
    if (!this.#confirms) return undefined;
    const { rkey, address } = this.#regions!.of(rank);
    this.#sink ??= this.remote.scratch(8);
    return { rkey, address: address + at, sink: this.#sink.region };
  }

  /** Whether completions of a queue are those of this rank's requests. */
  completesAt(cq: CompletionQueue): boolean {
    return cq === this.#sendCq;
  }

  /** Takes completions in, without a word about a connection that is lost. */
  collect(): void {
    this.#outstanding.collect();
  }

  /**
   * Begins what takes several requests to `rank`, after all that was begun there before. It yields where it waits for
   * an answer.
   */
  begin(rank: number, steps: Generator<void, void>): void {
    this.#stir();
    this.#tasks.begin(rank, steps);
  }

  /** A region that this rank's processor may change now: nothing of this rank comes before. */
  partHere(rank: number, region: RemoteRegion): RemotePart | undefined {
    return this.#tasks.has(rank) ? undefined : this.remote.partHere(rank, region);
  }

  /** Begins such a thing that holds something meanwhile for which others wait (`RequestTasks.beginHolding`). */
  beginHolding(rank: number, make: (hold: Hold) => HoldingSteps, ahead?: Ahead): void {
    this.#stir();
    this.#tasks.beginHolding(rank, make, ahead);
  }

  /** Whether owners carry out updates of elements under a lock. */
  get updates(): boolean {
    return this.#context.capabilities.updates;
  }

  /**
   * Runs steps to their end at once, in a call that must not leave anything undone. They wait for answers of devices
   * only. Errors: `ERR_VERBS` (a connection is lost), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (after the job's
   * default).
   */
  finish(steps: Generator<void, void>): void {
    this.#waits.finish(steps);
  }

  /**
   * Brings steps that no call waits for any more, and that may hold something for which others wait, to their end: at
   * once if answers come as soon as they do from devices, otherwise in whatever call looks for completions next.
   */
  settle(steps: Generator<void, unknown>): void {
    this.#stir();
    this.#waits.settle(steps);
  }

  /**
   * Complete when what has been issued to `rank` so far is complete, here and there; not what comes later.
   * @param failed as of `flushAnyway`
   */
  soFar(rank: number, failed?: Failed): Operation {
    const connection = this.#connections.to(rank);
    const until = connection.issued;
    const begun = this.#tasks.begun(rank);
    const turn = this.#outstanding.failures.endTurn();
    return {
      advance: () => {
        // Nothing is left of a window that was freed.
        if (this.#outstanding.isClosed) return true;
        this.poll();
        this.#run(true);
        this.#outstanding.refuseFailed(rank, failed, turn);
        if (this.#tasks.begun(rank) - this.#tasks.left(rank) < begun) return false;
        return connection.over >= until && this.#ended();
      },
      describe: () => `a request to rank ${rank}`,
      abandon: () => this.endHolding(),
      isPolling: () => this.isPolling && this.#tasks.left(rank) > 0,
    };
  }

  /** Complete when what was issued to `rank`, or to all, is complete there, and the target's processor finds it. */
  flush(rank?: number): Operation {
    return new Flush(this, rank, 'in memory');
  }

  /** Complete when it is complete at this rank: origins may be used again, results are here. */
  flushLocal(rank?: number): Operation {
    return new Flush(this, rank, 'here');
  }

  /**
   * The same for a caller that notifies the targets behind their puts: the targets may find what was put only when they
   * are notified.
   * @param failed as of `flushAnyway`
   */
  drain(failed: Failed): Operation {
    return new Flush(this, undefined, 'notified', failed);
  }

  /**
   * The same for a caller that goes on though operations have failed.
   * @param failed is told why, once for each rank
   */
  flushAnyway(failed: Failed): Operation {
    return new Flush(this, undefined, 'in memory', failed);
  }

  /** One look of a flush. Errors: `ERR_VERBS` (a connection is lost), and why an operation that it waits for failed. */
  tryFlush(rank: number | undefined, extent: Extent = 'in memory', failed?: Failed): boolean {
    if (this.#outstanding.isClosed) return true;
    // Where nothing is under way, nothing has completed. Now and then the device is looked at all the same: what others
    // want of this rank may go on only when it does.
    const isQuiet = this.#outstanding.isQuiet && this.#tasks.count === 0 && this.#flushed < FLUSHES - 1;
    if (!isQuiet) this.#outstanding.takeCompletions();
    // What has come may be all that a task waited for.
    if (this.#tasks.count > 0) this.#run(true);
    this.#outstanding.refuseFailed(rank, failed);
    if (this.#flushes.isComplete(rank, extent)) {
      if (++this.#flushed === FLUSHES) {
        this.#flushed = 0;
        this.#takeNotifications();
      }
      return this.#ended();
    }
    this.#takeNotifications();
    this.#outstanding.postWaiting();
    this.#run(true);
    this.#outstanding.refuseFailed(rank, failed);
    return this.#flushes.isComplete(rank, extent) && this.#ended();
  }

  /** A wait has ended well. Tasks of other ranks that it has run hold nothing while the program goes on. */
  #ended(): true {
    if (this.#tasks.count > 0) this.endHolding();
    return true;
  }

  /** Whether others wait for something that a task of this rank has. */
  get isHolding(): boolean {
    return this.#tasks.areHolding;
  }

  /** Whether all that was begun to a rank has been posted. */
  isPosted(rank: number): boolean {
    return this.#flushes.isPosted(rank);
  }

  /** A number that grows with all that is issued to a rank. */
  issuedTo(rank: number): number {
    return this.#connections.to(rank).issued + this.#tasks.begun(rank);
  }

  /** Whether all is complete at this rank that had been issued to a rank when `issuedTo` was that number. */
  isOver(rank: number, issued: number): boolean {
    return this.#connections.to(rank).over + this.#tasks.begun(rank) - this.#tasks.left(rank) >= issued;
  }

  /** Whether puts that are complete at this rank may not be in the target's memory yet. */
  get confirms(): boolean {
    return this.#confirms;
  }

  /** @param stir is called whenever it begins something: from then on `poll` has something to do */
  whenBusy(stir: () => void): void {
    this.#stir = stir;
    this.#outstanding.whenBusy(stir);
  }

  /**
   * Whether `poll` has nothing to do: nothing is under way here, and nothing has come from other ranks. This does not
   * cover second connections, of which it is not known.
   */
  get isQuiet(): boolean {
    return (
      this.#outstanding.isQuiet &&
      this.#tasks.count === 0 &&
      !this.#waits.hasUnsettled &&
      this.notifications.arrivals.cq.isArmed === true
    );
  }

  /** Requests that are not complete. */
  get pending(): number {
    return this.#outstanding.posted;
  }

  /**
   * Whether a wait looks again and again though no bell rings: the next step of a task may be complete as soon as it is
   * posted. On a modelled fabric, each completion wakes the ranks that wait.
   */
  get isPolling(): boolean {
    return !this.#processor.isVirtual && this.#tasks.count > 0;
  }

  /**
   * Takes in completions and notifications, and posts what waited for room. A flush, or another call that waits for an
   * operation, says why it has failed. Errors: `ERR_VERBS` (a connection is lost).
   */
  poll(): void {
    this.#outstanding.takeCompletions();
    this.#takeNotifications();
    this.#outstanding.postWaiting();
    this.#run(false);
  }

  /** The same without the notifications: a wait that goes on looks for those too. */
  pollCompletions(): void {
    this.#outstanding.takeCompletions();
    this.#outstanding.postWaiting();
  }

  /** An operation to a rank has failed; a call that waits for operations to the rank says so. */
  noteFailure(error: unknown, rank: number): void {
    this.#outstanding.noteFailure(error, rank);
  }

  /** @param waiting this rank waits for its requests */
  #run(waiting: boolean): void {
    const before = this.#processor.fetched;
    this.#waits.runUnsettled();
    this.#tasks.run(waiting);
    // A task that brings messages in may bring in what others wait for that have looked before.
    if (this.#processor.fetched !== before) this.#processor.lookAgain();
  }

  /**
   * Has the tasks that hold something for which others wait give it back, because the wait that ran them ends.
   */
  endHolding(): void {
    if (!this.#tasks.leave()) return;
    this.#waits.passUntil(() => {
      this.#tasks.run(false);
      return !this.#tasks.areLeaving;
    });
  }

  close(): void {
    this.#endHandling();
    this.#outstanding.stop();
    this.#tasks.close();
    // No device writes to them any more.
    this.remote.close();
    this.notifications.close();
    this.#outstanding.close();
  }

  #takeNotifications(): void {
    this.notifications.take();
    this.#outstanding.refuseIfLost();
  }

  /** Stretches that are consecutive on both sides, in pieces that a message can carry. */
  #piecesOf(from: Side, to: Side): Pieces {
    const sources: number[] = [];
    const targets: number[] = [];
    const lengths: number[] = [];
    let longest = 0;
    const { maxMsgSize } = this;
    forEachSegment(from, to, (source, target, bytes) => {
      inMessages(maxMsgSize, 0, bytes, (offset, length) => {
        sources.push(source + offset);
        targets.push(target + offset);
        lengths.push(length);
        longest = Math.max(longest, length);
      });
    });
    return { count: lengths.length, sources, targets, lengths, longest };
  }

  #setSge(qp: QueuePair, bytes: Uint8Array, offset: number, length: number): void {
    const region = this.#registrations.regionOf(bytes.buffer);
    qp.wrSetSge(region.lkey, region.address + bytes.byteOffset + offset, length);
  }

  /** The part is an origin without a registration of its own, if its region is the whole of its buffer. */
  keepPart(buffer: ArrayBufferLike, region: MemoryRegion): void {
    this.#registrations.keepPart(buffer, region);
  }
}
