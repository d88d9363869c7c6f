/**
 * Locks by messages: the agent at each target that gives out the lock of its rank's part, and the side of the origins
 * that ask. It does so whenever its rank waits in the library, now and then in its calls on the window that do not
 * wait, and when its event loop turns; a rank that computes on and on serves nobody meanwhile.
 *
 *   LOCK sequence, exclusive, attempt, news    ->   GRANT sequence, how      or, to an attempt, REFUSAL sequence
 *   UNLOCK sequence                                 also of a lock that was asked for and is no longer wanted
 *   OPERATIONS id, what is queued              ->   DONE id, what was fetched    or FAILURE id, code and message
 *   ONE id, exclusive, one operation           ->   the same, and how: lock, operation and unlock in one message
 *
 * The line. Requests stand in one line in the order of their arrival. The agent serves its head: it takes the lock
 * itself (its `Gate`: nothing where all go through the agent; the lock word where others also take the lock by other
 * ways), grants it, and gives it back when all that it was granted to have unlocked. Behind a shared head come those
 * shared requests that follow it directly, also such as arrive while it is held, until `Gate.batch` have been let in.
 * So nobody in the line is overtaken by a request of another kind, nobody waits for more than those before it and their
 * batch, and an exclusive holder is alone: it is the only one that was granted anything since the gate was taken.
 *
 * Leaving. Messages of one origin arrive in order, so an UNLOCK finds its request in the line (it leaves it), or the
 * lock granted (it is over), or, where the lock was handed over for good (`Grant.HANDED`), nothing: then the origin
 * gives it back by itself, also if the grant comes after it has stopped waiting.
 *
 * Operations of an origin are carried out when they arrive, unless it waits in the line: then when it is granted the
 * lock. An origin whose epoch has no lock (`NO_CHECK`) does not stand there. One that was handed the lock gives it back
 * when its operations are answered; so they, too, are carried out while it has it.
 */
import type { OwnChannel } from '../../comm/communicator.ts';
import type { ProcessorTime } from '../../comm/job.ts';
import type { Operation } from '../../comm/operation.ts';
import { RmaError } from '../../errors.ts';
import { MESSAGE_HEADER, type OperationQueue, type QueuedOperations } from '../../transfer/operation-queue.ts';
import type { OperationServer } from '../../transfer/operation-server.ts';
import { answerTo, failureIn } from '../../transfer/served-messages.ts';
import type { Attempt, LockCounts } from './scheme.ts';

const Message = Object.freeze({
  LOCK: 1,
  GRANT: 2,
  REFUSAL: 3,
  UNLOCK: 4,
  OPERATIONS: 5,
  DONE: 6,
  FAILURE: 7,
  ONE_EXCLUSIVE: 8,
  ONE_SHARED: 9,
});
/** The first word of an answer: which it is, and how the lock was granted. */
const WHAT = 0xff;
const HOW_SHIFT = 8;

/** Bytes of the message of an operation, with what it fetches, that travels with its lock and unlock. */
const SMALL = 16_384;

/** Calls that do not wait, from one look at messages to the next; a power of two. */
const TURNS = 16;

/** Words of a LOCK. */
const LOCK_WORDS = 5;

/**
 * How a lock that was granted is given back: by a message to the agent, or by the origin itself, which was handed it.
 * Of a hybrid lock, `BY_AGENT_IN_NETWORK_MODE` says besides what mode the agent has found.
 */
export const Grant = Object.freeze({ BY_AGENT: 0, HANDED: 1, BY_AGENT_IN_NETWORK_MODE: 2 });

/** A request as the agent has it. */
export interface LockRequest {
  readonly origin: number;
  readonly exclusive: boolean;
  /** It does not wait: it is granted at once or refused. */
  readonly attempt: boolean;
  /**
   * It is nothing but one operation: its lock ends with it, and its answer is that operation's. Nobody is there who
   * could be handed the lock.
   */
  readonly isOne: boolean;
}

interface QueuedRequest extends LockRequest {
  readonly sequence: number;
  /** Messages with operations that wait for the grant. */
  readonly operations: Uint8Array[];
}

