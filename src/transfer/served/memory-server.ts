/**
 * Requests on another rank's private memory, served by a thread in the owner's process (native/server.cc, which has the
 * other side and the argument why no wake-up is lost). Atomic operations go this way, and puts and gets where processes
 * may not be attached to.
 *
 * They stand in shared memory of the owner: a line with the bell, then one slot for each rank of the job, then lock
 * stripes. A slot is written by its rank and, while STATE is POSTED, by the thread. A rank has one request under way at
 * a time in each, because it waits for the answer.
 */

import { RmaError } from '../../errors.ts';
import type { Job } from '../../job/job.ts';
import { Members } from '../../job/members.ts';
import type { Block } from '../../message/word-blocks.ts';
import type { Native, Server } from '../../native.ts';
import { STRIPE_WORDS, Stripes } from '../loads/stripes.ts';

/** Words of the first line. */
const BELL = 0;
const SLEEPING = 1;
const LINE_WORDS = 32;
/** Words of a slot. */
const STATE = 0;
const KIND = 1;
const OP = 2;
const TYPE = 3;
const RUNS = 4;
const FLAGS = 5;
/** Values of STATE. */
const POSTED = 1;
const REFUSED = 3;
const WANTS_RESULT = 1;

/** What can be asked for. */
export const Kind = Object.freeze({ ACCUMULATE: 0, COMPARE_AND_SWAP: 1, PUT: 2, GET: 3 });

const MAX_RUNS = 256;
const DATA_BYTES = 8192;
const RUNS_AT = 128;
const DATA_AT = RUNS_AT + 16 * MAX_RUNS;
const SLOT_BYTES = DATA_AT + DATA_BYTES;

/** Words that a rank shares with `size` askers, and the stripes of its memory behind them. */
function serverWords(size: number): number {
  return stripesAt(size) + STRIPE_WORDS;
}

function stripesAt(size: number): number {
  return LINE_WORDS + (size * SLOT_BYTES) / 4;
}

const servers = new WeakMap<Job, OwnServer>();

/** This rank's thread, as long as a window needs it. */
export class OwnServer {
  readonly block: Block;
  readonly #server: Server;
  readonly #job: Job;
  #users = 0;

  /** The one of this job, which is started if there is none; to be released. */
  static acquire(job: Job, native: Native): OwnServer {
    let own = servers.get(job);
    if (own === undefined) {
      own = new OwnServer(job, native);
      servers.set(job, own);
    }
    own.#users++;
    return own;
  }

  private constructor(job: Job, native: Native) {
    this.#job = job;
    this.block = job.blocks.allocate(serverWords(job.size));
    try {
      this.#server = new native.Server(this.block.words, job.size);
    } catch (error) {
      this.block.free();
      throw error;
    }
  }

