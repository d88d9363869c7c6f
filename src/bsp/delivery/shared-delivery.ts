/**
 * Delivery through memory that all processes load and store: each process packs into chunks of its own, and reads the
 * chunks of the others.
 *
 * In the words of each process stands an entry for each other one. It says where the lists of chunks begin that the
 * other one has for the process. A `sync`:
 *
 *     1. writes its entries, at those processes only that it has something for, and enters a barrier;
 *     2. after the barrier, looks through the entries that others have written here: their number says of which
 *        superstep they are. It reads for their gets, tells each by a word where the results are, and then places puts;
 *     3. waits for the results of its own gets.
 *
 * With nothing to deliver that is a barrier, and a look at one word for each process.
 *
 * Why no process sees the wrong thing, with superstep n and a reader and a writer:
 * - Entries and chunks of superstep n are written before the writer enters barrier n, and read after the reader has
 *   left it. The barrier orders the two (collective/word-barrier.ts). So does one of messages or requests instead: a
 *   rank sends after it has written, and the emulator publishes what it moves behind all stores before, and takes it in
 *   before all loads after.
 * - There are two of everything, for even and odd supersteps. The writer writes over what was of superstep n in
 *   superstep n + 2, after it has left barrier n + 1. The reader has entered that barrier after it had read everything
 *   of superstep n: its `sync` reads before it ends. So no second barrier is needed behind the reading.
 * - The owner of the variable writes results in its `sync` n, after barrier n; then their place; then, with sequential
 *   consistency, the number n in a word that only this owner writes. A process that waits loads that word likewise,
 *   then the rest. Results are written over in superstep n + 2, too, and read before barrier n + 1.
 * - A variable is read and written by its owner only, between its barrier and the end of its `sync`: gets first, of all
 *   processes, then puts. All processes that ask for it had said so before the barrier.
 * - `hpput` and `hpget` reach for a variable in superstep n + 1, while its owner may not have ended its `sync` n yet.
 *   The owner's entries of superstep n, written before barrier n, say whether it has anything to do there. If so, its
 *   word DONE says when that is done: the owner stores n with sequential consistency, and a process that loads n sees
 *   all of it.
 */

import type { Communicator } from '../../collective/communicator.ts';
import { type BarrierState, barrierWords, makeBarrier } from '../../collective/word-barrier.ts';
import type { Block } from '../../message/word-blocks.ts';
import { NO_NUMBERS } from '../alike.ts';
import { HEAD_WORDS, Stream } from '../chunks.ts';
import { Variables } from '../variables.ts';
import type { Delivery, Superstep } from './delivery.ts';
import { DirectShared } from './direct-shared.ts';
import { beginningOf, OwnRegions, PeerRegions, SharedChunks, TABLE_WORDS } from './shared-regions.ts';

/** An entry: superstep, first chunks of puts, gets and numbers (−1: none), how many numbers. */
const ENTRY_WORDS = 8;
const STEP = 0;
const PUTS = 1;
const GETS = 2;
const NUMBERS = 3;
const COUNT = 4;
/** Where results are: superstep, first chunk. */
const RESULT_WORDS = 2;

/**
 * Words of each process: barrier, entries and results for even and odd supersteps, table of regions, and DONE: the last
 * superstep in which something came, when all of it is in place.
 */
export function sharedWords(nprocs: number): number {
  return barrierWords(nprocs) + 2 * nprocs * (ENTRY_WORDS + RESULT_WORDS) + TABLE_WORDS + 1;
}

/** A barrier that is not made of this delivery's words. */
export interface OwnBarrier {
  readonly state: BarrierState;
  readonly release: () => void;
}

export class SharedDelivery implements Delivery {
  readonly variables: Variables;
  readonly direct: DirectShared;
  readonly #comm: Communicator;
  readonly #barrier: BarrierState;
  readonly #release: (() => void) | undefined;
  readonly #words: (pid: number) => Int32Array;
  readonly #block: Block;
  readonly #own: Int32Array;
  readonly #known: (Int32Array | undefined)[] = [];
  readonly #entries: number;
  readonly #results: number;
  readonly #table: number;
  readonly #regions: OwnRegions;
  readonly #pools: readonly [SharedChunks, SharedChunks];
  readonly #peers: (PeerRegions | undefined)[] = [];
  /** Processes that have something for this one in the superstep under way. */
  readonly #sources: number[] = [];
  /** Those whose results are waited for. */
  readonly #awaited: number[] = [];
  readonly #answers: Stream;
  readonly #numbersOut: Stream;
  /** The superstep under way, as words say it: 32 bits, and 0 again after the last of them. */
  #step = 0;
  #superstep!: Superstep;
  #numbers: Float64Array = NO_NUMBERS;
  /** The barrier of the superstep has been left, and what came has been placed. */
  #placed = false;

