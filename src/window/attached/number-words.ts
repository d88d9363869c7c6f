/**
 * Numbers of 64 bits in shared memory, each as two 32-bit words that are stored and loaded one after the other,
 * sequentially consistent.
 */

const number = new Float64Array(1);
const halves = new Int32Array(number.buffer);

/** @param at the first of the two words */
export function storeNumber(words: Int32Array, at: number, value: number): void {
  number[0] = value;
  const [first, second] = halves;
  Atomics.store(words, at, first);
  Atomics.store(words, at + 1, second);
}

/** What was stored, if no rank stores at the time: the reader has to find that out. */
export function loadNumber(words: Int32Array, at: number): number {
  const first = Atomics.load(words, at);
  const second = Atomics.load(words, at + 1);
  halves[0] = first;
  halves[1] = second;
  return number[0];
}
