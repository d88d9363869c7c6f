/** Rings that grow as they are filled: columns of slots, a power of two, by the counts of what they hold. */
type Column = Float64Array | Uint32Array | Int32Array | Uint16Array | Uint8Array | Int8Array | unknown[];

/**
 * Moves what a ring holds to a column of more slots.
 * @param head the count of the first
 * @param n how many there are
 * @param width entries of a slot
 * @returns `to`
 */
export function regrown<C extends Column>(from: C, to: C, head: number, n: number, width = 1): C {
  const before = from.length / width - 1;
  const after = to.length / width - 1;
  for (let count = head; count < head + n; count++) {
    const source = (count & before) * width;
    const target = (count & after) * width;
    for (let i = 0; i < width; i++) to[target + i] = from[source + i];
  }
  return to;
}
