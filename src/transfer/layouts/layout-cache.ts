/**
 * Layouts that go over once, and afterwards as a number (dissertation §8.1.1, "layout exchange").
 *
 * The sender decides which number stands for which layout, and gives a number to another one by sending it again with
 * its words: messages to a rank come in their order, so both sides agree without a word about evictions. Each rank
 * keeps, for each rank that sends to it, at most `LAYOUTS` of `MOST_WORDS` words, 128 KiB; what has more is not kept.
 */
import type { Places } from '../../datatype/copy.ts';
import { decodeLayout, encodeLayout, layoutWords } from './layout-words.ts';

const LAYOUTS = 32;
/** Words of a layout that is kept. */
const MOST_WORDS = 512;

export const NO_WORDS = new Float64Array(0);

/** What says a layout in a message. */
export interface SaidLayout {
  /** Its number from now on, or −1: it is not kept. */
  readonly number: number;
  /** Empty if the number alone says it. */
  readonly words: Float64Array;
}

/** The sender's side, for one rank. */
export class SentLayouts {
  readonly #sent: Places[] = [];
  /** The next number to be given to another layout. */
  #oldest = 0;
  /** How often a number alone was enough. */
  hits = 0;

  /** @returns undefined if it has too many words to be sent whole */
  say(places: Places): SaidLayout | undefined {
    if (places.runs === undefined) return { number: -1, words: encodeLayout(places) };
    const { runs, count, stride } = places;
    const known = this.#sent.findIndex((it) => it.runs === runs && it.count === count && it.stride === stride);
    if (known >= 0) {
      this.hits++;
      return { number: known, words: NO_WORDS };
    }
    if (layoutWords(places) > MOST_WORDS) return undefined;
    const number = this.#oldest;
    this.#oldest = (this.#oldest + 1) % LAYOUTS;
    this.#sent[number] = places;
    return { number, words: encodeLayout(places) };
  }
}

/** The receiver's, for one rank. */
export class ReceivedLayouts {
  readonly #received: Places[] = [];

  hear({ number, words }: SaidLayout): Places {
    if (words.length === 0) return this.#received[number];
    const places = decodeLayout(words);
    if (number >= 0) this.#received[number] = places;
    return places;
  }
}
