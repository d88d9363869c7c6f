/**
 * What processes tell each other besides counts where packets are paced, or may be lost: how much each sends in the
 * superstep that ends (BSP over TCP/IP: totals, before any user data), and how long the one before took to deliver. All
 * of them have the same totals afterwards, so that they decide alike without a word more (pace-choices.ts).
 */

/** Of a process. Whole numbers below 2^31. */
export interface Load {
  /** That it sends in this superstep. */
  readonly packets: number;
  /** From the end of its counts of the superstep before until that was delivered; 0 if there was none. */
  readonly microseconds: number;
  /** Packets for each process, if each is to know what comes from whom. */
  readonly to?: Int32Array | undefined;
}

/** Of all processes. */
export interface Totals {
  /** Processes that send anything. */
  readonly senders: number;
  /** Packets of all of them, and the most of one. */
  readonly packets: number;
  readonly most: number;
  /** The most microseconds that a process took to deliver the superstep before. */
  readonly longest: number;
}

/** `Totals` as words, and as they are summed: the first two are sums, the others maxima. */
export const TOTAL_WORDS = 4;
export const SUMS = 2;

const MOST = 2 ** 31 - 1;

/** What one process adds to the words. */
export function wordsOf({ packets, microseconds }: Load): [sends: number, packets: number, most: number, time: number] {
  return [packets > 0 ? 1 : 0, packets, packets, microseconds];
}

export function addLoad(words: Int32Array, load: Load): void {
  const [sends, packets, most, time] = wordsOf(load);
  words[0] += sends;
  words[1] = Math.min(MOST, words[1] + packets);
  words[2] = Math.max(words[2], most);
  words[3] = Math.max(words[3], time);
}

export function totalsIn(words: ArrayLike<number>, at = 0): Totals {
  return { senders: words[at], packets: words[at + 1], most: words[at + 2], longest: words[at + 3] };
}

/** As a number that has room in a word. */
export function inWord(microseconds: number): number {
  return Math.min(MOST, Math.ceil(microseconds));
}
