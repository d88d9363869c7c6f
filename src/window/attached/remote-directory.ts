/**
 * What is attached where, by requests: each rank keeps a table of its attachments in registered memory, and the others
 * read it by RDMA reads and keep a copy. The table's owner takes no part. Accesses to what is in the copy cost nothing
 * more; a read of the table waits for the device only.
 *
 * The words of a rank, 64 bits each, at the place that all learn when the window is made:
 *
 *   VERSION               another number after each change
 *   HEAD                  even, and another one after each change of the three words behind it; odd while they are
 *                         changed
 *   SLOTS, KEY, PLACE     how many slots the table has, and the region in which it is
 *   READERS + rank        1 once that rank has read the table; written by it, read here
 *   GONE + rank           another number each time that rank has taken something back; written by it, read here
 *
 * The table has a sequence number for each slot, and behind them four numbers for each slot: address, bytes (0: the
 * slot is free), key, address in the device's terms. A region stays in its slot while it is attached. The owner's
 * processor is the only writer of all these, and its stores are sequentially consistent, so the device sees them in the
 * order of
 *
 *   sequence := odd;   the four numbers;   sequence := even;   VERSION := another one
 *
 * Reading. A device reads the bytes of one RDMA read in no particular order, and need not begin reads in the order of
 * posting, so each waits for the answer to the one before:
 *
 *   VERSION: if it is that of the copy, the copy is right, and that is all
 *   HEAD: if it is another one than before, SLOTS, KEY, PLACE;   HEAD again, until it is even and has not changed
 *   all sequence numbers;   all slots;   all sequence numbers: the slots whose number is the same even one are the copy
 *
 * So a region that stays attached is found whatever else its owner changes at the time. No rank waits for another one,
 * except while the table moves. A key is used only if KEY and PLACE were seen to belong together: with a key that is
 * none, a read would break the connection. A table that was outgrown stays registered, and as it is, until the window
 * is freed, so a rank that still reads it finds what it was. VERSION had been read before, so the next look finds
 * another one. Tables double, so all of them take less than twice the last one.
 * Cost: one round trip if nothing has changed, five if something has, two more when the table has grown.
 *
 * Two slots of a copy never overlap: the numbers of the second look are all read after those of the first. Suppose that
 * the first look has seen a region that was attached where another one had been. Then that other one was gone before,
 * and the second look finds its slot changed, or the first look has found it free.
 *
 * When to read. What is not in the copy is looked up again, always: then it is attached, or it is an error. What is in
 * the copy may have been detached, and a rank must know that before an access: a request with a key that was taken back
 * breaks the connection. To ask each time would cost a round trip for each access. To forget the copy where an epoch
 * begins or ends is not enough: while others are in the middle of an epoch, it is right to detach what no rank
 * accesses, to attach other memory that got the same address, and to tell of it. So a rank that detaches tells all that
 * have a copy, by a write into their GONE word, and does not come back before the write is there. From then on,
 * whatever way the news takes, a rank that hears it finds another number in its GONE word than the one it had seen
 * before it read the table: one load for each access. (As in foMPI: Gerstenberger, Besta and Hoefler, SC '13.)
 *
 *   detach:   the slot, VERSION;   looks at READERS;   writes GONE at each reader, reads it back;   takes the key back
 *   reader:   READERS := 1, once;   token = GONE;   reads the table;   …   the copy is good while GONE = token
 *
 * No reader is forgotten: the read of VERSION is behind the write of READERS on the same connection. So the reader
 * finds the new VERSION, or the owner finds the reader (both store first and look second). The answer to a write says
 * that the device has it; a read behind the write says that memory has it. Hence the read behind GONE.
 *
 * A rank cannot know of an access that is under way while its region is detached. MPI forbids that, and a device ends
 * it by breaking the connection. Exclusive locks keep it away: `Window.detach` shares this rank's lock meanwhile. It
 * remains possible in all other epochs: those of shared locks too, since a rank that shares all locks need not come to
 * this part.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { RemoteRegion } from '../../transfer/requests/regions.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { Access, type Memory, type MemoryRegion } from '../../verbs/memory.ts';
import type { Attached, AttachedPlace, Directory, Listed } from './attachments.ts';
import { storeNumber } from './number-words.ts';
import { lookUp } from './region-list.ts';

const VERSION = 0;
const HEAD = 1;
const SLOTS = 2;
const KEY = 3;
const PLACE = 4;
/** On a line of their own: other ranks write them. */
const READERS = 8;

