/**
 * A message that goes round a ring of ranks that compute (dissertation §5.3.3, figure 5.9). Each rank, when the message
 * has come, locks its successor's part, puts the message and a tag there, and unlocks. Until it comes, a rank computes,
 * and looks at its tag by plain loads between two pieces of work. If a lock needs the target's help, it waits for the
 * end of such a piece, at every rank again.
 */
import { type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import { median } from '../statistics.ts';
import type { Machine } from './machine.ts';

export interface RingOptions {
  /** Of the message: a multiple of 4. */
  readonly bytes: number;
  /** Microseconds of a piece of work; not 0, so that time passes where nothing else makes it. */
  readonly compute: number;
  /** How often the message goes round. */
  readonly rounds: number;
  readonly info: WindowInfo;
}

export interface RingResult {
  readonly bytes: number;
  readonly compute: number;
  readonly rounds: number;
  /** Of each round, at rank 0. */
  readonly samples: readonly number[];
  /** From one rank to the next: the median of the rounds, by the number of ranks. */
  readonly hop: number;
  /** Messages that were not what rank 0 had sent. */
  readonly errors: number;
}

/** Collective; two ranks at least. */
export async function ring(world: Communicator, options: RingOptions, machine: Machine): Promise<RingResult> {
  const { bytes, compute, rounds, info } = options;
  const { rank, size } = world;
  if (size < 2) throw new RangeError('a ring has at least 2 ranks: --ranks 2');
  const length = bytes / 4;
  const calls = callsOf(world, machine.form);
  // The tag, then the message.
  await using window = await Window.allocate(world, Int32Array, 1 + length, { info });
  const mine = window.local as Int32Array;
  const message = new Int32Array(length);
  const tag = new Int32Array(1);
  const successor = (rank + 1) % size;

  const send = async (round: number): Promise<void> => {
    tag[0] = round;
    await calls.lock(window, successor, Lock.EXCLUSIVE);
    window.put(message, successor, 1);
    window.put(tag, successor, 0);
    await calls.unlock(window, successor);
  };
  /**
   * Looks by loads, which do not enter the library: it serves nobody. The message may come after the tag; both puts are
   * complete when the lock is free again.
   */
  const arrived = async (round: number): Promise<boolean> => {
    if (Atomics.load(mine, 0) !== round) return false;
    await calls.lock(window, rank, Lock.EXCLUSIVE);
    message.set(mine.subarray(1));
    await calls.unlock(window, rank);
    return true;
  };

  let errors = 0;
  const samples: number[] = [];
  // Round 0 is the warm-up; tags count from 1, since fresh memory is 0.
  for (let round = 1; round <= rounds + 1; round++) {
    const content = (i: number): number => Math.imul(round, 1_000_003) + i;
    await calls.barrier();
    const start = machine.now();
    if (rank === 0) {
      for (let i = 0; i < length; i++) message[i] = content(i);
      await send(round);
      message.fill(0);
    }
    while (!(await arrived(round))) await machine.compute(compute);
    if (rank === 0) {
      if (round > 1) samples.push(machine.now() - start);
    } else {
      await send(round);
    }
    if (message.some((word, i) => word !== (content(i) | 0))) errors++;
  }
  const total = new Int32Array(1);
  await world.allreduce(Int32Array.of(errors), total, Op.SUM);
  const times = new Float64Array(rounds);
  times.set(samples);
  await world.broadcast(times, 0);
  return { bytes, compute, rounds, samples: [...times], hop: median([...times]) / size, errors: total[0] };
}
