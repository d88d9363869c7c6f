/**
 * The words of a window that one rank keeps for all. They are made before any other rank knows of them, and the others
 * reach them once the records have been exchanged.
 *
 * Where memory can be loaded and stored, one block of 32-bit words holds, in this order, the barrier's flags, the queue
 * lock of the part, the lock of all parts (of use at rank 0), the counters of start/complete/post/wait, the
 * notifications, the stripes of accumulates, the directory of a dynamic window, and what the ranks of a node share for
 * their lock. What many ranks touch begins on a cache line of its own.
 *
 * Words that only a device's atomics touch are 64 bits each, in memory of their own: the lock, then the stripes, then
 * the directory. Processors and devices never touch the same words: their atomics may not agree.
 */

import type { Communicator } from '../../collective/communicator.ts';
import { type BarrierState, barrierWords, makeBarrier } from '../../collective/word-barrier.ts';
import type { Job } from '../../job/job.ts';
import { allocateRegistered, type Block } from '../../message/word-blocks.ts';
import { ALL_LOCK_WORDS, AllLock } from '../../sync/lock/lock-of-all.ts';
import type { Overtaking } from '../../sync/lock/lock-overtaking.ts';
import { QueueLock, queueLockWords } from '../../sync/lock/queue-lock.ts';
import { remoteLockWords } from '../../sync/lock/remote-lock.ts';
import { Counters, counterWords } from '../../sync/pscw/pscw-counters.ts';
import { STRIPE_WORDS, Stripes } from '../../transfer/loads/stripes.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import { remoteStripeWords } from '../../transfer/requests/remote-stripes.ts';
import { directoryWords } from '../attached/remote-directory.ts';
import { DIRECTORY_WORDS } from '../attached/shared-directory.ts';
import type { Records } from './part-record.ts';
import { firstLockWord, locksByRequests, nodeWords, setUpNode } from './schemes.ts';
import type { Hints } from './window-info.ts';
import type { Flavor } from './window-parts.ts';

/** Words on cache lines of their own. */
const LINE_WORDS = 32;

function lineUp(words: number): number {
  return Math.ceil(words / LINE_WORDS) * LINE_WORDS;
}

/** Where what begins in a rank's block. */
class BlockLayout {
  readonly lock: number;
  readonly allLock: number;
  readonly counters: number;
  readonly signal: number;
  readonly stripes: number;
  readonly directory: number;
  readonly node: number;
  readonly words: number;

  constructor(size: number, flavor: Flavor, hints: Hints) {
    this.lock = barrierWords(size);
    this.allLock = lineUp(this.lock + queueLockWords(size));
    this.counters = this.allLock + ALL_LOCK_WORDS;
    this.signal = this.counters + counterWords(size);
    this.stripes = lineUp(this.signal + 1);
    this.directory = this.stripes + STRIPE_WORDS;
    this.node = this.directory + (flavor === 'dynamic' ? DIRECTORY_WORDS : 0);
    this.words = this.node + nodeWords(hints, size);
  }
}

/** This rank's words of a window. */
export interface OwnWords {
  readonly layout: BlockLayout;
  /** Absent where memory cannot be loaded and stored. */
  readonly block: Block | undefined;
  /** Absent where no device's atomics are needed. */
  readonly atomics: Block | undefined;
  free(): void;
}

/** Makes this rank's words. Errors: there is no memory; then nothing is left. */
export function makeOwnWords(comm: Communicator, flavor: Flavor, hints: Hints): OwnWords {
  const { job, size } = comm;
  const { loadStore } = job.context.capabilities;
  const layout = new BlockLayout(size, flavor, hints);
  let atomics: Block | undefined;
  let block: Block | undefined;
  const free = (): void => {
    if (block !== undefined) comm.giveBack(block);
    atomics?.free();
  };
  try {
    if (!loadStore) atomics = allocateDeviceWords(job, deviceWords(size, flavor));
    else if (locksByRequests(hints, true)) atomics = allocateDeviceWords(job, remoteLockWords(size));
    if (loadStore) block = job.blocks.allocate(layout.words);
  } catch (error) {
    free();
    throw error;
  }
  // No other rank knows where they are yet.
  if (block !== undefined) setUpNode(hints, block.words.subarray(layout.node, layout.words));
  if (atomics !== undefined) atomics.words[0] = firstLockWord(hints, size);
  return { layout, block, atomics, free };
}