  /**
   * @param block this process's words, zeroed
   * @param words maps those of a process
   * @param own ends supersteps; absent: the barrier of words
   */
  constructor(
    comm: Communicator,
    block: Block,
    words: (pid: number) => Int32Array,
    traceId: string,
    own: OwnBarrier | undefined,
  ) {
    const { rank, size, job, group, traits } = comm;
    this.#comm = comm;
    this.variables = new Variables(comm, false);
    this.direct = new DirectShared(comm, this.variables, (pid) => this.#hasEnded(pid));
    this.#words = words;
    this.#block = block;
    this.#own = block.words;
    this.#entries = barrierWords(size);
    this.#results = this.#entries + 2 * size * ENTRY_WORDS;
    this.#table = this.#results + 2 * size * RESULT_WORDS;
    const signals = comm.signals(traceId);
    const wordsOf = (pid: number): Int32Array => this.#wordsOf(pid);
    this.#barrier = own?.state ?? makeBarrier(job.context, rank, group.worldRanks, traits, wordsOf, signals);
    this.#release = own?.release;
    this.#regions = new OwnRegions(comm, block.words.subarray(this.#table));
    this.#pools = [new SharedChunks(this.#regions), new SharedChunks(this.#regions)];
    this.#answers = new Stream(() => this.pool);
    this.#numbersOut = new Stream(() => this.pool);
  }

  get pool(): SharedChunks {
    return this.#pools[this.#step & 1];
  }

  get bytes(): number {
    return this.#regions.bytes;
  }

  begin(superstep: Superstep, numbers: Float64Array): void {
    this.#superstep = superstep;
    this.#numbers = numbers;
    this.#placed = false;
    this.#announce();
    this.#barrier.begin();
  }

  advance(): boolean {
    if (!this.#placed) {
      if (!this.#barrier.advance()) return false;
      this.#deliver();
      this.#placed = true;
    }
    while (this.#awaited.length > 0) {
      if (!this.#take(this.#awaited[this.#awaited.length - 1])) return false;
      this.#awaited.pop();
    }
    if (this.#sources.length > 0) Atomics.store(this.#own, this.#table + TABLE_WORDS, this.#next);
    // When the next superstep's barrier is left, others have read what they read in this superstep; what they read in
    // the one before, they have read already.
    this.#step = this.#next;
    this.direct.next();
    this.pool.recycle();
    this.#answers.reset();
    this.#numbersOut.reset();
    return true;
  }

  /** Stands in words for "of this superstep". */
  get #next(): number {
    return (this.#step + 1) | 0;
  }

  waitsFor(): string {
    return this.#placed ? `process ${this.#awaited.at(-1)}, for results of gets` : this.#barrier.waitsFor();
  }

  close(): void {
    for (const peer of this.#peers) peer?.close();
    this.#regions.close();
    this.#release?.();
    this.#comm.giveBack(this.#block);
  }

  /** Writes the entries of this process, at those that it has something for. */
  #announce(): void {
    const { puts, gets, isEmpty } = this.#superstep.outgoing;
    if (isEmpty && this.#numbers.length === 0) return;
    const { size } = this.#comm;
    let numbers = -1;
    if (this.#numbers.length > 0) {
      this.#numbersOut.writeWords(new Int32Array(this.#numbers.buffer, 0, 2 * this.#numbers.length));
      this.#numbersOut.finish();
      numbers = this.#numbersOut.chunks[0].id;
    }
    for (let pid = 0; pid < size; pid++) {
      const put = finished(puts[pid]);
      const get = finished(gets[pid]);
      if (put < 0 && get < 0 && numbers < 0) continue;
      if (get >= 0) this.#awaited.push(pid);
      const words = this.#wordsOf(pid);
      const at = this.#entryOf(this.#comm.rank);
      words[at + PUTS] = put;
      words[at + GETS] = get;
      words[at + NUMBERS] = numbers;
      words[at + COUNT] = this.#numbers.length;
      words[at + STEP] = this.#next;
    }
  }

  /** Everything of the others that is for this process: all of it was written before the barrier. */
  #deliver(): void {
    const { size } = this.#comm;
    const own = this.#own;
    const sources = this.#sources;
    if (sources.length > 0) sources.length = 0;
    let speak = this.#numbers.length > 0;
    for (let pid = 0, at = this.#entryOf(0); pid < size; pid++, at += ENTRY_WORDS) {
      if (own[at + STEP] !== this.#next) continue;
      sources.push(pid);
      if (own[at + NUMBERS] >= 0) speak = true;
    }
    this.#superstep.compare(speak ? this.#readNumbers() : undefined);
    if (sources.length === 0) return;
    for (const pid of sources) {
      const first = own[this.#entryOf(pid) + GETS];
      if (first >= 0) this.#serve(pid, first);
    }
    const { placement } = this.#superstep;
    // Each begins with another one, so that they do not all read from the same process.
    const me = sources.findIndex((pid) => pid >= this.#comm.rank);
    for (let k = 0; k < sources.length; k++) {
      const pid = sources[(k + Math.max(me, 0)) % sources.length];
      const first = own[this.#entryOf(pid) + PUTS];
      this.#read(pid, first, (i32, u8, from, to) => placement.place(pid, i32, u8, from, to));
    }
  }

  /** By process, what each does that all must do. */
  #readNumbers(): Float64Array[] {
    const all = new Array<Float64Array>(this.#comm.size).fill(NO_NUMBERS);
    for (const pid of this.#sources) {
      const at = this.#entryOf(pid);
      const words = new Int32Array(2 * this.#own[at + COUNT]);
      let filled = 0;
      this.#read(pid, this.#own[at + NUMBERS], (i32, _, from, to) => {
        words.set(i32.subarray(from, to), filled);
        filled += to - from;
      });
      all[pid] = new Float64Array(words.buffer);
    }
    return all;
  }

  /** Reads for the gets of a process, and tells it where the results are. */
  #serve(pid: number, first: number): void {
    const { placement } = this.#superstep;
    const answers = this.#answers;
    answers.reset();
    this.#read(pid, first, (i32, _, from, to) => placement.serve(pid, answers, i32, from, to));
    const words = this.#wordsOf(pid);
    const at = this.#resultOf(this.#comm.rank);
    words[at + 1] = finished(answers);
    Atomics.store(words, at, this.#next);
    if (pid !== this.#comm.rank) this.#comm.job.context.wake(this.#comm.group.worldRanks[pid]);
  }

  /** Takes the results of a process, if they are there. */
  #take(pid: number): boolean {
    const at = this.#resultOf(pid);
    if (Atomics.load(this.#own, at) !== this.#next) return false;
    const results = this.#superstep.outgoing.results[pid]!;
    this.#read(pid, this.#own[at + 1], (i32, u8, from, to) => results.take(i32, u8, from, to));
    return true;
  }

  /** The records in a list of chunks of a process. */
  #read(pid: number, first: number, body: (i32: Int32Array, u8: Uint8Array, from: number, to: number) => void): void {
    for (let chunk = first; chunk >= 0; ) {
      const { i32, u8 } = this.#viewsOf(pid, chunk);
      const at = beginningOf(chunk);
      body(i32, u8, at + HEAD_WORDS, at + i32[at]);
      chunk = i32[at + 1];
    }
  }

  /** Whether nothing of the superstep before is still to be done at a process. */
  #hasEnded(pid: number): boolean {
    const words = this.#wordsOf(pid);
    const { size } = this.#comm;
    const first = this.#entries + ENTRY_WORDS * (((this.#step - 1) & 1) * size);
    for (let source = 0; source < size; source++) {
      if (words[first + ENTRY_WORDS * source + STEP] !== this.#step) continue;
      return Atomics.load(words, this.#table + TABLE_WORDS) === this.#step;
    }
    return true;
  }

  #viewsOf(pid: number, chunk: number): { readonly i32: Int32Array; readonly u8: Uint8Array } {
    if (pid === this.#comm.rank) return this.#regions.viewsOf(chunk);
    let peer = this.#peers[pid];
    if (peer === undefined) {
      peer = new PeerRegions(this.#comm, pid, this.#wordsOf(pid).subarray(this.#table));
      this.#peers[pid] = peer;
    }
    return peer.viewsOf(chunk);
  }

  #wordsOf(pid: number): Int32Array {
    let words = this.#known[pid];
    if (words === undefined) {
      words = pid === this.#comm.rank ? this.#own : this.#words(pid);
      this.#known[pid] = words;
    }
    return words;
  }

  /** Where the entry of a process is, at any other: for the superstep under way. */
  #entryOf(pid: number): number {
    return this.#entries + ENTRY_WORDS * ((this.#step & 1) * this.#comm.size + pid);
  }

  #resultOf(pid: number): number {
    return this.#results + RESULT_WORDS * ((this.#step & 1) * this.#comm.size + pid);
  }
}

/** The first chunk of a list, whose chunks say how long they are; −1 if it has none. */
function finished(stream: Stream | undefined): number {
  if (stream === undefined || stream.chunks.length === 0) return -1;
  stream.finish();
  return stream.chunks[0].id;
}
