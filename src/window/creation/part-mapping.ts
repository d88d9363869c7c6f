/** How this rank comes to the parts of all ranks, where it can load and store them. */
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArray, TypedArrayConstructor } from '../../datatype/base-types.ts';
import { RmaError } from '../../errors.ts';
import { RemotePart } from '../../transfer/loads/remote-part.ts';
import { ALL_ACCESS } from '../../verbs/checks.ts';
import type { Memory, MemoryRegion } from '../../verbs/memory.ts';
import { type Making, notMade } from './agreement.ts';
import { allocate, giveBack, type Offer } from './offer.ts';
import type { Records } from './part-record.ts';
import type { Undo } from './undo.ts';
import { goneError } from './window-parts.ts';

/** Memory that the first rank has allocated for all, one part right behind the other. */
interface FirstRanksMemory {
  /** Where it begins in a rank's part of it. */
  readonly offsets: Float64Array;
  readonly rkey: number;
  readonly address: number;
  /** The memory itself, at the first rank. */
  readonly memory: Memory | undefined;
}

export class Mapping {
  readonly #comm: Communicator;
  readonly #window: string;
  readonly #records: Records;
  readonly #first: FirstRanksMemory | undefined;
  readonly #undo: Undo;
  #local: TypedArray;

  /** @param first if the parts are in its memory */
  constructor(
    comm: Communicator,
    window: string,
    records: Records,
    offer: Offer,
    first: FirstRanksMemory | undefined,
    undo: Undo,
  ) {
    this.#comm = comm;
    this.#window = window;
    this.#records = records;
    this.#first = first;
    this.#undo = undo;
    this.#local = offer.local;
    if (first === undefined) return;
    const { buffer, u8, skew } = this.#ofFirst(first, comm.rank);
    const type = offer.local.constructor as TypedArrayConstructor;
    const begin = u8.byteOffset + skew;
    // Nothing of an empty part is touched, so that it need not be aligned; but no view can begin there then.
    if (offer.wanted === 0 && begin % type.BYTES_PER_ELEMENT !== 0) return;
    this.#local = new type(buffer, begin, offer.wanted);
  }

  /** This rank's part. */
  get local(): TypedArray {
    return this.#local;
  }

  /** The size of a rank's part. */
  bytes(rank: number): number {
    return this.#records.of(rank, 'bytes');
  }

  /** Whether this rank loads and stores the part of one on its host, although others are behind devices. */
  isNeighbour(rank: number): boolean {
    return this.isOnHost(rank) && this.#records.of(rank, 'handle') !== 0;
  }

  /** Whether a rank is on this host, although others are behind devices. */
  isOnHost(rank: number): boolean {
    const { job, group } = this.#comm;
    return job.context.neighbours?.has(group.worldRanks[rank]) === true;
  }

  /** Errors: `ERR_BUFFER` (this rank's own part was transferred), `ERR_RMA_SHARED`. */
  map(rank: number): RemotePart {
    const bytes = this.bytes(rank);
    // An empty part has a place in the first rank's memory, too (MPI 4.1, 12.2.3).
    if (bytes === 0 && this.#first === undefined) return new RemotePart(new ArrayBuffer(0), 0, 0);
    if (bytes === 0) return this.#ofFirst(this.#first!, rank);
    if (rank === this.#comm.rank) {
      if (this.#local.length === 0) throw goneError(this.#window);
      return new RemotePart(this.#local.buffer, this.#local.byteOffset, bytes);
    }
    return this.#first === undefined ? this.#ofOther(rank, bytes) : this.#ofFirst(this.#first, rank);
  }

  #ofOther(rank: number, bytes: number): RemotePart {
    const records = this.#records;
    const { job, group } = this.#comm;
    if (records.of(rank, 'share') !== 0) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `${this.#window}: other ranks cannot load and store the part of rank ${rank}, ` +
          'because it is private memory of that rank; use put and get, or memory from comm.allocMem on that rank',
      );
    }
    if (this.isNeighbour(rank)) {
      const [handle, length, at] = records.listOf(rank, 'handle');
      return this.mapNear(rank, handle, length, at, bytes);
    }
    if (!job.context.capabilities.loadStore) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `${this.#window}: the part of rank ${rank} is behind a device, so other ranks cannot load and ` +
          'store it; use put and get',
      );
    }
    const [rkey, address] = records.listOf(rank, 'region');
    return this.#remote(group.worldRanks[rank], rkey, address, bytes);
  }

  /** Memory of a neighbour. @param at where what is wanted begins in the memory of `handle`, of `length` bytes */
  mapNear(rank: number, handle: number, length: number, at: number, bytes: number): RemotePart {
    const { job, group } = this.#comm;
    const { buffer, offset, release } = job.context.neighbours!.map(group.worldRanks[rank], handle, length);
    this.#undo.add(release);
    return new RemotePart(buffer, offset + at, bytes);
  }

  #ofFirst({ memory, offsets, rkey, address }: FirstRanksMemory, rank: number): RemotePart {
    if (memory !== undefined) return new RemotePart(memory.buffer, offsets[rank], this.bytes(rank));
    return this.#remote(this.#comm.group.worldRanks[0], rkey, address + offsets[rank], this.bytes(rank));
  }

  #remote(member: number, rkey: number, address: number, bytes: number): RemotePart {
    const pointer = this.#comm.job.context.remotePointer(member, rkey, address, bytes, ALL_ACCESS);
    this.#undo.add(() => pointer.release());
    return new RemotePart(pointer.buffer, pointer.offset, bytes);
  }
}

/** Collective. Errors: the first rank's, which all hear. */
export function* allocateByFirst(
  { comm, call }: Making,
  records: Records,
  undo: Undo,
): Generator<void, FirstRanksMemory | undefined> {
  const { job, size } = comm;
  const offsets = new Float64Array(size);
  let total = 0;
  for (let rank = 0; rank < size; rank++) {
    offsets[rank] = total;
    total += records.of(rank, 'bytes');
  }
  if (total === 0) return undefined;
  let memory: Memory | undefined;
  let region: MemoryRegion | undefined;
  let failure: unknown;
  if (comm.rank === 0) {
    try {
      const made = allocate(comm, call, total);
      undo.add(() => giveBack(comm, made));
      const registered = job.pd.registerMemory(made, 0, total, ALL_ACCESS);
      undo.add(() => registered.deregister());
      memory = made;
      region = registered;
    } catch (error) {
      failure = error;
    }
  }
  const told = yield* comm.exchange(Float64Array.of(region?.rkey ?? -1, region?.address ?? 0));
  const [rkey, address] = told;
  if (rkey < 0) {
    const why = yield* comm.hearWhy(0, failure);
    throw failure ?? notMade(call, { rank: 0, why });
  }
  return { offsets, rkey, address, memory };
}
