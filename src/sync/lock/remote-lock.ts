/**
 * A fair reader-writer lock on 64-bit words that only a device's atomics touch, without an agent at the target:
 * `QueueLock` (queue-lock.ts) by requests.
 *
 *   WORD     0 free; EXCLUSIVE + rank; or the number of those that share it. CLOSED is added while only the head of
 *            the line may have it.
 *   NEXT     the next ticket
 *   SERVING  the ticket at the head of the line
 *   SLOTS    ticket modulo their number: 0, or ticket + 1 of one that was given up
 *
 * Acquire: compare-and-swap on WORD, one round trip if the lock is free. Otherwise the rank takes a ticket. It asks for
 * SERVING until it is at the head, and then until the lock is free for it. Newcomers pass it until it has been the head
 * for as long as ranks may overtake (lock-overtaking.ts, and queue-lock.ts says why they may). Then it adds CLOSED,
 * which keeps them out. With the hint `lock_order: 'arrival'` it adds CLOSED at once, and the lock is granted in the
 * order of the tickets, to readers and writers alike. A rank that has acquired as head moves SERVING on.
 *
 * A rank that waits asks again and again; no rank is woken, since memory at a target rings no bell. The target's
 * adapter does one atomic at a time, so ranks that ask too often slow down the rank that has the lock and the one that
 * is next. But a ticket says how many ranks are before it. A rank that stands far back rests for three quarters of the
 * least time that their turns take, by the shortest turn so far. Every rank, in the end also the next one and the head,
 * rests for an eighth of the time in which nothing has changed. No rank rests for more than a millisecond.
 *
 * No rank is overtaken for ever. A rank that wants to share a lock that others share is in line after `TRIES` answers.
 * The head adds CLOSED after a bounded time, whatever else is in the word, since a compare-and-swap would fail again
 * and again beside ranks that come and go. CLOSED is never there twice: the head has seen the word without it, and only
 * the head adds it. A rank that was the head before, and has perhaps given up, has added it before the next head looks:
 * the mark in its slot, or its step of SERVING, comes behind that addition on its connection. From then on no newcomer
 * passes, the word changes only as holders leave, and the head has the lock after the last of them.
 *
 * Giving up a ticket: the rank marks its slot, and then looks at SERVING. A rank that moves SERVING on to a ticket
 * looks at that ticket's slot afterwards. All are atomics on the device, so at least one of the two sees the other.
 * Both take the mark away by compare-and-swap before they move SERVING on, so only one does.
 *
 * Where the target carries out updates under a lock, epochs of one small operation need one round trip, with a lock
 * that is deferred (deferred-lock.ts, lock-habit.ts).
 *
 * Memory order: the release follows all that its holder has written, which the caller has waited for. A rank that
 * acquires reads after its own compare-and-swap was answered.
 */

import type { Deferrable } from '../../job/rank-locks.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { Operation } from '../../wait/operation.ts';
import { type DeferredEpoch, DeferredLocks } from './deferred-lock.ts';
import { LockHabit } from './lock-habit.ts';
import { lockKind } from './lock-kind.ts';
import { NO_OVERTAKING, OVERTAKING_BY_REQUESTS_MS, type Overtaking, overtakingBy } from './lock-overtaking.ts';
import { type Attempt, noLocks, type TargetLock } from './lock-scheme.ts';

const WORD = 0;
const NEXT = 1;
const SERVING = 2;
const SLOTS = 8;

const EXCLUSIVE = 1 << 30;
const CLOSED = 1 << 29;

/** 64-bit words that the lock of one target takes, for `size` origins. */
function remoteLockWords(size: number): number {
  return SLOTS + 2 ** Math.ceil(Math.log2(size));
}

/**
 * How often a rank that wants to share the lock is overtaken, by others that come to share it or leave, before it
 * stands in line.
 */
const TRIES = 8;

/** The longest rest, in milliseconds. */
const MOST_MS = 1;

