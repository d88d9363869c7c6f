/**
 * Requests of a window that are posted and not complete, on all its connections together, and those that wait for room:
 * at most `DEPTH` a connection, in all as many as the completion queue and the slots for answers have room for, and
 * none while a registration waits (registrations.ts).
 *
 * A request with a result (an atomic, a read or write that the library itself waits for) has a slot (answers.ts), whose
 * number is its identity; that of any other is the target's rank.
 *
 * Requests can be collected for a rank (`collectFor`, of aggregate handles): they wait in its connection's backlog, as
 * if there were no room, and so are issued for whatever waits for operations. They leave as lists: one doorbell for
 * up to `LIST` of them, of which only the last asks for a completion (dissertation §9.2). They leave when they are told
 * to (`postCollected`), when anything else is to be posted to the rank, which comes behind them, and when this rank
 * looks for completions (`postWaiting`), so that no wait of it depends on what it has not posted.
 */
import type { ProcessorTime } from '../comm/job.ts';
import { lostConnection } from '../comm/lost-connection.ts';
import type { Origins } from '../comm/origins.ts';
import type { LostConnectionError } from '../errors.ts';
import { bytesIn } from '../intrinsics.ts';
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';
import type { ProtectionDomain } from '../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import { type Answer, Answers } from './answers.ts';
import { type BacklogEntry, type Build, type Connection, type Connections, DEPTH } from './connections.ts';
import { Registrations } from './registrations.ts';
import type { Left } from './scratch.ts';

/** Completions that are fetched by one poll. */
const POLLED = 64;

/** Identities of requests: a rank's number, or from here on that of an answer's slot. */
const FIRST_SLOT = 2 ** 20;

/**
 * Requests of a list at most. A doorbell saved is worth the less the longer the list is, and the adapter begins with
 * the first only when the last is written: on the modelled fabrics, 64 puts of 1 KiB in one list take 7 % longer than
 * 64 that are posted one by one, and in four lists 3 %.
 */
const LIST = 16;
/**
 * From here on an identity is that of a request of a list: as many times `LISTED` as its completion completes requests,
 * and one more. Those that ask for none complete none: their completion comes only with an error.
 */
const LISTED = 2 ** 32;

/**
 * Who records requests: told when one has been posted, and when it is known to be complete, in the order of posting.
 * Ranks are the window's.
 */
export interface RequestTrace {
  posted(rank: number): void;
  completed(rank: number): void;
}

/** Writes a request with a slot into the queue pair. @param id its identity */
type Asking = (qp: QueuePair, id: number, answers: Answers, slot: number) => void;

export class Outstanding {
  readonly registrations: Registrations;
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;
  readonly #connections: Connections;
  readonly #trace: RequestTrace | undefined;
  readonly #processor: ProcessorTime | undefined;
  /** Made with the first request that has a result. */
  #answers: Answers | undefined;
  /** Requests that are posted and not complete. */
  #posted = 0;
  /** Requests that wait for room. */
  #waiting = 0;
  /** Set once: nothing is sent any more, and every wait fails. */
  #lost: LostConnectionError | undefined;
  #closed = false;
  /** Why the first one of those that were collected, and could not be posted, could not. */
  #failure: { readonly error: unknown } | undefined;
  /** The rank for which requests are collected now; −1: none. */
  #collecting = -1;

  constructor(
    context: Context,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    connections: Connections,
    origins: Origins,
    trace: RequestTrace | undefined,
    processor: ProcessorTime | undefined,
  ) {
    this.#context = context;
    this.#pd = pd;
    this.#cq = cq;
    this.#connections = connections;
    this.registrations = new Registrations(origins, () => this.#posted === 0);
    this.#trace = trace;
    this.#processor = processor;
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
  mayPost(connection: Connection): boolean {
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
  notePosted(connection: Connection): void {
    connection.issued++;
    this.#count(connection);
  }

  #count(connection: Connection): void {
    connection.outstanding++;
    this.#posted++;
    this.#trace?.posted(connection.rank);
  }

  /** @param asking requests with a result that are about to be posted, at most */
  #hasRoom({ outstanding }: Connection, asking = 0): boolean {
    return (
      outstanding < DEPTH && this.#posted < this.#cq.capacity && this.#hasSlots(asking) && !this.registrations.draining
    );
  }

  #hasSlots(taken: number): boolean {
    return this.#answers === undefined ? taken < DEPTH : this.#answers.room > taken;
  }

