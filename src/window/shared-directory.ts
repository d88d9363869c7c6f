/**
 * What is attached where, in shared memory: a table of each rank in its shared block, and what this rank knows of the others'.
 *
 * The table's owner is its only writer:
 *
 *   VERSION := odd;   entries, COUNT;   VERSION := even
 *
 * A reader takes a copy between two looks at VERSION, and keeps it if both were the same even number. All accesses of VERSION are sequentially consistent
 * and atomic, and a full fence stands between the copy and the second look, so a copy that was taken while the owner wrote is not kept. As long as
 * VERSION is the same as that of the copy, the copy is right: one load for each access. Whoever has learnt of an `attach` or `detach` by any
 * message or synchronization sees the VERSION that came with it. (It would take 2^31 changes between two accesses of one rank to come back to the same number.)
 *
 * What is mapped is kept by the region's key, which is random and new for each `attach`. Memory that was detached and attached again has another one, so it
 * is never reached by what was mapped for the first.
 *
 * Regions of memory that nobody can map have the key 0; they are reached by their address (transfer/user-memory.ts), where the owner's thread and the
 * kernel look at each access.
 */
import type { Communicator } from '../comm/communicator.ts';
import { memoryFence, RemotePart } from '../transfer/remote-part.ts';
import type { Stripes } from '../transfer/stripes.ts';
import { ALL_ACCESS } from '../verbs/checks.ts';
import type { RemotePointer } from '../verbs/memory.ts';
import type { Attached, Directory, Listed, Place } from './attachments.ts';

/** Regions that a rank can have attached at a time. */
const MAX_ATTACHED = 512;
const VERSION = 0;
const COUNT = 1;
const HEADER_WORDS = 32;
/** Numbers of an entry. */
const ADDRESS = 0;
const BYTES = 1;
const KEY = 2;
/** The region's address in the device's terms. */
const DEVICE_ADDRESS = 3;
const ENTRY = 4;

export const ATTACHMENT_WORDS = HEADER_WORDS + 2 * ENTRY * MAX_ATTACHED;

/** What this rank has read of another's table. */
interface Known {
  readonly words: Int32Array;
  version: number;
  entries: Float64Array;
  readonly mapped: Map<number, { readonly pointer: RemotePointer; readonly attached: Attached }>;
}

export class SharedDirectory implements Directory {
  readonly most = MAX_ATTACHED;
  readonly #comm: Communicator;
  readonly #words: Int32Array;
  readonly #tableOf: (rank: number) => Int32Array;
  readonly #stripesOf: (rank: number, base: number) => Stripes;
  readonly #known: (Known | undefined)[] = [];

  /** @param tableOf the words of a rank's table, mapped; @param stripesOf the locks of what is attached there and can be mapped */
  constructor(
    comm: Communicator,
    tableOf: (rank: number) => Int32Array,
    stripesOf: (rank: number, base: number) => Stripes,
  ) {
    this.#comm = comm;
    this.#tableOf = tableOf;
    this.#stripesOf = stripesOf;
    this.#words = tableOf(comm.rank);
  }

  placeOf({ address }: Listed): Place {
    return { stripes: this.#stripesOf(this.#comm.rank, address), region: undefined };
  }

  add(_own: Listed, all: readonly Listed[]): void {
    this.#publish(all);
  }

  remove(_own: Listed, all: readonly Listed[]): void {
    this.#publish(all);
  }

  #publish(own: readonly Listed[]): void {
    const words = this.#words;
    const entries = new Float64Array(words.buffer, words.byteOffset + 4 * HEADER_WORDS, ENTRY * MAX_ATTACHED);
    Atomics.add(words, VERSION, 1);
    for (const [i, { address, bytes, key, deviceAddress }] of own.entries()) {
      entries.set([address, bytes, key, deviceAddress], ENTRY * i);
    }
    words[COUNT] = own.length;
    Atomics.add(words, VERSION, 1);
  }

  find(rank: number, low: number, high: number): Attached | undefined {
    const known = this.#update(rank);
    const { entries } = known;
    for (let i = 0; i < entries.length; i += ENTRY) {
      const address = entries[i + ADDRESS];
      const bytes = entries[i + BYTES];
      if (low < address || high > address + bytes) continue;
      const key = entries[i + KEY];
      if (key === 0)
        return { address, bytes, part: undefined, stripes: undefined, region: undefined, memory: undefined };
      return known.mapped.get(key)?.attached ?? this.#map(known, rank, i);
    }
    return undefined;
  }

  #map(known: Known, rank: number, i: number): Attached {
    const { job, group } = this.#comm;
    const { entries } = known;
    const [address, bytes, key] = [entries[i + ADDRESS], entries[i + BYTES], entries[i + KEY]];
    const deviceAddress = entries[i + DEVICE_ADDRESS];
    const pointer = job.context.remotePointer(group.worldRanks[rank], key, deviceAddress, bytes, ALL_ACCESS);
    const part = new RemotePart(pointer.buffer, pointer.offset, bytes);
    const stripes = this.#stripesOf(rank, address);
    const attached = { address, bytes, part, stripes, region: undefined, memory: undefined };
    known.mapped.set(key, { pointer, attached });
    return attached;
  }

  /** What is known of a rank's table, after a look whether it has changed. */
  #update(rank: number): Known {
    let known = this.#known[rank];
    if (known === undefined) {
      known = { words: this.#tableOf(rank), version: -1, entries: new Float64Array(0), mapped: new Map() };
      this.#known[rank] = known;
    }
    const { words } = known;
    for (let looks = 1; Atomics.load(words, VERSION) !== known.version; looks++) {
      const before = Atomics.load(words, VERSION);
      if ((before & 1) === 0) {
        const count = Math.min(words[COUNT], MAX_ATTACHED);
        const entries = new Float64Array(words.buffer, words.byteOffset + 4 * HEADER_WORDS, ENTRY * count).slice();
        memoryFence();
        if (Atomics.load(words, VERSION) === before) {
          known.entries = entries;
          known.version = before;
          forget(known);
        }
      }
      // The owner writes for a microsecond, unless it ended in the middle of it.
      if (looks % 1_000_000 === 0) {
        const failure = this.#comm.job.findFailure();
        if (failure !== undefined) throw failure;
      }
    }
    return known;
  }

  regionsOf(rank: number): readonly { address: number; bytes: number }[] {
    const { entries } = this.#known[rank]!;
    return Array.from({ length: entries.length / ENTRY }, (_, i) => ({
      address: entries[ENTRY * i + ADDRESS],
      bytes: entries[ENTRY * i + BYTES],
    }));
  }

  release(): void {
    for (const known of this.#known) for (const { pointer } of known?.mapped.values() ?? []) pointer.release();
  }
}

/** Unmaps what is not attached any more. */
function forget(known: Known): void {
  const keys = new Set<number>();
  for (let i = KEY; i < known.entries.length; i += ENTRY) keys.add(known.entries[i]);
  for (const [key, { pointer }] of known.mapped) {
    if (keys.has(key)) continue;
    pointer.release();
    known.mapped.delete(key);
  }
}