/** What the agent must hold while it has granted the lock. */
export interface Gate {
  /** How many shared holders are let in before it is given back in between. */
  readonly batch: number;
  /** A request has arrived that is not one operation. @param news what its origin has said with it */
  note?(request: LockRequest, news: number): void;
  /** Takes it for a request. @returns how that is granted; `undefined` if it was an attempt, and is refused */
  take(request: LockRequest): Generator<void, number | undefined>;
  /**
   * Gives it back.
   * @param how what `take` has returned; `HANDED` if it was taken for a request that is gone.
   * @param full the batch was: others are to have a turn
   */
  give(request: LockRequest, how: number, full: boolean): Generator<void, void>;
  /** Milliseconds after which it goes on though nobody rings. */
  readonly due?: number;
  /**
   * What it does takes place in the order of virtual time (`ProcessorTime.inOrder`), and so does all that it is asked
   * for.
   */
  readonly processor?: ProcessorTime | undefined;
}

/** The gate where all go through the agent. */
export const NO_GATE: Gate = {
  batch: Number.POSITIVE_INFINITY,
  // biome-ignore lint/correctness/useYield: nothing is waited for
  *take() {
    return Grant.BY_AGENT;
  },
  *give() {},
};

/** A request as its origin has it. */
export class Ask {
  state: 'deferred' | 'waiting' | 'granted' | 'refused' | 'left' = 'waiting';
  /** One of `Grant`, once it is granted, or its operation is done. */
  how: number = Grant.BY_AGENT;
  readonly target: number;
  readonly sequence: number;
  readonly exclusive: boolean;

  constructor(target: number, sequence: number, exclusive: boolean) {
    this.target = target;
    this.sequence = sequence;
    this.exclusive = exclusive;
  }
}

/** A message with operations. @param lock the one that travels with it */
interface Unanswered {
  readonly id: number;
  readonly queued: QueuedOperations;
  readonly lock: Ask | undefined;
}

export class LockAgent {
  readonly #counts: LockCounts;
  readonly #channel: OwnChannel;
  readonly #gate: Gate;
  readonly #server: OperationServer | undefined;
  readonly #poll: () => void;
  readonly #stop: () => void;
  /** What was granted and is given back by the origin itself though it no longer wants it. */
  readonly #handedTooLate: (target: number) => void;

  // The agent's side.
  readonly #line: QueuedRequest[] = [];
  readonly #holders = new Map<string, QueuedRequest>();
  /** Messages that have come in a task's step: they are taken in order. */
  readonly #early: { readonly source: number; readonly message: Uint8Array }[] = [];
  readonly #work: Generator<void, void>;
  #working = false;
  #again = false;
  #turns = 0;
  #closed = false;
  /** Shared requests may still join the holders; how many have. */
  #admitting = false;
  #admitted = 0;

  // The origins' side.
  readonly #asks = new Map<number, Ask>();
  #lastSequence = 0;
  /** Requests that leave when there is something to do under the lock, by target. */
  readonly #deferred: (Ask | undefined)[] = [];
  /** Messages with operations that were not answered, by target, oldest first. */
  readonly #unanswered: Unanswered[][];
  readonly #queue: OperationQueue | undefined;
  #lastId = 0;
  /** By target, the first of its operations that has failed since somebody was told. */
  readonly #failures = new Map<number, unknown>();

  /**
   * @param channel nothing else goes through it
   * @param counts what it sends and gives out is counted there
   * @param poll brings messages in
   * @param queue what this rank has issued in passive epochs, and @param server what carries out that of others; both
   * or none
   */
  constructor(
    channel: OwnChannel,
    gate: Gate,
    counts: LockCounts,
    poll: () => void,
    handedTooLate: (target: number) => void,
    queue?: OperationQueue,
    server?: OperationServer,
  ) {
    this.#channel = channel;
    this.#gate = gate;
    this.#counts = counts;
    this.#poll = poll;
    this.#handedTooLate = handedTooLate;
    this.#queue = queue;
    this.#server = server;
    this.#unanswered = Array.from({ length: channel.size }, () => []);
    this.#work = this.#serve();
    this.#stop = channel.listen((source, message) => this.#take(source, message));
  }

  /**
   * Brings messages in and goes on with what waits.
   * @returns milliseconds after which it has something to do that nobody rings for
   */
  advance(): number {
    this.#poll();
    this.kick();
    return this.#gate.due ?? Number.POSITIVE_INFINITY;
  }

