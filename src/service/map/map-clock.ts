/**
 * The time by which entries expire: milliseconds of the machine's monotonic clock, the same in all its processes and
 * threads. It does not jump when the date is set.
 */

const [seconds, nanoseconds] = process.hrtime();
const origin = seconds * 1000 + nanoseconds / 1e6 - performance.now();

export function now(): number {
  return origin + performance.now();
}
