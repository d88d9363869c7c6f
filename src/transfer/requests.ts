/**
 * Put and get by work requests: RDMA writes and reads on one queue pair a target (connections.ts), for windows whose
 * scheme counts notifications, or whose provider cannot map remote memory.
 *
 * A put is an RDMA write for each run of bytes, within a fence epoch one with immediate, which raises a completion at
 * the target (arrivals.ts; dissertation §6.3.3). Short runs go inline; for longer ones, and for gets, the origin's
 * memory is registered, and the registration kept for the next time (registrations.ts). At most `DEPTH` requests are
 * outstanding to a target; what comes on top waits here, so that put and get never wait (the program limits their
 * number by `flush`: each takes some 200 bytes). Nor do they fail with a connection: what is lost is said by what waits
 * for it, each time.
 *
 * Atomics (and reads whose result the library itself needs) leave what was there in a word (answers.ts) and call back.
 * What takes several requests, one after the other, is a task (request-tasks.ts).
 *
 * A put or get of consecutive bytes has a way of its own that allocates nothing: `putPlain`, `getPlain`. Whatever else
 * is posted takes the one way through `#post`.
 */

import type { ProcessorTime } from '../comm/job.ts';
import { lostConnection } from '../comm/lost-connection.ts';
import type { Operation } from '../comm/operation.ts';
import type { Origins } from '../comm/origins.ts';
import type { TypedArray } from '../datatype/base.ts';
import { forEachRun } from '../datatype/copy.ts';
import { forEachSegment, type Side } from '../datatype/layout.ts';
import { type LostConnectionError, RmaError } from '../errors.ts';
import { byteLengthOf, byteOffsetOf } from '../intrinsics.ts';
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain } from '../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import { type Answer, Answers } from './answers.ts';
import { Arrivals, COMPLETED, COUNTED, FINISH, FLAG, SIGNAL, TOLD } from './arrivals.ts';
import { type Connection, type ConnectionRegistry, Connections, DEPTH } from './connections.ts';
import type { Regions } from './regions.ts';
import { Registrations } from './registrations.ts';
import { GRACE_MS, type Hold, type HoldingSteps, RequestTasks } from './request-tasks.ts';
import { type Left, type Scratch, Scratches } from './scratch.ts';

/** Completions that are fetched by one poll. */
const POLLED = 64;
/**
 * In a call that waits for answers by itself: looks between two looks at the clock, and milliseconds between two looks
 * at the ranks.
 */
const LOOKS = 64;
const INSPECT_MS = 100;
/** Flushes that are complete at once before the notifications are looked at, too: peers wait for their receives. */
const FLUSHES = 16;

/** Identities of requests: a rank's number, or from here on that of an answer's slot. */
const FIRST_SLOT = 2 ** 20;

const ignore = (): void => {};

function* until(left: Left): Generator<void, void> {
  while (left.count > 0) yield;
}

/**
 * How far operations are complete when a flush is: at this rank; also in the targets' memory; or so that each target
 * finds in memory what was put there before the notification that is sent to it next.
 */
type Extent = 'here' | 'in memory' | 'notified';

/**
 * Complete when nothing is outstanding to `rank`, or, without it, to any rank: then it is complete at the targets too.
 */
class Flush implements Operation {
  readonly #requests: RequestTransfer;
  readonly #rank: number | undefined;
  readonly #extent: Extent;

  constructor(requests: RequestTransfer, rank: number | undefined, extent: Extent) {
    this.#requests = requests;
    this.#rank = rank;
    this.#extent = extent;
  }

  advance(): boolean {
    return this.#requests.tryFlush(this.#rank, this.#extent);
  }

  describe(): string {
    return `flush of ${this.#requests.pending} outstanding requests`;
  }

  abandon(): void {
    this.#requests.endHolding();
  }

  isPolling(): boolean {
    return this.#requests.hasTasks;
  }
}

/** Where an atomic takes place: 64 bits at an address of a rank's region. */
export interface RemoteWord {
  readonly rank: number;
  readonly rkey: number;
  readonly address: number;
}

