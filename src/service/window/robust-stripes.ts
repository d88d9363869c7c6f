/**
 * The stripes of a part (transfer/loads/stripes.ts), where their holders can die. A word names its holder as all words
 * of a service do, so whoever finds a stripe taken for a while can look whether its holder lives; if not, it notes who
 * was cut off (CUT), and then gives the stripe free by a compare-and-swap:
 *
 *   CUT of the stripe <- name;   WORD: name -> 0
 *
 * CUT comes first: if the one that recovers dies in between, the next one stores the same. So nobody gets the stripe
 * before it is noted. What a death leaves of an accumulate: each element is old or new, since a kill falls between two
 * instructions, and elements are stored by single ones. Which elements are new is not known: those of one block of 4
 * KiB of this stripe at most, and blocks of other stripes are wholly old or new.
 */
import { RmaError } from '../../errors.ts';
import { STRIPES, Stripes } from '../../transfer/loads/stripes.ts';
import { type Members, placeOf } from '../service-members.ts';

const LINE = 16;

/** Bytes of a part of which some elements may be new and others old. */
export interface Interrupted {
  /** Of the member that died in the middle of an accumulate. */
  readonly place: number;
  /** Half-open ranges of elements: each 4 KiB of the part that the stripe stands for. */
  readonly elements: readonly { readonly begin: number; readonly end: number }[];
}

/** @param what the part, for messages */
export function robustStripes(members: Members, words: Int32Array, cuts: Int32Array, what: string): Stripes {
  let stopped = 0;
  return new Stripes(words, 0, {
    // Its own name comes of this by adding 1.
    rank: members.name - 1,
    schedYield: members.memory.native.schedYield,
    findFailure() {
      let holder = 0;
      for (let stripe = 0; stripe < STRIPES; stripe++) {
        const name = Atomics.load(words, stripe * LINE);
        if (name === 0 || name === members.name) continue;
        if (members.isGone(name)) {
          Atomics.store(cuts, stripe, name);
          Atomics.compareExchange(words, stripe * LINE, name, 0);
        } else if (members.isStopped(name)) holder = name;
      }
      const again = holder !== 0 && holder === stopped;
      stopped = holder;
      if (!again) return undefined;
      const who = `place ${placeOf(holder)} (${members.describe(holder)})`;
      return new RmaError(
        'ERR_RMA_TIMEOUT',
        `${what} is being updated by ${who}: elements of this accumulate may be updated or not; ` +
          'let that process go on (SIGCONT), or end it',
      );
    },
  });
}

/** Those that were cut off in a part since this was asked last, by whichever member. */
export function takeInterrupted(cuts: Int32Array, length: number, elementBytes: number): Interrupted[] {
  const found: Interrupted[] = [];
  const each = 4096 / elementBytes;
  for (let stripe = 0; stripe < STRIPES; stripe++) {
    if (Atomics.load(cuts, stripe) === 0) continue;
    const name = Atomics.exchange(cuts, stripe, 0);
    if (name === 0) continue;
    const elements: { begin: number; end: number }[] = [];
    for (let begin = stripe * each; begin < length; begin += STRIPES * each)
      elements.push({ begin, end: Math.min(begin + each, length) });
    found.push({ place: placeOf(name), elements });
  }
  return found;
}
