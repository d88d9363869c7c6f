/**
 * Zero-copy receive (BSP-IB §3.2): the receiver's device reads data straight into its variables.
 *
 * Puts are packed into chunks of data alone, which are registered, and what belongs where goes into a list of its own:
 *
 *     data    DATA, key, address (two words)   where the data of the entries behind it lie, one after the other
 *     entry   slot, byte of the variable, bytes
 *
 * When the superstep ends, the lists are sent, as chunks. The receiver posts an RDMA read for as many entries as its
 * device can scatter to, in the same Latin square as chunks are sent in. It says DONE when all it has read from a
 * process is in place; until then that process keeps its data. So a superstep takes a round trip and a message longer
 * than with packed puts, and the receiver's processor copies nothing. Where a request has one entry only, each put is a
 * read.
 *
 * The paper's lists name the receiver's memory by key and address. These name the variable by its number, as packed
 * puts do: 12 bytes instead of 16, and the receiver checks what others say before its device writes.
 *
 * Order. Two puts of one process to one place must be written in the order of their calls, but a device may write the
 * entries of a request, and those of two reads, in any order. So puts of a process to a variable go this way as long as
 * each lies wholly before, or wholly behind, all that were put before it. The first one that does not goes packed, and
 * so does everything after it in the superstep, to the same process. The receiver places packed puts when all that the
 * list names is in place (both come by one link, the list first). Two variables of the receiver may share memory; their
 * numbers do not say so. Then the receiver reads entry by entry, each with a fence behind those before.
 *
 * Memory: data and lists of what a process puts in its largest superstep, in chunks of 16 KiB that it keeps until the
 * end; buffers for lists are those of chunks (links.ts).
 */
import type { Communicator } from '../../collective/communicator.ts';
import { Fifo } from '../../fifo.ts';
import { SendFlag } from '../../verbs/queue-pair.ts';
import { CHUNK_BYTES, type Chunk, type ChunkPool, HEAD_WORDS, Stream } from '../chunks.ts';
import { type Part, packBytes, packElements } from '../element-words.ts';
import type { Route } from '../outgoing.ts';
import type { Placement } from '../placement.ts';
import type { Slot } from '../slot.ts';
import { atPid, isReadInto } from '../variables.ts';
import type { Rdma } from './carrier.ts';
import type { Buffer } from './carrier-user.ts';
import { type Links, RDMA } from './links.ts';
import type { OwnRegions } from './shared-regions.ts';

/** The first word of a record that says where data are; entries begin with the number of a variable, 0 or more. */
const DATA = -1;
const DATA_WORDS = 4;
const ENTRY_WORDS = 3;
/** A put is cut rather than leave so many bytes of a chunk unused. */
const LEAST_PIECE = 1024;
/** Reads from one process that are posted before it is another one's turn. */
const TURN = 4;
/**
 * Bytes that are being read at a time: two chunks, so that the next one is on its way when one has come, but each
 * process mostly reads from another one.
 */
const MOST_BYTES = 2 * CHUNK_BYTES;
const HALF = 2 ** 32;

/** Decides which puts go this way. */
export interface Chooser {
  /** Whether those of the superstep that begins do. */
  choose(): boolean;
  /**
   * What a superstep was like: how many puts this process had for others, of how many bytes together; whether they went
   * this way; how long its `sync` took.
   */
  learn(puts: number, bytes: number, wasRead: boolean, microseconds: number): void;
}

/** What this process puts to another one in a superstep. */
class Lane {
  readonly list: Stream;
  step = -1;
  isOpen = false;
  /** The chunk of data that is being filled, and how many bytes of it are. */
  chunk: Chunk | undefined;
  filled = CHUNK_BYTES;
  /** By variable: the superstep of its last put, and between which bytes its puts lie. */
  readonly #steps: number[] = [];
  readonly #lows: number[] = [];
  readonly #highs: number[] = [];

  constructor(list: Stream) {
    this.list = list;
  }

  begin(step: number, isOpen: boolean): void {
    this.step = step;
    this.isOpen = isOpen;
    this.chunk = undefined;
    this.filled = CHUNK_BYTES;
    this.list.reset();
  }

