/**
 * The programs of the dissertation's §8.4: squares of a matrix of 8-byte numbers go to another rank, or come from it.
 */
import { type Communicator, Datatype, Window } from 'onesided';
import { overlapOf, type Point } from '../patterns/overlap.ts';
import { median } from '../statistics.ts';

/** Host-based and buffered, a request for each row, and host-assisted. */
export const ASSISTED_WAYS = ['pack', 'multi-write', 'host-assisted'] as const;
export type AssistedWay = (typeof ASSISTED_WAYS)[number];

export interface SquareOptions {
  readonly way: AssistedWay;
  readonly operation: 'put' | 'get';
  /** Rows and columns of a square. */
  readonly edge: number;
}

/** Rows and columns of the matrix. */
const MATRIX = 1024;
const SAMPLES = 3;
const TENTHS = 15;

/** Rank 1's matrix, and a call of rank 0 that begins to move a square of it. */
async function squares(world: Communicator, { way, operation, edge }: SquareOptions) {
  const win = await Window.allocate(world, Float64Array, MATRIX * MATRIX, { info: { noncontiguous: way } });
  const type = Datatype.subarray([MATRIX, MATRIX], [edge, edge], [1, 1], Datatype.FLOAT64);
  const mine = new Float64Array(edge * edge);
  if (operation === 'get') win.local.fill(7);
  else mine.fill(7);
  await win.lockAll();
  await world.barrier();
  const begin = () => win[operation === 'put' ? 'rput' : 'rget'](mine, 1, 0, { target: { type } });
  /** Also checks the data: those that rank 0 has got, or those that it has put. */
  const end = async (): Promise<void> => {
    await win.unlockAll();
    await world.barrier();
    const looks = world.rank === (operation === 'get' ? 0 : 1);
    const values = operation === 'get' ? mine : win.local;
    const sevens = looks ? values.reduce((count, value) => count + (value === 7 ? 1 : 0), 0) : edge * edge;
    if (sevens !== edge * edge) throw new Error(`${operation} of ${edge} × ${edge}, ${way}: the data are wrong`);
    await win.free();
  };
  return { begin, end, flush: () => win.flush(1) };
}

/**
 * @param busy microseconds that rank 1 computes when the square begins to move; 0: it waits in the library
 * @returns of rank 0: microseconds until the square has moved; of rank 1: what its computation took
 */
export async function squareTime(world: Communicator, options: SquareOptions, busy: number): Promise<number> {
  const { begin, end, flush } = await squares(world, options);
  const times: number[] = [];
  for (let sample = -1; sample < SAMPLES; sample++) {
    await world.barrier();
    const began = world.now();
    if (world.rank === 0) {
      begin();
      await flush();
    } else if (busy > 0) await world.compute(busy);
    if (sample >= 0) times.push(world.now() - began);
  }
  await end();
  return median(times);
}

/** @returns % of the time of a square's way that computation of rank 0 between the call and its wait hides */
export async function squareOverlap(world: Communicator, options: SquareOptions): Promise<number> {
  const { begin, end } = await squares(world, options);
  const measure = async (compute: number): Promise<number> => {
    const times: number[] = [];
    for (let sample = -1; sample < SAMPLES; sample++) {
      const began = world.now();
      const request = begin();
      if (compute > 0) await world.compute(compute);
      await request.wait();
      if (sample >= 0) times.push(world.now() - began);
    }
    return median(times);
  };
  const points: Point[] = [];
  for (let tenth = 10; tenth <= TENTHS && world.rank === 0; tenth++) {
    const base = await measure(0);
    const compute = (base * tenth) / 10;
    points.push({ base, compute, total: await measure(compute) });
  }
  await end();
  return overlapOf(points);
}
