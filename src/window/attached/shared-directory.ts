/**
 * What is attached where, in shared memory: each rank keeps a table of its attachments, and the others keep copies of
 * it. The table's owner is its only writer. No rank waits for another one, except while the table moves.
 *
 * The words of a rank, in its shared block:
 *
 *   VERSION        another number after each change
 *   HEAD           even, and another one after each move of the table; odd while it moves
 *   SLOTS, PLACE   how many slots the table has, and the block in which it is; the first table stands right behind
 *                  these words
 *
 * The table has a sequence number for each slot, even while the slot is at rest, and behind them four numbers for each
 * slot: address, bytes (0: the slot is free), key, address in the device's terms. A region stays in its slot while it
 * is attached. All these words are loaded and stored by `Atomics`, so all see them change in one order:
 *
 *   owner, attach and detach:   sequence := odd;   the four numbers;   sequence := even;   VERSION := another one
 *   owner, a larger table:      a copy of the table with its sequence numbers;   HEAD := odd;   SLOTS, PLACE;   HEAD
 *                               := even;   then as above
 *
 *   reader:   version = VERSION: if it is that of the copy, the copy is right, and that is all: one load for each
 *             access
 *             HEAD: if it is another one than before, SLOTS and PLACE, until HEAD is the same even number before and
 *             after
 *             each slot whose sequence is not that of the copy: sequence, the four numbers, sequence. The same even
 *             number twice: that is what the slot has. Else it has
 *             nothing: the owner is about to attach or detach there
 *             the copy is that of `version`
 *
 * Why that is enough. A rank that may access a region has learnt of its `attach`, by any message or synchronization. So
 * it sees the VERSION that came with the `attach`, or a later one, and then the slot's sequence from before that
 * VERSION: the region is in the copy, whatever else the owner changes meanwhile. The region is taken for gone only if
 * its sequence has changed since. Then it is being detached, and meanwhile no rank may access it. Likewise, a rank that
 * has learnt of a `detach` finds the slot changed. What a reader has seen half is seen again: VERSION was read first,
 * and changes behind it. A table that was outgrown is left as it is until the window is freed, so a rank that still
 * reads it finds what it was, and another VERSION at the next access. Tables double, so all of them take less than
 * twice the last one. (It would take 2^31 changes between two accesses of one rank to come back to the same number.)
 *
 * A copy that was taken while the owner changed the table may have a region that was gone, and one that took its place:
 * they overlap. Neither overlaps a region that was attached all the time, so such a one is still the last that begins
 * before any of its bytes, and `lookUp` finds it.
 *
 * What is mapped is kept with the slot's sequence. Memory that was detached and attached again has another sequence,
 * and another key, which is random and new for each `attach`. So it is never reached by what was mapped for the first.
 * Regions of memory that no other rank can map have the key 0; they are reached by their address
 * (transfer/served/user-memory.ts), where the owner's thread and the kernel look at each access.
 *
 * Cost of an access: a binary search; after a change, a look at each sequence number (1 ns) and a new list of what is
 * known (some nanoseconds a region) besides.
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { Block } from '../../message/word-blocks.ts';
import { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Stripes } from '../../transfer/loads/stripes.ts';
import { ALL_ACCESS } from '../../verbs/checks.ts';
import type { RemotePointer } from '../../verbs/memory.ts';
import type { Attached, AttachedPlace, Directory, Listed } from './attachments.ts';
import { loadNumber, storeNumber } from './number-words.ts';
import { lookUp, merged } from './region-list.ts';

const VERSION = 0;
const HEAD = 1;
const SLOTS = 2;
/** `Block.place`: four numbers, all 0 for the first table. */
const PLACE = 4;
const PLACE_NUMBERS = 4;
const HEADER_WORDS = 32;

/** Slots of the first table. */
const FIRST = 128;
/** Numbers of a slot. */
const ADDRESS = 0;
const BYTES = 1;
const KEY = 2;
const DEVICE_ADDRESS = 3;
/** Words of a slot's numbers, and all of its words. */
const NUMBER_WORDS = 8;
const SLOT_WORDS = 1 + NUMBER_WORDS;

export const DIRECTORY_WORDS = HEADER_WORDS + FIRST * SLOT_WORDS;

