/**
 * Memory by which ranks ask the analysis of races while they run (`--races=throw`), and wait for its answers. Ranks
 * that are processes map a memory file of the launcher; threads share it.
 *
 * A rank has a room of its own: numbers that it asks, or the bytes of an answer. Its STATE says whose the room is:
 *
 *     rank:     writes the room and LENGTH;  STATE = ASKED;  BELL += 1;  SLEEPS ≠ 0? wakes;  waits while STATE = ASKED
 *     analysis: token = BELL;  for each STATE = ASKED: reads the room, writes the answer and LENGTH;
 *                                                      STATE = ANSWERED;  wakes
 *               none: SLEEPS = 1;  waits while BELL = token;  SLEEPS = 0
 *
 * Between STATE = ASKED and STATE = ANSWERED only the analysis reads and writes the room; otherwise only its rank does.
 * The stores of STATE are atomic, so who sees them sees the room as it was left. No wake-up is lost: if the analysis
 * did not see ASKED, its look came before that store, so BELL has changed since its token, and the wait ends at once,
 * or it has begun with SLEEPS = 1, which the rank sees. A rank that is killed before it stores ASKED has asked nothing;
 * one that is killed later is answered, and nobody reads the answer. So nobody ever waits for a rank here.
 *
 * A rank waits for the analysis alone. When that is gone, CLOSED is 1, and all go on untold. Processes whose launcher
 * was killed are killed with it.
 */
import type { Native } from '../../native.ts';

const Word = Object.freeze({
  BELL: 0,
  SLEEPS: 1,
  CLOSED: 2,
  SIZE: 3,
} as const);
/** Of a rank, in a cache line of their own. */
const Place = Object.freeze({
  STATE: 0,
  /** 1: a rank has taken it. */
  OWNED: 1,
  LENGTH: 2,
} as const);
const State = Object.freeze({
  ANSWERED: 0,
  ASKED: 1,
  /** Asked a piece; more follows when it is taken. */
  PIECE: 2,
} as const);

const HEAD_WORDS = 16;
/** Numbers of a room. */
const ROOM = 4096;
const PLACE_WORDS = 16 + 2 * ROOM;
/** How long anybody sleeps at most, in milliseconds, until it looks whether all is well. */
const LOOK_EVERY = 1000;

export function exchangeBytes(size: number): number {
  return 4 * (HEAD_WORDS + size * PLACE_WORDS);
}

/** Waits in the kernel for a word. */
interface Futex {
  wait(words: Int32Array, index: number, expected: number): void;
  wake(words: Int32Array, index: number): void;
}

const THREADS: Futex = {
  wait: (words, index, expected) => void Atomics.wait(words, index, expected, LOOK_EVERY),
  wake: (words, index) => void Atomics.notify(words, index),
};

function processesFutex(native: Native): Futex {
  return {
    wait: (words, index, expected) => void native.futexWait(words, index, expected, LOOK_EVERY),
    wake: (words, index) => void native.futexWake(words, index, 1),
  };
}

export class RaceExchange {
  readonly #words: Int32Array;
  readonly #memory: ArrayBufferLike;
  readonly #futex: Futex;

  /** @param native of processes; absent: all who ask are threads of this process */
  constructor(memory: ArrayBufferLike, native?: Native) {
    this.#memory = memory;
    this.#words = new Int32Array(memory);
    this.#futex = native === undefined ? THREADS : processesFutex(native);
  }

