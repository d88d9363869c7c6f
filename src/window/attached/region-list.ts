/** Lists of regions in the order of their addresses, in which none overlaps another that is attached. */

interface Region {
  readonly address: number;
  readonly bytes: number;
}

/** How many regions of a list begin at or before an address. */
export function countTo(list: readonly Region[], address: number): number {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (list[middle].address <= address) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * The region with the bytes from `low` to before `high` in it: the last one that begins at or before `low`, if it
 * reaches that far.
 */
export function lookUp<T extends Region>(list: readonly T[], low: number, high: number): T | undefined {
  const count = countTo(list, low);
  if (count === 0) return undefined;
  const last = list[count - 1];
  return high <= last.address + last.bytes ? last : undefined;
}

/** Both lists in one. */
export function merged<T extends Region>(a: readonly T[], b: readonly T[]): T[] {
  const all: T[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) all.push(a[i].address <= b[j].address ? a[i++] : b[j++]);
  while (i < a.length) all.push(a[i++]);
  while (j < b.length) all.push(b[j++]);
  return all;
}
