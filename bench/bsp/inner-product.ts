/**
 * The inner product of two vectors as a bulk-synchronous program (BSP-IB §4.2, after BSPedupack's): each process has a
 * part of both, computes its sum, and puts it to all others, so that all have the product after one superstep.
 */
import { type Communicator, Op } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import type { Machine } from '../patterns/machine.ts';
import { type Measured, median } from './measured.ts';

export interface InnerProductOptions extends BspOptions {
  readonly n: number;
  readonly samples: number;
  /** Million operations a second that the arithmetic is charged at, where time is virtual. */
  readonly mflops: number;
}

export interface InnerProductResult extends Measured {
  readonly n: number;
}

/** The vectors, by place. Whole numbers, so that sums do not depend on their order. */
const x = (i: number): number => (i % 7) - 3;
const y = (i: number): number => (i % 5) + 1;

/** Collective. */
export async function innerProduct(
  world: Communicator,
  options: InnerProductOptions,
  machine: Machine,
): Promise<InnerProductResult> {
  const { n, samples, mflops, ...given } = options;
  const bsp = await begin(world, given);
  const { pid, nprocs } = bsp;
  const [from, to] = [Math.floor((n * pid) / nprocs), Math.floor((n * (pid + 1)) / nprocs)];
  const a = Float64Array.from({ length: to - from }, (_, i) => x(from + i));
  const b = Float64Array.from({ length: to - from }, (_, i) => y(from + i));
  const sums = new Float64Array(nprocs);
  const own = new Float64Array(1);
  bsp.pushReg(sums);
  await bsp.sync();
  const sync = machine.form === 'sync' ? () => bsp.syncSync() : () => bsp.sync();
  const times: number[] = [];
  let product = 0;
  for (let sample = -1; sample < samples; sample++) {
    await sync();
    const began = machine.now();
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    await machine.charge((2 * a.length) / mflops);
    own[0] = sum;
    for (let other = 0; other < nprocs; other++) bsp.put(other, own, sums, pid);
    await sync();
    product = 0;
    for (let i = 0; i < nprocs; i++) product += sums[i];
    await machine.charge(nprocs / mflops);
    if (sample >= 0) times.push(machine.now() - began);
  }
  const longest = new Float64Array(samples);
  await world.allreduce(Float64Array.from(times), longest, Op.MAX);
  let expected = 0;
  for (let i = 0; i < n; i++) expected += x(i) * y(i);
  const errors = new Float64Array(1);
  await world.allreduce(Float64Array.of(product === expected ? 0 : 1), errors, Op.SUM);
  await bsp.end();
  const took = median([...longest]);
  return { n, processes: nprocs, microseconds: took, mflops: (2 * n) / took, errors: errors[0] };
}
