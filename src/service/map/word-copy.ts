/** Copies of some words, as most entries have, without a native call and without allocating. */

/** From here on the engine's copy is faster, though it needs an array for the range. */
const LONG = 160;

/** Copies words that do not overlap. Eight at a time: a loop of single words takes twice as long. */
export function copyWords(to: Int32Array, at: number, from: Int32Array, begin: number, count: number): void {
  if (count >= LONG) {
    to.set(from.subarray(begin, begin + count), at);
    return;
  }
  const end = begin + count;
  const whole = end - (count & 7);
  for (; begin < whole; begin += 8, at += 8) {
    to[at] = from[begin];
    to[at + 1] = from[begin + 1];
    to[at + 2] = from[begin + 2];
    to[at + 3] = from[begin + 3];
    to[at + 4] = from[begin + 4];
    to[at + 5] = from[begin + 5];
    to[at + 6] = from[begin + 6];
    to[at + 7] = from[begin + 7];
  }
  while (begin < end) to[at++] = from[begin++];
}
