/** Which part of a distributed array a process has (MPI 4.1, 5.1.4: darray). */
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { MOST_RUNS, TooLarge } from './runs.ts';

/** How one dimension of an array is distributed: one block per process, blocks in turn, or not at all. */
export type Distribution = 'block' | 'cyclic' | 'none';

/**
 * For each dimension, the blocks `[start, length]` that process `rank` has, in ascending order. Processes are numbered
 * in C order, whatever that of the array. Errors: `TypeError`, `RangeError`; `TooLarge`.
 */
export function ownedBlocks(
  size: number,
  rank: number,
  gsizes: readonly number[],
  distribs: readonly Distribution[],
  dargs: readonly (number | 'default')[],
  psizes: readonly number[],
): (readonly [start: number, length: number])[][] {
  const [kinds, args] = reading('Datatype.darray', 'distribs and dargs', () => [[...distribs], [...dargs]] as const);
  const n = gsizes.length;
  if (n === 0 || kinds.length !== n || args.length !== n || psizes.length !== n) {
    throw argumentRangeError(
      `Datatype.darray: ${n} gsizes, ${kinds.length} distribs, ${args.length} dargs and ${psizes.length} psizes; ` +
        'their numbers must be equal and at least 1',
    );
  }
  const processes = psizes.reduce((product, p) => product * p, 1);
  if (!Number.isSafeInteger(size) || size < 1 || processes !== size || psizes.some((p) => p < 1)) {
    throw argumentRangeError(`Datatype.darray: the grid [${psizes}] does not have ${show(size)} processes`);
  }
  if (!Number.isSafeInteger(rank) || rank < 0 || rank >= size) {
    throw argumentRangeError(`Datatype.darray: rank must be 0 … ${size - 1}, not ${show(rank)}`, 'ERR_RANK');
  }
  let rest = rank;
  const coordinates = new Array<number>(n);
  for (let d = n - 1; d >= 0; d--) {
    coordinates[d] = rest % psizes[d];
    rest = Math.floor(rest / psizes[d]);
  }
  return gsizes.map((gsize, d) => ownedOf(d, gsize, kinds[d], args[d], psizes[d], coordinates[d]));
}

function ownedOf(
  d: number,
  gsize: number,
  kind: Distribution,
  arg: number | 'default',
  processes: number,
  mine: number,
): (readonly [start: number, length: number])[] {
  const where = `Datatype.darray: in dimension ${d},`;
  if (gsize < 1) throw argumentRangeError(`${where} the size must be at least 1, not ${gsize}`);
  if (kind !== 'block' && kind !== 'cyclic' && kind !== 'none') {
    throw argumentTypeError(`${where} the distribution must be 'block', 'cyclic' or 'none', not ${show(kind)}`);
  }
  if (arg !== 'default' && (!Number.isSafeInteger(arg) || arg < 1)) {
    throw argumentRangeError(`${where} the block size must be at least 1, or 'default', not ${show(arg)}`);
  }
  if (kind === 'none') {
    if (processes !== 1) throw argumentRangeError(`${where} which is not distributed, the grid must have 1 process`);
    return [[0, gsize]];
  }
  if (kind === 'block') {
    const block = arg === 'default' ? Math.ceil(gsize / processes) : arg;
    if (block * processes < gsize) {
      throw argumentRangeError(`${where} ${processes} blocks of ${block} cannot hold ${gsize}`);
    }
    const start = mine * block;
    return start >= gsize ? [] : [[start, Math.min(block, gsize - start)]];
  }
  const block = arg === 'default' ? 1 : arg;
  const step = block * processes;
  const first = mine * block;
  const count = first >= gsize ? 0 : Math.ceil((gsize - first) / step);
  if (count > MOST_RUNS) throw new TooLarge(`it has ${count} blocks in dimension ${d}; the limit is 2^24`);
  return Array.from({ length: count }, (_, i) => {
    const start = first + i * step;
    return [start, Math.min(block, gsize - start)] as const;
  });
}
