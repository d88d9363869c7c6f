/** The options of programs whose ranks may be tasks on a modelled fabric. */
import { inRange, wholeNumber } from '../options.ts';

export interface Modelled {
  readonly fabric: string;
  readonly ranks: number;
  readonly seed: number;
  /** Where the run's trace goes. */
  readonly trace?: string;
}

/**
 * Reads `--fabric NAME`, `--ranks N` (64 if absent), `--seed N` (1) and `--trace FILE`; the others make no sense
 * without the first: for ranks that are processes, their launcher takes them.
 * @throws RangeError with what is wrong
 */
export function readModelled(given: Readonly<Record<string, string | undefined>>): Modelled | undefined {
  const { fabric, ranks = '64', seed = '1', trace } = given;
  if (fabric === undefined) {
    for (const name of ['ranks', 'seed', 'trace']) {
      if (given[name] !== undefined) throw new RangeError(`--${name} is for ranks on a modelled fabric: give --fabric`);
    }
    return undefined;
  }
  const number = (name: string, text: string, least: number, most: number): number => {
    const value = wholeNumber(text);
    if (Number.isNaN(value)) throw new RangeError(`--${name} is a whole number, not '${text}'`);
    inRange(`--${name}`, value, least, most);
    return value;
  };
  return {
    fabric,
    ranks: number('ranks', ranks, 1, 65_536),
    seed: number('seed', seed, 0, Number.MAX_SAFE_INTEGER),
    ...(trace === undefined ? {} : { trace }),
  };
}
