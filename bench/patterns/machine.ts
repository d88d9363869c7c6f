/**
 * What the programs run on: ranks on real processors, or a fabric on which time passes when it is said to. They are
 * given one, and never ask which.
 */
import { setImmediate } from 'node:timers/promises';
import type { Communicator } from 'onesided';
import type { Form } from '../calls.ts';

export interface Machine {
  /** Which form of the waiting calls to use. */
  readonly form: Form;
  /** Microseconds since some moment. */
  now(): number;
  /** A fixed amount of work, which takes so many microseconds if nothing else wants the processor. */
  compute(microseconds: number): void | Promise<void>;
  /** The time of work that the program has just done by itself, which takes none where time is virtual. */
  charge(microseconds: number): void | Promise<void>;
  /** Million operations a second of a processor, where time is virtual, so that they cannot be measured. */
  readonly mflops?: number;
}

/** Iterations of the loop that are timed at once when its speed is found out, and how often. */
const PIECE = 50_000;
const TRIALS = 40;

/**
 * This processor. Work is a loop, as in the dissertation: how many of its iterations a microsecond has is measured
 * here, over some milliseconds. In the promise form the event loop gets its turn after it, so that what the library
 * does there happens.
 */
export function realMachine(form: Form): Machine {
  work(PIECE);
  let fastest = Number.POSITIVE_INFINITY;
  for (let trial = 0; trial < TRIALS; trial++) {
    const start = performance.now();
    work(PIECE);
    fastest = Math.min(fastest, performance.now() - start);
  }
  const perMicrosecond = PIECE / (1e3 * fastest);
  const loop = (microseconds: number): void => work(Math.round(microseconds * perMicrosecond));
  return {
    form,
    now: () => 1e3 * performance.now(),
    charge: () => {},
    compute:
      form === 'sync'
        ? loop
        : async (microseconds) => {
            loop(microseconds);
            await setImmediate();
          },
  };
}

/** A fabric on which the ranks are tasks: time is virtual. */
export function modelledMachine(world: Communicator): Machine {
  const compute = (microseconds: number): Promise<void> => world.compute(microseconds);
  return { form: 'promise', now: () => world.now(), compute, charge: compute, mflops: 1000 };
}

/** Kept, so that the loop is not left out. */
let state = 1;

function work(iterations: number): void {
  let x = state;
  for (let i = 0; i < iterations; i++) x = (Math.imul(x, 1103515245) + 12345) | 0;
  state = x;
}
