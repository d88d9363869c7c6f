/**
 * The time by which entries expire: milliseconds of the machine's monotonic clock, the same in all its processes and
 * threads. It does not jump when the date is set.
 */

/** Looks at both clocks. A thread can lose its core between two of them; of some, one is quick. */
const LOOKS = 20;

const origin = findOrigin();

/** What `performance.now` is behind the machine's clock: by the look that took the least time. */
function findOrigin(): number {
  let found = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let look = 0; look < LOOKS; look++) {
    const before = performance.now();
    const [seconds, nanoseconds] = process.hrtime();
    const after = performance.now();
    if (after - before >= least) continue;
    least = after - before;
    found = seconds * 1000 + nanoseconds / 1e6 - (before + after) / 2;
  }
  return found;
}

export function now(): number {
  return origin + performance.now();
}
