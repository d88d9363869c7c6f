/**
 * Programs with a race and without one, after the ideas of RMARaceBench (RWTH Aachen): the numbers are those of its
 * MPI RMA programs. Each is a few lines that rank 0, 1 or 2 runs on a window of ten 32-bit integers.
 */
import type { Communicator, Window } from 'onesided';

export interface RaceContext {
  readonly world: Communicator;
  readonly win: Window<Int32Array>;
  /** Like variables of a program in C. */
  readonly value: Int32Array;
  readonly value2: Int32Array;
}

export interface RaceCase {
  readonly name: string;
  readonly racy: boolean;
  readonly size: number;
  run(context: RaceContext): Promise<void>;
}

type Body = (context: RaceContext) => unknown;

/** What each rank does, by rank. */
export type Bodies = Readonly<Record<number, Body>>;

/** Between two fences. */
export function fenced(bodies: Bodies): RaceCase['run'] {
  return async (context) => {
    await context.win.fence();
    await bodies[context.world.rank]?.(context);
    await context.win.fence();
  };
}

/** Without any epoch. */
export function each(bodies: Bodies): RaceCase['run'] {
  return async (context) => {
    await bodies[context.world.rank]?.(context);
  };
}

/** Within `lockAll`. */
export function lockedAll(bodies: Bodies): RaceCase['run'] {
  return async (context) => {
    await context.win.lockAll();
    await bodies[context.world.rank]?.(context);
    await context.win.unlockAll();
  };
}

/** What a program would print. */
export function print(...values: unknown[]): void {
  void values;
}