/** How far an acquisition has come. */
interface Acquisition {
  /** Its first request was posted. */
  begun: boolean;
  ticket: number | undefined;
  /** The request that may give it the lock has not been answered, or has given it, and the line moves on. */
  deciding: boolean;
  /** When it asks again; 0 if an answer is under way. */
  until: number;
  /** WORD at the last look. */
  seen: number | undefined;
}

/** What was in a word, when it was asked for. */
interface Asked {
  /** Negative until the answer has come. */
  found: number;
}

/** The holder at the last look, for messages. A rank that stands far back in line does not look again soon. */
function holderInWords(word: number | undefined): string {
  const held = (word ?? 0) & ~CLOSED;
  if (held === 0) return '';
  if ((held & EXCLUSIVE) !== 0) return ` (rank ${held & ~EXCLUSIVE} held it exclusively at the last look)`;
  return ` (${held === 1 ? 'a rank' : `${held} ranks`} shared it at the last look)`;
}

/** How locks are deferred. */
interface Deferring {
  readonly locks: DeferredLocks;
  /** Each of them; otherwise those that have the habit. */
  readonly always: boolean;
}

/** What one operation issues, at most: itself, and what runs it. */
const ONE = 2;

export class RemoteLock implements TargetLock {
  readonly #requests: RequestTransfer;
  readonly #rank: number;
  readonly #target: number;
  readonly #slotMask: number;
  readonly #word: (index: number) => RemoteWord;
  readonly #now: () => number;
  readonly #overtaking: Overtaking;
  readonly #deferring: Deferring | undefined;
  readonly #habit = new LockHabit();
  /** The epoch that is open, if its lock was deferred. */
  #deferred: DeferredEpoch | undefined;
  /** What had been issued to the target when this rank got the lock; negative: it stood in line. */
  #issued = -1;
  /** A ticket that this rank has given up and that may still stand in line. */
  #givenUp: number | undefined;
  /** Acquisitions that no call waits for any more and whose answers have not come. */
  #unsettled = 0;

  /**
   * @param word the target's lock words
   * @param now a clock in milliseconds
   * @param deferring absent: it is never deferred
   */
  constructor(
    requests: RequestTransfer,
    rank: number,
    target: number,
    size: number,
    word: (index: number) => RemoteWord,
    now: () => number,
    overtaking: Overtaking = NO_OVERTAKING,
    deferring?: Deferring,
  ) {
    this.#requests = requests;
    this.#rank = rank;
    this.#target = target;
    this.#slotMask = remoteLockWords(size) - SLOTS - 1;
    this.#word = word;
    this.#now = now;
    this.#overtaking = overtaking;
    this.#deferring = deferring;
  }

  /** Never without waiting: the word is at the target. */
  tryAcquire(): boolean {
    return false;
  }