  /**
   * For calls that may never wait: does `advance` now and then, so that a rank which only makes such calls serves
   * others, too.
   */
  turn(): void {
    this.#turns = (this.#turns + 1) & (TURNS - 1);
    if (this.#turns === 0 && !this.#closed) this.advance();
  }

  /** Goes on with what waits. Something of this rank's own may have made it possible. */
  kick(): void {
    if (this.#working) {
      this.#again = true;
      return;
    }
    if (this.#gate.processor?.inOrder === false) {
      // Then it is called again.
      this.#gate.processor.touch(() => {});
      return;
    }
    this.#takeEarly();
    this.#working = true;
    try {
      do {
        this.#again = false;
        this.#work.next();
      } while (this.#again);
    } finally {
      this.#working = false;
    }
  }

  close(): void {
    this.#closed = true;
    this.#stop();
  }

  // ---- origin -------------------------------------------------------------------------------------------------------

  /** @param news a number for the gate at the target */
  ask(target: number, exclusive: boolean, attempt: boolean, news = 0): Ask {
    const ask = this.#newAsk(target, exclusive);
    this.#sendAsk(ask, attempt, news);
    return ask;
  }

  /** Asks when there is something to do under the lock: its operations wait for the grant, this rank need not. */
  askLater(target: number, exclusive: boolean): Ask {
    const ask = this.#newAsk(target, exclusive);
    ask.state = 'deferred';
    this.#deferred[target] = ask;
    return ask;
  }

  #newAsk(target: number, exclusive: boolean): Ask {
    this.#lastSequence = (this.#lastSequence + 1) | 0;
    return new Ask(target, this.#lastSequence, exclusive);
  }

  #sendAsk(ask: Ask, attempt: boolean, news: number): void {
    const { target, sequence, exclusive } = ask;
    this.#asks.set(sequence, ask);
    this.#send(target, Int32Array.of(Message.LOCK, sequence, exclusive ? 1 : 0, attempt ? 1 : 0, news));
  }

  /** Gives back what was granted by the agent, or leaves the line. What was handed over, its holder gives back. */
  unlock(ask: Ask): void {
    const { state, target } = ask;
    if (this.#deferred[target] === ask) this.#deferred[target] = undefined;
    if (state === 'left' || state === 'refused') return;
    ask.state = 'left';
    // Nothing was done under it: nobody has been asked.
    if (state === 'deferred' || (state === 'granted' && ask.how === Grant.HANDED)) return;
    if (state !== 'waiting') this.#asks.delete(ask.sequence);
    this.#send(ask.target, Int32Array.of(Message.UNLOCK, ask.sequence));
  }

  /** Asks, and waits for the grant, of which it tells. Abandoned, it leaves the line. */
  acquire(target: number, exclusive: boolean, onGrant: (ask: Ask) => void): Operation {
    const ask = this.ask(target, exclusive, false);
    return {
      advance: () => {
        if (ask.state === 'waiting') this.advance();
        if (ask.state !== 'granted') return false;
        onGrant(ask);
        return true;
      },
      describe: () =>
        `lock of rank ${target} (waiting for its agent, which serves requests only while that rank is in the library)`,
      abandon: () => this.unlock(ask),
    };
  }

  /**
   * Complete when all that was queued for `rank`, or for all ranks, has been carried out there, and what it fetches is
   * here.
   */
  flush(rank?: number): Operation {
    return this.#flush(rank, false);
  }

  /** The same where the lock is given back: that follows the operations at once. */
  flushLast(rank?: number): Operation {
    return this.#flush(rank, true);
  }

  #flush(rank: number | undefined, last: boolean): Operation {
    const ranks = rank === undefined ? this.#unanswered.map((_, r) => r) : [rank];
    const isDone = (r: number): boolean => this.#unanswered[r].length === 0 && !this.#queue!.has(r);
    return {
      advance: () => {
        for (const r of ranks) this.#deliver(r, last);
        this.advance();
        for (const r of ranks) this.#deliver(r, last);
        this.#throwFailure(ranks);
        return ranks.every(isDone);
      },
      describe: () =>
        `operations at rank ${ranks.filter((r) => !isDone(r)).join(', ')} (waiting for its agent, ` +
        'which serves requests only while that rank is in the library)',
    };
  }

  /** The same for what has been issued so far. */
  soFar(rank: number): Operation {
    const queue = this.#queue!;
    const unanswered = this.#unanswered[rank];
    // Unknown while it waits for the lock.
    let last: number | undefined;
    const ranks = [rank];
    const deliver = (): void => {
      this.deliver(rank);
      if (!queue.has(rank)) last ??= this.#lastId;
    };
    deliver();
    return {
      advance: () => {
        if (last === undefined) deliver();
        this.advance();
        this.#throwFailure(ranks);
        if (last === undefined) return false;
        return unanswered.length === 0 || unanswered[0].id > last;
      },
      describe: () => `a request to rank ${rank}`,
    };
  }

  /** Sends what is queued for `rank`, or asks for the lock for it: then it leaves with the grant. */
  deliver(rank: number): void {
    this.#deliver(rank, false);
  }

  /**
   * @param last nothing else is done under the lock: so it is given back behind operations that fetch nothing, and one
   * small operation travels with its lock and unlock
   */
  #deliver(rank: number, last: boolean): void {
    const ask = this.#deferred[rank];
    const queue = this.#queue!;
    if (ask?.state === 'deferred') {
      if (!queue.has(rank)) return;
      if (last && queue.isOne(rank, SMALL)) {
        this.#sendQueued(rank, ask.exclusive ? Message.ONE_EXCLUSIVE : Message.ONE_SHARED, ask);
        this.#deferred[rank] = undefined;
        ask.state = 'left';
        return;
      }
      ask.state = 'waiting';
      this.#sendAsk(ask, false, 0);
    }
    if (ask?.state === 'waiting') return;
    if (queue.has(rank)) this.#sendQueued(rank, Message.OPERATIONS);
    // What is fetched is read under the lock until it has been sent; what was handed over is held until all is done.
    if (ask?.state !== 'granted' || !last || ask.how === Grant.HANDED) return;
    if (!this.#unanswered[rank].some(({ queued }) => queued.fetches)) this.unlock(ask);
  }

  #sendQueued(rank: number, what: number, lock?: Ask): void {
    const queued = this.#queue!.take(rank);
    const id = ++this.#lastId;
    this.#unanswered[rank].push({ id, queued, lock });
    new Int32Array(queued.message.buffer).set([what, id]);
    this.#counts.operations++;
    this.#channel.give(rank, queued.message);
  }