  /**
   * Posts a request, at once or when there is room.
   * @param origin what must be registered for it, if anything
   * @param counted it raises a completion at the target, which the next fence counts
   * @param quiet as of `BacklogEntry`
   */
  post(rank: number, build: Build, origin?: ArrayBufferLike, counted = false, quiet = false): void {
    if (this.#closed) return;
    const connection = this.#connections.to(rank);
    const { backlog } = connection;
    const collected = rank === this.#collecting;
    if (collected) connection.collected++;
    else if (connection.collected > 0) this.postCollected(rank);
    else if (!this.#hasRoom(connection)) this.collect();
    const free = !collected && backlog.length === 0 && this.#hasRoom(connection);
    const now = free && this.registrations.register(origin);
    connection.issued++;
    if (now) this.#send(connection, build, counted);
    else {
      backlog.push({ build, origin, counted, quiet, collected });
      this.#waiting++;
    }
  }

  /**
   * Posts a request with a slot.
   * @param again as of `RequestTransfer.compareSwap`
   */
  ask(rank: number, answer: Answer, build: Asking, again = false): void {
    // A list that cannot be posted is built again, one by one.
    let slot = -1;
    this.post(rank, (qp) => {
      this.#connections.to(rank).reading = true;
      this.#answers ??= new Answers(this.#context, this.#pd);
      if (slot < 0) slot = this.#answers.slotFor(answer);
      if (again) this.#processor?.asks();
      build(qp, FIRST_SLOT + slot, this.#answers, slot);
    });
  }

  /** Posts a request of which `left` says whether it is complete. */
  track(rank: number, left: Left, build: Asking): void {
    left.count++;
    const answer = (): void => {
      if (--left.count === 0) left.whenNone?.();
    };
    this.ask(rank, answer, build);
  }

  #send(connection: Connection, build: Build, counted: boolean): void {
    // It would complete as flushed.
    if (this.#lost !== undefined) return;
    const qp = this.#connections.queuePairTo(connection.rank);
    qp.wrStart();
    try {
      build(qp, connection.rank, SendFlag.SIGNALED);
      qp.wrComplete();
    } catch (error) {
      // Nothing was posted, so nothing is to be waited for.
      qp.wrAbort();
      connection.issued--;
      throw error;
    }
    this.#count(connection);
    if (counted) connection.sent++;
  }

  /** Posts what waited for room. */
  postWaiting(): void {
    if (this.registrations.draining && this.#posted === 0) this.registrations.drained();
    if (this.#waiting === 0) return;
    for (const connection of this.#connections.all) if (!this.#postBacklog(connection)) break;
    this.#refuseFailed();
  }

  /** @returns false if nothing more can be posted to any rank now */
  #postBacklog(connection: Connection): boolean {
    const { backlog } = connection;
    while (backlog.length > 0 && this.#hasRoom(connection)) {
      const { build, origin, counted, collected } = backlog.first!;
      if (collected) {
        if (!this.#postList(connection)) return false;
        continue;
      }
      let registered = false;
      try {
        registered = this.registrations.register(origin);
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

  /**
   * Posts requests that were collected, with one doorbell: as many as there is room for, and up to `LIST`. One that
   * cannot be posted does not keep the others from it; why, the next look for completions says.
   * @returns false if nothing more can be posted to any rank now
   */
  #postList(connection: Connection): boolean {
    const { backlog } = connection;
    // Before anything is taken: the other end may be gone.
    const qp = this.#connections.queuePairTo(connection.rank);
    const list: BacklogEntry[] = [];
    let registered = true;
    // Counted as posted at once: otherwise a registration could take the place of one that this list needs.
    while (backlog.first?.collected === true && list.length < LIST && this.#hasRoom(connection, list.length)) {
      const { origin } = backlog.first;
      try {
        // What the program has taken away since is found when the request is built.
        registered = isGone(origin) || this.registrations.register(origin);
        if (!registered) break;
        list.push(backlog.first);
        this.#count(connection);
      } catch (error) {
        this.#failure ??= { error };
        connection.issued--;
      }
      backlog.shift();
      connection.collected--;
      this.#waiting--;
    }
    this.#sendList(connection, qp, list);
    return registered;
  }

  /** @param list requests that count as posted */
  #sendList(connection: Connection, qp: QueuePair, list: readonly BacklogEntry[]): void {
    // They would complete as flushed.
    if (this.#lost !== undefined || list.length === 0) return;
    const { rank } = connection;
    const quiet = list.filter((entry) => entry.quiet);
    const last = quiet.at(-1);
    qp.wrStart();
    try {
      for (const entry of list) {
        const isLast = entry === last;
        entry.build(qp, rank + LISTED * (isLast ? 1 + quiet.length : 1), isLast ? SendFlag.SIGNALED : 0);
      }
      qp.wrComplete();
    } catch {
      qp.wrAbort();
      this.#sendSingly(connection, list);
      return;
    }
    for (const { counted } of list) if (counted) connection.sent++;
  }

  /** One of a list cannot be posted; the others can. */
  #sendSingly(connection: Connection, list: readonly BacklogEntry[]): void {
    for (const { build, counted } of list) {
      connection.outstanding--;
      this.#posted--;
      try {
        this.#send(connection, build, counted);
      } catch (error) {
        this.#failure ??= { error };
      }
    }
  }

  /** Says once why one of those that were collected could not be posted. */
  #refuseFailed(): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    this.#failure = undefined;
    throw failure.error;
  }

  /**
   * Takes in what has completed. Errors: `ERR_VERBS` (a connection is lost); why one of those that were collected could
   * not be posted.
   */
  takeCompletions(): void {
    this.collect();
    this.refuseIfLost();
    this.#refuseFailed();
  }

  refuseIfLost(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** All that has completed, well or not. */
  collect(): void {
    for (;;) {
      const n = this.#cq.poll(POLLED);
      const { status, qpNum, wrId } = this.#cq.wc;
      for (let i = 0; i < n; i++) {
        const id = wrId[i];
        const connection = id < FIRST_SLOT ? this.#connections.to(id) : this.#connections.numbered(qpNum[i]);
        const complete = id < LISTED ? 1 : Math.floor(id / LISTED) - 1;
        connection.outstanding -= complete;
        if (connection.outstanding === 0) connection.reading = false;
        this.#posted -= complete;
        if (status[i] !== WcStatus.SUCCESS) this.lose(connection, status[i], 'a request');
        else {
          for (let k = 0; k < complete; k++) this.#trace?.completed(connection.rank);
          if (id >= FIRST_SLOT && id < LISTED) this.#answers!.arrived(id - FIRST_SLOT);
        }
      }
      // Fewer than asked for: most likely there are no more. If there are, asking for a notification says so.
      if (n < POLLED) break;
    }
    this.#cq.reqNotify();
  }

  /** A queue pair carries nothing after an error, and the window is of no use without it. */
  lose({ rank }: Connection, status: number, what: string): void {
    this.#lost ??= lostConnection(this.#context, this.#connections.memberOf(rank), status, what);
  }

  /** Nothing is posted any more, and what is posted leads nowhere. */
  stop(): void {
    this.#connections.close();
    this.#closed = true;
  }

  close(): void {
    this.#cq.destroy();
    this.registrations.close();
    this.#answers?.close();
  }
}

function isGone(origin: ArrayBufferLike | undefined): boolean {
  return origin !== undefined && bytesIn(origin) === 0;
}
