/**
 * The clock of real ranks: CLOCK_MONOTONIC, in nanoseconds. It is one clock for all processes and threads of a host, so
 * their times can be compared as they are.
 *
 * `process.hrtime` reads it, but allocates. `performance.now()` reads it too and does not, relative to a beginning of
 * its own; the difference of the two is found once. Each sample reads one between two readings of the other, and the
 * tightest counts: what is left of the error is half the time between those two, well below a microsecond.
 */
import { performance } from 'node:perf_hooks';
import type { Clock } from './recorder.ts';

const SAMPLES = 16;

export function monotonicClock(): Clock {
  let best = Number.POSITIVE_INFINITY;
  let offset = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const before = performance.now() * 1e6;
    const monotonic = Number(process.hrtime.bigint());
    const after = performance.now() * 1e6;
    if (after - before >= best) continue;
    best = after - before;
    offset = monotonic - (before + after) / 2;
  }
  return () => performance.now() * 1e6 + offset;
}
