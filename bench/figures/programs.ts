/**
 * What several figures measure: programs of ranks, which are tasks on a modelled fabric or, with `--real`, processes
 * (bench/ranks/figure.ts). Options and results are plain data, so that they can go from process to process. Times are
 * microseconds, and of this rank.
 *
 * `warm`: so often a rank does what it measures before it does. A process needs more of that than a task, whose time
 * does not depend on what the machine has compiled.
 */
import { Assert, type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { median } from '../statistics.ts';
import type { Fence } from './figure.ts';
import { handled, heldBack, hiding } from './handles.ts';
import { listed } from './layout-runs.ts';
import { shifted } from './shifts.ts';
import { relations } from './supersteps.ts';
import { many, single, updates } from './updates.ts';

/** Of a fence: none, each that leaves something out, both. */
export const ASSERTIONS = [0, Assert.NO_SUCCEED, Assert.NO_PRECEDE, Assert.NO_PRECEDE | Assert.NO_SUCCEED];

export interface EpochOptions {
  readonly info: WindowInfo;
  readonly bytes: number;
  readonly operation: 'put' | 'get';
  readonly samples: number;
  readonly warm: number;
}

/** An epoch of rank 0 at rank 1: lock, what is issued, unlock. */
export async function epoch(world: Communicator, options: EpochOptions): Promise<number> {
  const { info, bytes, operation, samples, warm } = options;
  const win = await Window.allocate(world, Uint8Array, bytes, { info });
  const origin = new Uint8Array(bytes);
  let began = 0;
  if (world.rank === 0) {
    for (let i = -warm; i < samples; i++) {
      if (i === 0) began = world.now();
      await win.lock(1, Lock.EXCLUSIVE);
      win[operation](origin, 1, 0);
      await win.unlock(1);
    }
  }
  const took = (world.now() - began) / samples;
  await world.barrier();
  await win.free();
  return took;
}

export interface LockedOptions {
  readonly info: WindowInfo;
  /** Microseconds that rank 1 computes, for each lock. */
  readonly compute: number;
  readonly rounds: number;
  readonly warm: number;
  /** Locks of a round, one after the other (default: 1). */
  readonly each?: number;
}

export interface Locked {
  /** Of a lock and its unlock: the median of the rounds' means. */
  readonly took: number;
  readonly atomics: number;
  readonly messages: number;
}

/** A lock of rank 1's part and its unlock by rank 0, while rank 1 computes. Swaps and messages are those of a round. */
export async function locked(
  world: Communicator,
  { info, compute, rounds, warm, each = 1 }: LockedOptions,
): Promise<Locked> {
  const win = await Window.allocate(world, Int32Array, 1, { info });
  const lock = async (): Promise<void> => {
    await win.lock(1, Lock.EXCLUSIVE);
    await win.unlock(1);
  };
  for (let i = 0; i < warm; i++) if (world.rank === 0) await lock();
  await world.barrier();
  const before = win.statistics().lock;
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    if (i > 0) await world.barrier();
    const began = world.now();
    for (let k = 0; k < each && world.rank === 0; k++) await lock();
    if (world.rank > 0) await world.compute(compute * each);
    times.push((world.now() - began) / each);
  }
  const { atomics, messages } = win.statistics().lock;
  await world.barrier();
  await win.free();
  return {
    took: median(times),
    atomics: (atomics - before.atomics) / rounds / each,
    messages: (messages - before.messages) / rounds / each,
  };
}

export interface PairsOptions {
  readonly info: WindowInfo;
  /** Whose part a rank locks: the same for all, or that of the next one. None locks its own. */
  readonly target: number | 'next';
  readonly samples: number;
  readonly warm: number;
  /** Microseconds of a piece of computation, and pieces: of those that lock nothing. */
  readonly compute?: number;
  readonly pieces?: number;
}

