/**
 * The file of what a rank tells: doubles, in the order of bytes of this machine. An event is its kind, how many numbers
 * follow, the time in nanoseconds, and the numbers. A text is −1, its number, how many bytes it has, and these in whole
 * doubles.
 */
import { join } from 'node:path';

export const TEXT = -1;

export function logFile(folder: string, rank: number): string {
  return join(folder, `rank-${rank}.races`);
}