/**
 * 64-bit words of a rank for the device's atomics: its lock and the stripes of its part; behind them the directory of a
 * dynamic window.
 */
function deviceWords(size: number, flavor: Flavor): number {
  return firstDirectoryWord(size) + (flavor === 'dynamic' ? directoryWords(size) : 0);
}

function firstDirectoryWord(size: number): number {
  return remoteLockWords(size) + remoteStripeWords(size);
}

/** A block of such words, in the form of one that is shared. */
function allocateDeviceWords(job: Job, words: number): Block {
  const { memory, region } = allocateRegistered(job.context, job.pd, 8 * words);
  return {
    words: new Int32Array(memory.buffer, 0, 2 * words),
    place: [region.rkey, region.address, 8 * words, 0],
    free() {
      region.deregister();
      memory.free();
    },
  };
}

/** The blocks of all ranks, where memory can be loaded and stored. Each is mapped when it is first asked for. */
export class SharedWords {
  readonly #comm: Communicator;
  readonly #layout: BlockLayout;
  readonly #own: Block;
  readonly #records: Records;

  constructor(comm: Communicator, layout: BlockLayout, own: Block, records: Records) {
    this.#comm = comm;
    this.#layout = layout;
    this.#own = own;
    this.#records = records;
  }

  #of(rank: number): Int32Array {
    const { rank: me, job, group } = this.#comm;
    if (rank === me) return this.#own.words;
    return job.blocks.map(group.worldRanks[rank], this.#records.listOf(rank, 'place'), this.#layout.words);
  }

  barrier(trace: string): BarrierState {
    const { rank, job, group, traits } = this.#comm;
    return makeBarrier(job.context, rank, group.worldRanks, traits, (r) => this.#of(r), this.#comm.signals(trace));
  }

  counters(): Counters {
    const { rank, job, group, traits } = this.#comm;
    const { counters, signal } = this.#layout;
    const wordsOf = (r: number): Int32Array => this.#of(r).subarray(counters, signal);
    return new Counters(job.context, rank, group.worldRanks, traits.plainFlags, wordsOf);
  }

  queueLock(rank: number, overtaking: Overtaking): QueueLock {
    const { lock, allLock } = this.#layout;
    const { rank: me, job, group } = this.#comm;
    const words = this.#of(rank).subarray(lock, allLock);
    return new QueueLock(words, me, group.worldRanks, job.context, overtaking);
  }

  allLock(): AllLock {
    const { allLock, counters } = this.#layout;
    const { rank: me, job, group } = this.#comm;
    return new AllLock(this.#of(0).subarray(allLock, counters), me, group.worldRanks, job.context);
  }

  signal(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.signal, this.#layout.signal + 1);
  }

  /** @param base byte of the rank's memory that the first stripe begins with (`Stripes`) */
  stripes(rank: number, base: number): Stripes {
    const { stripes, directory } = this.#layout;
    return new Stripes(this.#of(rank).subarray(stripes, directory), base, this.#comm.members);
  }

  directory(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.directory, this.#layout.node);
  }

  node(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.node, this.#layout.words);
  }
}

/** The words of all ranks that only the device's atomics touch. */
export class DeviceWords {
  readonly #size: number;
  readonly #records: Records;

  constructor(size: number, records: Records) {
    this.#size = size;
    this.#records = records;
  }

  /** @param index of its lock's words; with those behind them only where memory cannot be loaded and stored */
  word(rank: number, index: number): RemoteWord {
    return {
      rank,
      rkey: this.#records.of(rank, 'words'),
      address: this.#records.of(rank, 'words', 1) + 8 * index,
    };
  }

  stripe(rank: number, index: number): RemoteWord {
    return this.word(rank, remoteLockWords(this.#size) + index);
  }

  directory(rank: number, index: number): RemoteWord {
    return this.word(rank, firstDirectoryWord(this.#size) + index);
  }

  /** This rank's own words of the directory, among all of its words for the device. */
  ownDirectory(own: Block): Int32Array {
    return own.words.subarray(2 * firstDirectoryWord(this.#size));
  }
}