  acquire(exclusive: boolean): Operation {
    const acquisition: Acquisition = { begun: false, ticket: undefined, deciding: false, until: 0, seen: undefined };
    const steps = this.#acquire(exclusive, acquisition);
    let done = false;
    // What it asked for was refused, so it has nothing.
    let failed = false;
    const step = (): boolean => {
      failed = true;
      done = steps.next().done === true;
      failed = false;
      if (done && this.#deferring !== undefined) this.#noteAcquired(acquisition);
      return done;
    };
    return {
      // A free lock is there after one request: its answer is looked for before anything else.
      advance: () => {
        if (done || step()) return true;
        this.#requests.pollCompletions();
        if (step()) return true;
        this.#requests.poll();
        return false;
      },
      describe: () => `lock of rank ${this.#target}${holderInWords(acquisition.seen)}`,
      abandon: () => {
        if (!done && !failed && acquisition.begun) this.#finish(this.#giveUp(steps, acquisition, exclusive));
      },
      isPolling: () => acquisition.until === 0 || Math.max(0, acquisition.until - this.#now()),
    };
  }

  #noteAcquired({ ticket }: Acquisition): void {
    this.#issued = ticket === undefined ? this.#requests.issuedTo(this.#target) : -1;
  }

  attempt(exclusive: boolean, joins = false): Attempt {
    const steps = this.#try(exclusive, true, joins);
    const step = (): boolean => {
      if (attempt.acquired === undefined) {
        const { done, value } = steps.next();
        if (done) attempt.acquired = value;
      }
      return attempt.acquired !== undefined;
    };
    const attempt = {
      acquired: undefined as boolean | undefined,
      // What is posted before the first look at completions may leave with what waits for more: the release before it.
      advance: () => {
        if (step()) return true;
        this.#requests.poll();
        return step();
      },
      describe: () => `lock of rank ${this.#target}`,
      abandon: () => this.#finish(this.#giveBack(steps, exclusive)),
      isPolling: () => true,
    };
    return attempt;
  }

  defer(exclusive: boolean): boolean {
    if (this.#deferring === undefined || !(this.#deferring.always || this.#habit.isSmall)) return false;
    const { rkey, address } = this.#word(WORD);
    this.#deferred = this.#deferring.locks.open({
      target: this.#target,
      exclusive,
      lock: { word: { rkey, address }, holder: exclusive ? EXCLUSIVE | this.#rank : 1 },
      acquire: () => this.acquire(exclusive),
      release: () => this.#giveBackNow(exclusive),
    });
    return true;
  }

  get pending(): Deferrable['pending'] {
    return this.#deferred?.pending;
  }

  confirm(): Operation {
    return this.#deferred!.confirm();
  }

  get isGivenBack(): boolean {
    return this.#deferred?.isGivenBack === true;
  }

  release(exclusive: boolean): void {
    const epoch = this.#deferred;
    if (epoch !== undefined) {
      this.#deferred = undefined;
      this.#habit.note(epoch.ended);
      this.#deferring!.locks.close(epoch);
      return;
    }
    if (this.#deferring !== undefined) {
      const issued = this.#issued < 0 ? -1 : this.#requests.issuedTo(this.#target) - this.#issued;
      this.#habit.note(issued > 0 && issued <= ONE ? 'one' : 'other');
    }
    this.#giveBackNow(exclusive);
  }

  #giveBackNow(exclusive: boolean): void {
    this.#add(WORD, exclusive ? -(EXCLUSIVE | this.#rank) : -1);
  }