/** A lock and its unlock, the mean; `null` of a rank that takes none. */
export async function pairs(world: Communicator, options: PairsOptions): Promise<number | null> {
  const { info, samples, warm, compute = 0, pieces = 0 } = options;
  const win = await Window.allocate(world, Int32Array, 1, { info });
  const target = options.target === 'next' ? (world.rank + 1) % world.size : options.target;
  const pair = async (): Promise<void> => {
    if (target === world.rank) return;
    await win.lock(target, Lock.EXCLUSIVE);
    await win.unlock(target);
  };
  for (let i = 0; i < warm; i++) await pair();
  // All begin together: who has waited long for its first lock would have the others behind it, and measure little.
  await world.barrier();
  const began = world.now();
  let took: number | null = null;
  if (target === world.rank) for (let i = 0; i < pieces; i++) await world.compute(compute);
  else {
    for (let i = 0; i < samples; i++) await pair();
    took = (world.now() - began) / samples;
  }
  await world.barrier();
  await win.free();
  return took;
}

export interface SharedOptions {
  readonly info: WindowInfo;
  readonly locks: number;
  /** Per cent. */
  readonly shared: number;
}

export interface Shared {
  /**
   * Times at which this rank, while it held the lock, found what an exclusive holder beside it, or a shared one beside
   * an exclusive one, leaves.
   */
  readonly violations: number;
  /** Most shared holders that it has seen at once. */
  readonly together: number;
  readonly migrations: number;
}

/**
 * All ranks lock rank 0's part, exclusive or shared, and look who else holds it: each counts itself in while it does.
 */
async function sharing(world: Communicator, { info, locks, shared }: SharedOptions): Promise<Shared> {
  const win = await Window.allocate(world, Int32Array, 2, { info });
  const [one, less, found] = [Int32Array.of(1), Int32Array.of(-1), new Int32Array(1)];
  let [violations, together] = [0, 0];
  /** Holders of that kind, with the change. */
  const change = async (by: Int32Array, kind: number): Promise<number> => {
    win.fetchAndOp(by, found, 0, kind, Op.SUM);
    await win.flush(0);
    return found[0] + by[0];
  };
  await world.barrier();
  for (let turn = 0; turn < locks; turn++) {
    const exclusive = (37 * world.rank + 61 * turn) % 100 >= shared;
    await win.lock(0, exclusive ? Lock.EXCLUSIVE : Lock.SHARED);
    const [mine, other] = exclusive ? [0, 1] : [1, 0];
    const holders = await change(one, mine);
    await world.compute(5);
    win.fetchAndOp(one, found, 0, other, Op.NO_OP);
    await win.flush(0);
    if (found[0] !== 0 || (exclusive && holders !== 1)) violations++;
    if (!exclusive) together = Math.max(together, holders);
    await change(less, mine);
    await win.unlock(0);
  }
  await world.barrier();
  const { migrations } = win.statistics().lock;
  await win.free();
  return { violations, together, migrations };
}

export interface FencesOptions {
  readonly fence: Fence;
  readonly epochs: number;
  readonly warm: number;
  readonly assert: number;
  /** Whom this rank puts 16 bytes to in each epoch. */
  readonly targets?: readonly number[];
}

/** An epoch with a fence, the mean. */
export async function fences(world: Communicator, options: FencesOptions): Promise<number> {
  const { fence, epochs, warm, assert, targets = [] } = options;
  const win = await Window.allocate(world, Float64Array, 2 * world.size, { info: { fence } });
  const origin = Float64Array.of(1, 2);
  const epoch = async (): Promise<void> => {
    for (const target of targets) win.put(origin, target, 2 * world.rank);
    await win.fence(assert);
  };
  await win.fence();
  for (let i = 0; i < warm; i++) await epoch();
  await world.barrier();
  const began = world.now();
  for (let i = 0; i < epochs; i++) await epoch();
  const took = (world.now() - began) / epochs;
  if ((assert & Assert.NO_SUCCEED) === 0) await win.fence(Assert.NO_SUCCEED);
  await win.free();
  return took;
}

