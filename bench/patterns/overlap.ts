/**
 * How much computation hides behind communication.
 *
 * - `sender` (dissertation §4.4.1, figures 4.5 and 4.6): rank 0 locks the part of rank 1, issues some puts or gets,
 *   computes, unlocks.
 * - `fence` (§6.4.1, figure 6.7): everybody puts to its neighbour, computes, and ends the epoch by a fence.
 *   In both, time without computation and time with it are measured in turn, and more and more is computed, in tenths
 *   of the former.
 * - `receiver` (§4.4.1, figure 4.7; §5.3.1, figure 5.6): rank 0 computes, alone, and again while all others lock its
 *   part, get, and unlock, over and over. How much longer that takes it is what their accesses cost the target.
 */
import { type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import { median } from '../statistics.ts';
import type { Machine } from './machine.ts';

export interface OverlapOptions {
  readonly side: 'sender' | 'receiver' | 'fence';
  readonly operation: 'put' | 'get';
  /** Of an operation: a multiple of 4. */
  readonly bytes: number;
  /** In an epoch; on the receiver's side, one. */
  readonly operations: number;
  /** Epochs of each measurement. */
  readonly samples: number;
  /** Microseconds that the receiver computes. */
  readonly compute: number;
  /** It does so in so many pieces, 1 if absent; between two of them the library may serve others. */
  readonly pieces?: number;
  readonly info: WindowInfo;
}

/**
 * One measurement: microseconds of an epoch without computation, what was computed in another, and what that one took.
 */
export interface Point {
  readonly base: number;
  readonly compute: number;
  readonly total: number;
}

export interface OriginResult {
  readonly side: 'sender' | 'fence';
  readonly operation: string;
  readonly bytes: number;
  readonly operations: number;
  /** Microseconds of an epoch without computation. */
  readonly base: number;
  readonly points: readonly Point[];
  /** % of `base`. */
  readonly overlap: number;
  readonly errors: number;
}

export interface ReceiverResult {
  readonly side: 'receiver';
  readonly operation: 'get';
  readonly bytes: number;
  readonly origins: number;
  /** Microseconds for the same work: alone, and while it is accessed. */
  readonly alone: number;
  readonly accessed: number;
  readonly slowdown: number;
  /** Of all origins, while the target computed, and how long one took. */
  readonly accesses: number;
  readonly access: number;
  readonly errors: number;
}

/** So many tenths of the time without computation are computed at most. */
const TENTHS = 15;
/** What a receiver's part holds. */
const CONTENT = 0x5eed;

/** Collective; two ranks at least. */
export async function overlap(
  world: Communicator,
  options: OverlapOptions,
  machine: Machine,
): Promise<OriginResult | ReceiverResult> {
  if (world.size < 2) throw new RangeError('overlap needs at least 2 ranks: --ranks 2');
  const { side } = options;
  return side === 'receiver' ? receiver(world, options, machine) : initiator(world, side, options, machine);
}

/**
 * What was computed and not paid for, in % of the time without computation: the median of the measurements in which at
 * least that much was computed, since before there is not enough to hide.
 */
export function overlapOf(points: readonly Point[]): number {
  const hidden = points
    .filter(({ base, compute }) => base > 0 && compute >= base)
    .map(({ base, compute, total }) => (100 * (base + compute - total)) / base);
  return hidden.length === 0 ? 0 : Math.min(100, Math.max(0, median(hidden)));
}

async function initiator(
  world: Communicator,
  side: 'sender' | 'fence',
  options: OverlapOptions,
  machine: Machine,
): Promise<OriginResult> {
  const { bytes, operations, samples, info } = options;
  const operation = side === 'fence' ? 'put' : options.operation;
  const { rank, size } = world;
  const calls = callsOf(world, machine.form);
  const length = bytes / 4;
  await using window = await Window.allocate(world, Int32Array, operations * length, { info });
  const mine = window.local as Int32Array;
  const target = (rank + 1) % size;
  const origins = Array.from({ length: operations }, () => new Int32Array(length).fill(rank + 1));
  if (operation === 'get') mine.fill(rank + 1);
  const issue = (): void => {
    for (let i = 0; i < operations; i++) {
      if (operation === 'put') window.put(origins[i], target, i * length);
      else window.get(origins[i], target, i * length);
    }
  };
  const epoch = async (compute: number): Promise<void> => {
    if (side === 'sender') await calls.lock(window, target, Lock.EXCLUSIVE);
    issue();
    if (compute > 0) await machine.compute(compute);
    if (side === 'sender') await calls.unlock(window, target);
    else await calls.fence(window);
  };
  /** Microseconds of an epoch; in a lock epoch the other ranks wait in a barrier. */
  const measure = async (compute: number): Promise<number> => {
    const times: number[] = [];
    await calls.barrier();
    for (let sample = -1; sample < samples && (side === 'fence' || rank === 0); sample++) {
      const start = machine.now();
      await epoch(compute);
      if (sample >= 0) times.push(machine.now() - start);
    }
    await calls.barrier();
    const time = Float64Array.of(times.length === 0 ? 0 : median(times));
    await world.broadcast(time, 0);
    return time[0];
  };

  if (side === 'fence') await calls.fence(window);
  await measure(0);
  const points: Point[] = [];
  for (let tenth = 1; tenth <= TENTHS; tenth++) {
    const base = await measure(0);
    const compute = (base * tenth) / 10;
    points.push({ base, compute, total: await measure(compute) });
  }
  if (side === 'fence') await calls.fence(window);

  const from = (rank + size - 1) % size;
  const active = (r: number): boolean => side === 'fence' || r === 0;
  let wrong = false;
  if (operation === 'put') {
    if (side === 'sender') await calls.lock(window, rank, Lock.SHARED);
    wrong = active(from) && mine.some((word) => word !== from + 1);
    if (side === 'sender') await calls.unlock(window, rank);
  } else if (active(rank)) {
    wrong = origins.some((origin) => origin.some((word) => word !== target + 1));
  }
  const errors = new Int32Array(1);
  await world.allreduce(Int32Array.of(wrong ? 1 : 0), errors, Op.SUM);
  const base = median(points.map(({ base }) => base));
  return { side, operation, bytes, operations, base, points, overlap: overlapOf(points), errors: errors[0] };
}

async function receiver(world: Communicator, options: OverlapOptions, machine: Machine): Promise<ReceiverResult> {
  const { bytes, compute, pieces = 1, info } = options;
  const { rank, size } = world;
  const calls = callsOf(world, machine.form);
  const length = bytes / 4;
  // Word 0 says whether the target has finished, the last one what the others should find.
  await using window = await Window.allocate(world, Int32Array, rank === 0 ? length + 1 : 0, { info });
  const mine = window.local as Int32Array;
  const origin = new Int32Array(length + 1);
  let [alone, accessed, accesses, busy, errors] = [0, 0, 0, 0, 0];
  for (const disturbed of [false, true]) {
    if (rank === 0) {
      await calls.lock(window, 0, Lock.EXCLUSIVE);
      mine.fill(CONTENT);
      mine[0] = 0;
      await calls.unlock(window, 0);
    }
    await calls.barrier();
    if (rank === 0) {
      const start = machine.now();
      for (let i = 0; i < pieces; i++) await machine.compute(compute / pieces);
      if (disturbed) accessed = machine.now() - start;
      else alone = machine.now() - start;
      await calls.lock(window, 0, Lock.EXCLUSIVE);
      mine[0] = 1;
      await calls.unlock(window, 0);
    } else if (disturbed) {
      const start = machine.now();
      do {
        origin.fill(0);
        await calls.lock(window, 0, Lock.EXCLUSIVE);
        window.get(origin, 0, 0);
        await calls.unlock(window, 0);
        accesses++;
        if (origin[length] !== CONTENT) errors++;
      } while (origin[0] === 0);
      busy = machine.now() - start;
    }
    await calls.barrier();
  }
  const sums = new Float64Array(5);
  await world.allreduce(Float64Array.of(alone, accessed, accesses, busy, errors), sums, Op.SUM);
  return {
    side: 'receiver',
    operation: 'get',
    bytes,
    origins: size - 1,
    alone: sums[0],
    accessed: sums[1],
    slowdown: sums[1] / sums[0],
    accesses: sums[2],
    access: sums[3] / sums[2],
    errors: sums[4],
  };
}