/**
 * Looks at HEAD while the table moves, which takes a microsecond, before the ranks are looked at: its owner may have
 * ended in the middle of it.
 */
const LOOKS = 1_000_000;

/** A region as its slot describes it. */
interface Region extends Listed {
  attached: Attached | undefined;
  pointer: RemotePointer | undefined;
  gone: boolean;
}

/** What this rank has read of another's table. */
interface Known {
  readonly words: Int32Array;
  version: number;
  head: number;
  slots: number;
  table: Int32Array;
  /** By slot: the sequence number of what is known. */
  sequences: Int32Array;
  readonly regions: (Region | undefined)[];
  byAddress: readonly Region[];
}

export class SharedDirectory implements Directory {
  readonly #comm: Communicator;
  readonly #tableOf: (rank: number) => Int32Array;
  readonly #stripesOf: (rank: number, base: number) => Stripes;
  /** This rank's words, and its table. */
  readonly #words: Int32Array;
  #table: Int32Array;
  #slots = FIRST;
  readonly #free: number[] = [];
  readonly #slotOf = new Map<Listed, number>();
  /** Of the tables behind the first one. */
  readonly #blocks: Block[] = [];
  readonly #known: (Known | undefined)[] = [];

  /**
   * @param wordsOf `DIRECTORY_WORDS` of a rank, mapped, zero at first
   * @param stripesOf the locks of what is attached there and can be mapped
   */
  constructor(
    comm: Communicator,
    wordsOf: (rank: number) => Int32Array,
    stripesOf: (rank: number, base: number) => Stripes,
  ) {
    this.#comm = comm;
    this.#tableOf = wordsOf;
    this.#stripesOf = stripesOf;
    this.#words = wordsOf(comm.rank);
    this.#table = firstTable(this.#words);
    this.#addFree(0, FIRST);
  }

