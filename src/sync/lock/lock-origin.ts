/**
 * The origins' side of locks by messages: what a rank asks the agents of others for (lock-agent.ts), and the operations
 * that it sends to be carried out under their locks.
 *
 * An `Ask` is `deferred` as long as there is nothing to do under it, and `waiting` once it was sent. Then it is
 * `granted`, or `refused` if it was an attempt. It is `left` once it is given back, or is no longer wanted. It is also
 * `left` while it `travels` with an operation: by the time that it is answered, the lock was acquired, used and given
 * back. Messages to one agent arrive in the order in which they were sent, so what is sent behind operations comes
 * after them.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { OperationFailures } from '../../transfer/requests/operation-failures.ts';
import { addedTo, type OperationMessages, takeAnswer } from '../../transfer/served/operation-messages.ts';
import type { OperationQueue, QueuedOperations } from '../../transfer/served/operation-queue.ts';
import type { Operation } from '../../wait/operation.ts';
import { Grant, Message, sendWords } from './agent-messages.ts';
import type { Attempt, LockCounts } from './lock-scheme.ts';

const AGENT = 'which serves requests only while that rank is in the library';
/** Bytes of the message of an operation, with what it fetches, that travels with its lock and unlock. */
const SMALL = 16_384;

/** A request as its origin has it. */
export class Ask {
  state: 'deferred' | 'waiting' | 'granted' | 'refused' | 'left' = 'waiting';
  /** One of `Grant`, once it is granted, or its operation is done. */
  how: number = Grant.BY_AGENT;
  /** It has left with its only operation, which is not answered. */
  travels = false;
  readonly target: number;
  readonly sequence: number;
  readonly exclusive: boolean;

  constructor(target: number, sequence: number, exclusive: boolean) {
    this.target = target;
    this.sequence = sequence;
    this.exclusive = exclusive;
  }

  /** Whether this rank has yet to get it. */
  get pending(): 'not asked for' | 'asked for' | undefined {
    if (this.state === 'deferred') return 'not asked for';
    return this.state === 'waiting' || this.travels ? 'asked for' : undefined;
  }
}

/** A message with operations. @param lock the one that travels with it */
interface Unanswered {
  readonly id: number;
  readonly queued: QueuedOperations;
  readonly lock: Ask | undefined;
}

export class LockOrigin {
  readonly #channel: OwnChannel;
  readonly #counts: LockCounts;
  readonly #advance: () => void;
  /** Gives back by itself a lock that was handed to this origin though it no longer wants it. */
  readonly #handedTooLate: (target: number) => void;
  readonly #asks = new Map<number, Ask>();
  #lastSequence = 0;
  /** Requests that leave when there is something to do under the lock, by target. */
  readonly #deferred: (Ask | undefined)[] = [];
  /** Messages with operations that were not answered, by target, oldest first. */
  readonly #unanswered: Unanswered[][];
  readonly #window: string;
  readonly #operations: OperationMessages | undefined;
  readonly #queue: OperationQueue | undefined;
  #lastId = 0;
  /** Of operations that were carried out by agents; their turns are the identities of messages. */
  readonly #failures = new OperationFailures();

  /**
   * @param counts what it sends is counted there
   * @param advance brings messages in, and goes on with what this rank does for others
   * @param window in messages
   * @param operations those of passive epochs; absent if they do not go through the agents
   */
  constructor(
    channel: OwnChannel,
    counts: LockCounts,
    advance: () => void,
    handedTooLate: (target: number) => void,
    window: string,
    operations: OperationMessages | undefined,
  ) {
    this.#channel = channel;
    this.#counts = counts;
    this.#advance = advance;
    this.#handedTooLate = handedTooLate;
    this.#window = window;
    this.#operations = operations;
    this.#queue = operations?.queue;
    this.#unanswered = Array.from({ length: channel.size }, () => []);
  }

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

  /**
   * Asks for a deferred lock, whether or not there is something to do under it. Complete when this rank has it, or has
   * given it back.
   */
  confirm(ask: Ask): Operation {
    return {
      advance: () => {
        if (ask.state === 'deferred') this.#askNow(ask);
        if (ask.pending !== undefined) this.#advance();
        return ask.pending === undefined;
      },
      describe: () => `the lock of rank ${ask.target} in ${this.#window} (waiting for its agent, ${AGENT})`,
    };
  }

  #askNow(ask: Ask): void {
    ask.state = 'waiting';
    this.#sendAsk(ask, false, 0);
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

