/** Which processes of a BSP2 computation are a unit (Martin and Tiskin 1999, section 2). */
import type { Communicator } from '../collective/communicator.ts';
import { argumentRangeError, argumentTypeError, show } from '../errors.ts';

/** `hosts`, or how many processes, one after the other, are a unit. */
export type Units = 'hosts' | number;

/** Errors: `TypeError`, `RangeError`. */
export function readUnits(given: unknown): Units | undefined {
  if (given === undefined || given === 'hosts') return given;
  if (typeof given !== 'number') {
    throw argumentTypeError(`bsp.begin: units must be 'hosts' or a number of processes, not ${show(given)}`);
  }
  if (Number.isSafeInteger(given) && given >= 1) return given;
  throw argumentRangeError(
    `bsp.begin: units must be a whole number of processes from 1 on, not ${show(given)}`,
    'ERR_ARG',
  );
}

/**
 * The unit of each process, units being numbered in the order of their first processes. Collective: each says which is
 * the first process that is on its own host, in which all on one host agree.
 */
export function* colorsOf(comm: Communicator, units: Units): Generator<void, Int32Array> {
  const firsts = yield* comm.exchange(Float64Array.of(firstOf(comm, units)));
  const numbers = new Map<number, number>();
  return Int32Array.from(firsts, (first) => {
    if (!numbers.has(first)) numbers.set(first, numbers.size);
    return numbers.get(first)!;
  });
}

/** The first process of this one's unit. */
function firstOf(comm: Communicator, units: Units): number {
  if (units !== 'hosts') return comm.rank - (comm.rank % units);
  const { context } = comm.job;
  const isNear = (rank: number): boolean => context.near?.(comm.group.worldRanks[rank]) ?? comm.shares(rank);
  let first = 0;
  while (first < comm.rank && !isNear(first)) first++;
  return first;
}
