/** What the figures of chapter 7 measure: programs as those of programs.ts. */
import { type Communicator, Datatype, Lock, Op, Window, type WindowInfo } from 'onesided';
import { type EpochsOptions, type EpochsResult, randomAccess } from '../hpcc/epochs.ts';
import { modelledMachine } from '../patterns/machine.ts';

/** RandomAccess with an epoch for each update. */
export function updates(world: Communicator, options: EpochsOptions): Promise<EpochsResult> {
  return randomAccess(world, options, modelledMachine(world));
}

export const OPERATIONS = ['put', 'get', 'accumulate'] as const;
export const SYNCHRONIZATIONS = ['fence', 'start, post, complete, wait', 'lock, unlock'] as const;

export interface OneOptions {
  readonly info: WindowInfo;
  readonly operation: (typeof OPERATIONS)[number];
  readonly by: (typeof SYNCHRONIZATIONS)[number];
  readonly samples: number;
}

/**
 * An operation of 8 bytes and its synchronization, between two ranks, the mean. With start and post, the ranks take
 * turns, and half of a turn counts, as in the benchmarks of the dissertation's library.
 */
export async function one(world: Communicator, { info, operation, by, samples }: OneOptions): Promise<number> {
  const win = await Window.allocate(world, Float64Array, 1, { info });
  const origin = new Float64Array(1);
  const target = 1 - world.rank;
  const issue = (): void => {
    if (operation === 'accumulate') win.accumulate(origin, target, 0, Op.SUM);
    else win[operation](origin, target, 0);
  };
  const peer = world.group.include([target]);
  const access = async (): Promise<void> => {
    await win.start(peer);
    issue();
    await win.complete();
  };
  const expose = async (): Promise<void> => {
    win.post(peer);
    await win.wait();
  };
  const rounds = {
    fence: async () => {
      if (world.rank === 0) issue();
      await win.fence();
    },
    'start, post, complete, wait': async () => {
      await (world.rank === 0 ? access() : expose());
      await (world.rank === 0 ? expose() : access());
    },
    'lock, unlock': async () => {
      if (world.rank !== 0) return;
      await win.lock(target, Lock.EXCLUSIVE);
      issue();
      await win.unlock(target);
    },
  };
  if (by === 'fence') await win.fence();
  await rounds[by]();
  await world.barrier();
  const began = world.now();
  for (let i = 0; i < samples; i++) await rounds[by]();
  const took = (world.now() - began) / samples;
  await world.barrier();
  await win.free();
  return by === 'start, post, complete, wait' ? took / 2 : took;
}

export interface ManyOptions {
  readonly info: WindowInfo;
  /** Updates of as many words of rank 1 by rank 0. */
  readonly number: number;
  readonly how: 'an epoch each' | 'one epoch' | 'packed';
  readonly samples: number;
}

/** Updates of every other word of a rank, with all their epochs, the mean. */
export async function many(world: Communicator, { info, number, how, samples }: ManyOptions): Promise<number> {
  const win = await Window.allocate(world, BigUint64Array, 2 * number, { info });
  const values = new BigUint64Array(number).fill(1n);
  const each = Array.from(values, (_, i) => values.subarray(i, i + 1));
  const places = Int32Array.from({ length: number }, (_, i) => 2 * i);
  const type = Datatype.indexedBlock(1, places, Datatype.UINT64);
  const inEpoch = async (issue: () => void): Promise<void> => {
    await win.lock(1, Lock.EXCLUSIVE);
    issue();
    await win.unlock(1);
  };
  const single = (i: number): void => win.accumulate(each[i], 1, places[i], Op.BXOR);
  const ways = {
    'an epoch each': async () => {
      for (let i = 0; i < number; i++) await inEpoch(() => single(i));
    },
    'one epoch': () =>
      inEpoch(() => {
        for (let i = 0; i < number; i++) single(i);
      }),
    packed: () => inEpoch(() => win.accumulate(values, 1, 0, Op.BXOR, { target: { type, count: 1 } })),
  };
  await world.barrier();
  if (world.rank === 0) await ways[how]();
  await world.barrier();
  const began = world.now();
  if (world.rank === 0) for (let i = 0; i < samples; i++) await ways[how]();
  const took = (world.now() - began) / samples;
  await world.barrier();
  await win.free();
  return took;
}

export interface SingleOptions {
  readonly info: WindowInfo;
  readonly way: 'get-modify-put' | 'accumulate';
  /** What is promised of the lock. */
  readonly assert: number;
  readonly samples: number;
}

/** One update of a 64-bit integer of rank 1 by rank 0, with its epochs, the mean. */
export async function single(world: Communicator, { info, way, assert, samples }: SingleOptions): Promise<number> {
  const win = await Window.allocate(world, BigInt64Array, 1, { info });
  const word = BigInt64Array.of(1n);
  const inEpoch = async (issue: () => void): Promise<void> => {
    await win.lock(1, Lock.SHARED, assert);
    issue();
    await win.unlock(1);
  };
  const update = async (): Promise<void> => {
    if (way === 'accumulate') return inEpoch(() => win.accumulate(word, 1, 0, Op.SUM));
    await inEpoch(() => win.get(word, 1, 0));
    word[0]++;
    await inEpoch(() => win.put(word, 1, 0));
  };
  await world.barrier();
  if (world.rank === 0) await update();
  const began = world.now();
  if (world.rank === 0) for (let i = 0; i < samples; i++) await update();
  const took = (world.now() - began) / samples;
  await world.barrier();
  await win.free();
  return took;
}