  placeOf({ address }: Listed): AttachedPlace {
    return { stripes: this.#stripesOf(this.#comm.rank, address), region: undefined };
  }

  // ---- this rank's table --------------------------------------------------------------------------------------------

  /** Errors: `ERR_VERBS` (no memory for a larger table; nothing has changed). */
  add(own: Listed): void {
    if (this.#free.length === 0) this.#grow();
    const slot = this.#free.pop()!;
    this.#slotOf.set(own, slot);
    this.#fill(slot, own.address, own.bytes, own.key, own.deviceAddress);
  }

  remove(own: Listed): void {
    const slot = this.#slotOf.get(own)!;
    this.#slotOf.delete(own);
    this.#fill(slot, 0, 0, 0, 0);
    this.#free.push(slot);
  }

  #fill(slot: number, address: number, bytes: number, key: number, deviceAddress: number): void {
    const table = this.#table;
    const at = this.#slots + NUMBER_WORDS * slot;
    Atomics.add(table, slot, 1);
    storeNumber(table, at + 2 * ADDRESS, address);
    storeNumber(table, at + 2 * BYTES, bytes);
    storeNumber(table, at + 2 * KEY, key);
    storeNumber(table, at + 2 * DEVICE_ADDRESS, deviceAddress);
    Atomics.add(table, slot, 1);
    Atomics.add(this.#words, VERSION, 1);
  }

  /** No rank reads the new table before HEAD says so. */
  #grow(): void {
    const [before, slots] = [this.#slots, 2 * this.#slots];
    const block = this.#comm.job.blocks.allocate(slots * SLOT_WORDS);
    this.#blocks.push(block);
    block.words.set(this.#table.subarray(0, before));
    block.words.set(this.#table.subarray(before, before * SLOT_WORDS), slots);
    const words = this.#words;
    Atomics.add(words, HEAD, 1);
    Atomics.store(words, SLOTS, slots);
    for (const [i, number] of block.place.entries()) storeNumber(words, PLACE + 2 * i, number);
    Atomics.add(words, HEAD, 1);
    this.#table = block.words;
    this.#slots = slots;
    this.#addFree(before, slots);
  }

  /** The lowest is the first to be taken. */
  #addFree(from: number, to: number): void {
    for (let slot = to - 1; slot >= from; slot--) this.#free.push(slot);
  }

  // ---- those of the others ------------------------------------------------------------------------------------------

  find(rank: number, low: number, high: number): Attached | undefined {
    const region = lookUp(this.#update(rank).byAddress, low, high);
    if (region === undefined) return undefined;
    region.attached ??= this.#map(rank, region);
    return region.attached;
  }

  #map(rank: number, region: Region): Attached {
    const { address, bytes, key, deviceAddress } = region;
    if (key === 0) return { address, bytes, part: undefined, stripes: undefined, region: undefined, memory: undefined };
    const { job, group } = this.#comm;
    const pointer = job.context.remotePointer(group.worldRanks[rank], key, deviceAddress, bytes, ALL_ACCESS);
    region.pointer = pointer;
    const part = new RemotePart(pointer.buffer, pointer.offset, bytes);
    return { address, bytes, part, stripes: this.#stripesOf(rank, address), region: undefined, memory: undefined };
  }

  /** What is known of a rank's table, after a look whether it has changed. */
  #update(rank: number): Known {
    let known = this.#known[rank];
    if (known === undefined) {
      const words = this.#tableOf(rank);
      known = {
        words,
        version: 0,
        head: 0,
        slots: FIRST,
        table: firstTable(words),
        sequences: new Int32Array(FIRST),
        regions: [],
        byAddress: [],
      };
      this.#known[rank] = known;
    }
    const version = Atomics.load(known.words, VERSION);
    if (version === known.version) return known;
    if (Atomics.load(known.words, HEAD) !== known.head) this.#follow(rank, known);
    readSlots(known);
    known.version = version;
    return known;
  }

  /** To where the table is now. */
  #follow(rank: number, known: Known): void {
    const { words } = known;
    for (let looks = 1; ; looks++) {
      const head = Atomics.load(words, HEAD);
      const slots = Atomics.load(words, SLOTS);
      const place = Array.from({ length: PLACE_NUMBERS }, (_, i) => loadNumber(words, PLACE + 2 * i));
      if ((head & 1) === 0 && Atomics.load(words, HEAD) === head) {
        const { job, group } = this.#comm;
        known.table = job.blocks.map(group.worldRanks[rank], place, slots * SLOT_WORDS);
        const { sequences } = known;
        known.sequences = new Int32Array(slots);
        known.sequences.set(sequences);
        known.slots = slots;
        known.head = head;
        return;
      }
      if (looks % LOOKS !== 0) continue;
      const failure = this.#comm.members.findFailure();
      if (failure !== undefined) throw failure;
    }
  }

  regionsOf(rank: number): readonly { readonly address: number; readonly bytes: number }[] {
    return this.#known[rank]?.byAddress ?? [];
  }

  release(): void {
    for (const known of this.#known) for (const { pointer } of known?.byAddress ?? []) pointer?.release();
    for (const block of this.#blocks) this.#comm.giveBack(block);
  }
}

function firstTable(words: Int32Array): Int32Array {
  return words.subarray(HEADER_WORDS, DIRECTORY_WORDS);
}

/** Reads the slots that have changed, and unmaps what is not attached any more. */
function readSlots(known: Known): void {
  const { table, slots, sequences, regions } = known;
  const fresh: Region[] = [];
  let gone = false;
  for (let slot = 0; slot < slots; slot++) {
    const sequence = Atomics.load(table, slot);
    if (sequence === sequences[slot]) continue;
    sequences[slot] = sequence;
    const before = regions[slot];
    if (before !== undefined) {
      before.gone = true;
      before.pointer?.release();
      gone = true;
    }
    const at = slots + NUMBER_WORDS * slot;
    const address = loadNumber(table, at + 2 * ADDRESS);
    const bytes = loadNumber(table, at + 2 * BYTES);
    const key = loadNumber(table, at + 2 * KEY);
    const deviceAddress = loadNumber(table, at + 2 * DEVICE_ADDRESS);
    const whole = (sequence & 1) === 0 && Atomics.load(table, slot) === sequence;
    regions[slot] = undefined;
    if (!whole || bytes === 0) continue;
    const region = { address, bytes, key, deviceAddress, attached: undefined, pointer: undefined, gone: false };
    regions[slot] = region;
    fresh.push(region);
  }
  const left = gone ? known.byAddress.filter((region) => !region.gone) : known.byAddress;
  fresh.sort((a, b) => a.address - b.address);
  known.byAddress = merged(left, fresh);
}
