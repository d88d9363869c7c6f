/**
 * `ONESIDED_DEBUG`: words, separated by commas, for debugging and tests. All ranks must have the same.
 *
 * - `epochs`: errors about an epoch that was left open say where it was opened (window/epochs/epochs.ts).
 * - `conflicts`: accesses whose outcome MPI leaves undefined are errors (window/epochs/access-log.ts).
 * - `poison`: results hold a pattern until they are complete, and origins are compared
 * (window/epochs/buffers-under-way.ts).
 * - `requests`: windows take the ways that they take on a device across a network; with `neighbours` besides, as if
 *   each two ranks were on a host of their own.
 * - `drop:P`: adapters lose that share, from 0 to 1, of their packets of barriers.
 * - `nodes:N`: N ranks at a time are a node of their own, as far as locks are concerned.
 */
import { argumentTypeError, show } from './errors.ts';
import { unknownName } from './options.ts';

const WORDS = ['epochs', 'conflicts', 'poison', 'requests', 'neighbours', 'drop:P', 'nodes:N'];

const given = (process.env['ONESIDED_DEBUG'] ?? '')
  .split(',')
  .map((word) => word.trim())
  .filter((word) => word !== '');

/** Whether a word was given. */
export function debugs(word: string): boolean {
  return given.includes(word);
}

/** N of `nodes:N`, or infinity. */
export function nodeSize(): number {
  return Number(given.find((word) => word.startsWith('nodes:'))?.slice('nodes:'.length) ?? Number.POSITIVE_INFINITY);
}

/** P of `drop:P`, or 0. */
export function adapterLoss(): number {
  return Number(given.find((word) => word.startsWith('drop:'))?.slice('drop:'.length) ?? 0);
}

/**
 * Throws unless all words are known. For the calls that programs begin with: a module that throws when it is loaded
 * says little.
 */
export function checkDebug(call: string): void {
  for (const word of given) {
    if (WORDS.includes(word) && !word.endsWith(':N') && !word.endsWith(':P')) continue;
    if (/^nodes:[1-9]\d{0,5}$/.test(word) || /^drop:0(\.\d{1,9})?$/.test(word)) continue;
    if (word.startsWith('nodes:'))
      throw argumentTypeError(
        `${call}: ONESIDED_DEBUG: nodes:N needs a number of ranks from 1 to 999999, not ${show(word)}`,
      );
    if (word.startsWith('drop:'))
      throw argumentTypeError(`${call}: ONESIDED_DEBUG: drop:P needs a share from 0 to below 1, not ${show(word)}`);
    throw argumentTypeError(`${call}: ONESIDED_DEBUG: ${unknownName(word, WORDS)}`);
  }
}
