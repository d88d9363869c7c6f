/**
 * A bounded queue for any number of producers and consumers, in the memory of one rank.
 *
 * After Dmitry Vyukov's bounded queue: positions TAIL (of the next push) and HEAD (of the next pop) only grow, and each
 * slot has a word SEQUENCE that says whose turn it is. Positions count in twos, modulo 2^32; the lowest bit of TAIL
 * says that the queue is closed. With a ring of R slots, R a power of two:
 *
 * - a push at position p may write its slot when SEQUENCE = p: it takes the position by compare-and-swap on TAIL, puts
 *   the entry, flushes, and then stores SEQUENCE = p + 1;
 * - a pop at position p may read it when SEQUENCE = p + 1: it takes the position by compare-and-swap on HEAD, gets the
 *   entry, flushes, and stores SEQUENCE = p + 2R.
 *
 * So a slot has one writer or one reader at a time, and the next one sees all that the one before has done: the flush
 * completes the transfer before the store that lets the next one in. The compare-and-swap on TAIL fails once the queue
 * is closed: what was pushed before is popped, and nothing is pushed after.
 *
 * Waiting: a rank that finds the queue empty (full) sets its word in the list of waiting consumers (producers) and
 * looks again before it sleeps; a rank that has pushed (popped) looks at the list afterwards, takes one rank out by
 * exchanging its word for 0, and wakes it. All of these are atomic operations in one order, so the sleeper finds the
 * entry or is found. A rank that was woken for nothing (another was faster) enlists again. One wake-up may stand for
 * several entries, though: a push that overtakes a slower one wakes a consumer in vain, and a rank can be taken out
 * twice before it has run. So every rank that has waited passes the wake-up on: when it is served, or gives up, and
 * there is more, it wakes the next one.
 */
