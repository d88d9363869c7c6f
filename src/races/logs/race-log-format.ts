/**
 * The file of what a rank tells: doubles, in the order of bytes of this machine. An event is its kind, how many numbers
 * follow, the time in nanoseconds, and the numbers. A text is −1, its number, how many bytes it has, and these in whole
 * doubles.
 */
import { join } from 'node:path';

export const TEXT = -1;

/** Of each rank what it tells; of the first one of each host also how its clock goes (host-clock.ts). */
export const LOG_FILES = ['races', 'clock'] as const;
export type LogFile = (typeof LOG_FILES)[number];

export function logFile(folder: string, rank: number, file: LogFile = 'races'): string {
  return join(folder, `rank-${rank}.${file}`);
}

/** Goes through whole events, each with its texts before it. The numbers of an event are those that are given. */
export function forEachEvent(
  numbers: Float64Array,
  text: (id: number, text: string) => void,
  event: (kind: number, data: Float64Array) => void,
): void {
  for (let at = 0; at < numbers.length; ) {
    const [kind, second, third] = numbers.subarray(at, at + 3);
    at += 3;
    if (kind === TEXT) {
      text(second, Buffer.from(numbers.buffer, numbers.byteOffset + 8 * at, third).toString());
      at += Math.ceil(third / 8);
    } else {
      event(kind, numbers.subarray(at, at + second));
      at += second;
    }
  }
}