  /** Ranks. */
  get size(): number {
    return Atomics.load(this.#words, Word.SIZE);
  }

  /** Before anybody asks. */
  format(size: number): void {
    Atomics.store(this.#words, Word.SIZE, size);
  }

  #room(rank: number): Float64Array {
    return new Float64Array(this.#memory, 4 * (HEAD_WORDS + rank * PLACE_WORDS + 16), ROOM);
  }

  // ---- ranks --------------------------------------------------------------------------------------------------------

  /** @returns whether the place of this rank was free */
  take(rank: number): boolean {
    return Atomics.compareExchange(this.#words, placeOf(rank) + Place.OWNED, 0, 1) === 0;
  }

  hasCome(rank: number): boolean {
    return Atomics.load(this.#words, placeOf(rank) + Place.OWNED) === 1;
  }

  /** What a rank asks by; blocks its thread until there is an answer. @returns '' or the answer */
  asker(rank: number): (numbers: Float64Array) => string {
    const room = this.#room(rank);
    const text = Buffer.from(room.buffer, room.byteOffset, room.byteLength);
    const length = placeOf(rank) + Place.LENGTH;
    return (numbers) => {
      for (let at = 0; at < numbers.length; at += ROOM) {
        const end = Math.min(at + ROOM, numbers.length);
        room.set(numbers.subarray(at, end));
        Atomics.store(this.#words, length, end - at);
        if (!this.#ask(rank, end < numbers.length ? State.PIECE : State.ASKED)) return '';
      }
      return text.toString('utf8', 0, Atomics.load(this.#words, length));
    };
  }

  /** @returns false if nobody answers any more */
  #ask(rank: number, state: number): boolean {
    const words = this.#words;
    const index = placeOf(rank) + Place.STATE;
    Atomics.store(words, index, state);
    Atomics.add(words, Word.BELL, 1);
    if (Atomics.load(words, Word.SLEEPS) !== 0) this.#futex.wake(words, Word.BELL);
    while (Atomics.load(words, index) !== State.ANSWERED) {
      if (this.isClosed) return false;
      this.#futex.wait(words, index, state);
    }
    return true;
  }

  // ---- the analysis -------------------------------------------------------------------------------------------------

  get isClosed(): boolean {
    return Atomics.load(this.#words, Word.CLOSED) !== 0;
  }

  /** Nobody asks any more, or nobody answers: wakes all. */
  close(): void {
    const words = this.#words;
    Atomics.store(words, Word.CLOSED, 1);
    Atomics.add(words, Word.BELL, 1);
    this.#futex.wake(words, Word.BELL);
    for (let rank = 0; rank < this.size; rank++) this.#futex.wake(words, placeOf(rank) + Place.STATE);
  }

  /**
   * Answers until it is closed, and what was asked by then; blocks this thread.
   * @param answer of numbers that are a rank's until it returns
   */
  serve(answer: (rank: number, numbers: Float64Array) => string): void {
    const words = this.#words;
    const rooms = Array.from({ length: this.size }, (_, rank) => new AskedRoom(this.#room(rank), placeOf(rank)));
    for (;;) {
      const isLast = this.isClosed;
      const token = Atomics.load(words, Word.BELL);
      let asked = 0;
      for (const [rank, room] of rooms.entries()) {
        if (!room.answer(words, (numbers) => answer(rank, numbers))) continue;
        asked++;
        this.#futex.wake(words, placeOf(rank) + Place.STATE);
      }
      if (asked > 0) continue;
      if (isLast) return;
      Atomics.store(words, Word.SLEEPS, 1);
      this.#futex.wait(words, Word.BELL, token);
      Atomics.store(words, Word.SLEEPS, 0);
    }
  }
}

/** A room as the analysis sees it. */
class AskedRoom {
  readonly #room: Float64Array;
  readonly #text: Buffer;
  readonly #place: number;
  /** Pieces that have come of what is asked. */
  #pieces: Float64Array[] = [];

  constructor(room: Float64Array, place: number) {
    this.#room = room;
    this.#text = Buffer.from(room.buffer, room.byteOffset, room.byteLength);
    this.#place = place;
  }

  /** @returns whether anything was asked */
  answer(words: Int32Array, answer: (numbers: Float64Array) => string): boolean {
    const state = Atomics.load(words, this.#place + Place.STATE);
    if (state === State.ANSWERED) return false;
    const piece = this.#room.subarray(0, Atomics.load(words, this.#place + Place.LENGTH));
    let said = 0;
    if (state === State.PIECE) this.#pieces.push(piece.slice());
    else said = this.#text.write(answer(this.#whole(piece)));
    Atomics.store(words, this.#place + Place.LENGTH, said);
    Atomics.store(words, this.#place + Place.STATE, State.ANSWERED);
    return true;
  }

  #whole(last: Float64Array): Float64Array {
    if (this.#pieces.length === 0) return last;
    const pieces = [...this.#pieces, last];
    this.#pieces = [];
    const all = new Float64Array(pieces.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }
}

function placeOf(rank: number): number {
  return HEAD_WORDS + rank * PLACE_WORDS;
}