/** Numbers of a slot. */
const NUMBERS = 4;
const ADDRESS = 0;
const BYTES = 1;
const RKEY = 2;
const DEVICE_ADDRESS = 3;
/** Slots of the first table. */
const FIRST = 100;
/** Bytes that a slot takes, with its sequence number. */
const SLOT_BYTES = 8 * (1 + NUMBERS);

/** Looks at HEAD while the table moves before others are let run, and such breaks before the ranks are looked at. */
const LOOKS = 16;
const BREAKS = 256;

/** 64-bit words of a rank, for `size` ranks. */
export function directoryWords(size: number): number {
  return READERS + 2 * size;
}

/** What this rank knows of another's table. */
interface Known {
  enrolled: boolean;
  /** HEAD, and what it stands for. */
  head: number;
  slots: number;
  key: number;
  place: number;
  /** VERSION from before the copy was taken; not a number before the first one. */
  version: number;
  /** This rank's GONE word of that rank, from before as well. */
  token: number;
  /** By address. */
  copy: readonly Attached[];
}

/** Registered memory, as halves of words and as numbers. */
interface Registered {
  readonly memory: Memory;
  readonly region: MemoryRegion;
  readonly halves: Int32Array;
  readonly numbers: Float64Array;
}

export class RemoteDirectory implements Directory {
  readonly #comm: Communicator;
  readonly #requests: RequestTransfer;
  /** This rank's words, as halves. */
  readonly #words: Int32Array;
  readonly #wordOf: (rank: number, index: number) => RemoteWord;
  /** This rank's tables; the last one is in use. */
  readonly #tables: Registered[] = [];
  /** What is in which slot of it. */
  #slots: (Listed | undefined)[] = [];
  readonly #known: (Known | undefined)[] = [];
  /** Where reads come. */
  #landing: Registered | undefined;

  /** @param words this rank's `directoryWords`; @param wordOf one of a rank's */
  constructor(
    comm: Communicator,
    requests: RequestTransfer,
    words: Int32Array,
    wordOf: (rank: number, index: number) => RemoteWord,
  ) {
    this.#comm = comm;
    this.#requests = requests;
    this.#words = words;
    this.#wordOf = wordOf;
  }

  placeOf({ address, key, deviceAddress }: Listed): AttachedPlace {
    return { stripes: undefined, region: regionAt(address, key, deviceAddress) };
  }

  // ---- this rank's table --------------------------------------------------------------------------------------------

  /** Errors: `ERR_VERBS` (no memory for a larger table; nothing has changed). */
  add(own: Listed): void {
    let slot = this.#slots.indexOf(undefined);
    if (slot < 0) {
      slot = this.#slots.length;
      this.#move(this.#register(SLOT_BYTES * Math.max(FIRST, 2 * slot), Access.LOCAL_WRITE | Access.REMOTE_READ));
    }
    this.#fill(slot, own);
    this.#turn(VERSION);
  }

  /** Errors: `ERR_VERBS` (a reader cannot be told); the region can be found no more all the same. */
  remove(own: Listed): void {
    this.#fill(this.#slots.indexOf(own), undefined);
    this.#turn(VERSION);
    this.#finish(this.#tellReaders());
  }