/** What a call that waits for answers by itself looks at. */
export interface Patience {
  /** Milliseconds of the clock that waits go by. */
  now(): number;
  findFailure(): RmaError | undefined;
  /** Milliseconds after which it gives up. */
  readonly timeout: number;
  /** Where time is virtual. */
  readonly processor?: ProcessorTime | undefined;
}

const ALONE: Patience = {
  now: () => performance.now(),
  findFailure: () => undefined,
  timeout: Number.POSITIVE_INFINITY,
};

/**
 * Who records requests: told when one has been posted, and when it is known to be complete, in the order of posting.
 * Ranks are the window's.
 */
export interface RequestTrace {
  posted(rank: number): void;
  completed(rank: number): void;
}

export class RequestTransfer {
  readonly #pd: ProtectionDomain;
  readonly #context: Context;
  readonly #sendCq: CompletionQueue;
  readonly #arrivals: Arrivals;
  readonly #connections: Connections;
  readonly #registrations: Registrations;
  /** Made with the first request that has a result. */
  #answers: Answers | undefined;
  readonly #tasks: RequestTasks;
  #regions: Regions | undefined;
  /** Requests that wait for room, to all ranks together. */
  #waiting = 0;
  /** Requests outstanding to all together: the completion queue has room for so many. */
  #inFlight = 0;
  /** Set once: nothing is sent any more, and every wait fails. */
  #lost: LostConnectionError | undefined;
  /** Whether puts of fence epochs are notified. */
  readonly #notifies: boolean;
  readonly #size: number;
  #flushes = 0;
  /** Steps that nobody waits for any more, and that had not come to their end soon. */
  readonly #unsettled = new Set<Generator<void, unknown>>();
  #settling = false;
  readonly #scratches: Scratches;
  /** Whether puts that are complete may not be in the target's memory yet (`Connection.unplaced`). */
  readonly #confirms: boolean;
  readonly #job: Patience;
  #closed = false;
  readonly #trace: RequestTrace | undefined;

