/**
 * Reads the command lines of programs: what is wrong is said in one line, and the program ends with the exit code 2.
 */
import { readFileSync } from 'node:fs';

/** A whole number as people write it: `4096`, or `2^12`. NaN if it is none. */
export function wholeNumber(text: string): number {
  const power = /^2\^(\d{1,2})$/.exec(text);
  if (power !== null) return 2 ** Number(power[1]);
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

/** One of some words. @throws RangeError */
export function oneOf(name: string, value: string, values: readonly string[]): void {
  if (!values.includes(value)) throw new RangeError(`${name} is one of ${values.join(', ')}, not '${value}'`);
}

/** @throws RangeError */
export function inRange(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most)
    throw new RangeError(`${name} is a whole number from ${least} to ${most}, not ${value}`);
}

/**
 * Runs what reads the command line, before anything else has begun. With `--help` the program says what stands at its
 * beginning, and ends.
 */
export function orExplain<T>(read: () => T, program = process.argv[1]): T {
  if (process.argv.includes('--help')) {
    const comment = /^\/\*\*\s*(.*?)\s*\*\//s.exec(readFileSync(program, 'utf8'))![1];
    console.log(comment.replace(/^ ?\* ?/gm, ''));
    process.exit(0);
  }
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}
