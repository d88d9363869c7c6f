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

export class RaceWords {
  /** By memory, then by byte. */
  readonly #words = new Map<number, Map<number, Word>>();

  /** @param clock nobody changes it */
  give(places: WordPlaces, clock: Clock): void {
    for (let i = 0; i < places.length; i += 2) {
      let words = this.#words.get(places[i]);
      if (words === undefined) {
        words = new Map();
        this.#words.set(places[i], words);
      }
      const word = words.get(places[i + 1]);
      if (word === undefined) words.set(places[i + 1], { clock, givers: [] });
      else if (word.clock !== clock) word.clock = latest(word.clock, clock);
    }
  }

  /** The operation by which they were given. */
  changedBy(access: RaceAccess, places: WordPlaces): void {
    for (let i = 0; i < places.length; i += 2) {
      const givers = this.#words.get(places[i])?.get(places[i + 1])?.givers;
      if (givers === undefined || givers.at(-1) === access) continue;
      givers.push(access);
      if (givers.length > MOST_GIVERS) givers.shift();
    }
  }

  /** What a word has been given. */
  clockOf(memory: number, at: number): Clock | undefined {
    return this.#words.get(memory)?.get(at)?.clock;
  }

  /** The owner has seen the word: what has changed it so far has done so. @returns these operations */
  seen(memory: number, at: number): readonly RaceAccess[] {
    const word = this.#words.get(memory)?.get(at);
    if (word === undefined || word.givers.length === 0) return [];
    const { givers } = word;
    word.givers = [];
    return givers;
  }

  forget(memory: number): void {
    this.#words.delete(memory);
  }
}

function latest(a: Clock, b: Clock): Clock {
  if (a.every((count, i) => count >= b[i])) return a;
  return a.map((count, i) => Math.max(count, b[i]));
}
