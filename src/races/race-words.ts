/**
 * Words by which ranks synchronize themselves: whoever changes one by an atomic call, or puts it, gives its clock to
 * it, and whoever reads it by an atomic call takes the clocks that it has.
 */
import type { Clock, RaceAccess } from './race-access.ts';

/** Operations on one word that are remembered, at most. */
const MOST_GIVERS = 64;

interface Word {
  clock: Clock;
  /** Operations that its owner does not know to be complete. */
  givers: RaceAccess[];
}

/** Places of words: memory and byte, one after the other. */
export type WordPlaces = readonly number[];

/** Bytes that a word takes beside the counts of its clock, about. */
const WORD_BYTES = 350;

export class RaceWords {
  /** By memory, then by byte. */
  readonly #words = new Map<number, Map<number, Word>>();
  /** Memories all of whose words are taken for one: that may order more than the program does, and accuses nobody. */
  readonly #whole = new Map<number, Word>();
  /** Bytes that a word takes at most, about. */
  readonly #each: number;
  #most = Number.POSITIVE_INFINITY;
  #count = 0;
  #peak = 0;
  /** Words that were taken for one. */
  joined = 0;

  /** @param size of the job */
  constructor(size: number) {
    this.#each = WORD_BYTES + 4 * size;
  }

  /** Bytes that they may take. */
  set bound(bytes: number) {
    this.#most = Math.max(1000, Math.floor(bytes / this.#each));
  }

  /** Bytes that they took at most, about. */
  get bytes(): number {
    return this.#peak * this.#each;
  }

  /** @param clock nobody changes it */
  give(places: WordPlaces, clock: Clock): void {
    for (let i = 0; i < places.length; i += 2) {
      const word = this.#word(places[i], places[i + 1]);
      if (word === undefined) this.#add(places[i], places[i + 1], clock);
      else if (word.clock !== clock) word.clock = latest(word.clock, clock);
    }
  }

  #word(memory: number, at: number): Word | undefined {
    return this.#words.get(memory)?.get(at) ?? this.#whole.get(memory);
  }

  #add(memory: number, at: number, clock: Clock): void {
    let words = this.#words.get(memory);
    if (words === undefined) {
      words = new Map();
      this.#words.set(memory, words);
    }
    words.set(at, { clock, givers: [] });
    if (++this.#count > this.#most) this.#joinLargest();
    if (this.#count > this.#peak) this.#peak = this.#count;
  }

  /** Takes all words of the memory that has most of them for one. */
  #joinLargest(): void {
    const [memory, words] = [...this.#words].reduce((a, b) => (b[1].size > a[1].size ? b : a));
    const givers = new Set<RaceAccess>();
    let clock: Clock | undefined;
    for (const word of words.values()) {
      clock = clock === undefined ? word.clock : latest(clock, word.clock);
      for (const giver of word.givers) givers.add(giver);
    }
    this.#whole.set(memory, { clock: clock!, givers: [...givers] });
    this.joined += words.size;
    this.#count -= words.size;
    this.#words.delete(memory);
  }

  /** The operation by which they were given. */
  changedBy(access: RaceAccess, places: WordPlaces): void {
    for (let i = 0; i < places.length; i += 2) {
      const word = this.#word(places[i], places[i + 1]);
      if (word === undefined || word.givers.at(-1) === access) continue;
      const { givers } = word;
      // A list of one is short; one that grows has room.
      if (givers.length === 0) word.givers = [access];
      else givers.push(access);
      if (givers.length > MOST_GIVERS) givers.shift();
    }
  }

  /** What a word has been given. */
  clockOf(memory: number, at: number): Clock | undefined {
    return this.#word(memory, at)?.clock;
  }

  /** The owner has seen the word: what has changed it so far has done so. @returns these operations */
  seen(memory: number, at: number): readonly RaceAccess[] {
    const word = this.#word(memory, at);
    if (word === undefined || word.givers.length === 0) return [];
    const { givers } = word;
    word.givers = [];
    return givers;
  }

  /** A memory is no part of a window any more. */
  forget(memory: number): void {
    this.#count -= this.#words.get(memory)?.size ?? 0;
    this.#words.delete(memory);
    this.#whole.delete(memory);
  }
}

function latest(a: Clock, b: Clock): Clock {
  if (a.every((count, i) => count >= b[i])) return a;
  return a.map((count, i) => Math.max(count, b[i]));
}
