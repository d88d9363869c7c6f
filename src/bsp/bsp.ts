/** A BSP computation: the twenty primitives of BSPlib (Hill et al. 1998; docs/guide/bsp.md has the names in C). */
import type { Communicator } from '../collective/communicator.ts';
import { bytesOf, checkBuffer, type TypedArray } from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { byteLengthOf } from '../intrinsics.ts';
import { readWait, type WaitOptions } from '../wait/operation.ts';
import { checkPid, checkPlace, isCount, readPart } from './bsp-arguments.ts';
import type { Core } from './computation.ts';
import type { DatagramStatistics } from './delivery/datagram-counts.ts';
import type { PacingStatistics } from './delivery/pacing-counts.ts';
import type { Part } from './element-words.ts';
import { endSuperstep, endSuperstepSync } from './ending.ts';
import { oneLevel } from './model/machine-files.ts';
import type { BspMachine } from './model/machines.ts';
import { type BspReport, reportOf } from './model/report.ts';
import type { RepeatedDirectPut, RepeatedPut } from './repeated.ts';

/** A message that has come. */
export interface Message {
  /** Its tag: as many bytes as `setTagsize` said when it was sent. */
  readonly tag: Uint8Array;
  readonly payload: Uint8Array;
}

/** What `Bsp.statistics` returns. */
export interface BspStatistics {
  /** Supersteps that have ended. */
  readonly supersteps: number;
  /** Supersteps whose counts have come by multicast; at process 0, those whose counts it has multicast. */
  readonly multicasts: number;
  /** How often this process had to ask for counts that had not come; at process 0, how often it was asked. */
  readonly nacks: number;
  /** With `pacing`: what it has done in supersteps of all processes. */
  readonly pacing?: PacingStatistics;
  /** With `delivery: 'datagrams'`: what has become of them in supersteps of all processes. */
  readonly datagrams?: DatagramStatistics;
}

/**
 * One process of a BSP computation. Between two calls of `sync` lies a superstep: what is put, got and sent in it takes
 * effect when it ends, at all processes together.
 *
 * In a superstep's end, all gets read first; then puts are written. Puts of one process to one place are written in the
 * order of their calls; between processes there is no order. If the destination of a get lies in a variable that others
 * put to, it is undefined which of them is seen.
 *
 * Calls that begin something (`put`, `get`, `send`, …) never wait. Errors of all calls: `ERR_RMA_SYNC` while a `sync`
 * is under way, `ERR_COMM` after `end`, and the error that broke the computation, if one did.
 */
export class Bsp {
  /** The number of this process, 0 … `nprocs` − 1 (`bsp_pid`). */
  readonly pid: number;
  /** The number of processes (`bsp_nprocs`). */
  readonly nprocs: number;
  /** The processes as ranks, for windows and collectives beside the computation. */
  readonly comm: Communicator;
  readonly #core: Core;
  readonly #part: Part;
  readonly #repeatedPut: RepeatedPut;
  readonly #repeatedDirectPut: RepeatedDirectPut;
  readonly #began: number;

  /** @internal Made by `begin`. */
  constructor(core: Core) {
    this.#core = core;
    this.#part = core.part;
    this.#repeatedPut = core.repeatedPut;
    this.#repeatedDirectPut = core.repeatedDirectPut;
    this.comm = core.comm;
    this.pid = core.comm.rank;
    this.nprocs = core.comm.size;
    this.#began = core.comm.now();
  }

