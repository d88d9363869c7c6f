/**
 * Options that do not exist: a misspelt name is refused, with the name that was meant, wherever a program, an
 * environment or a command line gives names.
 */
import { argumentTypeError, reading, show } from './errors.ts';

/**
 * The known name that a word most likely stands for: a few letters are wrong, missing, too many, or have changed
 * places.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // Two letters of six, and one of three, may be wrong; of longer words, one may have lost its end.
  const most = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let least = most + 1;
  for (const name of known) {
    const distance = distanceOf(word.toLowerCase(), name.toLowerCase());
    if (distance < least) [best, least] = [name, distance];
  }
  return best ?? known.find((name) => word.length >= 3 && name.startsWith(word));
}

/** Letters to be inserted, deleted, replaced, or exchanged with their neighbour, until one word is the other. */
function distanceOf(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length];
}

/** What to say of an unknown name: `unknown name "nam"; did you mean "name"?` */
export function unknownName(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return (
    `unknown name ${show(word)}; ` +
    `${meant === undefined ? `the known names are ${known.join(', ')}` : `did you mean ${show(meant)}?`}`
  );
}

/**
 * Throws a `TypeError` if an object of the caller's has a property of its own that is none of the known ones.
 * @param where says what has the options: `init: the options`
 */
export function refuseUnknown(call: string, what: string, options: object, known: readonly string[]): void {
  for (const key of reading(call, what, () => Object.keys(options))) {
    if (!known.includes(key)) throw argumentTypeError(`${call}: ${what}: ${unknownName(key, known)}`);
  }
}