  /**
   * Runs the steps at once, if answers come: if they were left for later, others could wait for this rank while it
   * waits for them. What this rank does next with the lock waits for them.
   */
  #finish(steps: Generator<void, void>): void {
    this.#unsettled++;
    this.#requests.settle(this.#settling(steps));
  }

  *#settling(steps: Generator<void, void>): Generator<void, void> {
    try {
      yield* steps;
    } finally {
      this.#unsettled--;
    }
  }

  /**
   * @param left also takes a lock that is marked, though no rank has it or waits for it; a rank that will stand in line
   * need not do so
   * @param joins also beside those that share it while the head of the line waits for them
   * @returns whether it has the lock
   */
  *#try(exclusive: boolean, left = false, joins = false, acquisition?: Acquisition): Generator<void, boolean> {
    if (exclusive) {
      const found = yield* this.#swap(WORD, 0, EXCLUSIVE | this.#rank);
      if (acquisition !== undefined) acquisition.seen = found;
      return found === 0 || (left && found === CLOSED && (yield* this.#tryLeft()));
    }
    let seen = 0;
    for (let tries = 0; tries < TRIES; tries++) {
      const found = yield* this.#swap(WORD, seen, seen + 1);
      if (found === seen) return true;
      if (acquisition !== undefined) acquisition.seen = found;
      if ((found & EXCLUSIVE) !== 0 || ((found & CLOSED) !== 0 && !(joins && found > CLOSED))) return false;
      seen = found;
    }
    return false;
  }

  /**
   * Takes the lock exclusively where it is free and marked, but no rank stands in line (as in queue-lock.ts). A head
   * that has seen the mark and does not find it any more adds it again.
   */
  *#tryLeft(): Generator<void, boolean> {
    const serving = yield* this.#get(SERVING);
    if ((yield* this.#get(NEXT)) !== serving) return false;
    return (yield* this.#swap(WORD, CLOSED, EXCLUSIVE | this.#rank)) === CLOSED;
  }

  *#acquire(exclusive: boolean, acquisition: Acquisition): Generator<void, void> {
    while (this.#unsettled > 0) yield;
    acquisition.begun = true;
    if (yield* this.#try(exclusive, false, false, acquisition)) return;
    const ticket = yield* this.#enterLine();
    acquisition.ticket = ticket;
    yield* this.#standInLine(ticket, acquisition);
    const { ms } = this.#overtaking;
    const since = this.#now();
    for (;;) {
      const [word, next] = [this.#ask(WORD), this.#ask(NEXT)];
      const found = yield* this.#answer(word);
      const others = (yield* this.#answer(next)) !== (ticket + 1) >>> 0;
      const held = found & ~CLOSED;
      acquisition.seen = found;
      const isFree = exclusive ? held === 0 : (held & EXCLUSIVE) === 0;
      if (isFree) {
        // A rank that takes a ticket after that marks the word again when it comes to the head. So no rank is lost when
        // the mark is taken away here.
        const mine = (exclusive ? EXCLUSIVE | this.#rank : held + 1) | (others && ms === 0 ? CLOSED : 0);
        acquisition.deciding = true;
        if ((yield* this.#swap(WORD, found, mine)) === found) {
          yield* this.#moveOn(ticket);
          return;
        }
        acquisition.deciding = false;
        // Newcomers have changed the word; they would do so for ever.
        if ((found & CLOSED) === 0 && this.#now() - since >= ms) yield* this.#get(WORD, CLOSED);
        continue;
      }
      const closes = (found & CLOSED) === 0 && this.#now() - since >= ms;
      if (closes && (yield* this.#get(WORD, CLOSED)) !== found) continue;
      yield* this.#rest(acquisition, (this.#now() - since) / 8);
    }
  }

  /** Until SERVING is the ticket. */
  *#standInLine(ticket: number, acquisition: Acquisition): Generator<void, void> {
    const asked = this.#now();
    let before = (ticket - (yield* this.#get(SERVING))) >>> 0;
    let moved = this.#now();
    // The shortest turn so far: if a mean were used, a rank that came late would make the next ones later. It takes two
    // round trips at least.
    let turn = 2 * (moved - asked);
    while (before > 0) {
      yield* this.#rest(acquisition, Math.max(0.75 * (before - 1) * turn, (this.#now() - moved) / 8));
      const left = (ticket - (yield* this.#get(SERVING))) >>> 0;
      if (left === before) continue;
      const now = this.#now();
      turn = Math.min(turn, (now - moved) / (before - left));
      moved = now;
      before = left;
    }
  }

  *#rest(acquisition: Acquisition, ms: number): Generator<void, void> {
    acquisition.until = this.#now() + Math.min(ms, MOST_MS);
    while (this.#now() < acquisition.until) yield;
    acquisition.until = 0;
  }

  /**
   * A ticket: the one that was given up last, if it still stands in line, so that a rank never has more than one there.
   */
  *#enterLine(): Generator<void, number> {
    const ticket = this.#givenUp;
    if (ticket !== undefined) {
      const mark = (ticket + 1) >>> 0;
      const before = yield* this.#swap(this.#slot(ticket), mark, 0);
      this.#givenUp = undefined;
      if (before === mark) return ticket;
    }
    return yield* this.#get(NEXT, 1);
  }

  /**
   * Moves SERVING on from the ticket that is at the head, and past those that have given up. A slot is looked at after
   * SERVING was moved: a connection keeps its order.
   */
  *#moveOn(ticket: number): Generator<void, void> {
    for (let serving = ticket; ; ) {
      serving = (serving + 1) >>> 0;
      const mark = (serving + 1) >>> 0;
      this.#add(SERVING, 1);
      if ((yield* this.#swap(this.#slot(serving), mark, 0)) !== mark) return;
    }
  }

  *#giveBack(steps: Generator<void, boolean>, exclusive: boolean): Generator<void, void> {
    if (yield* steps) this.#giveBackNow(exclusive);
  }

  /** Brings an acquisition that no call waits for any more to an end, without the lock. */
  *#giveUp(steps: Generator<void, void>, acquisition: Acquisition, exclusive: boolean): Generator<void, void> {
    // A request that may give it the lock, or a ticket, is perhaps on its way. Only its answer tells what it has done.
    while (acquisition.ticket === undefined || acquisition.deciding) {
      if (steps.next().done) {
        this.#giveBackNow(exclusive);
        return;
      }
      yield;
    }
    const { ticket } = acquisition;
    const mark = (ticket + 1) >>> 0;
    this.#givenUp = ticket;
    yield* this.#swap(this.#slot(ticket), 0, mark);
    if ((yield* this.#get(SERVING)) !== ticket) return;
    if ((yield* this.#swap(this.#slot(ticket), mark, 0)) === mark) yield* this.#moveOn(ticket);
  }

  #slot(ticket: number): number {
    return SLOTS + (ticket & this.#slotMask);
  }

  /** What was there. */
  *#swap(word: number, compare: number, swap: number): Generator<void, number> {
    const asked: Asked = { found: -1 };
    const answer = (lo: number): void => {
      asked.found = lo;
    };
    this.#requests.remote.compareSwap(this.#word(word), compare, 0, swap, 0, answer, true);
    return yield* this.#answer(asked);
  }

  /** What was there, before `add` was added. */
  *#get(word: number, add = 0): Generator<void, number> {
    return yield* this.#answer(this.#ask(word, add));
  }

  #ask(word: number, add = 0): Asked {
    const asked: Asked = { found: -1 };
    const answer = (lo: number): void => {
      asked.found = lo;
    };
    this.#requests.remote.fetchAdd(this.#word(word), add, 0, answer, add === 0);
    return asked;
  }

  *#answer(asked: Asked): Generator<void, number> {
    while (asked.found < 0) yield;
    return asked.found;
  }

  #add(word: number, value: number): void {
    this.#requests.remote.fetchAdd(this.#word(word), value, value < 0 ? -1 : 0);
  }
}

export const remote = lockKind({
  name: 'remote',
  deviceWords: remoteLockWords,
  agent: false,
  make({ comm, options, wire, remoteWord, travels }) {
    const { rank: me, size, job } = comm;
    const now = (): number => job.progress.now();
    const wordsOf = (rank: number) => (index: number) => remoteWord(rank, index);
    const overtaking = overtakingBy(options.lock_order, job, OVERTAKING_BY_REQUESTS_MS);
    const always = options.lock_defer === 'true';
    const locks = travels && options.lock_defer !== 'false' ? new DeferredLocks(wire!) : undefined;
    const served =
      locks &&
      comm.members.serveUnlessQuiet(
        () => look(locks),
        () => !locks.isAsking,
      );
    if (locks !== undefined) locks.whenAsking = served!.stir;
    const make = (rank: number): TargetLock => {
      const deferring = locks && travels!(rank) ? { locks, always } : undefined;
      return new RemoteLock(wire!, me, rank, size, wordsOf(rank), now, overtaking, deferring);
    };
    return { counts: noLocks(), make, deferred: locks, release: () => served?.end() };
  },
});

/** Milliseconds from one look to the next at a lock that nobody waits for, and whose holder rings no bell. */
const LOOK_MS = 0.1;

/** Goes on with a deferred lock that was asked for. */
function look(locks: DeferredLocks): number {
  locks.poll();
  return locks.isAsking ? LOOK_MS : Number.POSITIVE_INFINITY;
}
