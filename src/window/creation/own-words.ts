/**
 * The words of a window that one rank keeps for all. They are made before any other rank knows of them, and the others
 * reach them once the records have been exchanged.
 *
 * Where memory can be loaded and stored, one block of 32-bit words holds, in this order, the barrier's flags, what the
 * ranks of a node share for the lock scheme, the counters of start/complete/post/wait, the notifications, the stripes
 * of accumulates, and the directory of a dynamic window. What many ranks touch begins on a cache line of its own.
 *
 * Words that only a device's requests touch are 64 bits each, in memory of their own: first as many as the lock scheme
 * says it needs, then as many as the fence scheme says, then the stripes, then the directory. Processors do not touch
 * them where their atomics and the device's may not agree (transfer/requests/near-memory.ts).
 */

import type { Communicator } from '../../collective/communicator.ts';
import { type BarrierState, barrierWords, makeBarrier } from '../../collective/word-barrier.ts';
import type { Job } from '../../job/job.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import type { Block } from '../../message/word-blocks.ts';
import type { FenceWords } from '../../sync/fence/fence-kind.ts';
import { Counters, counterWords } from '../../sync/pscw/pscw-counters.ts';
import { RemotePart } from '../../transfer/loads/remote-part.ts';
import { STRIPE_WORDS, Stripes } from '../../transfer/loads/stripes.ts';
import type { NearRegion } from '../../transfer/requests/near-memory.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import { remoteStripeWords } from '../../transfer/requests/remote-stripes.ts';
import type { Memory } from '../../verbs/memory.ts';
import { directoryWords } from '../attached/remote-directory.ts';
import { DIRECTORY_WORDS } from '../attached/shared-directory.ts';
import type { Records } from './part-record.ts';
import { fenceWords, firstLockWord, lockWords, nodeWords, setUpNode } from './schemes.ts';
import type { Hints } from './window-info.ts';
import type { Flavor } from './window-parts.ts';

/** Words on cache lines of their own. */
const LINE_WORDS = 32;

function lineUp(words: number): number {
  return Math.ceil(words / LINE_WORDS) * LINE_WORDS;
}

/** Where each kind of words begins in a rank's block. */
class BlockLayout {
  readonly node: number;
  readonly nodeEnd: number;
  readonly counters: number;
  readonly signal: number;
  readonly stripes: number;
  readonly directory: number;
  readonly words: number;

  constructor(size: number, flavor: Flavor, hints: Hints) {
    this.node = barrierWords(size);
    this.nodeEnd = this.node + nodeWords(hints, size, true);
    this.counters = lineUp(this.nodeEnd);
    this.signal = this.counters + counterWords(size);
    this.stripes = lineUp(this.signal + 1);
    this.directory = this.stripes + STRIPE_WORDS;
    this.words = this.directory + (flavor === 'dynamic' ? DIRECTORY_WORDS : 0);
  }
}

/** Where each kind of words begins among a rank's words for devices. The lock's come first. */
class DeviceLayout {
  readonly fence: number;
  readonly stripes: number;
  readonly directory: number;
  readonly words: number;

  constructor(size: number, flavor: Flavor, hints: Hints, loadStore: boolean) {
    this.fence = lockWords(hints, size, loadStore);
    this.stripes = this.fence + fenceWords(hints, size);
    this.directory = this.stripes + (loadStore ? 0 : remoteStripeWords(size));
    this.words = this.directory + (flavor === 'dynamic' && !loadStore ? directoryWords(size) : 0);
  }
}

/** Words in memory of their own, which only this rank has as a block. */
interface DeviceBlock extends Block {
  readonly memory: Memory;
}

/** This rank's words of a window. */
export interface OwnWords {
  readonly layout: BlockLayout;
  readonly deviceLayout: DeviceLayout;
  /** Absent where memory cannot be loaded and stored. */
  readonly block: Block | undefined;
  /** Absent where none are for devices alone. */
  readonly atomics: DeviceBlock | undefined;
  free(): void;
}