export interface FloodedOptions {
  /** Of each rank to rank 0. */
  readonly puts: number;
  /** Microseconds that rank 0 computes meanwhile, before it waits in its fence. */
  readonly compute: number;
}

export interface Flooded {
  /** Whether all puts have arrived, each once; at other ranks than 0, true. */
  readonly right: boolean;
  /** How often the low watermark made this rank post more receives. */
  readonly refills: number;
  /** How often a put has found no receive here ("receiver not ready"); `null` where nobody counts that. */
  readonly refused: number | null;
}

/** Notified puts of all ranks to rank 0. */
export async function flooded(world: Communicator, { puts, compute }: FloodedOptions): Promise<Flooded> {
  const win = await Window.allocate(world, Int32Array, world.size, { info: { fence: 'remote-notify' } });
  await win.fence();
  for (let i = 1; i <= puts; i++) win.put(Int32Array.of(i), 0, world.rank);
  if (world.rank === 0 && compute > 0) await world.compute(compute);
  await win.fence(Assert.NO_SUCCEED);
  const right = world.rank !== 0 || win.local.every((value) => value === puts);
  const { refills, refused = null } = win.statistics();
  await win.free();
  return { right, refills, refused };
}

export interface CountedOptions {
  readonly fence: Fence;
  readonly seed: number;
  readonly epochs: number;
}

/** What a rank has sent besides its collectives. */
export interface Sent {
  /**
   * Each rank puts once to a target in an epoch: so many finish messages, or messages with operations, there must be.
   */
  readonly puts: number;
  readonly finishes: number;
  readonly flags: number;
  readonly messages: number;
  /** Puts that were not there after the fence, or there before their epoch. */
  readonly wrong: number;
}

/** Epochs in which every rank puts to others, drawn by the seed, and looks at what has come. Two fences each. */
export async function counted(world: Communicator, { fence, seed, epochs }: CountedOptions): Promise<Sent> {
  const draws = (rank: number, target: number, epoch: number): boolean =>
    rank !== target && Math.imul(rank * 31 + target * 17 + epoch * 7 + seed * 13 + 1, 0x9e3779b1) >>> 29 < 3;
  const all = Array.from({ length: world.size }, (_, rank) => rank);
  const win = await Window.allocate(world, Int32Array, world.size, { info: { fence } });
  let [puts, wrong] = [0, 0];
  await win.fence();
  const before = { ...win.statistics().fence };
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const targets = all.filter((target) => draws(world.rank, target, epoch));
    for (const target of targets) win.put(Int32Array.of(epoch), target, world.rank);
    puts += targets.length;
    await win.fence();
    wrong += all.filter((source) => draws(source, world.rank, epoch) !== (win.local[source] === epoch)).length;
    await win.fence();
  }
  const { finishes, flags, messages } = win.statistics().fence;
  await win.free();
  return {
    puts,
    wrong,
    finishes: finishes - before.finishes,
    flags: flags - before.flags,
    messages: messages - before.messages,
  };
}

export function together(all: readonly Sent[]): Sent {
  return {
    puts: sum(all, 'puts'),
    finishes: sum(all, 'finishes'),
    flags: sum(all, 'flags'),
    messages: sum(all, 'messages'),
    wrong: sum(all, 'wrong'),
  };
}

export function sum<K extends string>(all: readonly Readonly<Record<K, number>>[], key: K): number {
  return all.reduce((total, one) => total + one[key], 0);
}

/** The mean of the ranks that have measured something. */
export function mean(times: readonly (number | null)[]): number {
  const measured = times.filter((time) => time !== null);
  return measured.reduce((sum, time) => sum + time, 0) / measured.length;
}

/** By name, for processes. */
export const PROGRAMS = {
  epoch,
  locked,
  pairs,
  sharing,
  fences,
  flooded,
  counted,
  updates,
  many,
  single,
  handled,
  heldBack,
  hiding,
  listed,
  relations,
  shifted,
};
