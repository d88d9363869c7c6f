/**
 * A bounded queue of a service, first in, first out. All that changes it does so under a robust lock, in an order in
 * which a member can die between any two stores:
 *
 *   push:   the entry into its slot, then TAIL + 1
 *   pop:    copies the entry, then HEAD + 1: an entry whose taker dies behind that is lost
 *   take:   copies the entry into a free hand of the taker, its POSITION, its NAME; then HEAD + 1. `done` clears NAME.
 *
 * An entry in the hand of a dead member is given again, before those in the queue. A hand whose POSITION is not before
 * HEAD is none: its member died before HEAD + 1, and the entry is in the queue still. Handed on, it is in two hands for
 * a moment; if that member dies, too, both have the same POSITION, and are taken for one. A member all of whose hands
 * are full of what dead ones at its place have left takes one of those over where it is: NAME changes, in one store.
 *
 * Whoever gives an entry back leaves it in its hand under a name that no member has, and GIVEN + 1: so it goes the way
 * of those that the dead have left. Who dies between these two stores has rung NEWS, where all look again.
 *
 * Members that wait sleep on PUSHES (POPS), which rises with each push (pop, take) if WAIT_FOR… says that some wait: it
 * counts them before they look. They sleep for `LOOK_MS` at most, since the one that was woken may have died. (A member
 * that dies while it waits stays in the count, which costs the others a system call each time.)
 */
import { RmaError } from '../errors.ts';
import type { WaitOptions } from '../wait/operation.ts';
import { Pauses } from '../wait/pauses.ts';
import { Waiting } from '../wait/waiting.ts';
import type { EntryForm } from './queue-entries.ts';
import { HAND_WORDS, HANDS, HANDS_EACH, NAME, POSITION, type QueueLayout, type QueueShape } from './queue-shape.ts';
import { PATIENCE_MS, RobustLock } from './robust-lock.ts';
import type { Members } from './service-members.ts';
import { Header } from './service-memory.ts';
import { WordSleeper } from './word-sleeper.ts';

const LOCK = 0;
const HEAD = 16;
const TAIL = 17;
const CLOSED = 18;
const GIVEN = 19;
const PUSHES = 32;
const WAIT_FOR_PUSH = 33;
const POPS = 48;
const WAIT_FOR_POP = 49;
/** Milliseconds after which a member that waits looks again. */
const LOOK_MS = 250;

/** In place of a name, in the hand of an entry that was given back: of no place, so of no member that lives. */
const NOBODY = 1 << 10;

/** An entry that this member has taken, and that is given again if it dies before `done`. */
export interface Taken<T> {
  readonly entry: T;
  /** Whether a member that had taken it has died, or has given it back. */
  readonly again: boolean;
  /** Never waits for others; a second call of one of these, or of the other one, does nothing. */
  done(): void;
  /** Whoever takes next gets the entry, before those in the queue: also this member. Never waits for others. */
  giveBack(): void;
}

export class ServiceQueue<T = unknown> {
  /** The number of entries that fit. */
  readonly capacity: number;
  /** The number of elements of an entry; of a queue of values, the bytes of the longest. */
  readonly entryLength: number;
  readonly #members: Members;
  readonly #entries: EntryForm<T>;
  readonly #layout: QueueLayout;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #lock: RobustLock;
  readonly #what: string;
  readonly #pushed: WordSleeper;
  readonly #popped: WordSleeper;
  /** NEWS of the members, and GIVEN, when no hand had anything that is to be given again. */
  #looked = -1;
  #given = 0;

  /** @param what for messages */
  constructor(members: Members, memory: ArrayBuffer, what: string, made: QueueShape<T>) {
    const { native, places } = members.memory;
    this.#members = members;
    this.#entries = made.entries;
    this.capacity = made.capacity;
    this.entryLength = made.length;
    this.#layout = made.layout;
    this.#words = new Int32Array(memory, 0, HANDS + places * HANDS_EACH * HAND_WORDS);
    this.#bytes = new Uint8Array(memory);
    this.#lock = new RobustLock(this.#words, LOCK, members);
    this.#what = what;
    this.#pushed = new WordSleeper(native, this.#words, PUSHES);
    this.#popped = new WordSleeper(native, this.#words, POPS);
  }