  /** Whether a put lies before or behind all earlier ones; if so, it counts as one of them from now on. */
  isBeside(slot: number, at: number, bytes: number): boolean {
    const end = at + bytes;
    if (this.#steps[slot] !== this.step) {
      this.#steps[slot] = this.step;
      this.#lows[slot] = at;
      this.#highs[slot] = end;
      return true;
    }
    if (at >= this.#highs[slot]) this.#highs[slot] = end;
    else if (end <= this.#lows[slot]) this.#lows[slot] = at;
    else return false;
    return true;
  }
}

/** A list that has come, from the first entry on whose read was not posted yet. */
interface List {
  readonly buffer: Buffer;
  at: number;
  readonly end: number;
  readonly isLast: boolean;
}

/** What this process reads from another one in a superstep. */
class Reading {
  readonly lists = new Fifo<List>();
  isOver = true;
  /** Where the data of the next entry are. */
  rkey = 0;
  address = 0;
}

export class ZeroCopy implements Route {
  readonly #comm: Communicator;
  readonly #links: Links;
  readonly #regions: OwnRegions;
  readonly #chooser: Chooser;
  readonly #pool: ChunkPool;
  readonly #done: (pid: number) => void;
  readonly #lanes: (Lane | undefined)[] = [];
  readonly #readings: (Reading | undefined)[] = [];
  sent = 0;
  /** Processes that this one still reads from. */
  reading = 0;
  /** Bytes that are being read; and the process whose turn is next, by how many places it is before this one. */
  #underWay = 0;
  #turn = 1;
  #step = 0;
  /** In the superstep under way: whether puts go this way; and all puts to other processes, packed ones too. */
  #isChosen: boolean;
  #puts = 0;
  #bytes = 0;

  /**
   * @param done tells a process that its data have been read
   */
  constructor(
    comm: Communicator,
    { links, regions }: Rdma,
    pool: ChunkPool,
    chooser: Chooser,
    done: (pid: number) => void,
  ) {
    this.#comm = comm;
    this.#links = links;
    this.#regions = regions;
    this.#pool = pool;
    this.#chooser = chooser;
    this.#isChosen = chooser.choose();
    this.#done = done;
  }

  // ---- sender -------------------------------------------------------------------------------------------------------

  /**
   * Takes a put, if it goes this way.
   * @param at byte of the variable
   * Errors: `ERR_SIZE`.
   */
  put(pid: number, slot: Slot, at: number, part: Part): boolean {
    const lane = this.#lanes[pid] ?? this.#makeLane(pid);
    if (lane.step !== this.#step) lane.begin(this.#step, this.#isChosen);
    if (pid === this.#comm.rank) return false;
    const bytes = part.count * part.width;
    this.#puts++;
    this.#bytes += bytes;
    if (!lane.isOpen) return false;
    if (!isReadInto(atPid(slot.keys, pid)) || !lane.isBeside(slot.id, at, bytes)) {
      lane.isOpen = false;
      return false;
    }
    this.#comm.job.processor.record(bytes + 4 * ENTRY_WORDS);
    const { list } = lane;
    if (CHUNK_BYTES - lane.filled >= bytes && list.end - list.pos >= ENTRY_WORDS) {
      this.#packAll(lane, slot.id, at, part, bytes);
    } else {
      const [before, chunk, filled] = [list.state(), lane.chunk, lane.filled];
      try {
        this.#packAll(lane, slot.id, at, part, bytes);
      } catch (error) {
        list.restore(before);
        lane.chunk = chunk;
        lane.filled = filled;
        throw error;
      }
    }
    this.sent += bytes;
    return true;
  }

  /** Errors: `ERR_SIZE`, with some of it written. */
  #packAll(lane: Lane, slot: number, at: number, part: Part, bytes: number): void {
    let done = 0;
    do {
      const left = bytes - done;
      const room = CHUNK_BYTES - lane.filled;
      if (room === 0 || (room < left && room < LEAST_PIECE)) this.#nextChunk(lane);
      done += this.#pack(lane, slot, at + done, part, done, left);
    } while (done < bytes);
  }

  /** The list for a process, complete; `undefined` if there is none. */
  listFor(pid: number): Stream | undefined {
    const lane = this.#lanes[pid];
    if (lane === undefined || lane.step !== this.#step || lane.list.chunks.length === 0) return undefined;
    lane.list.finish();
    return lane.list;
  }

  /** The superstep is over, and no process reads its data any more. @param microseconds as of `Chooser.learn` */
  next(microseconds: number): void {
    this.#chooser.learn(this.#puts, this.#bytes, this.#isChosen, microseconds);
    this.#puts = this.#bytes = 0;
    this.#isChosen = this.#chooser.choose();
    this.#turn = 1;
    this.#step++;
  }

  #makeLane(pid: number): Lane {
    const lane = new Lane(new Stream(() => this.#pool));
    this.#lanes[pid] = lane;
    return lane;
  }

  #nextChunk(lane: Lane): void {
    const chunk = this.#pool.take();
    lane.chunk = chunk;
    lane.filled = 0;
    const { rkey, address } = this.#regions.regionOf(chunk.id);
    const { list } = lane;
    if (list.end - list.pos < DATA_WORDS) list.grow();
    const { i32, pos } = list;
    const at = address + 4 * chunk.at;
    i32[pos] = DATA;
    i32[pos + 1] = rkey;
    i32[pos + 2] = at % HALF;
    i32[pos + 3] = Math.floor(at / HALF);
    list.pos = pos + DATA_WORDS;
  }

  /** As many of the `left` bytes of a part from byte `done` on as the chunk has room for. @returns how many */
  #pack(lane: Lane, slot: number, at: number, part: Part, done: number, left: number): number {
    const { list, filled } = lane;
    const { i32, u8, at: word } = lane.chunk!;
    const bytes = Math.min(left, CHUNK_BYTES - filled);
    const to = 4 * word + filled;
    if (done === 0 && bytes === left && filled % 4 === 0) packElements(i32, u8, to >> 2, part);
    else packBytes(u8, to, part.array, part.start * part.width + done, bytes);
    lane.filled += bytes;
    if (list.end - list.pos < ENTRY_WORDS) list.grow();
    const { pos } = list;
    list.i32[pos] = slot;
    list.i32[pos + 1] = at;
    list.i32[pos + 2] = bytes;
    list.pos = pos + ENTRY_WORDS;
    return bytes;
  }

  // ---- receiver -----------------------------------------------------------------------------------------------------

  /** A list, or a part of it, has come: it is read now, and its buffer given back. @param end in words */
  take(pid: number, buffer: Buffer, end: number, isLast: boolean): void {
    let reading = this.#readings[pid];
    if (reading === undefined) this.#readings[pid] = reading = new Reading();
    if (reading.isOver) {
      reading.isOver = false;
      this.reading++;
    }
    reading.lists.push({ buffer, at: HEAD_WORDS, end, isLast });
  }

  /** Whether the data of a process that come without copies are not in place yet. */
  isReading(pid: number): boolean {
    return this.#readings[pid]?.isOver === false;
  }

  /** Posts what can be posted. False if there was nothing. Errors: `ERR_BUFFER` (a variable has lost its memory). */
  read(placement: Placement): boolean {
    if (this.reading === 0) return false;
    const { rank, size } = this.#comm;
    let found = false;
    // Ends when a whole round has found nothing to read. Every process begins with the one before it.
    for (let idle = 1; idle < size && this.#underWay < MOST_BYTES; idle++) {
      const pid = (rank - this.#turn + size) % size;
      const reading = this.#readings[pid];
      if (reading !== undefined && reading.lists.length > 0 && this.#links.isReady(pid, RDMA, TURN)) {
        this.#takeTurn(pid, reading, placement);
        found = true;
        idle = 0;
      }
      this.#turn = (this.#turn % (size - 1)) + 1;
    }
    return found;
  }

  /** Posts reads for the next entries of a process: `TURN` of them, or a chunk's bytes. */
  #takeTurn(pid: number, reading: Reading, placement: Placement): void {
    let sum = 0;
    for (let reads = 1; ; reads++) {
      const { first, count, bytes, isEnd, isLast } = this.#nextRead(reading, placement);
      const list = reading.lists.first!;
      sum += bytes;
      const ends = reads === TURN || sum >= CHUNK_BYTES || (isEnd && reading.lists.length === 1);
      if (count > 0) {
        if (ends) this.#underWay += sum;
        const done = (): void => {
          this.#underWay -= sum;
          if (isLast) this.#over(pid, reading);
        };
        this.#post(pid, reading, list, first, count, ends ? done : undefined, placement);
        reading.address += bytes;
      }
      if (isEnd) {
        this.#links.release(list.buffer);
        reading.lists.shift();
      }
      if (ends) return;
    }
  }

  /** Entries of a list, from word `first` on, that one read takes. */
  #nextRead(reading: Reading, placement: Placement) {
    const list = reading.lists.first!;
    const { i32 } = list.buffer;
    if (i32[list.at] === DATA) {
      reading.rkey = i32[list.at + 1] >>> 0;
      reading.address = (i32[list.at + 2] >>> 0) + HALF * i32[list.at + 3];
      list.at += DATA_WORDS;
    }
    const first = list.at;
    const most = placement.registrations.overlap ? 1 : this.#links.entries;
    let bytes = 0;
    let count = 0;
    while (count < most && list.at < list.end && i32[list.at] !== DATA) {
      placement.checkRead(i32[list.at], i32[list.at + 1], i32[list.at + 2]);
      bytes += i32[list.at + 2];
      list.at += ENTRY_WORDS;
      count++;
    }
    placement.received += bytes;
    placement.calls += count;
    const isEnd = list.at >= list.end;
    return { first, count, bytes, isEnd, isLast: isEnd && list.isLast };
  }

  #post(
    pid: number,
    { rkey, address }: Reading,
    { buffer: { i32 } }: List,
    first: number,
    count: number,
    done: (() => void) | undefined,
    placement: Placement,
  ): void {
    const { slots, overlap } = placement.registrations;
    const fence = overlap ? SendFlag.FENCE : 0;
    this.#links.post(
      pid,
      RDMA,
      (qp, flags) => {
        qp.wrRdmaRead(0, flags | fence, rkey, address);
        for (let at = first; at < first + count * ENTRY_WORDS; at += ENTRY_WORDS) {
          const region = slots[i32[at]]!.reach!.region!;
          qp.wrAddSge(region.lkey, region.address + i32[at + 1], i32[at + 2]);
        }
      },
      done,
      true,
    );
  }

  /** Everything of a process has been read: completions come in the order of reads. */
  #over(pid: number, reading: Reading): void {
    reading.isOver = true;
    this.reading--;
    this.#done(pid);
  }
}
