/**
 * Put and get by work requests: RDMA writes and reads on one queue pair a target, for windows whose scheme counts
 * notifications, or whose provider cannot map remote memory.
 *
 * A put is an RDMA write for each run of bytes, within a fence epoch one with immediate, which raises a completion at
 * the target (dissertation §6.3.3). Short runs go inline; for longer ones, and for gets, the origin's memory is registered, and
 * the registration kept for the next time. At most `DEPTH` requests are outstanding to a target; what comes on top waits here, so that
 * put and get never wait (the program limits their number by `flush`: each takes some 200 bytes). Nor do they fail with
 * a connection: what is lost is said by what waits for it, each time.
 *
 * Registered origins (comm/origins.ts): at most `REGISTRATIONS` and `REGISTERED_BYTES` at a time. One more, one that has changed its size, or one that the device has no room for (locked memory is limited) takes the
 * place of all: requests wait until none is outstanding, then the others are given up.
 *
 * Atomics (and reads whose result the library itself needs) leave what was there in a word of `#slots`, which is made with the first of them, and call back. What takes several requests, one after the other, is a
 * task (request-tasks.ts).
 *
 * A put or get of consecutive bytes has a way of its own that allocates nothing: `putPlain`, `getPlain`.
 *
 * Each notification (a write with immediate, a finish message, a flag) takes one receive of the target's shared receive queue, which holds no memory. Those that were
 * taken are posted again when the target looks. If it does not look for long, the queue's low watermark (dissertation §6.3.3) raises an event, which wakes it if it
 * sleeps in whatever call of the library, and more are posted, up to `MOST_RECEIVES`. A target that computes on and on lets its peers' requests wait: their
 * connections try again until it comes.
 */