  /** If that ends early, reads are perhaps on their way: what they come to is used no more, and stays. */
  #finish(steps: Generator<void, void>): void {
    try {
      this.#requests.finish(steps);
    } catch (error) {
      this.#landing = undefined;
      throw error;
    }
  }

  /** Another VERSION, or HEAD. */
  #turn(word: number): void {
    Atomics.add(this.#words, 2 * word, 1);
  }

  #fill(slot: number, own: Listed | undefined): void {
    this.#slots[slot] = own;
    const { halves } = this.#tables.at(-1)!;
    const first = this.#slots.length + NUMBERS * slot;
    Atomics.add(halves, 2 * slot, 1);
    const { address = 0, bytes = 0, key = 0, deviceAddress = 0 } = own ?? {};
    storeNumber(halves, 2 * (first + ADDRESS), address);
    storeNumber(halves, 2 * (first + BYTES), bytes);
    storeNumber(halves, 2 * (first + RKEY), key);
    storeNumber(halves, 2 * (first + DEVICE_ADDRESS), deviceAddress);
    Atomics.add(halves, 2 * slot, 1);
  }

  /** No rank reads the new table before HEAD says so. */
  #move(table: Registered): void {
    const before = this.#slots;
    this.#tables.push(table);
    this.#slots = new Array(Math.floor(table.memory.byteLength / SLOT_BYTES)).fill(undefined);
    for (const [slot, own] of before.entries()) this.#fill(slot, own);
    this.#turn(HEAD);
    storeNumber(this.#words, 2 * SLOTS, this.#slots.length);
    storeNumber(this.#words, 2 * KEY, table.region.rkey);
    storeNumber(this.#words, 2 * PLACE, table.region.address);
    this.#turn(HEAD);
  }

  /** To all readers at once. */
  *#tellReaders(): Generator<void, void> {
    const { rank: me, size } = this.#comm;
    const version = Atomics.load(this.#words, 2 * VERSION);
    const steps: Generator<void, void>[] = [];
    for (let rank = 0; rank < size; rank++) {
      if (Atomics.load(this.#words, 2 * (READERS + rank)) === 0) continue;
      const gone = this.#wordOf(rank, READERS + size + me);
      steps.push(this.#requests.remote.store(gone, version, 0), this.#read(gone, 1));
    }
    for (const step of steps) yield* step;
  }

  // ---- those of the others ------------------------------------------------------------------------------------------

  find(rank: number, low: number, high: number): Attached | undefined {
    const known = this.#known[rank];
    if (known !== undefined && known.token === this.#gone(rank)) {
      const attached = lookUp(known.copy, low, high);
      if (attached !== undefined) return attached;
    }
    return lookUp(this.#update(rank).copy, low, high);
  }

  regionsOf(rank: number): readonly Attached[] {
    return this.#known[rank]?.copy ?? [];
  }

  #gone(rank: number): number {
    return Atomics.load(this.#words, 2 * (READERS + this.#comm.size + rank));
  }

  #update(rank: number): Known {
    let known = this.#known[rank];
    if (known === undefined) {
      known = { enrolled: false, head: 0, slots: 0, key: 0, place: 0, version: Number.NaN, token: 0, copy: [] };
      this.#known[rank] = known;
    }
    this.#finish(this.#readTable(rank, known));
    return known;
  }

  *#readTable(rank: number, known: Known): Generator<void, void> {
    if (!known.enrolled) {
      yield* this.#requests.remote.store(this.#wordOf(rank, READERS + this.#comm.rank), 1, 0);
      known.enrolled = true;
    }
    const token = this.#gone(rank);
    const version = yield* this.#readWord(rank, VERSION);
    if (version !== known.version) {
      const head = yield* this.#readWord(rank, HEAD);
      if (head !== known.head) yield* this.#readHead(rank, known, head);
      known.copy = yield* this.#readSlots(rank, known);
      known.version = version;
    }
    known.token = token;
  }

  /** @param head as it was seen last */
  *#readHead(rank: number, known: Known, head: number): Generator<void, void> {
    for (let looks = 1, seen = head; ; looks++) {
      yield* this.#read(this.#wordOf(rank, SLOTS), 3);
      const [slots, key, place] = this.#landing!.numbers;
      const again = yield* this.#readWord(rank, HEAD);
      if (seen === again && (seen & 1) === 0) {
        Object.assign(known, { head: seen, slots, key, place });
        return;
      }
      seen = again;
      if (looks % LOOKS === 0) this.#letRun(looks / LOOKS);
    }
  }

  *#readSlots(rank: number, { slots, key, place }: Known): Generator<void, Attached[]> {
    if (slots === 0) return [];
    const sequences = { rank, rkey: key, address: place };
    yield* this.#read(sequences, slots);
    const before = this.#landing!.halves.slice(0, 2 * slots);
    yield* this.#read({ rank, rkey: key, address: place + 8 * slots }, NUMBERS * slots);
    const numbers = this.#landing!.numbers.slice(0, NUMBERS * slots);
    yield* this.#read(sequences, slots);
    const after = this.#landing!.halves;
    const copy: Attached[] = [];
    for (let slot = 0; slot < slots; slot++) {
      const sequence = before[2 * slot];
      const bytes = numbers[NUMBERS * slot + BYTES];
      if (bytes === 0 || (sequence & 1) !== 0 || sequence !== after[2 * slot]) continue;
      const address = numbers[NUMBERS * slot + ADDRESS];
      const region = regionAt(address, numbers[NUMBERS * slot + RKEY], numbers[NUMBERS * slot + DEVICE_ADDRESS]);
      copy.push({ address, bytes, part: undefined, stripes: undefined, region, memory: undefined });
    }
    return copy.sort((a, b) => a.address - b.address);
  }

  *#readWord(rank: number, word: number): Generator<void, number> {
    yield* this.#read(this.#wordOf(rank, word), 1);
    return this.#landing!.halves[0];
  }

  /** Reads words to the beginning of the landing. */
  #read({ rank, rkey, address }: RemoteWord, words: number): Generator<void, void> {
    const { region } = this.#land(8 * words);
    return this.#requests.remote.read(rank, 0, region, 0, 8 * words, { rkey, address });
  }

  /** The owner moves its table in some microseconds, unless it was interrupted in the middle of that, or ended. */
  #letRun(breaks: number): void {
    Atomics.wait(sleeper, 0, 0, 0.05);
    if (breaks % BREAKS !== 0) return;
    const failure = this.#comm.members.findFailure();
    if (failure !== undefined) throw failure;
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  /** Nothing is on its way to the landing when it is asked for more bytes than it has. */
  #land(bytes: number): Registered {
    const old = this.#landing;
    if (old !== undefined && old.memory.byteLength >= bytes) return old;
    this.#landing = this.#register(Math.max(SLOT_BYTES * FIRST, bytes), Access.LOCAL_WRITE);
    unregister(old);
    return this.#landing;
  }

  #register(bytes: number, access: number): Registered {
    const { context, pd } = this.#comm.job;
    const memory = context.allocateMemory(bytes);
    try {
      const region = pd.registerMemory(memory, 0, memory.byteLength, access);
      return { memory, region, halves: new Int32Array(memory.buffer), numbers: new Float64Array(memory.buffer) };
    } catch (error) {
      memory.free();
      throw error;
    }
  }

  release(): void {
    for (const table of this.#tables) unregister(table);
    unregister(this.#landing);
  }
}

function unregister(registered: Registered | undefined): void {
  registered?.region.deregister();
  registered?.memory.free();
}

/**
 * So that the displacement, which is an address of the owner's, is the place in it. Absent for what is not registered,
 * since no requests reach it: a thread of its owner serves it (transfer/served/user-memory.ts).
 */
function regionAt(address: number, rkey: number, deviceAddress: number): RemoteRegion | undefined {
  return rkey === 0 ? undefined : { rkey, address: deviceAddress - address };
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