import type { Communicator } from '../collective/communicator.ts';
import {
  isTypedArrayConstructor,
  ownView,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { type Operation, readWait, type WaitOptions } from '../wait/operation.ts';
import { Window } from '../window/calls/window.ts';
import { agree, type PlaceOptions, readPlace, ringLength, Words } from './words.ts';

/**
 * Words: positions, the number of waiting ranks of either kind; then the lists of them, then the sequences. Each hot
 * word has a cache line.
 */
const LINE = 16;
const TAIL = 0;
const HEAD = LINE;
const CONSUMERS = 2 * LINE;
const PRODUCERS = 3 * LINE;
const LISTS = 4 * LINE;

const CLOSED = 1;
const MAX_CAPACITY = 2 ** 24;

/** Options of `BoundedQueue.create`. */
export interface QueueOptions extends PlaceOptions {
  /** The number of elements of an entry (default: 1). All ranks must give the same. */
  readonly length?: number;
}

/**
 * Ranks that wait for one thing: the number of them is in the word `count`, and each has a word of its own behind
 * `list`.
 */
class Sleepers {
  #words: Words;
  #count: number;
  #list: number;
  /** Where the search for a rank to wake begins: behind the one that was woken last. */
  #next: number;
  /** Operations of this rank that wait; they share its word. */
  #mine = 0;
  /** Whether there may be something for another one. */
  #more: () => boolean;

  constructor(words: Words, count: number, list: number, more: () => boolean) {
    this.#words = words;
    this.#count = count;
    this.#list = list;
    this.#more = more;
    this.#next = words.comm.rank;
  }

  /** This rank is in the list now. */
  enlist(): void {
    const words = this.#words;
    if (words.exchange(this.#list + words.comm.rank, 1) === 0) words.add(this.#count, 1);
  }

  begin(): void {
    this.#mine++;
  }

  /** Whether an operation of this rank waits. */
  get waits(): boolean {
    return this.#mine > 0;
  }

  /** An operation waits no more. */
  end(): void {
    this.#mine--;
    const words = this.#words;
    if (this.#mine === 0) this.#strike(words.comm.rank);
    else words.wake(words.comm.rank); // another one may have been what this rank was woken for
    if (this.#more()) this.wakeOne();
  }

  /** There is something for one of those that wait. Cost if no rank waits: one atomic load. */
  wakeOne(): void {
    const words = this.#words;
    const { size } = words.comm;
    if (words.load(this.#count) <= 0) return;
    for (let i = 1; i <= size; i++) {
      const rank = (this.#next + i) % size;
      if (words.load(this.#list + rank) === 0 || !this.#strike(rank)) continue;
      this.#next = rank;
      words.wake(rank);
      return;
    }
  }

  /** Something has changed for all. */
  wakeAll(): void {
    const words = this.#words;
    for (let rank = 0; rank < words.comm.size; rank++) if (this.#strike(rank)) words.wake(rank);
  }

  #strike(rank: number): boolean {
    const words = this.#words;
    if (words.exchange(this.#list + rank, 0) === 0) return false;
    words.add(this.#count, -1);
    return true;
  }
}

/**
 * A first-in, first-out queue of at most `capacity` entries, which are typed arrays of one length. Any rank can push
 * and pop.
 *
 *     const tasks = await BoundedQueue.create(world, Int32Array, 1024, { length: 2 });
 *     await tasks.push(Int32Array.of(from, to));           // waits while the queue is full
 *     for await (const [from, to] of tasks) { … }          // until it is closed and empty
 */
export class BoundedQueue<T extends TypedArray = TypedArray> {
  /** The number of entries that fit. */
  readonly capacity: number;
  /** The number of elements of an entry. */
  readonly entryLength: number;
  readonly #words: Words;
  readonly #entries: Window<T>;
  readonly #type: TypedArrayConstructor<T>;
  readonly #typeCode: number;
  readonly #sequences: number;
  readonly #ring: number;
  readonly #consumers: Sleepers;
  readonly #producers: Sleepers;

  /**
   * Collective: creates an empty queue in the memory of one rank.
   * @param type the constructor of the entries' typed arrays
   * @param capacity the number of entries that fit, 1 … 2^24; all ranks must give the same
   * Errors: `TypeError`, `RangeError` (type, capacity, options), and those of `Window.allocate`.
   */
  static async create<T extends TypedArray>(
    comm: Communicator,
    type: TypedArrayConstructor<T>,
    capacity: number,
    options?: QueueOptions,
  ): Promise<BoundedQueue<T>> {
    const call = 'BoundedQueue.create';
    let length = 1;
    const place = await agree(call, comm, () => {
      const place = readPlace(call, comm, options, ['length']);
      length = reading(call, 'length of the options', () => options?.length ?? 1);
      if (!isTypedArrayConstructor(type)) {
        throw argumentTypeError(
          `${call}: type must be the constructor of a typed array, not ${show(type)}`,
          'ERR_TYPE',
        );
      }
      checkCount(call, 'capacity', capacity, MAX_CAPACITY);
      checkCount(call, 'the length of an entry', length, 2 ** 30);
      return { place, shape: { capacity, length, bytes: type.BYTES_PER_ELEMENT } };
    });
    const ring = ringLength(capacity);
    const sequences = LISTS + 2 * comm.size;
    const initial = new Int32Array(sequences + ring);
    for (let i = 0; i < ring; i++) initial[sequences + i] = 2 * i;
    const elements = comm.rank === place.owner ? ring * length : 0;
    const entries = await Window.allocate(comm, type, elements, { ...place.wait, name: `entries of ${place.name}` });
    entries.lockAllSync();
    let words: Words;
    try {
      words = await Words.create(comm, place, initial);
    } catch (error) {
      entries.unlockAllSync();
      // All ranks have failed, unless the communicator can be used no more: then it is freed with that.
      if (comm.refusal(call) === undefined) await entries.free(place.wait).catch(() => {});
      throw error;
    }
    try {
      await words.begin(place.wait);
    } catch (error) {
      entries.unlockAllSync();
      throw error;
    }
    return new BoundedQueue(words, entries, type, { capacity, length, sequences, ring });
  }

  private constructor(
    words: Words,
    entries: Window<T>,
    type: TypedArrayConstructor<T>,
    shape: { capacity: number; length: number; sequences: number; ring: number },
  ) {
    this.#words = words;
    this.#entries = entries;
    this.#type = type;
    this.#typeCode = typeCodeOf(new type(new ArrayBuffer(0)));
    this.capacity = shape.capacity;
    this.entryLength = shape.length;
    this.#sequences = shape.sequences;
    this.#ring = shape.ring;
    // A consumer that finds the queue closed and empty wakes the next one: nothing else will come that would wake it.
    this.#consumers = new Sleepers(words, CONSUMERS, LISTS, () => this.length > 0 || this.closed);
    const producers = LISTS + words.comm.size;
    this.#producers = new Sleepers(words, PRODUCERS, producers, () => this.length < this.capacity);
  }

  /** The current number of entries, including those that are being pushed. Cost: two atomic operations at the owner. */
  get length(): number {
    const head = this.#words.load(HEAD);
    const tail = this.#words.load(TAIL) & ~CLOSED;
    return Math.min(((tail - head) >>> 0) / 2, this.capacity);
  }

  /** Whether a rank has closed the queue. Cost: one atomic operation at the owner. */
  get closed(): boolean {
    return (this.#words.load(TAIL) & CLOSED) !== 0;
  }

  /**
   * Waits until the queue has room, and appends an entry.
   * Cost: four atomic operations and a put at the owner, if there is room and no rank waits.
   * Errors: `TypeError`, `RangeError` (entry, options); `ERR_RMA_SYNC` (closed); `ERR_RMA_TIMEOUT`, the signal's
   * reason, `ERR_RMA_RANK_FAILED`. After an error, the entry is not in the queue.
   */
  async push(entry: T, options?: WaitOptions): Promise<void> {
    const wait = readWait('BoundedQueue.push', options);
    // A copy: the caller may change the entry while the push waits.
    const kept = this.#checked('push', entry).slice() as T;
    if (this.#place(kept)) return;
    await this.#words.wait(
      this.#waitFor('push to', this.#producers, () => this.#place(kept)),
      wait,
    );
  }

  /** Waits until the queue has room, and appends an entry; blocks the thread. Cost and errors: as `push`. */
  pushSync(entry: T, options?: WaitOptions): void {
    const wait = readWait('BoundedQueue.pushSync', options);
    const own = this.#checked('pushSync', entry);
    if (this.#place(own)) return;
    this.#words.waitSync(
      this.#waitFor('push to', this.#producers, () => this.#place(own)),
      wait,
    );
  }

  /** Appends an entry if the queue has room, and returns whether it did. Never waits. Errors: as `push`. */
  tryPush(entry: T): boolean {
    return this.#place(this.#checked('tryPush', entry));
  }

  /**
   * Waits for an entry, removes the first one and returns it; returns `undefined` once the queue is closed and empty.
   * Cost: as `push`.
   * Errors: `TypeError`, `RangeError` (options); `ERR_RMA_TIMEOUT`, the signal's reason, `ERR_RMA_RANK_FAILED`. After
   * an error, no entry was removed.
   */
  async pop(options?: WaitOptions): Promise<T | undefined> {
    const wait = readWait('BoundedQueue.pop', options);
    const taken = this.#taking();
    if (!taken.step()) await this.#words.wait(this.#waitFor('pop from', this.#consumers, taken.step), wait);
    return taken.entry;
  }

  /** Waits for an entry, removes the first one and returns it; blocks the thread. Result, cost and errors: as `pop`. */
  popSync(options?: WaitOptions): T | undefined {
    const wait = readWait('BoundedQueue.popSync', options);
    const taken = this.#taking();
    if (!taken.step()) this.#words.waitSync(this.#waitFor('pop from', this.#consumers, taken.step), wait);
    return taken.entry;
  }

  /** Removes the first entry and returns it, or returns `undefined` if there is none. Never waits. */
  tryPop(): T | undefined {
    const taken = this.#taking();
    taken.step();
    return taken.entry;
  }

  /** Iterates over the entries with `pop`, until the queue is closed and empty. Each entry goes to one consumer. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const entry = await this.pop();
      if (entry === undefined) return;
      yield entry;
    }
  }

  /**
   * Closes the queue: later pushes fail, and the entries in it can still be popped. Any rank may call it, more than
   * once. Never waits.
   */
  close(): void {
    this.#words.or(TAIL, CLOSED);
    this.#consumers.wakeAll();
    this.#producers.wakeAll();
  }

  /**
   * Collective: frees the queue and drops its entries. Errors: `ERR_RMA_SYNC` (a push or pop of this rank waits;
   * nothing is freed), and those of `Window.free`.
   */
  async free(options?: WaitOptions): Promise<void> {
    const wait = readWait('BoundedQueue.free', options);
    if (this.#consumers.waits || this.#producers.waits) {
      throw new RmaError(
        'ERR_RMA_SYNC',
        `BoundedQueue.free: a ${this.#consumers.waits ? 'pop' : 'push'} of rank ${this.#words.comm.rank} waits for ` +
          `${this.#words.name}; close the queue, and await that call first`,
      );
    }
    this.#entries.unlockAllSync();
    await this.#entries.free(wait);
    await this.#words.free(wait);
  }

  /** Calls `free`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  /** The library's own view of an entry. */
  #checked(call: string, entry: T): T {
    const full = `BoundedQueue.${call}`;
    const own = ownView(full, 'entry', entry);
    if (typeCodeOf(own) !== this.#typeCode) {
      throw argumentTypeError(
        `${full}: entries of ${this.#words.name} must be of type ${this.#type.name}, not ${show(entry)}`,
        'ERR_TYPE',
      );
    }
    if (own.length !== this.entryLength) {
      throw argumentRangeError(
        `${full}: entries of ${this.#words.name} must have ${this.entryLength} elements, not ${own.length}`,
        'ERR_SIZE',
      );
    }
    return own as T;
  }

  /** Puts an entry if there is a place. */
  #place(entry: T): boolean {
    const words = this.#words;
    for (;;) {
      const tail = words.load(TAIL);
      if ((tail & CLOSED) !== 0) {
        throw new RmaError('ERR_RMA_SYNC', `push: ${words.name} is closed; the entry was not pushed`);
      }
      // HEAD is read after TAIL: if the queue was full by then, it was full at that moment.
      if (((tail - words.load(HEAD)) | 0) >= 2 * this.capacity) return false;
      const slot = this.#slot(tail);
      const turn = (words.load(this.#sequences + slot) - tail) | 0;
      if (turn < 0) return false; // taken, but its reader has not done yet
      if (turn > 0 || words.compareAndSwap(TAIL, tail, (tail + 2) | 0) !== tail) continue; // another rank was faster
      this.#entries.put(entry, words.owner, slot * this.entryLength);
      this.#entries.flushSync(words.owner);
      words.exchange(this.#sequences + slot, (tail + 1) | 0);
      this.#consumers.wakeOne();
      return true;
    }
  }

  /** Takes an entry if there is one. `step` is true as well when there will be none. */
  #taking(): { entry: T | undefined; step: () => boolean } {
    const taken = {
      entry: undefined as T | undefined,
      step: () => {
        const words = this.#words;
        for (;;) {
          const head = words.load(HEAD);
          const slot = this.#slot(head);
          const turn = (words.load(this.#sequences + slot) - (head + 1)) | 0;
          if (turn < 0) {
            // Nothing is here yet. One word says both that the queue is closed and that nothing is on its way.
            if (words.load(TAIL) !== (head | CLOSED)) return false;
            if (words.load(HEAD) === head) return true;
            continue;
          }
          if (turn > 0 || words.compareAndSwap(HEAD, head, (head + 2) | 0) !== head) continue;
          const entry = new this.#type(new ArrayBuffer(this.entryLength * this.#type.BYTES_PER_ELEMENT));
          this.#entries.get(entry, words.owner, slot * this.entryLength);
          this.#entries.flushSync(words.owner);
          words.exchange(this.#sequences + slot, (head + 2 * this.#ring) | 0);
          this.#producers.wakeOne();
          taken.entry = entry;
          return true;
        }
      },
    };
    return taken;
  }

  #slot(position: number): number {
    return (position >>> 1) & (this.#ring - 1);
  }

  /** Tries again and again, in the list of those to be woken. */
  #waitFor(what: string, sleepers: Sleepers, step: () => boolean): Operation {
    sleepers.begin();
    let waits = true;
    const end = () => {
      if (waits) sleepers.end();
      waits = false;
    };
    return {
      advance: () => {
        // In the list first, then a look: a rank that changes something after the look finds this rank in the list.
        sleepers.enlist();
        if (!step()) return false;
        end();
        return true;
      },
      abandon: end,
      describe: () => `${what} ${this.#words.name} by rank ${this.#words.comm.rank}`,
    };
  }
}

function checkCount(call: string, what: string, value: unknown, most: number): void {
  if (typeof value !== 'number') throw argumentTypeError(`${call}: ${what} must be a number, not ${show(value)}`);
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw argumentRangeError(`${call}: ${what} must be an integer from 1 to ${most}, not ${value}`);
  }
}