import { lostConnection } from '../comm/lost-connection.ts';
import type { Operation } from '../comm/operation.ts';
import type { Origins } from '../comm/origins.ts';
import type { TypedArray } from '../datatype/base.ts';
import { forEachRun } from '../datatype/copy.ts';
import { forEachSegment, type Side } from '../datatype/layout.ts';
import { type LostConnectionError, RmaError } from '../errors.ts';
import { Fifo } from '../fifo.ts';
import { bufferOf, byteLengthOf, byteOffsetOf, bytesIn } from '../intrinsics.ts';
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';
import type { Context, QpAddress } from '../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';
import { QpState, type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../verbs/shared-receive-queue.ts';
import type { Regions } from './regions.ts';
import { GRACE_MS, type Hold, type HoldingSteps, RequestTasks } from './request-tasks.ts';
import { type Left, Scratch } from './scratch.ts';
import { Unplaced } from './unplaced.ts';

const DEPTH = 128;
/** Receives that are posted in the beginning, and at most; the watermark below which more are posted. */
const RECEIVES = 1024;
const MOST_RECEIVES = 4096;
const WATERMARK = 256;
/** Origins that stay registered for the next transfer: so many, and so many bytes together. One alone may have more. */
const REGISTRATIONS = 64;
const REGISTERED_BYTES = 2 ** 28;
/** Completions that are fetched by one poll. */
const POLLED = 64;
/** Requests with a result that can be outstanding. */
const SLOTS = 1024;
/**
 * In a call that waits for answers by itself: looks between two looks at the clock, and milliseconds between two looks
 * at the ranks.
 */
const LOOKS = 64;
const INSPECT_MS = 100;

/**
 * Immediate data: a put that the next fence counts, a signal of `putNotify`, a message behind the last put of an epoch, that a rank has come to a fence, that an origin's
 * access epoch is complete, or (this and the next) what `tell` says.
 */
const COUNTED = 1;
const SIGNAL = 2;
const FINISH = 3;
const FLAG = 4;
const COMPLETED = 5;
const TOLD = 6;
/** Flushes that are complete at once before the notifications are looked at, too: peers wait for their receives. */
const FLUSHES = 16;

/** Identities of requests: a rank's number, or from here on that of a slot. */
const FIRST_SLOT = 2 ** 20;

const ignore = (): void => {};

/** Where the results of requests come: slot i is two words. */
interface Slots {
  readonly words: Uint32Array;
  readonly region: MemoryRegion;
  readonly free: number[];
}

/** A request that waits for room. */
interface Waiting {
  readonly build: (qp: QueuePair) => void;
  /** What must be registered for it. */
  readonly origin: ArrayBufferLike | undefined;
  /** It raises a completion at the target, which the next fence counts. */
  readonly counted: boolean;
}

function* until(left: Left): Generator<void, void> {
  while (left.count > 0) yield;
}

/** Complete when nothing is outstanding to `rank`, or, without it, to any rank: then it is complete at the targets too. */
class Flush implements Operation {
  readonly #requests: RequestTransfer;
  readonly #rank: number | undefined;
  readonly #places: boolean;

  constructor(requests: RequestTransfer, rank: number | undefined, places: boolean) {
    this.#requests = requests;
    this.#rank = rank;
    this.#places = places;
  }

  advance(): boolean {
    return this.#requests.tryFlush(this.#rank, this.#places);
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

/** How transfers of one window find each other's ends, in one process. */
export interface Meeting {
  /** This rank in the window. */
  readonly rank: number;
  offer(transfer: RequestTransfer): void;
  /** That of another rank, as long as it has not withdrawn it. */
  find(rank: number): RequestTransfer | undefined;
  withdraw(): void;
}

/** What a call that waits for answers by itself looks at. */
export interface Patience {
  /** Milliseconds of the clock that waits go by. */
  now(): number;
  findFailure(): RmaError | undefined;
  /** Milliseconds after which it gives up. */
  readonly timeout: number;
}

const ALONE: Patience = {
  now: () => performance.now(),
  findFailure: () => undefined,
  timeout: Number.POSITIVE_INFINITY,
};

/** Gets the 64 bits that were there, as two unsigned halves. */
export type Answer = (lo: number, hi: number) => void;

/** Who records requests: told when one has been posted, and when it is known to be complete, in the order of posting. Ranks are the window's. */
export interface RequestTrace {
  posted(rank: number): void;
  completed(rank: number): void;
}

export class RequestTransfer {
  readonly #pd: ProtectionDomain;
  readonly #context: Context;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #srq: SharedReceiveQueue;
  /** By rank; where connections are made when they are first used, only those that were. */
  readonly #queuePairs: (QueuePair | undefined)[];
  /** Where the other ranks' ends are found, if connections are made when they are first used. */
  #meeting: Meeting | undefined;
  readonly #rankOf = new Map<number, number>();
  readonly #outstanding: Int32Array;
  /** Whether reads or atomics may be among them. */
  readonly #reading: Uint8Array;
  /** Requests to each rank since the window was made. */
  readonly #issued: Float64Array;
  /** Requests that wait for room, oldest first, by rank. */
  readonly #backlog: readonly Fifo<Waiting>[];
  /** Requests in all of them. */
  #waiting = 0;
  /** Requests outstanding to all together: the completion queue has room for so many. */
  #inFlight = 0;
  /** Set once: nothing is sent any more, and every wait fails. */
  #lost: LostConnectionError | undefined;
  /** Ranks that were put to since the last fence, for `sendFinishes`. */
  readonly #fenced: Int32Array;
  /** Notified puts to each rank since the last fence; whether puts of fence epochs are notified. */
  readonly #sent: Int32Array;
  readonly #notifies: boolean;
  #received = 0;
  #signals = 0;
  #finished = 0;
  /** Flags that have arrived, by rank. */
  readonly flags: Int32Array;
  /** What `tellCompleted` has told this rank, by origin. */
  readonly completed: Int32Array;
  /** Receives that are posted or whose completions are on their way. */
  #receives = 0;
  /** As many as there can be: what the device has, at most `MOST_RECEIVES`. */
  readonly #most: number;
  #refills = 0;
  readonly #told = [0, 0];
  #flushes = 0;
  #regions: Regions | undefined;
  /** World ranks, for messages. */
  #lids: readonly number[] = [];
  /** Results of requests. */
  #slots: Slots | undefined;
  readonly #answers: (Answer | undefined)[] = [];
  readonly #tasks: RequestTasks;
  /** Steps that nobody waits for any more, and that had not come to their end soon. */
  readonly #unsettled = new Set<Generator<void, unknown>>();
  #settling = false;
  readonly #scratches = new Set<Scratch>();
  /** Absent where what is complete is in memory. */
  readonly #unplaced: Unplaced | undefined;
  readonly #job: Patience;
  #closed = false;
  readonly #origins: Origins;
  readonly #registrations = new Map<ArrayBufferLike, MemoryRegion>();
  #registeredBytes = 0;
  /** This rank's part, which is registered as long as the window lives: it can be an origin as well. */
  #part: { readonly buffer: ArrayBufferLike; readonly region: MemoryRegion } | undefined;
  /** A registration waits until nothing is outstanding; so does everything else. */
  #crowded = false;
  /** The last array of `putPlain` and `getPlain`, all bytes of its buffer, and their registration, if it was needed and is still there. */
  #lastOrigin: TypedArray | undefined;
  #lastBytes: Uint8Array = new Uint8Array(0);
  #lastRegion: MemoryRegion | undefined;

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
    this.#origins = origins;
    this.#notifies = notifies;
    this.#sendCq = context.createCq(Math.min(DEPTH * size, context.device.maxCqe));
    const { maxCqe, maxSrqWr } = context.device;
    this.#most = Math.min(MOST_RECEIVES, maxCqe, maxSrqWr);
    this.#recvCq = context.createCq(this.#most);
    this.#srq = pd.createSharedReceiveQueue({ maxWr: this.#most });
    this.#receives = Math.min(RECEIVES, this.#most);
    for (let i = 0; i < this.#receives; i++) this.#srq.postRecv(i, 0, 0, 0);
    this.#srq.arm(WATERMARK);
    this.flags = new Int32Array(size);
    this.completed = new Int32Array(size);
    this.#outstanding = new Int32Array(size);
    this.#reading = new Uint8Array(size);
    this.#issued = new Float64Array(size);
    this.#backlog = Array.from({ length: size }, () => new Fifo<Waiting>());
    this.#sent = new Int32Array(size);
    this.#fenced = new Int32Array(size);
    this.#tasks = new RequestTasks(size);
    if (!context.capabilities.completionImpliesPlacement) this.#unplaced = new Unplaced(size);
    this.#queuePairs = new Array<undefined>(size).fill(undefined);
    origins.join(this);
  }

  /** Reads and atomics that may be outstanding on a connection. */
  get #atomics(): number {
    return Math.min(16, this.#context.device.maxQpInitRdAtom);
  }

  /** The number of the queue pair that rank `rank` connects to; it is made, if there is none. */
  queuePairFor(rank: number): number {
    return (this.#queuePairs[rank] ?? this.#makeQueuePair(rank)).number;
  }

  #makeQueuePair(rank: number): QueuePair {
    const qp = this.#pd.createQueuePair({
      sendCq: this.#sendCq,
      recvCq: this.#recvCq,
      srq: this.#srq,
      maxSendWr: DEPTH,
      maxInlineData: Math.min(64, this.#context.device.maxInlineData),
    });
    qp.modify({ state: QpState.INIT, access: Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC });
    this.#queuePairs[rank] = qp;
    this.#rankOf.set(qp.number, rank);
    return qp;
  }

  /** Connects to all ranks; afterwards all must wait for each other before the first request. */
  connect(lids: readonly number[], numbers: ArrayLike<number>, regions: Regions): void {
    this.#regions = regions;
    this.#lids = lids;
    for (const [rank, qp] of this.#queuePairs.entries())
      this.#connect(qp ?? this.#makeQueuePair(rank), { lid: lids[rank], qpNumber: numbers[rank] });
    this.#sendCq.reqNotify();
    this.#recvCq.reqNotify();
  }

  #connect(qp: QueuePair, dest: QpAddress): void {
    qp.modify({ state: QpState.RTR, dest, minRnrTimerMs: 0.01, maxDestRdAtomic: this.#atomics });
    qp.modify({ state: QpState.RTS, rnrRetry: 7, retryCount: 7, maxRdAtomic: this.#atomics });
  }

  /** Connects to each rank when something is first sent to it: the number of connections is that of the pairs of ranks that talk. All must wait for each other after this. */
  connectLater(meeting: Meeting, lids: readonly number[], regions: Regions): void {
    this.#regions = regions;
    this.#lids = lids;
    this.#meeting = meeting;
    meeting.offer(this);
  }

  #queuePairTo(rank: number): QueuePair {
    return this.#queuePairs[rank] ?? this.#meet(rank);
  }

  /** Makes both ends of a connection. */
  #meet(rank: number): QueuePair {
    const { rank: me, find } = this.#meeting!;
    const other = find(rank);
    if (other === undefined) throw new RmaError('ERR_WIN', `rank ${rank} has already freed the window`);
    const mine = this.#makeQueuePair(rank);
    const theirs = other === this ? mine : other.#makeQueuePair(me);
    this.#connect(mine, theirs.address);
    if (other !== this) other.#connect(theirs, mine.address);
    return mine;
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
    const { maxInlineData } = this.#queuePairTo(rank);
    const notify = fenced && this.#notifies;
    // Also if they wait here for room: what is sent to the rank later comes behind them.
    if (fenced) this.#fenced[rank] = 1;
    this.#forEachMessage(from, to, (source, target, bytes) => {
      const build = (qp: QueuePair): void => {
        const remote = address + at + target;
        if (notify) qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED, rkey, remote, COUNTED);
        else qp.wrRdmaWrite(rank, SendFlag.SIGNALED, rkey, remote);
        if (bytes <= maxInlineData) qp.wrSetInlineData(origin, source, bytes);
        else this.#setSge(qp, origin, source, bytes);
      };
      if (!fenced) this.#unplaced?.note(rank, rkey, address + at + target);
      this.#post(rank, build, bytes <= maxInlineData ? undefined : origin.buffer, notify);
    });
  }

  get(origin: Uint8Array, from: Side, rank: number, at: number, to: Side, region = this.#regions!.of(rank)): void {
    const { rkey, address } = region;
    this.#forEachMessage(from, to, (sink, target, bytes) => {
      const build = (qp: QueuePair): void => {
        this.#reading[rank] = 1;
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
    if (bytes > this.#context.device.maxMsgSize || !this.#mayPost(rank)) return false;
    const { rkey, address } = this.#regions!.of(rank);
    const notify = fenced && this.#notifies;
    const qp = this.#queuePairTo(rank);
    // What can fail is outside of the builder; then there is nothing to take back.
    this.#remember(origin);
    const inline = bytes <= qp.maxInlineData;
    const region = inline ? undefined : this.#regionOfLast();
    if (!inline && region === undefined) return false;
    qp.wrStart();
    if (notify) qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED, rkey, address + at, COUNTED);
    else qp.wrRdmaWrite(rank, SendFlag.SIGNALED, rkey, address + at);
    if (region === undefined) qp.wrSetInlineData(this.#lastBytes, byteOffsetOf(origin), bytes);
    else qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#notePosted(rank);
    if (fenced) this.#fenced[rank] = 1;
    else this.#unplaced?.note(rank, rkey, address + at);
    if (notify) this.#sent[rank]++;
    return true;
  }

  /** The same for a get into all of `origin`. */
  getPlain(origin: TypedArray, rank: number, at: number): boolean {
    const bytes = byteLengthOf(origin);
    if (bytes > this.#context.device.maxMsgSize || !this.#mayPost(rank)) return false;
    const { rkey, address } = this.#regions!.of(rank);
    this.#remember(origin);
    const region = this.#regionOfLast();
    if (region === undefined) return false;
    const qp = this.#queuePairTo(rank);
    qp.wrStart();
    this.#reading[rank] = 1;
    qp.wrRdmaRead(rank, SendFlag.SIGNALED, rkey, address + at);
    qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#notePosted(rank);
    return true;
  }

  #notePosted(rank: number): void {
    this.#issued[rank]++;
    this.#outstanding[rank]++;
    this.#inFlight++;
    this.#trace?.posted(rank);
  }

  #mayPost(rank: number): boolean {
    return this.#lost === undefined && this.#backlog[rank].length === 0 && this.#hasRoom(rank);
  }

  /** Programs transfer from and to the same array again and again, and to ask one for its buffer takes longer than to build a request. */
  #remember(origin: TypedArray): void {
    if (origin === this.#lastOrigin) return;
    this.#lastBytes = new Uint8Array(bufferOf(origin));
    this.#lastRegion = undefined;
    this.#lastOrigin = origin;
  }

  /** @returns undefined if the registration has to wait */
  #regionOfLast(): MemoryRegion | undefined {
    const bytes = this.#lastBytes;
    // A buffer can have grown since.
    if (this.#lastRegion?.length === bytes.byteLength) return this.#lastRegion;
    if (!this.#register(bytes.buffer)) return undefined;
    this.#lastRegion = this.#registrations.get(bytes.buffer);
    return this.#lastRegion;
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
    return new Scratch(this.#context, this.#pd, bytes, this.#scratches);
  }

  /** Posts a read of `bytes` bytes from byte `at` + `place` of a region to `place` in the memory `local`. The generator ends when they are there. */
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

  /** Posts writes of all that `to` covers, from byte `place` on in the memory `local`, to byte `at` + `place` of a region. */
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

  /** Posts a write of a word, given as two halves. The generator ends when the target's device has it; a read that is posted behind it finds it in memory. */
  store({ rank, rkey, address }: RemoteWord, lo: number, hi: number): Generator<void, void> {
    const left = { count: 0 };
    this.#track(rank, left, (qp, id) => {
      const { words, region } = this.#slots!;
      const slot = id - FIRST_SLOT;
      words[2 * slot] = lo;
      words[2 * slot + 1] = hi;
      qp.wrRdmaWrite(id, SendFlag.SIGNALED, rkey, address);
      qp.wrSetSge(region.lkey, region.address + 8 * slot, 8);
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
        if (this.#context.processor === undefined && looks % LOOKS === 0 && performance.now() > until) return;
      }
    } catch {
      // A rank or a connection is gone: every later wait says so.
    }
  }

  #passOn(): void {
    this.#takeCompletions();
    this.#postBacklog();
    this.#context.processor?.letPass();
  }

  /** Raises the target's count of signals, after all that was put there before: requests of one queue pair are carried out in order. */
  signal(rank: number): void {
    this.#notify(rank, SIGNAL, false);
  }

  /** Complete when what has been issued to `rank` so far is complete, here and there; not what comes later. */
  soFar(rank: number): Operation {
    const until = this.#issued[rank];
    const begun = this.#tasks.begun(rank);
    return {
      advance: () => {
        this.#pollAndRun();
        if (this.#tasks.begun(rank) - this.#tasks.left(rank) < begun) return false;
        return this.#issued[rank] - this.#outstanding[rank] - this.#backlog[rank].length >= until;
      },
      describe: () => `a request to rank ${rank}`,
      abandon: () => this.endHolding(),
      isPolling: () => this.#tasks.left(rank) > 0,
    };
  }

  /** Complete when what was issued to `rank`, or to all, is complete there, and the target's processor finds it. */
  flush(rank?: number): Operation {
    return new Flush(this, rank, true);
  }

  /**
   * The same for who notifies the targets behind their puts: those may find what was put only when they are notified.
   */
  drain(): Operation {
    return new Flush(this, undefined, false);
  }

  /** One look of a flush, or, if it does not wait until puts are in memory, of `drain`. */
  tryFlush(rank: number | undefined, places = true): boolean {
    this.#takeCompletions();
    if (this.#isComplete(rank, places)) {
      if (++this.#flushes === FLUSHES) {
        this.#flushes = 0;
        this.#takeNotifications();
      }
      return true;
    }
    this.#takeNotifications();
    this.#postBacklog();
    this.#run(true);
    return this.#isComplete(rank, places);
  }

  #isComplete(rank: number | undefined, places: boolean): boolean {
    const unplaced = this.#unplaced;
    if (unplaced === undefined) return this.#isIdle(rank);
    if (places) this.#confirm(rank, unplaced);
    if (!this.#isIdle(rank)) return false;
    if (!places) unplaced.clear();
    return true;
  }

  /** Reads behind puts that may not be in memory when they are complete. */
  #confirm(rank: number | undefined, unplaced: Unplaced): void {
    const [first, last] = rank === undefined ? [0, this.#backlog.length - 1] : [rank, rank];
    for (let r = first; r <= last; r++) {
      if (!unplaced.take(r)) continue;
      const { rkey, address } = unplaced.lastTo(r);
      this.#post(r, (qp) => {
        this.#reading[r] = 1;
        const id = FIRST_SLOT + this.#slotFor(ignore);
        const { region } = this.#slots!;
        qp.wrRdmaRead(id, SendFlag.SIGNALED, rkey, address);
        qp.wrSetSge(region.lkey, region.address + 8 * (id - FIRST_SLOT), 1);
      });
    }
  }

  #isIdle(rank: number | undefined): boolean {
    if (rank !== undefined) return this.#isIdleTo(rank);
    for (let r = 0; r < this.#backlog.length; r++) if (!this.#isIdleTo(r)) return false;
    return true;
  }

  #isIdleTo(rank: number): boolean {
    return this.#outstanding[rank] === 0 && this.#backlog[rank].length === 0 && this.#tasks.left(rank) === 0;
  }

  /** Whether nothing is outstanding to any other rank, and whatever is to this one has been posted. */
  isIdleBut(rank: number): boolean {
    for (let r = 0; r < this.#backlog.length; r++) if (r !== rank && !this.#isIdleTo(r)) return false;
    return this.isPosted(rank);
  }

  /** Whether all that was begun to a rank has been posted. */
  isPosted(rank: number): boolean {
    return this.#backlog[rank].length === 0 && this.#tasks.left(rank) === 0;
  }

  /** Requests that are not complete. */
  get pending(): number {
    return this.#outstanding.reduce((sum, n) => sum + n, 0);
  }

  get hasTasks(): boolean {
    return this.#tasks.count > 0;
  }

  /**
   * Tells a rank something, behind all that was begun there before. Writes take effect in their order; a read or an atomic need not have been carried out when a write behind it arrives
   * (InfiniBand's ordering rules), unless that one waits for it (`FENCE`).
   * @param what 0 or 1
   */
  tell(rank: number, what: number): void {
    this.#notify(rank, TOLD + what, true);
  }

  /** Tells a rank in the same way that this one's access epoch is complete there. */
  tellCompleted(rank: number): void {
    this.#notify(rank, COMPLETED, true);
  }

  /** A write of no bytes, with immediate. @param behindReads also those that are outstanding when it is posted are carried out before it */
  #notify(rank: number, immediate: number, behindReads: boolean): void {
    const { rkey, address } = this.#regions!.of(rank);
    this.#post(rank, (qp) => {
      const fence = behindReads && this.#reading[rank] === 1 ? SendFlag.FENCE : 0;
      qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED | fence, rkey, address, immediate);
    });
  }

  /** How many ranks have told `what` since the window was made. */
  told(what: number): number {
    return this.#told[what];
  }

  /**
   * Sends a message to each rank that a fenced put was sent to since the last call, behind it: requests of one queue pair are carried out in order.
   * @returns 1 for each of those ranks, 0 for the others
   */
  sendFinishes(): Int32Array {
    const targets = this.#fenced.slice();
    this.#fenced.fill(0);
    for (const [rank, put] of targets.entries()) if (put > 0) this.#finish(rank);
    return targets;
  }

  /** Whether a fenced put was sent to the rank since the last call, or the last `sendFinishes`. */
  takePut(rank: number): boolean {
    const put = this.#fenced[rank] > 0;
    this.#fenced[rank] = 0;
    return put;
  }

  #finish(rank: number): void {
    this.#post(rank, (qp) => qp.wrSendImm(rank, SendFlag.SIGNALED, FINISH));
  }

  /** Tells a rank that this one has come to the fence: a write, which nobody looks for among the messages of its connection. */
  flag(rank: number): void {
    this.#notify(rank, FLAG, false);
  }

  /** Notified puts to each rank since the last call. */
  takeSent(): Int32Array {
    const sent = this.#sent.slice();
    this.#sent.fill(0);
    return sent;
  }

  /** Notifications that have arrived since the window was made. */
  get received(): number {
    return this.#received;
  }

  /** Finish messages that have arrived since the window was made. */
  get finished(): number {
    return this.#finished;
  }

  /** How often the watermark made it post more receives. */
  get refills(): number {
    return this.#refills;
  }

  /** How often a notification has found no receive, where the provider counts that. */
  get refused(): number | undefined {
    return this.#srq.refused;
  }

  /** A signal that came by another way. */
  addSignal(): void {
    this.#signals++;
  }

  /** Signals that have arrived since the window was made. */
  get signals(): number {
    return this.#signals;
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
    if (this.#crowded && this.#inFlight === 0) {
      this.#dropRegistrations();
      this.#crowded = false;
    }
    for (let rank = 0; this.#waiting > 0 && rank < this.#backlog.length; rank++) {
      const waiting = this.#backlog[rank];
      while (waiting.length > 0 && this.#hasRoom(rank)) {
        const { build, origin, counted } = waiting.first!;
        try {
          if (!this.#register(origin)) return;
        } catch (error) {
          waiting.shift();
          this.#waiting--;
          this.#issued[rank]--;
          throw error;
        }
        waiting.shift();
        this.#waiting--;
        this.#send(rank, build, counted);
      }
    }
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

  #hasRoom(rank: number): boolean {
    return (
      this.#outstanding[rank] < DEPTH &&
      this.#inFlight < this.#sendCq.capacity &&
      this.#slots?.free.length !== 0 &&
      !this.#crowded
    );
  }

  close(): void {
    this.#meeting?.withdraw();
    for (const qp of this.#queuePairs) qp?.destroy();
    this.#closed = true;
    this.#tasks.close();
    // No device writes to them any more.
    for (const scratch of this.#scratches) scratch.dispose();
    this.#srq.destroy();
    this.#sendCq.destroy();
    this.#recvCq.destroy();
    this.#dropRegistrations();
    this.#origins.leave(this);
    this.#slots?.region.deregister();
    this.#slots?.region.memory.free();
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
        const rank = id < FIRST_SLOT ? id : this.#rankOf.get(qpNum[i])!;
        if (--this.#outstanding[rank] === 0) this.#reading[rank] = 0;
        this.#inFlight--;
        if (status[i] !== WcStatus.SUCCESS) this.#lose(rank, status[i], 'a request');
        else {
          this.#trace?.completed(rank);
          if (id >= FIRST_SLOT) this.#answer(id - FIRST_SLOT);
        }
      }
      // Fewer than asked for: most likely there are no more. If there are, asking for a notification says so.
      if (n < POLLED) break;
    }
    this.#sendCq.reqNotify();
  }

  /** Posts as many receives again as there are, when few are left. The watermark's event is there to wake this rank; what is left, a look says. */
  #refill(): void {
    if (this.#srq.posted >= WATERMARK || this.#receives >= this.#most) return;
    this.#refills++;
    for (let more = Math.min(this.#receives, this.#most - this.#receives); more > 0; more--)
      this.#srq.postRecv(this.#receives++, 0, 0, 0);
    this.#srq.arm(WATERMARK);
  }

  /** A queue pair carries nothing after an error, and the window is of no use without it. */
  #lose(rank: number, status: number, what: string): void {
    this.#lost ??= lostConnection(this.#context, this.#lids[rank], status, what);
  }

  #note(qpNumber: number, what: number): void {
    if (what === COUNTED) this.#received++;
    else if (what === SIGNAL) this.#signals++;
    else if (what === FINISH) this.#finished++;
    else if (what === FLAG) this.#count(this.flags, qpNumber);
    else if (what === COMPLETED) this.#count(this.completed, qpNumber);
    else this.#told[what - TOLD]++;
  }

  /** One more from the rank at the other end. */
  #count(counts: Int32Array, qpNumber: number): void {
    const source = this.#rankOf.get(qpNumber)!;
    counts[source] = (counts[source] + 1) | 0;
  }

  #takeNotifications(): void {
    this.#refill();
    let taken = 0;
    for (;;) {
      const n = this.#recvCq.poll(POLLED);
      taken += n;
      const { status, wrId, immData, qpNum } = this.#recvCq.wc;
      for (let i = 0; i < n; i++) {
        if (status[i] !== WcStatus.SUCCESS) this.#lose(this.#rankOf.get(qpNum[i])!, status[i], 'a notification');
        else this.#note(qpNum[i], immData[i]);
        this.#srq.postRecv(wrId[i], 0, 0, 0);
      }
      if (n < POLLED) break;
    }
    // So many at once have passed the watermark, which disarmed it.
    if (taken > this.#receives - WATERMARK) this.#srq.arm(WATERMARK);
    this.#recvCq.reqNotify();
    if (this.#lost !== undefined) throw this.#lost;
  }

  #answer(slot: number): void {
    const answer = this.#answers[slot]!;
    const { words, free } = this.#slots!;
    this.#answers[slot] = undefined;
    free.push(slot);
    answer(words[2 * slot], words[2 * slot + 1]);
  }

  /** A slot for the result of a request that is about to be posted: there is room for one. */
  #slotFor(answer: Answer): number {
    this.#slots ??= this.#makeSlots();
    const slot = this.#slots.free.pop()!;
    this.#answers[slot] = answer;
    return slot;
  }

  #makeSlots(): Slots {
    const memory = this.#context.allocateMemory(8 * SLOTS);
    const words = new Uint32Array(memory.buffer, 0, 2 * SLOTS);
    const free = Array.from({ length: SLOTS }, (_, i) => SLOTS - 1 - i);
    return { words, region: this.#pd.registerMemory(memory, 0, 8 * SLOTS, Access.LOCAL_WRITE), free };
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
      this.#reading[rank] = 1;
      const slot = this.#slotFor(() => {
        if (--left.count === 0) left.whenNone?.();
      });
      build(qp, FIRST_SLOT + slot);
    });
  }

  /** Posts a request whose 8 bytes of result come into a slot. */
  #ask(rank: number, answer: Answer, again: boolean, build: (qp: QueuePair, id: number) => void): void {
    this.#post(rank, (qp) => {
      this.#reading[rank] = 1;
      const slot = this.#slotFor(answer);
      const { lkey, address } = this.#slots!.region;
      if (again) this.#context.processor?.asks();
      build(qp, FIRST_SLOT + slot);
      qp.wrSetSge(lkey, address + 8 * slot, 8);
    });
  }

  /** @param origin what must be registered for it, if anything */
  #post(rank: number, build: (qp: QueuePair) => void, origin?: ArrayBufferLike, counted = false): void {
    if (this.#closed) return;
    if (!this.#hasRoom(rank)) this.#collect();
    const now = this.#backlog[rank].length === 0 && this.#hasRoom(rank) && this.#register(origin);
    this.#issued[rank]++;
    if (now) this.#send(rank, build, counted);
    else {
      this.#backlog[rank].push({ build, origin, counted });
      this.#waiting++;
    }
  }

  #send(rank: number, build: (qp: QueuePair) => void, counted: boolean): void {
    // It would complete as flushed.
    if (this.#lost !== undefined) return;
    const qp = this.#queuePairTo(rank);
    qp.wrStart();
    try {
      build(qp);
      qp.wrComplete();
    } catch (error) {
      // Nothing was posted, so nothing is to be waited for.
      qp.wrAbort();
      this.#issued[rank]--;
      throw error;
    }
    this.#outstanding[rank]++;
    this.#inFlight++;
    if (counted) this.#sent[rank]++;
    this.#trace?.posted(rank);
  }

  #setSge(qp: QueuePair, bytes: Uint8Array, offset: number, length: number): void {
    const region = this.#registrations.get(bytes.buffer)!;
    qp.wrSetSge(region.lkey, region.address + bytes.byteOffset + offset, length);
  }

  /** Sees to it that the device may access an origin. @returns whether it may; otherwise, when nothing is outstanding any more */
  #register(origin: ArrayBufferLike | undefined): boolean {
    if (origin === undefined) return true;
    const registrations = this.#registrations;
    const known = registrations.get(origin);
    const bytes = bytesIn(origin);
    if (known?.length === bytes) return true;
    const many = registrations.size >= REGISTRATIONS;
    const large = this.#registeredBytes > 0 && this.#registeredBytes + bytes > REGISTERED_BYTES;
    if (known !== undefined || many || large) {
      if (this.#inFlight > 0) return this.#waitForSilence();
      this.#dropRegistrations();
    }
    try {
      this.#registerNew(origin);
    } catch (error) {
      if (this.#registeredBytes === 0) throw error;
      if (this.#inFlight > 0) return this.#waitForSilence();
      this.#dropRegistrations();
      this.#registerNew(origin);
    }
    return true;
  }

  #registerNew(origin: ArrayBufferLike): void {
    this.#registrations.set(origin, this.#origins.take(origin));
    this.#registeredBytes += bytesIn(origin);
  }

  #waitForSilence(): boolean {
    this.#crowded = true;
    return false;
  }

  #dropRegistrations(): void {
    for (const [buffer, region] of this.#registrations)
      if (region !== this.#part?.region) this.#origins.give(buffer, region);
    this.#registrations.clear();
    this.#registeredBytes = 0;
    this.#lastRegion = undefined;
    this.#keepPart();
  }

  /** The part is an origin without a registration of its own, if its region is the whole of its buffer. */
  lendPart(buffer: ArrayBufferLike, region: MemoryRegion): void {
    this.#part = { buffer, region };
    this.#keepPart();
  }

  #keepPart(): void {
    if (this.#part === undefined) return;
    const { buffer, region } = this.#part;
    if (region.length === bytesIn(buffer)) this.#registrations.set(buffer, region);
  }

  /** Lets an origin's registration go, if nothing is outstanding. */
  forget(buffer: ArrayBufferLike): void {
    const region = this.#registrations.get(buffer);
    if (region === undefined || region === this.#part?.region || this.#inFlight > 0) return;
    this.#registrations.delete(buffer);
    this.#registeredBytes -= region.length;
    this.#lastRegion = undefined;
    this.#origins.give(buffer, region);
  }
}
