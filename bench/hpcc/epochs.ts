/**
 * RandomAccess as in chapter 7 of the dissertation: every update, or every pack of updates, is a passive epoch at the
 * rank that holds the word, in one of four ways. It runs wherever a window does, modelled fabrics included.
 */
import { Assert, type Communicator, Datatype, Lock, Op, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import { inRange } from '../options.ts';
import type { Machine } from '../patterns/machine.ts';
import { Bins, LOOK_AHEAD, LOW } from './bins.ts';
import { Distribution } from './distribution.ts';
import { Pool } from './pool.ts';
import { startOf } from './random-stream.ts';
import { UPDATES_PER_WORD, type Update, Verification } from './verify.ts';

/** Carries out the updates of words of one rank. */
type Carry = (owner: number, displacements: Int32Array, values: BigUint64Array) => Promise<void>;

/** The calls that begin and end an epoch at a rank. */
type Enter = (target: number) => void | Promise<void>;

interface Way {
  readonly update: Update;
  /** Whether no update may get lost. */
  readonly atomic: boolean;
  /** Whether updates of one rank are carried out together. */
  readonly packs: boolean;
  carry(window: Window, lock: Enter, unlock: Enter): Carry;
}

/** By the names of chapter 7: HPCC_GMP, HPCC_ACC, HPCC_ACC_AGG, HPCC_ACC_MOD. */
const WAYS_BY_NAME = {
  /** A get in an epoch of its own, since its value is there only when that ends; then a put in another one. */
  'get-modify-put': {
    update: 'xor',
    atomic: false,
    packs: false,
    carry: (window, lock, unlock) => {
      const word = new Int32Array(2);
      return async (owner, [displacement], values) => {
        const halves = new Int32Array(values.buffer, values.byteOffset, 2);
        await lock(owner);
        window.get(word, owner, displacement);
        await unlock(owner);
        word[0] ^= halves[0];
        word[1] ^= halves[1];
        await lock(owner);
        window.put(word, owner, displacement);
        await unlock(owner);
      };
    },
  },
  accumulate: {
    update: 'xor',
    atomic: true,
    packs: false,
    carry: (window, lock, unlock) => async (owner, displacements, values) => {
      await lock(owner);
      window.accumulate(values, owner, displacements[0], Op.BXOR);
      await unlock(owner);
    },
  },
  /** One accumulate whose datatype has a word for each update. */
  packed: {
    update: 'xor',
    atomic: true,
    packs: true,
    carry: (window, lock, unlock) => async (owner, displacements, values) => {
      const type = Datatype.indexedBlock(1, displacements, Datatype.UINT64);
      await lock(owner);
      window.accumulate(values, owner, 0, Op.BXOR, { target: { type, count: 1 } });
      await unlock(owner);
    },
  },
  /** Addition in place of exclusive or, as adapters can do it. */
  direct: {
    update: 'sum',
    atomic: true,
    packs: false,
    carry: (window, lock, unlock) => async (owner, displacements, values) => {
      await lock(owner);
      window.accumulate(values, owner, displacements[0], Op.SUM);
      await unlock(owner);
    },
  },
} as const satisfies Readonly<Record<string, Way>>;

export type WayName = keyof typeof WAYS_BY_NAME;
export const WAYS = Object.keys(WAYS_BY_NAME) as readonly WayName[];

export interface EpochsOptions {
  readonly way: WayName;
  /** Words of the table, a power of two. */
  readonly words: number;
  /** Updates that a rank may look ahead, to pack them: 1 to 1024. */
  readonly ahead: number;
  readonly info: WindowInfo;
  /** With `unchecked`, `lock` is told that nobody holds a lock that conflicts: what is atomic by itself needs none. */
  readonly lock: keyof typeof LOCKS;
  /**
   * As HPCC's own program does it: a rank updates its own words without any call, and looks ahead into one pool, of
   * which the fullest bucket is sent (pool.ts). Where ranks run at the same time, others' updates of a word may then
   * get lost between its load and its store; HPCC allows it. Default: each update is a call, and each rank has a bin.
   */
  readonly asHpcc?: boolean;
}

export interface EpochsResult {
  readonly way: WayName;
  readonly words: number;
  readonly updates: number;
  /** From the first rank's beginning to the last one's end. */
  readonly microseconds: number;
  /** Updates in a microsecond, of all ranks together: 1000 are one GUP/s. */
  readonly rate: number;
  /** Words that were wrong after the updates had been undone. */
  readonly lost: number;
  /** `lost`, where none may get lost, and where more than HPCC's 1 % did. */
  readonly errors: number;
}

/** Share of wrong words that HPCC allows. */
const ALLOWED = 0.01;

const LOCKS = {
  exclusive: [Lock.EXCLUSIVE, 0],
  shared: [Lock.SHARED, 0],
  unchecked: [Lock.SHARED, Assert.NO_CHECK],
} as const;
export const LOCK_KINDS = Object.keys(LOCKS) as readonly (keyof typeof LOCKS)[];

/** Collective. */
export async function randomAccess(
  world: Communicator,
  { way: name, words, ahead, info, lock, asHpcc = false }: EpochsOptions,
  machine: Machine,
): Promise<EpochsResult> {
  inRange('--ahead', ahead, 1, LOOK_AHEAD);
  if (!Number.isInteger(Math.log2(ahead))) throw new RangeError(`--ahead is a power of two, not ${ahead}`);
  const way: Way = WAYS_BY_NAME[name];
  const calls = callsOf(world, machine.form);
  const distribution = new Distribution(words, world.size);
  await using window = await Window.allocate(world, BigUint64Array, distribution.length(world.rank), { info });
  const part = window.local as BigUint64Array;
  fill(part, distribution.first(world.rank));
  const [type, assert] = LOCKS[lock];
  const carry = way.carry(
    window,
    (target) => calls.lock(window, target, type, assert),
    (target) => calls.unlock(window, target),
  );
  await calls.barrier();
  const began = machine.now();
  const own = (at: number, value: bigint): void => {
    if (way.update === 'xor') part[at] ^= value;
    else part[at] += value;
  };
  if (asHpcc) await updateFromPool(world, distribution, way.packs ? ahead : 1, carry, own);
  else await update(world, distribution, way.packs ? ahead : world.size, carry);
  await calls.barrier();
  const microseconds = machine.now() - began;

  await calls.lock(window, world.rank, Lock.EXCLUSIVE);
  const verification = new Verification(part, distribution, world.rank, way.update);
  verification.advance(verification.updates);
  const wrong = verification.wrong();
  await calls.unlock(window, world.rank);
  const total = new Float64Array(1);
  await world.allreduce(Float64Array.of(wrong), total, Op.SUM);
  const [lost] = total;
  const { updates } = verification;
  const errors = way.atomic || lost > ALLOWED * words ? lost : 0;
  return { way: name, words, updates, microseconds, rate: updates / microseconds, lost, errors };
}

/** Every word holds its number. */
function fill(part: BigUint64Array, first: number): void {
  const halves = new Int32Array(part.buffer, part.byteOffset, 2 * part.length);
  for (let i = 0; i < part.length; i++) halves[2 * i + LOW] = first + i;
}

/** Carries out this rank's updates. @param ahead in bins for all ranks together: as many as ranks, and none waits */
async function update(world: Communicator, distribution: Distribution, ahead: number, carry: Carry): Promise<void> {
  const full: Parameters<Carry>[] = [];
  const bins = new Bins(distribution, (...bin) => full.push(bin), ahead);
  const stream = startOf(UPDATES_PER_WORD * distribution.first(world.rank));
  const empty = async (): Promise<void> => {
    for (const bin of full) await carry(...bin);
    full.length = 0;
  };
  for (let left = UPDATES_PER_WORD * distribution.length(world.rank); left > 0; left--) {
    bins.take(stream, 1);
    if (full.length > 0) await empty();
  }
  bins.finish();
  await empty();
}

/** The same from one pool. @param own what an update of this rank's own words does */
async function updateFromPool(
  { rank }: Communicator,
  distribution: Distribution,
  ahead: number,
  carry: Carry,
  own: (at: number, value: bigint) => void,
): Promise<void> {
  const pool = new Pool(distribution, rank, ahead);
  const stream = startOf(UPDATES_PER_WORD * distribution.first(rank));
  const send = (): Promise<void> => {
    const { owner, displacements, values } = pool.fullest();
    return carry(owner, displacements, values);
  };
  for (let left = UPDATES_PER_WORD * distribution.length(rank); left > 0; left--) {
    pool.take(stream, own);
    if (pool.isFull) await send();
  }
  while (!pool.isEmpty) await send();
}