  /** Tells whoever waits for operations to these ranks of one that has failed. */
  #throwFailure(ranks: readonly number[]): void {
    if (this.#failures.size === 0) return;
    const rank = ranks.find((rank) => this.#failures.has(rank));
    if (rank === undefined) return;
    const failure = this.#failures.get(rank);
    this.#failures.delete(rank);
    throw failure;
  }

  // ---- messages -----------------------------------------------------------------------------------------------------

  #send(target: number, words: Int32Array): void {
    this.#counts.messages++;
    this.#channel.send(target, new Uint8Array(words.buffer));
  }

  #take(source: number, message: Uint8Array): void {
    if (this.#gate.processor?.inOrder === false) this.#early.push({ source, message });
    else {
      this.#takeEarly();
      this.#takeNow(source, message);
    }
    this.kick();
  }

  #takeEarly(): void {
    if (this.#early.length > 0) for (const { source, message } of this.#early.splice(0)) this.#takeNow(source, message);
  }

  #takeNow(source: number, message: Uint8Array): void {
    // Messages have buffers of their own, from the first byte on.
    const words = new Int32Array(message.buffer, message.byteOffset, Math.min(LOCK_WORDS, message.length >> 2));
    const [what, number] = words;
    switch (what) {
      case Message.LOCK:
        this.#asked(source, number, words);
        break;
      case Message.UNLOCK:
        this.#unlocked(source, number);
        break;
      case Message.OPERATIONS: {
        const waiting = this.#line.find(({ origin }) => origin === source);
        if (waiting !== undefined) waiting.operations.push(message);
        else this.#carryOut(source, message, Grant.BY_AGENT);
        break;
      }
      case Message.ONE_EXCLUSIVE:
      case Message.ONE_SHARED: {
        const exclusive = what === Message.ONE_EXCLUSIVE;
        const request = { origin: source, exclusive, attempt: false, sequence: number };
        this.#line.push({ ...request, operations: [message], isOne: true });
        break;
      }
      case Message.GRANT:
        this.#granted(number, words[2]);
        break;
      case Message.REFUSAL: {
        const ask = this.#asks.get(number);
        this.#asks.delete(number);
        if (ask?.state === 'waiting') ask.state = 'refused';
        break;
      }
      default:
        this.#answered(source, number, what, message.subarray(MESSAGE_HEADER));
    }
  }

  #asked(origin: number, sequence: number, words: Int32Array): void {
    const request = {
      origin,
      exclusive: words[2] !== 0,
      attempt: words[3] !== 0,
      sequence,
      operations: [],
      isOne: false,
    };
    this.#gate.note?.(request, words[4]);
    const joins = !request.exclusive && this.#admitting;
    if (request.attempt && (this.#line.length > 0 || (this.#holders.size > 0 && !joins))) this.#refuse(request);
    else this.#line.push(request);
  }

  #unlocked(origin: number, sequence: number): void {
    const key = keyOf(origin, sequence);
    if (this.#holders.delete(key)) return;
    const at = this.#line.findIndex((waiting) => waiting.origin === origin && waiting.sequence === sequence);
    // An answer, so that the origin can forget it.
    if (at >= 0) this.#refuse(this.#line.splice(at, 1)[0]);
  }

  #granted(sequence: number, how: number): void {
    const ask = this.#asks.get(sequence);
    if (ask === undefined) return;
    if (ask.state === 'left') {
      this.#asks.delete(sequence);
      if (how === Grant.HANDED) this.#handedTooLate(ask.target);
      return;
    }
    ask.state = 'granted';
    ask.how = how;
    if (how === Grant.HANDED) this.#asks.delete(sequence);
    if (this.#deferred[ask.target] === ask) this.#deliver(ask.target, false);
  }

  #answered(source: number, id: number, what: number, answer: Uint8Array): void {
    const first = this.#unanswered[source].shift();
    if (first?.id !== id) throw new RmaError('ERR_VERBS', `the agent of rank ${source} answered requests out of order`);
    if (first.lock !== undefined) first.lock.how = what >> HOW_SHIFT;
    try {
      if ((what & WHAT) === Message.FAILURE) throw failureIn(source, answer);
      first.queued.take(answer);
    } catch (error) {
      // For whoever waits for the operation, not for whoever looks for messages.
      if (!this.#failures.has(source)) this.#failures.set(source, error);
    }
  }

  // ---- agent --------------------------------------------------------------------------------------------------------

  #refuse({ origin, sequence }: QueuedRequest): void {
    this.#send(origin, Int32Array.of(Message.REFUSAL, sequence));
  }

  #grant(request: QueuedRequest, how: number): void {
    const { origin, sequence, operations, isOne } = request;
    this.#counts.grants++;
    if (!isOne) {
      if (how !== Grant.HANDED) this.#holders.set(keyOf(origin, sequence), request);
      this.#send(origin, Int32Array.of(Message.GRANT, sequence, how));
    }
    for (const message of operations) this.#carryOut(origin, message, how);
  }

  *#serve(): Generator<void, void> {
    const line = this.#line;
    for (;;) {
      while (line.length === 0) yield;
      const head = line[0];
      const how = yield* this.#gate.take(head);
      const stays = line[0] === head;
      if (how === undefined) {
        if (stays) this.#refuse(line.shift()!);
        continue;
      }
      if (!stays) {
        yield* this.#gate.give(head, how, false);
        continue;
      }
      line.shift();
      this.#admitting = !head.exclusive && how !== Grant.HANDED;
      this.#admitted = 1;
      this.#grant(head, how);
      if (how === Grant.HANDED) continue;
      for (;;) {
        while (this.#admitting && line.length > 0 && !line[0].exclusive) {
          this.#grant(line.shift()!, how);
          this.#admitting = ++this.#admitted < this.#gate.batch;
        }
        if (this.#holders.size === 0) break;
        yield;
      }
      this.#admitting = false;
      yield* this.#gate.give(head, how, this.#admitted >= this.#gate.batch);
    }
  }

  /** @param how the lock was granted, of which the answer to one operation tells */
  #carryOut(origin: number, message: Uint8Array, how: number): void {
    this.#counts.operations++;
    const [done, failed] = [Message.DONE | (how << HOW_SHIFT), Message.FAILURE | (how << HOW_SHIFT)];
    this.#channel.give(origin, answerTo(this.#server!, this.#channel, origin, message, done, failed));
  }
}

function keyOf(origin: number, sequence: number): string {
  return `${origin}:${sequence}`;
}

/** An attempt at a shared lock by message: refused at once if the lock is not free. */
export function attemptByAgent(agent: LockAgent, target: number, onGrant: (ask: Ask) => void): Attempt {
  const ask = agent.ask(target, false, true);
  const attempt = {
    acquired: undefined as boolean | undefined,
    advance: () => {
      if (ask.state === 'waiting') agent.advance();
      if (ask.state === 'waiting') return false;
      if (attempt.acquired === undefined) {
        attempt.acquired = ask.state === 'granted';
        if (attempt.acquired) onGrant(ask);
      }
      return true;
    },
    describe: () =>
      `lock of rank ${target} (waiting for its agent, which serves requests only while that rank is in the library)`,
    abandon: () => agent.unlock(ask),
  };
  return attempt;
}
