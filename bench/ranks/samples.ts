/**
 * How the rank programs of the benchmark measure: as bench/peers/rma.c does. A sample is the mean over one block of
 * iterations, timed on rank 0; the block's length is found beforehand by going on until it lasts long enough, which is
 * also the warm-up.
 */
import { availableParallelism } from 'node:os';
import type { Communicator } from 'onesided';

/**
 * Before anything counts: code is compiled while it runs, and eight processes that have just started on two cores have
 * more to do than to wait for each other. A block that was long because something disturbed it is found out in this
 * time, too. So much for each rank on a core.
 */
const WARM_UP_MS = 500;

/** Runs the loop that is measured. Loops of promise forms return a promise. */
export type Loop = (iterations: number) => void | Promise<void>;

export interface Measured {
  /** Seconds an iteration, one for each sample. */
  readonly seconds: number[];
  /** Of a block. */
  readonly iterations: number;
  /** All iterations that were made, with those of the warm-up. */
  readonly total: number;
}

/**
 * @param world given if all ranks run the loop: rank 0 says how often, and its times count
 * @param block seconds
 * @param warmUpMs longer where the processor is slow
 */
export async function measure(
  loop: Loop,
  samples: number,
  block: number,
  world?: Communicator,
  warmUpMs = WARM_UP_MS * Math.max(1, (world?.size ?? 1) / availableParallelism()),
): Promise<Measured> {
  let total = 0;
  const timed = async (iterations: number): Promise<number> => {
    const start = performance.now();
    const promise = loop(iterations);
    // Not awaited if there is nothing to wait for: that would end in the event loop.
    if (promise !== undefined) await promise;
    total += iterations;
    return (performance.now() - start) / 1e3;
  };
  const agreed = (iterations: number): number => {
    if (world === undefined) return iterations;
    const message = Float64Array.of(iterations);
    world.broadcastSync(message, 0);
    return message[0];
  };

  let iterations = 1;
  const begun = performance.now();
  for (;;) {
    const took = await timed(iterations);
    const longer = took > block / 16 ? Math.floor(iterations * ((block * 1.1) / took)) + 1 : iterations * 4;
    const enough = took >= block && performance.now() - begun >= warmUpMs;
    const next = agreed(enough ? 0 : took >= block ? iterations : longer);
    if (next === 0) break;
    iterations = next;
  }
  const seconds: number[] = [];
  for (let s = 0; s < samples; s++) seconds.push((await timed(iterations)) / iterations);
  return { seconds, iterations, total };
}
