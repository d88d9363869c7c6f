/**
 * How the ranks of a communicator divide into parts (`split`, `splitType`, `dup`): one exchange of their colours, keys
 * and context ids, from which each finds its part, and all find out who cannot take part.
 */
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { Rank } from './group.ts';

/** What a split needs of the communicator that divides. */
export interface Divided {
  readonly size: number;
  shares(rank: number): boolean;
  exchange(block: Float64Array): Generator<void, Float64Array>;
  hearWhy(rank: number, error: unknown): Generator<void, string>;
}

/** The part of a rank. */
export interface Part {
  /** Its context id. */
  readonly id: number;
  /** Its ranks in the communicator that is split, in the order of the new one. */
  readonly ranks: readonly number[];
}

/** Errors: `TypeError`, `RangeError` */
export function checkSplit(call: string, color: number, key: number): void {
  for (const [name, value] of [
    ['color', color],
    ['key', key],
  ] as const) {
    if (!Number.isSafeInteger(value))
      throw argumentTypeError(`${call}: ${name} must be an integer, not ${show(value)}`);
  }
  if (color < 0 && color !== Rank.UNDEFINED) {
    throw argumentRangeError(
      `split: color must be at least 0, not ${color}; pass Rank.UNDEFINED to join no communicator`,
    );
  }
}

/** The color of `splitType`: all that share memory find the same lowest rank. Errors: `TypeError` */
export function colorOfType(comm: Pick<Divided, 'shares'>, type: 'shared'): number {
  if (type !== 'shared') throw argumentTypeError(`splitType: the type must be 'shared', not ${show(type)}`);
  let color = 0;
  while (!comm.shares(color)) color++;
  return color;
}

/**
 * Collective.
 * @param id what this rank would name the parts, if it is the first; 0 if it has no number (then `cause` says why)
 * @param cause why this rank has no memory for its part; `undefined` if it has
 * Errors: `ERR_SIZE` (at all ranks, if one has no memory for its part), `ERR_COMM` (no numbers for more parts).
 */
export function* findPart(
  comm: Divided,
  call: string,
  color: number,
  key: number,
  id: number,
  cause: unknown,
): Generator<void, Part> {
  const own = Float64Array.of(color, key, id, cause === undefined ? 0 : noNumbers(cause) ? 2 : 1);
  const stride = own.length;
  const all = yield* comm.exchange(own);
  let refused = -1;
  const members: { rank: number; key: number }[] = [];
  for (let rank = 0; rank < comm.size; rank++) {
    const [itsColor, itsKey, , failed] = all.subarray(stride * rank, stride * (rank + 1));
    if (itsColor === color) members.push({ rank, key: itsKey });
    if (failed !== 0 && refused < 0) refused = rank;
  }
  if (refused >= 0) {
    const why = yield* comm.hearWhy(refused, cause);
    if (all[stride * refused + 3] === 2) throw cause ?? new RmaError('ERR_COMM', `${call}: ${why}`);
    throw notMade(call, `rank ${refused} has no memory for it: ${why}`, cause);
  }
  members.sort((a, b) => a.key - b.key || a.rank - b.rank);
  // All parts have the same: they have no rank in common.
  return { id: all[2], ranks: members.map((member) => member.rank) };
}

function noNumbers(cause: unknown): boolean {
  return cause instanceof RmaError && cause.code === 'ERR_COMM';
}

/** @param cause this rank's own error, if it has one */
export function notMade(call: string, why: string, cause?: unknown): RmaError {
  return new RmaError(
    'ERR_SIZE',
    `${call}: no communicator was made, because ${why}`,
    cause === undefined ? undefined : { cause },
  );
}
