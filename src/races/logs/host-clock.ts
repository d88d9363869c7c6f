/**
 * Clocks of several hosts. By messages, the first rank of each host compares its clock with that of rank 0, when the
 * job begins and when it ends, and notes that in a file beside its log: by how much it is ahead, and how sure that is.
 * Between the two, and outside of them, the difference is taken to change evenly.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { logFile } from './race-log-format.ts';

/** What a comparison of a clock with that of rank 0 has found, in nanoseconds. */
export interface ClockSample {
  /** By its own clock. */
  readonly at: number;
  readonly ahead: number;
  readonly within: number;
}

export function writeClock(folder: string, rank: number, samples: readonly ClockSample[]): void {
  writeFileSync(logFile(folder, rank, 'clock'), JSON.stringify(samples));
}

/** Of the first rank of a host. Empty if it has not come so far. */
export function readClock(folder: string, rank: number): readonly ClockSample[] {
  try {
    return JSON.parse(readFileSync(logFile(folder, rank, 'clock'), 'utf8')) as ClockSample[];
  } catch {
    return [];
  }
}

/** @returns what makes a time of this clock one of rank 0's */
export function correction(samples: readonly ClockSample[]): (time: number) => number {
  const [first, last] = [samples.at(0), samples.at(-1)];
  if (first === undefined || last === undefined) return (time) => time;
  const drift = last.at === first.at ? 0 : (last.ahead - first.ahead) / (last.at - first.at);
  return (time) => time - first.ahead - drift * (time - first.at);
}