  /**
   * Gives back what the agent has granted, or leaves the line. A lock that was handed over is given back by its holder.
   */
  unlock(ask: Ask): void {
    const { state, target } = ask;
    if (this.#deferred[target] === ask) this.#deferred[target] = undefined;
    if (state === 'left' || state === 'refused') return;
    ask.state = 'left';
    // Nothing was done under it, so no agent has been asked.
    if (state === 'deferred' || (state === 'granted' && ask.how === Grant.HANDED)) return;
    if (state !== 'waiting') this.#asks.delete(ask.sequence);
    this.#send(ask.target, Int32Array.of(Message.UNLOCK, ask.sequence));
  }

  /** Asks, waits for the grant, and tells of it. Abandoned, it leaves the line. */
  acquire(target: number, exclusive: boolean, onGrant: (ask: Ask) => void): Operation {
    const ask = this.ask(target, exclusive, false);
    return {
      advance: () => {
        if (ask.state === 'waiting') this.#advance();
        if (ask.state !== 'granted') return false;
        onGrant(ask);
        return true;
      },
      describe: () => describeLock(target),
      abandon: () => this.unlock(ask),
    };
  }

  /** Asks for a shared lock that is refused at once if it is not free. */
  attempt(target: number, onGrant: (ask: Ask) => void): Attempt {
    const ask = this.ask(target, false, true);
    const attempt = {
      acquired: undefined as boolean | undefined,
      advance: () => {
        if (ask.state === 'waiting') this.#advance();
        if (ask.state === 'waiting') return false;
        if (attempt.acquired === undefined) {
          attempt.acquired = ask.state === 'granted';
          if (attempt.acquired) onGrant(ask);
        }
        return true;
      },
      describe: () => describeLock(target),
      abandon: () => this.unlock(ask),
    };
    return attempt;
  }

  /**
   * Complete when all that was queued for `rank`, or for all ranks, has been carried out there, and what it fetches is
   * here.
   */
  flush(rank?: number): Operation {
    return this.#flush(rank, false);
  }

  /** The same where the lock is given back: that happens right behind the operations. */
  flushLast(rank?: number): Operation {
    return this.#flush(rank, true);
  }

  #flush(rank: number | undefined, last: boolean): Operation {
    const ranks = rank === undefined ? this.#unanswered.map((_, r) => r) : [rank];
    const isDone = (r: number): boolean => this.#unanswered[r].length === 0 && !this.#queue!.has(r);
    return {
      advance: () => {
        for (const r of ranks) this.#deliver(r, last);
        this.#advance();
        for (const r of ranks) this.#deliver(r, last);
        this.#failures.tell(rank, undefined, Number.POSITIVE_INFINITY);
        return ranks.every(isDone);
      },
      describe: () => {
        const left = ranks.filter((r) => !isDone(r));
        return `operations at rank ${left.join(', ')} ${this.#describeWait(left)}`;
      },
    };
  }

  /** Where operations to some ranks are, and what they wait for, in words. */
  #describeWait(ranks: readonly number[]): string {
    const waits = (r: number): boolean =>
      this.#deferred[r]?.state === 'waiting' || this.#unanswered[r].some(({ lock }) => lock !== undefined);
    const locks = ranks.filter(waits);
    const lock = locks.length > 0 ? `the lock of rank ${locks.join(', ')} from ` : '';
    return `in ${this.#window} (waiting for ${lock}its agent, ${AGENT})`;
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
        this.#advance();
        this.#failures.tell(rank, undefined, last ?? this.#lastId);
        if (last === undefined) return false;
        return unanswered.length === 0 || unanswered[0].id > last;
      },
      describe: () => `a request to rank ${rank} ${this.#describeWait(ranks)}`,
    };
  }

  /** Sends what is queued for `rank`, or asks for the lock for it: then it leaves with the grant. */
  deliver(rank: number): void {
    this.#deliver(rank, false);
  }

  /**
   * @param last nothing else is done under the lock. So it is given back behind operations that fetch nothing, and one
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
        ask.travels = true;
        return;
      }
      this.#askNow(ask);
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
    this.#counts.operations++;
    this.#operations!.ask(rank, queued, id, what);
  }

  // ---- answers ------------------------------------------------------------------------------------------------------

  /** What the agent of `source` has answered: to a request, or to operations. */
  hear(source: number, [what, number, how]: Int32Array, message: Uint8Array): void {
    if (what === Message.GRANT) this.#granted(number, how);
    else if (what === Message.REFUSAL) {
      const ask = this.#asks.get(number);
      this.#asks.delete(number);
      if (ask?.state === 'waiting') ask.state = 'refused';
    } else this.#answered(source, number, what, message);
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

  #answered(source: number, id: number, what: number, message: Uint8Array): void {
    const first = this.#unanswered[source].shift();
    if (first?.id !== id) throw new RmaError('ERR_VERBS', `the agent of rank ${source} answered requests out of order`);
    if (first.lock !== undefined) {
      first.lock.how = addedTo(what);
      first.lock.travels = false;
    }
    try {
      takeAnswer(first.queued, source, message);
    } catch (error) {
      // The wait for the operation throws it, not a call that only looks for messages.
      this.#failures.note(error, source, id);
    }
  }

  #send(target: number, words: Int32Array): void {
    sendWords(this.#channel, this.#counts, target, words);
  }
}

function describeLock(target: number): string {
  return `lock of rank ${target} (waiting for its agent, ${AGENT})`;
}