/** Makes this rank's words. Errors: there is no memory; then nothing is left. */
export function makeOwnWords(comm: Communicator, flavor: Flavor, hints: Hints): OwnWords {
  const { job, size } = comm;
  const { loadStore } = job.context.capabilities;
  const layout = new BlockLayout(size, flavor, hints);
  const deviceLayout = new DeviceLayout(size, flavor, hints, loadStore);
  let atomics: DeviceBlock | undefined;
  let block: Block | undefined;
  const free = (): void => {
    if (block !== undefined) comm.giveBack(block);
    atomics?.free();
  };
  try {
    if (deviceLayout.words > 0) atomics = allocateDeviceWords(job, deviceLayout.words);
    if (loadStore) block = job.blocks.allocate(layout.words);
  } catch (error) {
    free();
    throw error;
  }
  // No other rank knows where they are yet.
  if (block !== undefined) setUpNode(hints, block.words.subarray(layout.node, layout.nodeEnd));
  if (deviceLayout.fence > 0) atomics!.words[0] = firstLockWord(hints, size);
  return { layout, deviceLayout, block, atomics, free };
}

function allocateDeviceWords(job: Job, words: number): DeviceBlock {
  const region = allocateRegistered(job.context, job.pd, 8 * words);
  return {
    memory: region.memory,
    words: new Int32Array(region.memory.buffer, 0, 2 * words),
    place: [region.rkey, region.address, 8 * words, 0],
    free: () => freeRegistered(region),
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

  signal(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.signal, this.#layout.signal + 1);
  }

  /** @param base the byte of the rank's memory at which the first stripe begins (`Stripes`) */
  stripes(rank: number, base: number): Stripes {
    const { stripes, directory } = this.#layout;
    return new Stripes(this.#of(rank).subarray(stripes, directory), base, this.#comm.members);
  }

  directory(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.directory, this.#layout.words);
  }

  node(rank: number): Int32Array {
    return this.#of(rank).subarray(this.#layout.node, this.#layout.nodeEnd);
  }
}

/** The ranks on this host, although others are behind devices (part-mapping.ts). */
interface Host {
  isOnHost(rank: number): boolean;
  mapNear(rank: number, handle: number, length: number, at: number, bytes: number): RemotePart;
}

/** The words of all ranks that only devices touch, and this rank's processor in place of its own (near-memory.ts). */
export class DeviceWords {
  readonly #layout: DeviceLayout;
  readonly #own: DeviceBlock | undefined;
  readonly #records: Records;

  constructor({ deviceLayout, atomics }: OwnWords, records: Records) {
    this.#layout = deviceLayout;
    this.#own = atomics;
    this.#records = records;
  }

  #word(rank: number, index: number): RemoteWord {
    return {
      rank,
      rkey: this.#records.of(rank, 'words'),
      address: this.#records.of(rank, 'words', 1) + 8 * index,
    };
  }

  /** All of a rank's, if this rank's processor reaches them, too. Maps them. */
  near(rank: number, me: number, host: Host): NearRegion | undefined {
    const bytes = 8 * this.#layout.words;
    if (bytes === 0) return undefined;
    const [rkey, address] = this.#records.listOf(rank, 'words');
    if (rank === me) return { rkey, address, part: new RemotePart(this.#own!.memory.buffer, 0, bytes) };
    const [handle, length] = this.#records.listOf(rank, 'wordsHandle');
    if (handle === 0 || !host.isOnHost(rank)) return undefined;
    return { rkey, address, part: host.mapNear(rank, handle, length, 0, bytes) };
  }

  lock(rank: number, index: number): RemoteWord {
    return this.#word(rank, index);
  }

  /** Those of the fence scheme, if there are any. */
  get fence(): FenceWords | undefined {
    const { fence, stripes } = this.#layout;
    if (fence === stripes) return undefined;
    return { own: this.#ownWords(fence, stripes), of: (rank, index) => this.#word(rank, fence + index) };
  }

  stripe(rank: number, index: number): RemoteWord {
    return this.#word(rank, this.#layout.stripes + index);
  }

  directory(rank: number, index: number): RemoteWord {
    return this.#word(rank, this.#layout.directory + index);
  }

  /** This rank's own words of the directory. */
  get ownDirectory(): Int32Array {
    return this.#ownWords(this.#layout.directory, this.#layout.words);
  }

  #ownWords(from: number, to: number): Int32Array {
    return this.#own!.words.subarray(2 * from, 2 * to);
  }
}
