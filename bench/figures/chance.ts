/** Chance in programs of ranks that repeats. */

/** Random numbers from 0 to 1, the same in each run. */
export function randomOf(seed: number): () => number {
  let x = (Math.imul(seed + 1, 2654435761) >>> 0) % 2147483646;
  return () => (x = (((x + 1) * 48271) % 2147483647) - 1) / 2147483647;
}