  /** Those that the thread takes for memory at `address`. */
  stripes(address: number): Stripes {
    const at = stripesAt(this.#job.size);
    return new Stripes(this.block.words.subarray(at, at + STRIPE_WORDS), address, this.#job.everyone);
  }

  add(memory: ArrayBufferView): number {
    return this.#server.add(memory);
  }

  remove(number: number): void {
    this.#server.remove(number);
  }

  /** No rank asks any more on behalf of the window that has acquired it. */
  release(): void {
    if (--this.#users > 0) return;
    servers.delete(this.#job);
    this.#server.close();
    this.block.free();
  }
}

/** Looks at the answer before the asker sleeps: about the time that a thread takes which is awake. */
const SPIN = 400;
/** Bound of one sleep in milliseconds; after each, the ranks' processes are looked at. */
const SLICE_MS = 100;

/** Asks one owner. Collects pieces until a slot is full, then posts it and waits for the answer. */
export class Asker {
  readonly #native: Native;
  readonly #owner: number;
  /** It alone. */
  readonly #owners: Members;
  readonly #words: Int32Array;
  readonly #slot: number;
  readonly #runs: Float64Array;
  readonly #data: Uint8Array;
  #count = 0;
  #bytes = 0;
  /** Where what is given back goes, or undefined. */
  #sink: Uint8Array | undefined;
  #sinkAt = 0;

  /** @param owner world rank, for messages */
  constructor(job: Job, native: Native, owner: number, map: (words: number) => Int32Array) {
    this.#native = native;
    this.#owner = owner;
    this.#owners = new Members(job, [owner]);
    this.#words = map(serverWords(job.size));
    const at = 4 * LINE_WORDS + job.rank * SLOT_BYTES;
    const { buffer, byteOffset } = this.#words;
    this.#slot = at / 4;
    this.#runs = new Float64Array(buffer, byteOffset + at + RUNS_AT, 2 * MAX_RUNS);
    this.#data = new Uint8Array(buffer, byteOffset + at + DATA_AT, DATA_BYTES);
  }

  /** @param sink gets what was there, piece after piece, if given */
  begin(kind: number, op: number, type: number, sink?: Uint8Array): void {
    const words = this.#words;
    // An error has left the last request under way: it must not be overwritten.
    if (Atomics.load(words, this.#slot + STATE) === POSTED) this.#wait();
    words[this.#slot + KIND] = kind;
    words[this.#slot + OP] = op;
    words[this.#slot + TYPE] = type;
    words[this.#slot + FLAGS] = sink === undefined ? 0 : WANTS_RESULT;
    this.#sink = sink;
    this.#sinkAt = 0;
    this.#count = 0;
    this.#bytes = 0;
  }

  /**
   * One piece of memory over there, in slots that hold whole elements: their sizes divide the slot's.
   * @param from bytes to be sent along; absent for what is only fetched
   */
  piece(address: number, bytes: number, from: Uint8Array | undefined, fromAt: number): void {
    for (let done = 0; done < bytes; ) {
      if (this.#count === MAX_RUNS || this.#bytes === DATA_BYTES) this.#post();
      const n = Math.min(bytes - done, DATA_BYTES - this.#bytes);
      this.#runs[2 * this.#count] = address + done;
      this.#runs[2 * this.#count + 1] = n;
      this.#count++;
      if (from !== undefined) this.#data.set(from.subarray(fromAt + done, fromAt + done + n), this.#bytes);
      this.#bytes += n;
      done += n;
    }
  }

  /** Posts the rest. When it returns, everything is done over there, and the sink is filled. */
  end(): void {
    if (this.#count > 0) this.#post();
    this.#sink = undefined;
  }

  /** One element at `address`. @returns the previous one's bytes, until the next request */
  compareAndSwap(address: number, type: number, compare: Uint8Array, replacement: Uint8Array): Uint8Array {
    this.begin(Kind.COMPARE_AND_SWAP, 0, type);
    this.#data.set(compare, 0);
    this.#data.set(replacement, compare.length);
    this.#runs[0] = address;
    this.#runs[1] = compare.length;
    this.#count = 1;
    this.#bytes = compare.length;
    this.#post();
    return this.#data.subarray(0, compare.length);
  }

  #post(): void {
    const words = this.#words;
    words[this.#slot + RUNS] = this.#count;
    Atomics.store(words, this.#slot + STATE, POSTED);
    Atomics.add(words, BELL, 1);
    if (Atomics.load(words, SLEEPING) !== 0) this.#native.futexWake(words, BELL, 1);
    this.#wait();
    if (Atomics.load(words, this.#slot + STATE) === REFUSED) {
      throw new RmaError(
        'ERR_VERBS',
        `rank ${this.#owner} refused access to its memory at ${this.#runs[0]}, which is not, or is no ` +
          'longer, part of a window',
      );
    }
    if (this.#sink !== undefined) {
      this.#sink.set(this.#data.subarray(0, this.#bytes), this.#sinkAt);
      this.#sinkAt += this.#bytes;
    }
    this.#count = 0;
    this.#bytes = 0;
  }

  #wait(): void {
    const words = this.#words;
    const state = this.#slot + STATE;
    for (let i = 0; i < SPIN; i++) if (Atomics.load(words, state) !== POSTED) return;
    for (;;) {
      this.#native.futexWait(words, state, POSTED, SLICE_MS);
      if (Atomics.load(words, state) !== POSTED) return;
      const failure = this.#owners.findFailure();
      if (failure !== undefined) throw failure;
    }
  }
}