  /** Seconds since the computation began, by this process's clock (`bsp_time`); on a modelled fabric, virtual ones. */
  time(): number {
    return (this.comm.now() - this.#began) / 1e6;
  }

  /** The number of supersteps that have ended. */
  get superstep(): number {
    return this.#core.step;
  }

  /** Bytes of memory that this process has for what it puts, sends and gets. It grows with the largest superstep. */
  get bufferBytes(): number {
    return this.#core.bytes;
  }

  /**
   * What was counted at this process since the computation began. `multicasts` and `nacks` are 0 unless the counts are
   * exchanged by multicast (`counts`).
   */
  statistics(): BspStatistics {
    const { multicast, pacing, datagrams } = this.#core.statistics ?? {};
    const { multicasts = 0, nacks = 0 } = multicast ?? {};
    return {
      ...{ supersteps: this.#core.step, multicasts, nacks },
      ...(pacing !== undefined && { pacing }),
      ...(datagrams !== undefined && { datagrams }),
    };
  }

  /**
   * Ends the superstep, and waits until all processes have done so and everything that concerns this one is in place
   * (`bsp_sync`). If a timeout or an abort signal ends the wait, the next call of `sync` continues the same one.
   *
   * Errors: `ERR_COLLECTIVE` at all processes, if they have not registered and removed the same variables in the same
   * order, have set different tag sizes, or one calls `end` instead; `ERR_BUFFER` if a variable or the destination of a
   * get has lost its memory, there and then at all others; `ERR_VERBS` if that is what `hpput` or `hpget` names, and
   * its device moves it; `ERR_SIZE`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`. After any but the last, the computation
   * cannot go on.
   *
   * Cost: a barrier, and what is moved: where processes share memory, one copy of everything at its destination (`put`
   * has made the other one); otherwise chunks of 16 KiB, and a copy, or none, at the destination.
   */
  sync(options?: WaitOptions): Promise<void> {
    return endSuperstep('bsp.sync', this.#core, options);
  }

  /** Ends the superstep and blocks this thread until everything is in place; otherwise the same as `sync`. */
  syncSync(options?: WaitOptions): void {
    endSuperstepSync(this.comm.job, 'bsp.sync', this.#core, options);
  }

  /**
   * Registers a variable, so that the processes can put to and get from each other's (`bsp_push_reg`). All processes
   * call it, in the same order; it takes effect with the next `sync`. The variable may have another length and another
   * type at each, and is `null` at one that has none. While it is registered, its memory must stay where it is.
   *
   * A process names the variable by its own array, or another view that begins at the same place. Where several
   * registrations begin at one place, an array that is registered itself names its own, and another view the newest.
   * Errors: `ERR_BUFFER`, `ERR_SIZE` (2 GiB or more), `TypeError`.
   */
  pushReg(variable: TypedArray | null): void {
    this.#core.check('bsp.pushReg');
    this.#core.registrations.push(variable);
  }

  /**
   * Removes a registration that was not removed yet, the newest of this array, else of its place (`bsp_pop_reg`). All
   * processes call it, in the same order; it takes effect with the next `sync`, before what is registered in the same
   * superstep.
   * Errors: `ERR_RMA_ATTACH` if it is not registered, `TypeError`.
   */
  popReg(variable: TypedArray | null): void {
    this.#core.check('bsp.popReg');
    this.#core.registrations.pop(variable);
  }

  /**
   * Copies elements into the variable of a process (`bsp_put`). They are read now, so `source` may be changed at once,
   * and written when the superstep ends.
   * @param pid the process
   * @param source of the type of `variable`; if either is a `Uint8Array`, bytes are copied
   * @param variable this process's array, or a view of it, that was registered with the other's
   * @param offset where to begin in the variable, in its elements
   * @param count how many elements of `source`; the rest of it if absent
   * @param start where to begin in `source`, in its elements
   * Errors: `ERR_RANK`, `ERR_RMA_ATTACH` (not registered), `ERR_RMA_RANGE` (at the other process), `ERR_TYPE`,
   * `ERR_BUFFER`, `ERR_SIZE` (no memory). Nothing is put then.
   * Cost: a copy of the elements, and some 30 ns; 6 ns for a double after another one from the same array to the same
   * variable of the same process, where memory is shared.
   */
  put(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset = 0,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    if (this.#repeatedPut.again(pid, source, variable, offset, count, start)) return;
    const like = this.#core.isLast(pid, source, variable) ? variable : undefined;
    const slot = this.#core.slotOf('bsp.put', variable);
    const part = readPart(this.#part, 'bsp.put', 'source', source, start, count, slot);
    checkPlace('bsp.put', pid, this.nprocs, slot, offset, part.count * part.width);
    if (part.count > 0) this.#core.put(pid, slot, offset * slot.width, part, like);
  }

  /**
   * The same without the promise that `source` may be changed at once (`bsp_hpput`): source and destination must stay
   * as they are until the superstep has ended, and the elements may be in the variable before that. They are not copied
   * on the way where the variable can be reached: in memory from `comm.allocMem` where processes share memory, by RDMA
   * from 1 KiB on where `delivery` is `zero-copy` or `auto`. Otherwise this is `put`.
   * Cost where memory is shared: a copy, and some 30 ns; 3 ns for a double after another one, as of `put`.
   */
  hpput(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset = 0,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    if (this.#repeatedDirectPut.again(pid, source, variable, offset, count, start)) return;
    const like = this.#core.isLast(pid, source, variable) ? variable : undefined;
    const slot = this.#core.slotOf('bsp.hpput', variable);
    const part = readPart(this.#part, 'bsp.hpput', 'source', source, start, count, slot);
    checkPlace('bsp.hpput', pid, this.nprocs, slot, offset, part.count * part.width);
    if (part.count > 0) this.#core.hpput(pid, slot, offset * slot.width, part, like);
  }

  /**
   * Copies elements from the variable of a process (`bsp_get`). They are read when the superstep ends, before any put
   * is written, and are in `destination` after `sync`.
   * @param pid the process
   * @param variable this process's array, or a view of it, that was registered with the other's
   * @param offset where to begin in the variable, in its elements
   * @param destination of the type of `variable`; if either is a `Uint8Array`, bytes are copied
   * @param count how many elements of `destination`; the rest of it if absent
   * @param start where to begin in `destination`, in its elements
   * Errors: as of `put`. Cost: 12 bytes to the process, and a copy of the elements there and here.
   */
  get(
    pid: number,
    variable: TypedArray,
    offset: number,
    destination: TypedArray,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    const slot = this.#core.named('bsp.get', 'destination', pid, destination, start, count, variable, offset);
    const part = this.#part;
    if (part.count > 0) this.#core.outgoing.get(pid, slot.id, offset * slot.width, part);
  }

  /**
   * The same without the promise of when it reads (`bsp_hpget`): variable and destination must stay as they are until
   * the superstep has ended. Not copied on the way where `hpput` is not.
   */
  hpget(
    pid: number,
    variable: TypedArray,
    offset: number,
    destination: TypedArray,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    const slot = this.#core.slotOf('bsp.hpget', variable);
    const part = readPart(this.#part, 'bsp.hpget', 'destination', destination, start, count, slot);
    checkPlace('bsp.hpget', pid, this.nprocs, slot, offset, part.count * part.width);
    if (part.count > 0) this.#core.hpget(pid, slot, offset * slot.width, part);
  }

  /**
   * Sets the bytes of the tags of messages that are sent after the next `sync` (`bsp_set_tagsize`; 0 in the beginning).
   * All processes set the same; the last call of a superstep counts.
   * @returns the size in force
   * Errors: `TypeError`, `RangeError`.
   */
  setTagsize(bytes: number): number {
    const core = this.#core;
    core.check('bsp.setTagsize');
    if (typeof bytes !== 'number') {
      throw argumentTypeError(`bsp.setTagsize: the size must be a number of bytes, not ${show(bytes)}`);
    }
    if (!isCount(bytes) || bytes >= 2 ** 31) {
      throw argumentRangeError(
        `bsp.setTagsize: the size must be a whole number of bytes from 0 to 2^31 - 1, not ${show(bytes)}`,
      );
    }
    core.nextTagSize = bytes;
    return core.tagSize;
  }

  /**
   * Sends a message to a process (`bsp_send`). It is copied now, and is in the queue there after the next `sync`. There
   * is no order among messages of several processes; those of one process come in the order of their calls.
   * @param tag as many bytes as the tags of this superstep have; `null` if that is 0
   * @param payload any array; `null` for none
   * Errors: `ERR_RANK`, `ERR_TRUNCATE` (the tag's size), `ERR_BUFFER`, `ERR_SIZE`.
   */
  send(pid: number, tag: TypedArray | null, payload: TypedArray | null): void {
    const core = this.#core;
    core.check('bsp.send');
    checkPid('bsp.send', pid, this.nprocs);
    if (tag !== null) checkBuffer('bsp.send', 'tag', tag);
    if (payload !== null) checkBuffer('bsp.send', 'payload', payload);
    const tagBytes = tag === null ? 0 : byteLengthOf(tag);
    if (tagBytes !== core.tagSize) {
      throw new RmaError(
        'ERR_TRUNCATE',
        `bsp.send: the tag has ${tagBytes} bytes, but tags have ${core.tagSize} in this superstep; ` +
          'setTagsize() sets it for the next one',
      );
    }
    const payloadBytes = payload === null ? 0 : byteLengthOf(payload);
    if (payloadBytes + tagBytes >= 2 ** 31) {
      throw argumentRangeError(
        `bsp.send: a message of ${payloadBytes} bytes is too long; send parts of it`,
        'ERR_SIZE',
      );
    }
    core.outgoing.send(pid, payload ?? NOTHING, payloadBytes, tag ?? undefined, tagBytes);
  }

  /** How many messages are in the queue, and the bytes of their payloads (`bsp_qsize`). */
  qsize(): { readonly messages: number; readonly bytes: number } {
    this.#core.check('bsp.qsize');
    const { count, bytes } = this.#core.queue;
    return { messages: count, bytes };
  }

  /**
   * Copies the tag of the first message in the queue (`bsp_get_tag`).
   * @param tag any array with room for it; `null` if only the length is of interest
   * @returns the bytes of the message's payload; −1 if the queue is empty
   * Errors: `ERR_TRUNCATE` if the array is too short, `ERR_BUFFER`.
   */
  getTag(tag: TypedArray | null = null): number {
    this.#core.check('bsp.getTag');
    if (tag !== null) checkBuffer('bsp.getTag', 'tag', tag);
    const { queue } = this.#core;
    if (queue.count > 0 && tag !== null) {
      const { tag: from } = queue.first;
      if (byteLengthOf(tag) < from.length) {
        throw new RmaError(
          'ERR_TRUNCATE',
          `bsp.getTag: the tag has ${from.length} bytes, but the array only ${byteLengthOf(tag)}`,
        );
      }
      bytesOf(tag).set(from);
    }
    return queue.firstBytes;
  }

  /**
   * Copies the payload of the first message to an array and takes the message from the queue (`bsp_move`). What does
   * not fit is dropped.
   * @returns the bytes that were copied
   * Errors: `ERR_RMA_RANGE` if the queue is empty, `ERR_BUFFER`.
   */
  move(payload: TypedArray): number {
    this.#core.check('bsp.move');
    checkBuffer('bsp.move', 'payload', payload);
    const { queue } = this.#core;
    if (queue.count === 0) {
      throw new RmaError('ERR_RMA_RANGE', 'bsp.move: the queue has no message; qsize() tells how many there are');
    }
    const from = queue.first.payload;
    const bytes = Math.min(from.length, byteLengthOf(payload));
    bytesOf(payload).set(from.subarray(0, bytes));
    queue.drop();
    return bytes;
  }

  /**
   * Takes the first message from the queue without copying it (`bsp_hpmove`). The views are good until the next `sync`.
   * A payload begins at a multiple of 8 bytes of its buffer.
   * @returns `undefined` if the queue is empty
   */
  hpmove(): Message | undefined {
    this.#core.check('bsp.hpmove');
    const { queue } = this.#core;
    if (queue.count === 0) return undefined;
    const { first } = queue;
    queue.drop();
    return first;
  }

  /**
   * What the supersteps that have ended were: work, h-relation, time, and which process computed longest; with a
   * machine (from `probe` of `onesided/bsp/model`, or a table), what the model predicts beside it. Collective; the
   * computation was begun with `{ report: true }`. `reportTable` and `reportPicture` show it.
   * Errors: `ERR_ARG` if it was not, or the machine is none, or has two levels; those of `Communicator.allgather`.
   * Cost: 56 bytes a superstep from each process to all others.
   */
  async report(machine?: BspMachine, options?: WaitOptions): Promise<BspReport> {
    const { ledger } = this.#core;
    if (ledger?.keeps !== true) {
      throw new RmaError('ERR_ARG', 'bsp.report: this computation keeps no report; begin it with { report: true }');
    }
    const mine = ledger.numbers;
    const all = new Float64Array(mine.length * this.nprocs);
    await this.comm.allgather(mine, all, options);
    const each = Array.from({ length: this.nprocs }, (_, pid) =>
      all.subarray(mine.length * pid, mine.length * (pid + 1)),
    );
    return reportOf(each, machine === undefined ? undefined : oneLevel('bsp.report: the machine', machine));
  }

  /** @internal Supersteps of `steps` are not in the report. */
  async unreported<T>(steps: () => Promise<T>): Promise<T> {
    const reportAgain = this.#core.ledger?.leaveOut();
    try {
      return await steps();
    } finally {
      reportAgain?.();
    }
  }

  /**
   * Ends all processes with an exit code, after a message on standard error (`bsp_abort`). Does not return; otherwise
   * like `Communicator.abort`.
   */
  abort(code: number, message?: string): never {
    if (message !== undefined) console.error(`process ${this.pid} of ${this.nprocs}: ${message}`);
    return this.comm.abort(code);
  }

  /**
   * Ends the computation (`bsp_end`): a last `sync`, after which nothing of it can be used. All processes call it. The
   * job goes on.
   * Errors: those of `sync`; if its wait ends early (`ERR_RMA_TIMEOUT`, an abort), call it again.
   */
  async end(options?: WaitOptions): Promise<void> {
    if (this.#core.isEnded) return;
    const wait = readWait('bsp.end', options);
    try {
      this.#core.beginSync('bsp.end', true);
      await this.comm.members.wait(this.#core.await(), wait);
      await this.comm.collective(this.#farewell(), wait).promise;
      this.#core.close();
    } finally {
      this.#forgetUnlessEnding();
    }
  }

  /** Ends the computation and blocks this thread until all processes have done so; otherwise the same as `end`. */
  endSync(options?: WaitOptions): void {
    if (this.#core.isEnded) return;
    this.comm.job.refuseSync('bsp.end');
    const wait = readWait('bsp.end', options);
    try {
      this.#core.beginSync('bsp.end', true);
      this.comm.members.waitSync(this.#core.await(), wait);
      this.comm.collectiveSync(this.#farewell(), wait);
      this.#core.close();
    } finally {
      this.#forgetUnlessEnding();
    }
  }

  /** Calls `end`, so that `await using` ends the computation. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  /** Others may read this process's chunks until they have come to the end, too. */
  #farewell() {
    return { name: 'bsp.end', steps: () => this.comm.farewell() } as const;
  }

  /** Without an agreement, others may still read this process's chunks: then they stay until the communicator ends. */
  #forgetUnlessEnding(): void {
    if (!this.#core.isEnding && this.#core.unit?.isEnding !== true) this.#core.end();
  }
}

const NOTHING = new Uint8Array(0);
