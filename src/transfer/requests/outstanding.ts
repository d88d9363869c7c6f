/**
 * Requests of a window that are posted and not complete, on all its connections together, and those that wait for room:
 * at most `DEPTH` a connection, in all as many as the completion queue and the slots for answers have room for, and
 * none while a registration waits (origin-registrations.ts).
 *
 * A request with a result (an atomic, a read or write that the library itself waits for) has a slot (answers.ts), whose
 * number is its identity; that of any other is the target's rank. Messages of second connections complete here too
 * (second-connections.ts), and have entries of the queue of their own.
 *
 * Requests can be collected for a rank (`collectFor`, of aggregate handles). They wait in its connection's backlog, as
 * if there were no room, and so count as issued for whatever waits for operations. They leave together, in lists: one
 * doorbell for up to `LIST` of them, of which only the last asks for a completion (dissertation §9.2). They leave when
 * they are told to (`postCollected`), when anything else is posted to the rank (it comes behind them), and when this
 * rank looks for completions (`postWaiting`), so that no wait of this rank depends on what it has not posted.
 */

import type { RmaError } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import type { Origins } from '../../job/origins.ts';
import { lostConnection, lostQueue } from '../../message/lost-connection.ts';
import { WatchedQueue } from '../../message/watched-queue.ts';
import { type CompletionQueue, WcStatus } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import type { ProtectionDomain } from '../../verbs/memory.ts';
import type { Processor } from '../../verbs/processor.ts';
import { type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';
import { type Answer, Answers } from './answers.ts';
import {
  type BacklogEntry,
  type BuildListed,
  type Connections,
  type ConnectionTrace,
  DEPTH,
  type WindowConnection,
} from './connections.ts';
import { OperationFailures } from './operation-failures.ts';
import { OriginRegistrations } from './origin-registrations.ts';
import type { Left } from './scratch.ts';
import { FIRST_BATCH, type MessageTrace, SecondConnections } from './second-connections.ts';

/** Completions that are fetched by one poll. */
const POLLED = 64;

/**
 * Identities of requests: a rank's number, or from here on that of an answer's slot, or (second-connections.ts) of
 * messages, or how many requests a list has and the rank's number.
 */
const FIRST_SLOT = 2 ** 20;
const FIRST_LIST = 2 ** 40;
const LIST_STEP = 2 ** 20;
/** Requests of a list: the device begins with the first when all are written. */
const LIST = 16;

/**
 * Records requests: it is told when one has been posted, and when that is known to be complete, in the order of
 * posting. Ranks are the window's.
 */
export interface RequestTrace extends MessageTrace, ConnectionTrace {
  /** @param turn that of the call for which it is (`RequestTransfer.nextTurn`) */
  posted(rank: number, turn: number): void;
  completed(rank: number): void;
}

/** What is posted with others: requests that count as posted. */
interface ListedEntry extends BacklogEntry {
  /** How many requests of the connection were issued before. */
  readonly behind: number;
}

/** Writes a request into the queue pair. @param id its identity */
type Build = (qp: QueuePair, id: number, answers: Answers, slot: number) => void;

export class Outstanding {
  readonly registrations: OriginRegistrations;
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #queue: WatchedQueue;
  readonly #connections: Connections;
  readonly #trace: RequestTrace | undefined;
  readonly #processor: Processor;
  /** Made with the first request that has a result. */
  #answers: Answers | undefined;
  /** Requests that are posted and not complete. */
  #posted = 0;
  /** Requests that wait for room. */
  #waiting = 0;
  /** Set once: nothing is sent any more, and every wait fails. */
  #lost: RmaError | undefined;
  #closed = false;
  /** Entries of the completion queue that second connections have. */
  readonly #reserve: number;
  /** And all other requests. */
  readonly #capacity: number;
  #second: SecondConnections | undefined;
  readonly failures = new OperationFailures();
  #stir: () => void = () => {};
  /** The rank for which requests are collected now; −1: none. */
  #collecting = -1;

  /** @param reserve how much of the completion queue is for second connections: from 0 to 1 */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    connections: Connections,
    origins: Origins,
    trace: RequestTrace | undefined,
    processor: Processor,
    reserve: number,
  ) {
    this.#context = context;
    this.#pd = pd;
    this.#queue = new WatchedQueue(cq, POLLED, (error) => this.loseQueue(error));
    this.#connections = connections;
    this.registrations = new OriginRegistrations(origins, () => this.#isSilent);
    this.#reserve = Math.round(reserve * cq.capacity);
    this.#capacity = cq.capacity - this.#reserve;
    this.#trace = trace;
    this.#processor = processor;
  }

  /** Made when it is first asked for. */
  get second(): SecondConnections {
    this.#stir();
    this.#second ??= new SecondConnections(
      this.#context,
      this.#pd,
      this.#queue.cq,
      this.registrations,
      (rank) => this.#connections.memberOf(rank),
      (rank, status) => this.lose(this.#connections.to(rank), status, 'a message'),
      this.#reserve,
      this.#trace,
    );
    return this.#second;
  }

  /** Whether nothing is under way. */
  get #isSilent(): boolean {
    return this.#posted === 0 && this.#second?.isSilent !== false;
  }

  /** @param stir is called when something is posted, or waits for room, and nothing was or did before */
  whenBusy(stir: () => void): void {
    this.#stir = stir;
  }

  /** Whether nothing is under way, and no wait need be told of something that is lost. */
  get isQuiet(): boolean {
    return this.#posted === 0 && this.#waiting === 0 && this.#second === undefined && this.#lost === undefined;
  }

  /** Whether nothing is under way to a rank, and something may be. */
  isSilentTo(rank: number): boolean {
    const { outstanding, waiting } = this.#connections.to(rank);
    return outstanding === 0 && waiting === 0 && !this.#closed && this.#lost === undefined;
  }

  /** The window was freed: nothing is posted any more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Requests that are posted and not complete. */
  get posted(): number {
    return this.#posted;
  }

  /** These and those that wait for room. */
  get count(): number {
    return this.#posted + this.#waiting;
  }

  /** Whether a request can be posted on the connection now, behind no other. */
  mayPost(connection: WindowConnection): boolean {
    const waits = connection.backlog.length > 0 || connection.rank === this.#collecting;
    return this.#lost === undefined && !waits && this.#hasRoom(connection);
  }

  /** Collects what is posted to a rank until `postCollected`; with −1, no longer: what was collected waits on. */
  collectFor(rank: number): void {
    this.#collecting = rank;
  }

  /** Whether what is posted to a rank now is collected. */
  collectsFor(rank: number): boolean {
    return rank === this.#collecting;
  }

  /** Posts what was collected for a rank, as far as there is room; the rest follows when there is. */
  postCollected(rank: number): void {
    const connection = this.#connections.to(rank);
    if (connection.collected === 0 || this.#closed) return;
    this.collect();
    this.#postBacklog(connection);
  }

  /** A request has been posted, not by `post`. */
  notePosted(connection: WindowConnection): void {
    connection.issued++;
    this.#count(connection, this.failures.turn);
  }

  /** @param turn in which it was issued */
  #count(connection: WindowConnection, turn: number): void {
    connection.outstanding++;
    if (this.#posted++ === 0) this.#stir();
    this.#trace?.posted(connection.rank, turn);
  }

  /** @param asking requests with a result that are about to be posted, at most */
  #hasRoom({ outstanding }: WindowConnection, asking = 0): boolean {
    return (
      outstanding < DEPTH && this.#posted < this.#capacity && this.#hasSlots(asking) && !this.registrations.draining
    );
  }

  #hasSlots(taken: number): boolean {
    return this.#answers === undefined || this.#answers.room > taken;
  }

  /**
   * Posts a request, at once or when there is room.
   * @param origin what must be registered for it, if anything
   * @param counted it raises a completion at the target, which the next fence counts
   */
  post(rank: number, build: (qp: QueuePair) => void, origin?: ArrayBufferLike, counted = false): void {
    this.postList(rank, 1, build, origin, counted);
  }

  /**
   * Posts `count` requests in lists, each with one doorbell, as there is room for them. Of a list, only the last
   * request raises a completion here, which says it of all.
   * @param quiet as of `BacklogEntry`
   */
  postList(
    rank: number,
    count: number,
    build: BuildListed,
    origin?: ArrayBufferLike,
    counted = false,
    quiet = false,
  ): void {
    if (this.#closed) return;
    const connection = this.#connections.to(rank);
    const { backlog } = connection;
    const collected = rank === this.#collecting;
    if (collected) connection.collected++;
    else if (connection.collected > 0) this.postCollected(rank);
    else if (!this.#hasRoom(connection)) this.collect();
    const now = !collected && backlog.length === 0 && this.#hasRoom(connection) && this.registrations.register(origin);
    connection.issued += count;
    const { turn } = this.failures;
    const entry = { build, count, posted: 0, origin, counted, quiet, collected, turn };
    if (now) {
      try {
        do this.#send(connection, entry);
        while (entry.posted < count && this.#hasRoom(connection));
      } catch (error) {
        connection.noteRefused(connection.issued - (count - entry.posted), count - entry.posted);
        throw error;
      }
    }
    const left = count - entry.posted;
    if (left === 0) return;
    backlog.push(entry);
    connection.waiting += left;
    this.#waiting += left;
    this.#stir();
  }

  /**
   * Posts a request with a slot. Errors: those of the device, where it has no room for what such requests need.
   * @param again as of `RemoteAccess.compareSwap`
   */
  ask(rank: number, answer: Answer, build: Build, again = false): void {
    if (this.#closed) return;
    // If they were refused when the request is posted, perhaps later, those that wait for the answer would not be told.
    this.#connections.queuePairTo(rank);
    this.#answers ??= new Answers(this.#context, this.#pd);
    const answers = this.#answers;
    // A list that cannot be posted is built again, one by one.
    let slot = -1;
    this.post(rank, (qp) => {
      this.#connections.to(rank).reading = true;
      if (slot < 0) slot = answers.slotFor(answer);
      if (again) this.#processor.asks();
      build(qp, FIRST_SLOT + slot, answers, slot);
    });
  }

  /** Posts a request of which `left` says whether it is complete. */
  track(rank: number, left: Left, build: Build): void {
    left.count++;
    const answer = (): void => {
      if (--left.count === 0) left.whenNone?.();
    };
    this.ask(rank, answer, build);
  }

  /** Posts as many requests of an entry as there is room for, one at least. */
  #send(connection: WindowConnection, entry: BacklogEntry): void {
    const { build, count, posted, counted, turn } = entry;
    // They would complete as flushed.
    if (this.#lost !== undefined) {
      entry.posted = count;
      return;
    }
    const { rank } = connection;
    const room = Math.min(LIST, DEPTH - connection.outstanding, this.#capacity - this.#posted);
    const n = Math.min(count - posted, room);
    const qp = this.#connections.queuePairTo(rank);
    qp.wrStart();
    try {
      for (let i = 1; i < n; i++) build(qp, posted + i - 1, FIRST_LIST + rank, 0);
      build(qp, posted + n - 1, n === 1 ? rank : FIRST_LIST + n * LIST_STEP + rank, SendFlag.SIGNALED);
      qp.wrComplete();
    } catch (error) {
      // Nothing was posted, so there is nothing to wait for.
      qp.wrAbort();
      throw error;
    }
    entry.posted = posted + n;
    for (let i = 0; i < n; i++) this.#count(connection, turn);
    if (counted) connection.sent += n;
  }

  /** Posts what waited for room. What cannot be posted has failed (`refuseFailed`). */
  postWaiting(): void {
    if (this.registrations.draining && this.#isSilent) {
      this.registrations.drained();
      this.#second?.noteRoom();
    }
    if (this.#waiting === 0) return;
    for (const connection of this.#connections.all) if (!this.#postBacklog(connection)) break;
  }

  /** @returns false if nothing more can be posted to any rank now */
  #postBacklog(connection: WindowConnection): boolean {
    const { backlog } = connection;
    while (backlog.length > 0 && this.#hasRoom(connection)) {
      const entry = backlog.first!;
      if (entry.collected) {
        if (!this.#postTogether(connection)) return false;
        continue;
      }
      const left = entry.count - entry.posted;
      try {
        // What the program has taken away since is found when the request is built.
        if (!isGone(entry.origin) && !this.registrations.register(entry.origin)) return false;
        this.#send(connection, entry);
      } catch (error) {
        this.#refuse(connection, entry, left, error);
        continue;
      }
      if (entry.posted === entry.count) this.#drop(connection, left);
      else this.#noteSent(connection, left - (entry.count - entry.posted));
    }
    return true;
  }

  /** The first entry of the backlog cannot be posted. @param requests that were left of it */
  #refuse(connection: WindowConnection, { turn }: BacklogEntry, requests: number, error: unknown): void {
    const { behind } = connection;
    this.#drop(connection, requests);
    connection.noteRefused(behind, requests);
    this.noteFailure(error, connection.rank, turn);
  }

  /** The first entry of the backlog waits no more. @param requests that were left of it */
  #drop(connection: WindowConnection, requests: number): void {
    connection.backlog.shift();
    this.#noteSent(connection, requests);
  }

  /** So many requests wait no more. */
  #noteSent(connection: WindowConnection, requests: number): void {
    connection.waiting -= requests;
    this.#waiting -= requests;
  }

  /**
   * Posts requests that were collected, with one doorbell: as many as there is room for, and up to `LIST`. If one
   * cannot be posted, the others are posted all the same.
   * @returns false if nothing more can be posted to any rank now
   */
  #postTogether(connection: WindowConnection): boolean {
    const { backlog } = connection;
    const parts: ListedEntry[] = [];
    let total = 0;
    // Counted as posted at once: otherwise a registration could take the place of one that this list needs.
    while (backlog.first?.collected === true && total < LIST && this.#hasRoom(connection, total)) {
      const entry = backlog.first;
      const { count, posted, origin } = entry;
      try {
        // What the program has taken away since is found when the request is built.
        if (!isGone(origin) && !this.registrations.register(origin)) break;
      } catch (error) {
        connection.collected--;
        this.#refuse(connection, entry, count - posted, error);
        continue;
      }
      const room = Math.min(LIST - total, DEPTH - connection.outstanding, this.#capacity - this.#posted);
      const n = Math.min(count - posted, room);
      parts.push(partOf(entry, posted + n, connection.behind));
      entry.posted += n;
      total += n;
      for (let i = 0; i < n; i++) this.#count(connection, entry.turn);
      if (entry.posted < count) this.#noteSent(connection, n);
      else {
        connection.collected--;
        this.#drop(connection, n);
      }
    }
    this.#sendTogether(connection, parts);
    return !this.registrations.draining;
  }

  /** @param parts requests that count as posted: of each entry those from `posted` to `count` */
  #sendTogether(connection: WindowConnection, parts: readonly ListedEntry[]): void {
    // They would complete as flushed.
    if (this.#lost !== undefined || parts.length === 0) return;
    const { rank } = connection;
    const quiet = parts.filter((part) => part.quiet);
    const last = quiet.at(-1);
    const requests = quiet.reduce((sum, { count, posted }) => sum + count - posted, 0);
    let qp: QueuePair | undefined;
    try {
      // The other end may be gone.
      qp = this.#connections.queuePairTo(rank);
      qp.wrStart();
      for (const part of parts) {
        for (let i = part.posted; i < part.count; i++) {
          const isLast = part === last && i === part.count - 1;
          // Completions of the others, which come with errors only, complete none.
          const id = FIRST_LIST + (isLast ? requests * LIST_STEP : 0) + rank;
          part.build(qp, i, id, isLast ? SendFlag.SIGNALED : 0);
        }
      }
      qp.wrComplete();
    } catch {
      qp?.wrAbort();
      this.#sendSingly(connection, parts);
      return;
    }
    for (const { counted, count, posted } of parts) if (counted) connection.sent += count - posted;
  }

  /** One of them cannot be posted; the others can. */
  #sendSingly(connection: WindowConnection, parts: readonly ListedEntry[]): void {
    for (const part of parts) {
      const requests = part.count - part.posted;
      connection.outstanding -= requests;
      this.#posted -= requests;
      try {
        this.#send(connection, part);
      } catch (error) {
        connection.noteRefused(part.behind, requests);
        this.noteFailure(error, connection.rank, part.turn);
      }
    }
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** An operation to a rank has failed; with −1, one to a rank that is not known. A lost connection says so itself. */
  noteFailure(error: unknown, rank: number, turn?: number): void {
    if (error === this.#lost) return;
    this.failures.note(error, rank, turn);
  }

  /**
   * For calls that wait for operations to `rank`, or to all: says once why one has failed. Errors: the operation's,
   * unless `failed` is there to be told.
   * @param last the last turn of the operations that are waited for
   */
  refuseFailed(
    rank: number | undefined,
    failed?: (error: unknown) => void,
    last: number = Number.POSITIVE_INFINITY,
  ): void {
    this.failures.tell(rank, failed, last);
  }

  /** Takes in what has completed. Errors: `ERR_VERBS` (a connection is lost, or a queue). */
  takeCompletions(): void {
    this.collect();
    this.refuseIfLost();
  }

  refuseIfLost(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** All that has completed, well or not. */
  collect(): void {
    const queue = this.#queue;
    for (;;) {
      const n = queue.fetch();
      const { status, qpNum, wrId } = queue.cq.wc;
      for (let i = 0; i < n; i++) {
        const id = wrId[i];
        if (id >= FIRST_LIST) {
          const list = id - FIRST_LIST;
          this.#complete(this.#connections.to(list % LIST_STEP), Math.floor(list / LIST_STEP), status[i]);
        } else if (id >= FIRST_BATCH) this.#second!.completed(id, status[i]);
        else if (id < FIRST_SLOT) this.#complete(this.#connections.to(id), 1, status[i]);
        else {
          this.#complete(this.#connections.numbered(qpNum[i]), 1, status[i]);
          if (status[i] === WcStatus.SUCCESS) this.#answers!.arrived(id - FIRST_SLOT);
        }
      }
      // Fewer than asked for: most likely there are no more. If there are, asking for a notification says so.
      if (n < POLLED) break;
    }
    queue.wantNews();
    this.#second?.settle();
  }

  /**
   * A queue of the window's is lost, as every wait of the window says from now on.
   * @param error what a look at it has thrown
   */
  loseQueue(error: unknown, what = 'the requests of a window'): void {
    const lost = lostQueue(error, what);
    this.#queue.isLost = true;
    this.#lost ??= lost;
  }

  get isQueueLost(): boolean {
    return this.#queue.isLost;
  }

  #complete(connection: WindowConnection, requests: number, status: number): void {
    connection.noteComplete(requests);
    this.#posted -= requests;
    if (status !== WcStatus.SUCCESS) this.lose(connection, status, 'a request');
    else for (let i = 0; i < requests; i++) this.#trace?.completed(connection.rank);
  }

  /** A queue pair carries nothing after an error, and the window is of no use without it. */
  lose({ rank }: WindowConnection, status: number, what: string): void {
    this.#lost ??= lostConnection(this.#context, this.#connections.memberOf(rank), status, what);
  }

  /** Nothing is posted any more, and what is posted leads nowhere. */
  stop(): void {
    this.#connections.close();
    this.#second?.close();
    this.#closed = true;
  }

  close(): void {
    this.#queue.cq.destroy();
    this.registrations.close();
    this.#answers?.close();
  }
}

/** An entry's requests up to `count`. Written out: to copy it and add a property took V8 some 11,400 instructions. */
function partOf(entry: BacklogEntry, count: number, behind: number): ListedEntry {
  const { build, posted, origin, counted, quiet, collected, turn } = entry;
  return { build, count, posted, origin, counted, quiet, collected, turn, behind };
}

function isGone(origin: ArrayBufferLike | undefined): boolean {
  return origin !== undefined && bytesIn(origin) === 0;
}