  /** The entries that wait in the queue now, without those that were taken. */
  get length(): number {
    this.#members.checkIn('ServiceQueue.length');
    return this.#length;
  }

  get #length(): number {
    const head = Atomics.load(this.#words, HEAD);
    return Math.min((Atomics.load(this.#words, TAIL) - head) >>> 0, this.capacity);
  }

  get closed(): boolean {
    this.#members.checkIn('ServiceQueue.closed');
    return this.#isClosed;
  }

  get #isClosed(): boolean {
    return Atomics.load(this.#words, CLOSED) !== 0;
  }

  /**
   * Waits until the queue has room, and appends an entry. Errors: `ERR_TYPE`, `ERR_SIZE` (entry), `ERR_ARG` (options;
   * a value for which the codec has no form), `ERR_SERVICE` (closed), `ERR_RMA_TIMEOUT`, the signal's reason. After an
   * error the entry is not in the queue.
   */
  async push(entry: T, options?: WaitOptions): Promise<void> {
    const call = 'ServiceQueue.push';
    // A copy: the caller may change the entry while the call waits.
    const own = this.#entries.write(call, this.#what, entry).slice();
    await this.#await(new Waiting(call, options), POPS, WAIT_FOR_POP, this.#popped, () => this.#place(call, own, true));
  }

  /** As `push`, and blocks the thread. @param options without `timeout`: 10 s */
  pushSync(entry: T, options?: WaitOptions): void {
    const call = 'ServiceQueue.pushSync';
    const own = this.#entries.write(call, this.#what, entry);
    this.#block(new Waiting(call, options, PATIENCE_MS), POPS, WAIT_FOR_POP, () => this.#place(call, own));
  }

  /** Appends an entry if the queue has room, and returns whether it did. Errors: as `push`. */
  tryPush(entry: T): boolean {
    const call = 'ServiceQueue.tryPush';
    return this.#place(call, this.#entries.write(call, this.#what, entry)) === true;
  }

  /**
   * Waits for an entry and removes it: if this member dies behind that, the entry is lost. Errors: `ERR_ARG`,
   * `ERR_RMA_TIMEOUT`, the signal's reason, `ERR_DAMAGED` (a member has written over a value, which is gone then).
   * @returns `undefined` once the queue is closed and empty
   */
  async pop(options?: WaitOptions): Promise<T | undefined> {
    const waiting = new Waiting('ServiceQueue.pop', options);
    return (await this.#take(waiting, false))?.entry;
  }

  /** As `pop`, and blocks the thread. @param options without `timeout`: 10 s */
  popSync(options?: WaitOptions): T | undefined {
    const waiting = new Waiting('ServiceQueue.popSync', options, PATIENCE_MS);
    const found = this.#block(waiting, PUSHES, WAIT_FOR_PUSH, () => this.#remove(waiting.call, false));
    return found === 'over' ? undefined : found.entry;
  }

  /** Removes an entry and returns it, or returns `undefined` if there is none. */
  tryPop(): T | undefined {
    const found = this.#remove('ServiceQueue.tryPop', false);
    return found === undefined || found === 'over' ? undefined : found.entry;
  }

  /**
   * Waits for an entry and takes it: if this member dies before it calls `done`, the entry is given to another one, the
   * first of all. Errors: as `pop`; `ERR_SERVICE` (this member has taken 16 entries and done none).
   * @returns `undefined` once the queue is closed and empty, and no other member has an entry that is not done: until
   * then it waits, since one of them may come again
   */
  async take(options?: WaitOptions): Promise<Taken<T> | undefined> {
    return this.#take(new Waiting('ServiceQueue.take', options), true);
  }

  /**
   * Iterates over the entries with `take`, until that gives `undefined`: an entry is done when the loop asks for
   * the next one. Whoever leaves the loop otherwise (`break`, `return`, an error) gives its entry back, if it has not
   * called `done` before. Errors: as `take`.
   * @param options of each `take`
   */
  async *takes(options?: WaitOptions): AsyncGenerator<Taken<T>, void, undefined> {
    for (;;) {
      const taken = await this.take(options);
      if (taken === undefined) return;
      try {
        yield taken;
        taken.done();
      } finally {
        taken.giveBack();
      }
    }
  }

  /** Iterates over the entries with `pop`, until the queue is closed and empty. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const entry = await this.pop();
      if (entry === undefined) return;
      yield entry;
    }
  }

  /** Later pushes fail; what is in the queue can still be popped. Any member may call it, more than once. */
  close(): void {
    this.#members.checkIn('ServiceQueue.close');
    Atomics.store(this.#words, CLOSED, 1);
    this.#ring(PUSHES, EVERYONE);
    this.#ring(POPS, EVERYONE);
  }

  /** @internal The member leaves the service. */
  left(): void {
    this.#pushed.close();
    this.#popped.close();
  }

  async #take(waiting: Waiting, holds: boolean): Promise<Taken<T> | undefined> {
    const found = await this.#await(waiting, PUSHES, WAIT_FOR_PUSH, this.#pushed, () =>
      this.#remove(waiting.call, holds, true),
    );
    return found === 'over' ? undefined : found;
  }

  async #await<R>(waiting: Waiting, bell: number, waits: number, sleeper: WordSleeper, step: Step<R>): Promise<R> {
    const pauses = new Pauses();
    Atomics.add(this.#words, waits, 1);
    try {
      for (;;) {
        this.#members.checkIn(waiting.call);
        const seen = Atomics.load(this.#words, bell);
        const found = step();
        if (found === BUSY) {
          await pauses.next(waiting.left(this.#describeLock));
          continue;
        }
        if (found !== undefined) return found;
        await sleeper.sleep(seen, Math.min(waiting.left(this.#describe), LOOK_MS), waiting.signal);
      }
    } finally {
      Atomics.sub(this.#words, waits, 1);
    }
  }

  #block<R>(waiting: Waiting, bell: number, waits: number, step: Step<R>): R {
    const { native } = this.#members.memory;
    Atomics.add(this.#words, waits, 1);
    try {
      for (;;) {
        this.#members.checkIn(waiting.call);
        const seen = Atomics.load(this.#words, bell);
        const found = step();
        if (found !== undefined && found !== BUSY) return found;
        native.futexWait(this.#words, bell, seen, Math.min(waiting.left(this.#describe), LOOK_MS));
        // Of a thread that has ended, NEWS tells only if somebody looks, and no event loop may go on but this one.
        if (Atomics.load(this.#words, bell) === seen) this.#members.inspect();
      }
    } finally {
      Atomics.sub(this.#words, waits, 1);
    }
  }

  readonly #describeLock = (): string => this.#lock.describe(this.#what);
  readonly #describe = (): string => `${this.#what}, which has ${this.#length} of ${this.capacity} entries`;

  /**
   * Enters the queue's lock. @param later whether the event loop goes on while another member has it
   * @returns false if it has
   */
  #enter(call: string, later: boolean): boolean {
    this.#members.checkIn(call);
    if (!later) this.#lock.acquire(call, this.#what);
    return !later || this.#lock.tryBriefly(true) !== undefined;
  }

  /** @returns `true`, or `undefined` if there is no room */
  #place(call: string, entry: Uint8Array, later = false): true | undefined | typeof BUSY {
    const words = this.#words;
    if (!this.#enter(call, later)) return BUSY;
    try {
      if (this.#isClosed)
        throw new RmaError('ERR_SERVICE', `${call}: ${this.#what} is closed; the entry was not pushed`);
      const tail = Atomics.load(words, TAIL);
      if ((tail - Atomics.load(words, HEAD)) >>> 0 >= this.capacity) return undefined;
      this.#bytes.set(entry, this.#slotAt(tail));
      Atomics.store(words, TAIL, (tail + 1) | 0);
    } finally {
      this.#lock.release();
    }
    if (Atomics.load(words, WAIT_FOR_PUSH) > 0) this.#ring(PUSHES, 1);
    return true;
  }

  /** @returns an entry; `over` if none will come; `undefined` if there is none now */
  #remove(call: string, holds: boolean): Taken<T> | 'over' | undefined;
  #remove(call: string, holds: boolean, later: boolean): Taken<T> | 'over' | undefined | typeof BUSY;
  #remove(call: string, holds: boolean, later = false): Taken<T> | 'over' | undefined | typeof BUSY {
    const words = this.#words;
    if (!this.#enter(call, later)) return BUSY;
    let bytes: Uint8Array<ArrayBuffer>;
    let again: boolean;
    let position: number;
    let hand: number | undefined;
    try {
      const head = Atomics.load(words, HEAD);
      const isEmpty = head === Atomics.load(words, TAIL);
      const isLast = isEmpty && this.#isClosed;
      const oldest = isLast ? this.#firstLeft() : this.#leftByOthers();
      if (oldest === undefined && isLast) return holds && this.#othersHold() ? undefined : 'over';
      if (oldest === undefined && isEmpty) return undefined;
      hand = holds ? this.#freeHand(call) : undefined;
      // Without an empty hand, what a dead member has left in one of this place is given again, where it is.
      const left = hand !== undefined && Atomics.load(words, hand + NAME) !== 0 ? hand : oldest;
      position = left === undefined ? head : words[left + POSITION];
      const from = left === undefined ? this.#slotAt(head) : this.#inHandAt(left);
      bytes = this.#copied(from);
      again = left !== undefined;
      if (hand !== undefined) this.#hold(hand, position, from);
      if (left === undefined) Atomics.store(words, HEAD, (head + 1) | 0);
      else this.#clear(position, hand);
    } finally {
      this.#lock.release();
    }
    if (Atomics.load(words, WAIT_FOR_POP) > 0) this.#ring(POPS, 1);
    return this.#taken(call, bytes, again, hand, position);
  }

  /** Runs the program's codec, so the queue's lock is free. */
  #taken(
    call: string,
    bytes: Uint8Array<ArrayBuffer>,
    again: boolean,
    hand: number | undefined,
    position: number,
  ): Taken<T> {
    let isOver = false;
    const end = (name: number) => (): void => {
      if (isOver) return;
      isOver = true;
      if (hand !== undefined) this.#letGo(hand, position, name);
    };
    const done = end(0);
    let entry: T;
    try {
      entry = this.#entries.read(call, this.#what, bytes);
    } catch (error) {
      // Whoever got it again could not read it either.
      done();
      throw error;
    }
    return { entry, again, done, giveBack: end(NOBODY) };
  }

  /** A hand of a dead member, or one that was given back, with an entry that is not in the queue any more. */
  #leftByOthers(): number | undefined {
    const words = this.#words;
    const news = Atomics.load(this.#members.memory.header, Header.NEWS);
    const given = Atomics.load(words, GIVEN);
    if (news === this.#looked && given === this.#given) return undefined;
    const left = this.#firstLeft();
    if (left !== undefined) return left;
    this.#looked = news;
    this.#given = given;
    return undefined;
  }

  /** The same, whether anybody has told of a death or not. */
  #firstLeft(): number | undefined {
    const head = Atomics.load(this.#words, HEAD);
    for (let hand = HANDS; hand < this.#words.length; hand += HAND_WORDS) if (this.#isLeft(hand, head)) return hand;
    return undefined;
  }

  /** Whether members at other places have entries that are not done: who may die. */
  #othersHold(): boolean {
    const mine = HANDS + this.#members.place * HANDS_EACH * HAND_WORDS;
    for (let hand = HANDS; hand < this.#words.length; hand += HAND_WORDS) {
      if (hand === mine) hand += HANDS_EACH * HAND_WORDS;
      if (hand < this.#words.length && Atomics.load(this.#words, hand + NAME) !== 0) return true;
    }
    return false;
  }

  /** Empties all hands with that entry but one: those of members that died while they handed it on. */
  #clear(position: number, but: number | undefined): void {
    const words = this.#words;
    for (let hand = HANDS; hand < words.length; hand += HAND_WORDS) {
      if (hand === but || Atomics.load(words, hand + NAME) === 0) continue;
      if (words[hand + POSITION] === position) Atomics.store(words, hand + NAME, 0);
    }
  }

  /** Whether a hand is a dead member's, with an entry that is not in the queue any more. */
  #isLeft(hand: number, head: number): boolean {
    const words = this.#words;
    const name = Atomics.load(words, hand + NAME);
    if (name === 0 || !this.#members.isGone(name)) return false;
    if (((words[hand + POSITION] - head) | 0) < 0) return true;
    // Its member died before the entry was out of the queue.
    Atomics.store(words, hand + NAME, 0);
    return false;
  }

  /** An empty hand of this place, or else one that a dead member has left there, full. */
  #freeHand(call: string): number {
    const head = Atomics.load(this.#words, HEAD);
    let left: number | undefined;
    const first = HANDS + this.#members.place * HANDS_EACH * HAND_WORDS;
    for (let hand = first; hand < first + HANDS_EACH * HAND_WORDS; hand += HAND_WORDS) {
      if (this.#isLeft(hand, head)) left ??= hand;
      else if (Atomics.load(this.#words, hand + NAME) === 0) return hand;
    }
    if (left !== undefined) return left;
    throw new RmaError(
      'ERR_SERVICE',
      `${call}: this member has taken ${HANDS_EACH} entries of ${this.#what}; call done() of one of them first`,
    );
  }

  #hold(hand: number, position: number, from: number): void {
    this.#bytes.copyWithin(this.#inHandAt(hand), from, from + this.#layout.stride);
    this.#words[hand + POSITION] = position;
    Atomics.store(this.#words, hand + NAME, this.#members.name);
  }

  /** @param name 0 if the entry is done, or `NOBODY` */
  #letGo(hand: number, position: number, name: number): void {
    const words = this.#words;
    if (words[hand + POSITION] !== position) return;
    const mine = this.#members.name;
    if (Atomics.compareExchange(words, hand + NAME, mine, name) !== mine) return;
    if (name !== 0) Atomics.add(words, GIVEN, 1);
    // Others may wait for this one to be done, once the queue is closed and empty.
    else if (!this.#isClosed) return;
    if (Atomics.load(words, WAIT_FOR_PUSH) > 0) this.#ring(PUSHES, name === 0 ? EVERYONE : 1);
  }

  #copied(from: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#entries.bytes);
    bytes.set(this.#bytes.subarray(from, from + bytes.length));
    return bytes;
  }

  #slotAt(position: number): number {
    return this.#layout.slots + (position & (this.#layout.ring - 1)) * this.#layout.stride;
  }

  #inHandAt(hand: number): number {
    return this.#layout.hands + ((hand - HANDS) / HAND_WORDS) * this.#layout.stride;
  }

  #ring(bell: number, count: number): void {
    Atomics.add(this.#words, bell, 1);
    this.#members.memory.native.futexWake(this.#words, bell, count);
  }
}

/** More members than can wait. */
const EVERYONE = 0x7fffffff;

/** Another member has the queue's lock. */
const BUSY = Symbol();

type Step<R> = () => R | undefined | typeof BUSY;