  /**
   * @param notifies puts of fence epochs are writes with immediate
   * @param trace where requests are recorded, in a job that is traced
   * @param job what calls that wait for answers by themselves look at; without it they wait for ever
   */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    origins: Origins,
    size: number,
    notifies: boolean,
    trace?: RequestTrace,
    job = ALONE,
  ) {
    this.#trace = trace;
    this.#job = job;
    this.#context = context;
    this.#pd = pd;
    this.#size = size;
    this.#notifies = notifies;
    this.#sendCq = context.createCq(Math.min(DEPTH * size, context.device.maxCqe));
    this.#arrivals = new Arrivals(context, pd);
    this.#connections = new Connections(context, pd, this.#sendCq, this.#arrivals.cq, this.#arrivals.srq);
    this.#scratches = new Scratches(context, pd);
    this.#registrations = new Registrations(origins, () => this.#inFlight === 0);
    this.#tasks = new RequestTasks();
    this.#confirms = !context.capabilities.completionImpliesPlacement;
  }

  /** The number of the queue pair that rank `rank` connects to; it is made, if there is none. */
  queuePairFor(rank: number): number {
    return this.#connections.numberFor(rank);
  }

  /** Connects to all ranks; afterwards all must wait for each other before the first request. */
  connect(members: readonly number[], numbers: ArrayLike<number>, regions: Regions): void {
    this.#regions = regions;
    this.#connections.connect(members, numbers);
    this.#sendCq.reqNotify();
    this.#arrivals.cq.reqNotify();
  }

  /** Connects to each rank when something is first sent to it. All must wait for each other after this. */
  connectLater(registry: ConnectionRegistry, members: readonly number[], regions: Regions): void {
    this.#regions = regions;
    this.#connections.connectLater(registry, members);
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
    this.#forEachMessage(from, to, (source, target, bytes) => {
      const build = (qp: QueuePair): void => {
        const remote = address + at + target;
        if (notify) qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED, rkey, remote, COUNTED);
        else qp.wrRdmaWrite(rank, SendFlag.SIGNALED, rkey, remote);
        if (bytes <= maxInlineData) qp.wrSetInlineData(origin, source, bytes);
        else this.#setSge(qp, origin, source, bytes);
      };
      if (!fenced) this.#noteUnplaced(connection, rkey, address + at + target);
      this.#post(rank, build, bytes <= maxInlineData ? undefined : origin.buffer, notify);
    });
  }

  get(origin: Uint8Array, from: Side, rank: number, at: number, to: Side, region = this.#regions!.of(rank)): void {
    const { rkey, address } = region;
    const connection = this.#connections.to(rank);
    this.#forEachMessage(from, to, (sink, target, bytes) => {
      const build = (qp: QueuePair): void => {
        connection.reading = true;
        qp.wrRdmaRead(rank, SendFlag.SIGNALED, rkey, address + at + target);
        this.#setSge(qp, origin, sink, bytes);
      };
      this.#post(rank, build, origin.buffer);
    });
  }

  /**
   * Puts all of `origin` to byte `at` of a rank's part.
   * @returns false if it must go the other way, which says why or does it in pieces; nothing was done then
   */
  putPlain(origin: TypedArray, rank: number, at: number, fenced: boolean): boolean {
    const bytes = byteLengthOf(origin);
    const connection = this.#connections.to(rank);
    if (bytes > this.#context.device.maxMsgSize || !this.#mayPost(connection)) return false;
    const { rkey, address } = this.#regions!.of(rank);
    const notify = fenced && this.#notifies;
    const qp = connection.queuePair ?? this.#connections.queuePairTo(rank);
    // What can fail is outside of the builder; then there is nothing to take back.
    const buffer = this.#registrations.remember(origin);
    const inline = bytes <= qp.maxInlineData;
    const region = inline ? undefined : this.#registrations.regionOfLast();
    if (!inline && region === undefined) return false;
    qp.wrStart();
    if (notify) qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED, rkey, address + at, COUNTED);
    else qp.wrRdmaWrite(rank, SendFlag.SIGNALED, rkey, address + at);
    if (region === undefined) qp.wrSetInlineData(buffer, byteOffsetOf(origin), bytes);
    else qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#notePosted(connection);
    if (fenced) connection.fenced = true;
    else this.#noteUnplaced(connection, rkey, address + at);
    if (notify) connection.sent++;
    return true;
  }

  /** The same for a get into all of `origin`. */
  getPlain(origin: TypedArray, rank: number, at: number): boolean {
    const bytes = byteLengthOf(origin);
    const connection = this.#connections.to(rank);
    if (bytes > this.#context.device.maxMsgSize || !this.#mayPost(connection)) return false;
    const { rkey, address } = this.#regions!.of(rank);
    this.#registrations.remember(origin);
    const region = this.#registrations.regionOfLast();
    if (region === undefined) return false;
    const qp = connection.queuePair ?? this.#connections.queuePairTo(rank);
    qp.wrStart();
    connection.reading = true;
    qp.wrRdmaRead(rank, SendFlag.SIGNALED, rkey, address + at);
    qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#notePosted(connection);
    return true;
  }

  #notePosted(connection: Connection): void {
    connection.issued++;
    connection.outstanding++;
    this.#inFlight++;
    this.#trace?.posted(connection.rank);
  }

  /** A put of at least one byte was begun, and no notification follows it. */
  #noteUnplaced(connection: Connection, rkey: number, address: number): void {
    if (this.#confirms) connection.unplaced = { rkey, address };
  }

  #mayPost(connection: Connection): boolean {
    return this.#lost === undefined && connection.backlog.length === 0 && this.#hasRoom(connection);
  }

  /** Adds to the word, modulo 2^64. @param again as of `compareSwap` */
  fetchAdd({ rank, rkey, address }: RemoteWord, lo: number, hi: number, answer: Answer = ignore, again = false): void {
    this.#ask(rank, answer, again, (qp, id) =>
      qp.wrAtomicFetchAdd(id, SendFlag.SIGNALED, rkey, address, lo >>> 0, hi >>> 0),
    );
  }

  /**
   * Replaces the word by `swap` if it is `compare`: two halves each, low half first.
   * @param again who asks does so until somebody else has changed the word (`ProcessorTime.asks`)
   */
  compareSwap(
    { rank, rkey, address }: RemoteWord,
    compareLo: number,
    compareHi: number,
    swapLo: number,
    swapHi: number,
    answer: Answer,
    again = false,
  ): void {
    this.#ask(rank, answer, again, (qp, id) =>
      qp.wrAtomicCmpSwp(
        id,
        SendFlag.SIGNALED,
        rkey,
        address,
        compareLo >>> 0,
        compareHi >>> 0,
        swapLo >>> 0,
        swapHi >>> 0,
      ),
    );
  }

  /** Memory for the results of reads and the sources of writes. */
  scratch(bytes: number): Scratch {
    return this.#scratches.take(bytes);
  }

  /**
   * Posts a read of `bytes` bytes from byte `at` + `place` of a region to `place` in the memory `local`. The generator
   * ends when they are there.
   */
  read(
    rank: number,
    at: number,
    { lkey, address: here }: MemoryRegion,
    place: number,
    bytes: number,
    { rkey, address } = this.#regions!.of(rank),
    left: Left = { count: 0 },
  ): Generator<void, void> {
    this.#inMessages(place, bytes, (offset, length) => {
      this.#track(rank, left, (qp, id) => {
        qp.wrRdmaRead(id, SendFlag.SIGNALED, rkey, address + at + offset);
        qp.wrSetSge(lkey, here + offset, length);
      });
    });
    return until(left);
  }

  /**
   * Posts writes of all that `to` covers, from byte `place` on in the memory `local`, to byte `at` + `place` of a
   * region.
   */
  write(
    rank: number,
    at: number,
    { lkey, address: here }: MemoryRegion,
    place: number,
    to: Side,
    { rkey, address } = this.#regions!.of(rank),
    left: Left = { count: 0 },
  ): Generator<void, void> {
    forEachRun(to, (start, bytes) => {
      this.#inMessages(place + start, bytes, (offset, length) => {
        this.#track(rank, left, (qp, id) => {
          qp.wrRdmaWrite(id, SendFlag.SIGNALED, rkey, address + at + offset);
          qp.wrSetSge(lkey, here + offset, length);
        });
      });
    });
    return until(left);
  }

  /**
   * Posts a write of a word, given as two halves. The generator ends when the target's device has it; a read that is
   * posted behind it finds it in memory.
   */
  store({ rank, rkey, address }: RemoteWord, lo: number, hi: number): Generator<void, void> {
    const left = { count: 0 };
    this.#track(rank, left, (qp, id) => {
      const answers = this.#answers!;
      const slot = id - FIRST_SLOT;
      answers.words[2 * slot] = lo;
      answers.words[2 * slot + 1] = hi;
      qp.wrRdmaWrite(id, SendFlag.SIGNALED, rkey, address);
      qp.wrSetSge(answers.region.lkey, answers.addressOf(slot), 8);
    });
    return until(left);
  }

  /**
   * Begins what takes several requests to `rank`, after all that was begun there before. It yields where it waits for
   * an answer.
   */
  begin(rank: number, steps: Generator<void, void>): void {
    this.#tasks.begin(rank, steps);
  }

  /** Begins such a thing that holds something meanwhile for which others wait (`RequestTasks.beginHolding`). */
  beginHolding(rank: number, make: (hold: Hold) => HoldingSteps): void {
    this.#tasks.beginHolding(rank, make);
  }

  /**
   * Runs steps to their end at once, in a call that must not leave anything undone. They wait for answers of devices
   * only. Errors: `ERR_VERBS` (a connection is lost), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (after the job's
   * default).
   */
  finish(steps: Generator<void, void>): void {
    const began = this.#job.now();
    let inspected = began;
    for (let looks = 1; !steps.next().done; looks++) {
      this.#passOn();
      if (looks % LOOKS !== 0) continue;
      const now = this.#job.now();
      if (now - inspected >= INSPECT_MS) {
        inspected = now;
        const failure = this.#job.findFailure();
        if (failure !== undefined) throw failure;
      }
      if (now - began >= this.#job.timeout) {
        throw new RmaError(
          'ERR_RMA_TIMEOUT',
          `a call that waits for the answer to a request had none within ${this.#job.timeout} ms; if the other ranks may need longer, raise the timeout`,
        );
      }
    }
  }

  /**
   * Brings to their end steps that nobody waits for any more, and that may hold something for which others wait: at
   * once if answers come as soon as they do from devices, otherwise in whatever call looks for completions next.
   */
  settle(steps: Generator<void, unknown>): void {
    this.#unsettled.add(steps);
    this.#passUntil(() => {
      this.#runUnsettled();
      return !this.#unsettled.has(steps);
    });
  }

  /** Steps may themselves look for completions, and so come here again. */
  #runUnsettled(): void {
    if (this.#settling) return;
    this.#settling = true;
    try {
      for (const steps of this.#unsettled) if (steps.next().done) this.#unsettled.delete(steps);
    } finally {
      this.#settling = false;
    }
  }

  /**
   * Takes in answers until `ended` holds; not for longer than `GRACE_MS`. In virtual time the next one always comes, or
   * an error.
   */
  #passUntil(ended: () => boolean): void {
    try {
      const until = performance.now() + GRACE_MS;
      for (let looks = 1; !ended(); looks++) {
        this.#passOn();
        if (this.#job.processor === undefined && looks % LOOKS === 0 && performance.now() > until) return;
      }
    } catch {
      // A rank or a connection is gone: every later wait says so.
    }
  }

  #passOn(): void {
    this.#takeCompletions();
    this.#postBacklog();
    this.#job.processor?.letPass();
  }

  /**
   * Raises the target's count of signals, after all that was put there before: requests of one queue pair are carried
   * out in order.
   */
  signal(rank: number): void {
    this.#notify(rank, SIGNAL, false);
  }

  /** Complete when what has been issued to `rank` so far is complete, here and there; not what comes later. */
  soFar(rank: number): Operation {
    const connection = this.#connections.to(rank);
    const until = connection.issued;
    const begun = this.#tasks.begun(rank);
    return {
      advance: () => {
        this.#pollAndRun();
        if (this.#tasks.begun(rank) - this.#tasks.left(rank) < begun) return false;
        return connection.issued - connection.outstanding - connection.backlog.length >= until;
      },
      describe: () => `a request to rank ${rank}`,
      abandon: () => this.endHolding(),
      isPolling: () => this.#tasks.left(rank) > 0,
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
   * The same for who notifies the targets behind their puts: those may find what was put only when they are notified.
   */
  drain(): Operation {
    return new Flush(this, undefined, 'notified');
  }

  /** One look of a flush. */
  tryFlush(rank: number | undefined, extent: Extent = 'in memory'): boolean {
    this.#takeCompletions();
    if (this.#isComplete(rank, extent)) {
      if (++this.#flushes === FLUSHES) {
        this.#flushes = 0;
        this.#takeNotifications();
      }
      return true;
    }
    this.#takeNotifications();
    this.#postBacklog();
    this.#run(true);
    return this.#isComplete(rank, extent);
  }

  #isComplete(rank: number | undefined, extent: Extent): boolean {
    if (!this.#confirms || extent === 'here') return this.#isIdle(rank);
    const connections = rank === undefined ? this.#connections.all : [this.#connections.to(rank)];
    if (extent === 'in memory') for (const connection of connections) this.#confirm(connection);
    if (!this.#isIdle(rank)) return false;
    // The targets of all of them are notified behind them.
    if (extent === 'notified') for (const connection of connections) connection.unplaced = undefined;
    return true;
  }

  /** Reads behind puts that may not be in memory when they are complete. */
  #confirm(connection: Connection): void {
    const { unplaced, rank } = connection;
    if (unplaced === undefined) return;
    connection.unplaced = undefined;
    this.#post(rank, (qp) => {
      connection.reading = true;
      const answers = this.#someAnswers();
      const slot = answers.slotFor(ignore);
      qp.wrRdmaRead(FIRST_SLOT + slot, SendFlag.SIGNALED, unplaced.rkey, unplaced.address);
      qp.wrSetSge(answers.region.lkey, answers.addressOf(slot), 1);
    });
  }

  #isIdle(rank: number | undefined): boolean {
    if (rank === undefined) return this.#inFlight + this.#waiting + this.#tasks.count === 0;
    return this.#connections.to(rank).outstanding === 0 && this.isPosted(rank);
  }

  /** Whether nothing is outstanding to any other rank, and whatever is to this one has been posted. */
  isIdleBut(rank: number): boolean {
    const ofAll = this.#inFlight + this.#waiting + this.#tasks.count;
    return ofAll === this.#connections.to(rank).outstanding && this.isPosted(rank);
  }

  /** Whether all that was begun to a rank has been posted. */
  isPosted(rank: number): boolean {
    return this.#connections.to(rank).backlog.length === 0 && this.#tasks.left(rank) === 0;
  }

  /** Requests that are not complete. */
  get pending(): number {
    return this.#inFlight;
  }

  get hasTasks(): boolean {
    return this.#tasks.count > 0;
  }

  /**
   * Tells a rank something, behind all that was begun there before. Writes take effect in their order; a read or an
   * atomic need not have been carried out when a write behind it arrives (InfiniBand's ordering rules), unless that one
   * waits for it (`FENCE`).
   * @param what 0 or 1
   */
  tell(rank: number, what: number): void {
    this.#notify(rank, TOLD + what, true);
  }

  /** Tells a rank in the same way that this one's access epoch is complete there. */
  tellCompleted(rank: number): void {
    this.#notify(rank, COMPLETED, true);
  }

  /**
   * A write of no bytes, with immediate.
   * @param behindReads also those that are outstanding when it is posted are carried out before it
   */
  #notify(rank: number, immediate: number, behindReads: boolean): void {
    const { rkey, address } = this.#regions!.of(rank);
    this.#post(rank, (qp) => {
      const fence = behindReads && this.#connections.to(rank).reading ? SendFlag.FENCE : 0;
      qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED | fence, rkey, address, immediate);
    });
  }

  /** How many ranks have told `what` since the window was made. */
  told(what: number): number {
    return this.#arrivals.told[what];
  }

  /**
   * Sends a message to each rank that a fenced put was sent to since the last call, behind it: requests of one queue
   * pair are carried out in order.
   * @returns 1 for each of those ranks, 0 for the others
   */
  sendFinishes(): Int32Array {
    const targets = new Int32Array(this.#size);
    for (const { rank } of this.#connections.all) {
      if (!this.takePut(rank)) continue;
      targets[rank] = 1;
      this.#finish(rank);
    }
    return targets;
  }

  /** Whether a fenced put was sent to the rank since the last call, or the last `sendFinishes`. */
  takePut(rank: number): boolean {
    const connection = this.#connections.to(rank);
    const { fenced } = connection;
    connection.fenced = false;
    return fenced;
  }

  #finish(rank: number): void {
    this.#post(rank, (qp) => qp.wrSendImm(rank, SendFlag.SIGNALED, FINISH));
  }

  /**
   * Tells a rank that this one has come to the fence: a write, which nobody looks for among the messages of its
   * connection.
   */
  flag(rank: number): void {
    this.#notify(rank, FLAG, false);
  }

  /** Notified puts to each rank since the last call. */
  takeSent(): Int32Array {
    const sent = new Int32Array(this.#size);
    for (const connection of this.#connections.all) {
      sent[connection.rank] = connection.sent;
      connection.sent = 0;
    }
    return sent;
  }

  /** Notifications that have arrived since the window was made. */
  get received(): number {
    return this.#arrivals.received;
  }

  /** Finish messages that have arrived since the window was made. */
  get finished(): number {
    return this.#arrivals.finished;
  }

  /** Flags of fences that have come from a rank since the window was made. */
  flagsFrom(rank: number): number {
    return this.#connections.to(rank).flags;
  }

  /** How often a rank has told that its access epoch is complete here. */
  completedBy(rank: number): number {
    return this.#connections.to(rank).completed;
  }

  /** How often the watermark made it post more receives. */
  get refills(): number {
    return this.#arrivals.refills;
  }

  /** How often a notification has found no receive, where the provider counts that. */
  get refused(): number | undefined {
    return this.#arrivals.srq.refused;
  }

  /** A signal that came by another way. */
  addSignal(): void {
    this.#arrivals.signals++;
  }

  /** Signals that have arrived since the window was made. */
  get signals(): number {
    return this.#arrivals.signals;
  }

  /** Takes in completions and notifications, and posts what waited for room. */
  poll(): void {
    this.#takeCompletions();
    this.#takeNotifications();
    this.#postBacklog();
    this.#run(false);
  }

  /** The same without the notifications: a wait that goes on looks for those too. */
  pollCompletions(): void {
    this.#takeCompletions();
    this.#postBacklog();
  }

  #postBacklog(): void {
    if (this.#registrations.draining && this.#inFlight === 0) this.#registrations.drained();
    if (this.#waiting === 0) return;
    for (const connection of this.#connections.all) if (!this.#postWaiting(connection)) return;
  }

  /** @returns false if nothing more can be posted to any rank now */
  #postWaiting(connection: Connection): boolean {
    const { backlog } = connection;
    while (backlog.length > 0 && this.#hasRoom(connection)) {
      const { build, origin, counted } = backlog.first!;
      let registered = false;
      try {
        registered = this.#registrations.register(origin);
      } catch (error) {
        backlog.shift();
        this.#waiting--;
        connection.issued--;
        throw error;
      }
      if (!registered) return false;
      backlog.shift();
      this.#waiting--;
      this.#send(connection, build, counted);
    }
    return true;
  }

  /** The same in a wait for this rank's requests. */
  #pollAndRun(): void {
    this.poll();
    this.#run(true);
  }

  #run(waiting: boolean): void {
    if (this.#unsettled.size > 0) this.#runUnsettled();
    this.#tasks.run(waiting);
  }

  /**
   * Has the tasks that hold something for which others wait give it back, because the wait that ran them ends early.
   */
  endHolding(): void {
    if (!this.#tasks.leave()) return;
    this.#passUntil(() => {
      this.#tasks.run(false);
      return !this.#tasks.areLeaving;
    });
  }

  #hasRoom({ outstanding }: Connection): boolean {
    return (
      outstanding < DEPTH &&
      this.#inFlight < this.#sendCq.capacity &&
      this.#answers?.hasRoom !== false &&
      !this.#registrations.draining
    );
  }

  close(): void {
    this.#connections.close();
    this.#closed = true;
    this.#tasks.close();
    // No device writes to them any more.
    this.#scratches.close();
    this.#arrivals.srq.destroy();
    this.#sendCq.destroy();
    this.#arrivals.cq.destroy();
    this.#registrations.close();
    this.#answers?.close();
  }

  #takeCompletions(): void {
    this.#collect();
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** All that has completed, well or not. */
  #collect(): void {
    for (;;) {
      const n = this.#sendCq.poll(POLLED);
      const { status, qpNum, wrId } = this.#sendCq.wc;
      for (let i = 0; i < n; i++) {
        const id = wrId[i];
        const connection = id < FIRST_SLOT ? this.#connections.to(id) : this.#connections.numbered(qpNum[i]);
        if (--connection.outstanding === 0) connection.reading = false;
        this.#inFlight--;
        if (status[i] !== WcStatus.SUCCESS) this.#lose(connection, status[i], 'a request');
        else {
          this.#trace?.completed(connection.rank);
          if (id >= FIRST_SLOT) this.#answers!.arrived(id - FIRST_SLOT);
        }
      }
      // Fewer than asked for: most likely there are no more. If there are, asking for a notification says so.
      if (n < POLLED) break;
    }
    this.#sendCq.reqNotify();
  }

  /** A queue pair carries nothing after an error, and the window is of no use without it. */
  #lose({ rank }: Connection, status: number, what: string): void {
    this.#lost ??= lostConnection(this.#context, this.#connections.memberOf(rank), status, what);
  }

  readonly #loseNotification = (connection: Connection, status: number): void =>
    this.#lose(connection, status, 'a notification');

  #takeNotifications(): void {
    this.#arrivals.take(this.#connections, this.#loseNotification);
    if (this.#lost !== undefined) throw this.#lost;
  }

  #someAnswers(): Answers {
    this.#answers ??= new Answers(this.#context, this.#pd);
    return this.#answers;
  }

  /** Stretches that are consecutive on both sides, in pieces that a message can carry. */
  #forEachMessage(from: Side, to: Side, body: (source: number, target: number, bytes: number) => void): void {
    forEachSegment(from, to, (source, target, bytes) => {
      this.#inMessages(0, bytes, (offset, length) => body(source + offset, target + offset, length));
    });
  }

  #inMessages(start: number, bytes: number, body: (offset: number, length: number) => void): void {
    const { maxMsgSize } = this.#context.device;
    for (let done = 0; done < bytes; done += maxMsgSize) body(start + done, Math.min(maxMsgSize, bytes - done));
  }

  /** Posts a request of which `left` says whether it is complete. */
  #track(rank: number, left: Left, build: (qp: QueuePair, id: number) => void): void {
    left.count++;
    this.#post(rank, (qp) => {
      this.#connections.to(rank).reading = true;
      const slot = this.#someAnswers().slotFor(() => {
        if (--left.count === 0) left.whenNone?.();
      });
      build(qp, FIRST_SLOT + slot);
    });
  }

  /** Posts a request whose 8 bytes of result come into a slot. */
  #ask(rank: number, answer: Answer, again: boolean, build: (qp: QueuePair, id: number) => void): void {
    this.#post(rank, (qp) => {
      this.#connections.to(rank).reading = true;
      const answers = this.#someAnswers();
      const slot = answers.slotFor(answer);
      if (again) this.#job.processor?.asks();
      build(qp, FIRST_SLOT + slot);
      qp.wrSetSge(answers.region.lkey, answers.addressOf(slot), 8);
    });
  }

  /** @param origin what must be registered for it, if anything */
  #post(rank: number, build: (qp: QueuePair) => void, origin?: ArrayBufferLike, counted = false): void {
    if (this.#closed) return;
    const connection = this.#connections.to(rank);
    if (!this.#hasRoom(connection)) this.#collect();
    const { backlog } = connection;
    const now = backlog.length === 0 && this.#hasRoom(connection) && this.#registrations.register(origin);
    connection.issued++;
    if (now) this.#send(connection, build, counted);
    else {
      backlog.push({ build, origin, counted });
      this.#waiting++;
    }
  }

  #send(connection: Connection, build: (qp: QueuePair) => void, counted: boolean): void {
    // It would complete as flushed.
    if (this.#lost !== undefined) return;
    const qp = this.#connections.queuePairTo(connection.rank);
    qp.wrStart();
    try {
      build(qp);
      qp.wrComplete();
    } catch (error) {
      // Nothing was posted, so nothing is to be waited for.
      qp.wrAbort();
      connection.issued--;
      throw error;
    }
    connection.outstanding++;
    this.#inFlight++;
    if (counted) connection.sent++;
    this.#trace?.posted(connection.rank);
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
