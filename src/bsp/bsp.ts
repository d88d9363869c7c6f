/** A BSP computation: the twenty primitives of BSPlib (Hill et al. 1998; docs/guide/bsp.md has the names in C). */
import type { Communicator } from '../comm/communicator.ts';
import { readWait, type WaitOptions } from '../comm/operation.ts';
import { bytesOf, checkBuffer, TYPE_SIZES, type TypedArray, typeCodeOf } from '../datatype/base.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { byteLengthOf, lengthOf, tagOf } from '../intrinsics.ts';
import type { Core } from './core.ts';
import type { BspMachine } from './model/machines.ts';
import { type BspReport, reportOf } from './model/report.ts';
import type { Slot } from './registrations.ts';

/** A message that has come. */
export interface Message {
  /** Its tag: as many bytes as `setTagsize` said when it was sent. */
  readonly tag: Uint8Array;
  readonly payload: Uint8Array;
}

const BYTES = 'Uint8Array';

/** Whether it can be a place or a number of elements. Mostly, it is a small integer. */
function isCount(value: number): boolean {
  return ((value | 0) === value && value >= 0) || (Number.isSafeInteger(value) && value >= 0);
}

/**
 * One process of a BSP computation. Between two calls of `sync` lies a superstep: what is put, got and sent in it takes
 * effect when it ends, at all processes together.
 *
 * In a superstep's end, all gets read first; then puts are written. Puts of one process to one place are written in the
 * order of their calls; between processes there is no order. Where the destination of a get lies in a variable that
 * others put to, it is undefined which of them is seen.
 *
 * Calls that begin something (`put`, `get`, `send`, …) never wait. Errors of all calls: `ERR_RMA_SYNC` while a `sync`
 * is under way, `ERR_COMM` after `end`, and the error that broke the computation, if one did.
 */
/** What `Bsp.statistics` returns. */
export interface BspStatistics {
  /** Supersteps that have ended. */
  readonly supersteps: number;
  /** Supersteps whose counts have come by multicast; at process 0, those whose counts it has multicast. */
  readonly multicasts: number;
  /** How often this process had to ask for counts that had not come; at process 0, how often it was asked. */
  readonly nacks: number;
}

export class Bsp {
  /** The number of this process, 0 … `nprocs` − 1 (`bsp_pid`). */
  readonly pid: number;
  /** The number of processes (`bsp_nprocs`). */
  readonly nprocs: number;
  /** The processes as ranks, for windows and collectives beside the computation. */
  readonly comm: Communicator;
  readonly #core: Core;
  readonly #began: number;
  /** The variable that was named last. */
  #last: TypedArray | undefined;
  #lastSlot: Slot | undefined;
  #lastStep = -1;

  /** @internal Made by `begin`. */
  constructor(core: Core) {
    this.#core = core;
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
    const { multicasts = 0, nacks = 0 } = this.#core.statistics ?? {};
    return { supersteps: this.#core.step, multicasts, nacks };
  }

  /**
   * Ends the superstep, and waits until all processes have done so and everything that concerns this one is in place
   * (`bsp_sync`). If a timeout or an abort signal ends the wait, the next call of `sync` continues the same one.
   *
   * Errors: `ERR_COLLECTIVE` at all processes, if they have not registered and removed the same variables in the same
   * order, have set different tag sizes, or one calls `end` instead; `ERR_BUFFER` if a variable or the destination of a
   * get has lost its memory; `ERR_SIZE`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`. After any but the last, the
   * computation cannot go on.
   *
   * Cost: a barrier, and what is moved: where processes share memory, one copy of everything at its destination (`put`
   * has made the other one); otherwise messages of 16 KiB.
   */
  sync(options?: WaitOptions): Promise<void> {
    try {
      const wait = readWait('bsp.sync', options);
      this.#core.beginSync('bsp.sync', false);
      return this.comm.job.progress.wait(this.#core.await(), wait);
    } catch (error) {
      return Promise.reject(this.comm.job.explain(error));
    }
  }

  /** Ends the superstep and blocks this thread until everything is in place; otherwise the same as `sync`. */
  syncSync(options?: WaitOptions): void {
    this.comm.job.refuseSync('bsp.sync');
    const wait = readWait('bsp.sync', options);
    const core = this.#core;
    core.beginSync('bsp.sync', false);
    this.comm.job.progress.waitSync(core.await(), wait);
  }

  /**
   * Registers a variable, so that the processes can put to and get from each other's (`bsp_push_reg`). All processes
   * call it, in the same order; it takes effect with the next `sync`. The variable may have another length and another
   * type at each, and is `null` at one that has none. While it is registered, its memory must stay where it is.
   *
   * A process names the variable by its own array, or another view that begins at the same place. A place that is
   * registered again stands for the newest registration until that is removed.
   * Errors: `ERR_BUFFER`, `ERR_SIZE` (2 GiB or more), `TypeError`.
   */
  pushReg(variable: TypedArray | null): void {
    this.#core.check('bsp.pushReg');
    this.#core.registrations.push(variable);
  }

  /**
   * Removes the newest registration of a variable that was not removed yet (`bsp_pop_reg`). All processes call it, in
   * the same order; it takes effect with the next `sync`, before what is registered in the same superstep.
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
   * Cost: a copy of the elements, and some 10 ns.
   */
  put(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset = 0,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    const slot = this.#slotOf('bsp.put', variable);
    const tag = tagOf(source);
    const length = tag === undefined ? 0 : lengthOf(source);
    const n = count ?? length - start;
    const width = tag === slot.tag ? slot.width : this.#widthOf('bsp.put', 'source', source, tag, slot);
    if (!isCount(start) || !isCount(n) || start + n > length) throw partError('bsp.put', 'source', source, start, n);
    this.#check('bsp.put', pid, slot, offset, n * width);
    if (n > 0) this.#core.outgoing.put(pid, slot.id, offset * slot.width, source, start, n, width, tag!);
  }

  /**
   * The same without the promise that `source` may be changed at once (`bsp_hpput`): source and destination must stay
   * as they are until the superstep has ended. Today it is as quick as `put`.
   */
  hpput(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset = 0,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    this.put(pid, source, variable, offset, count, start);
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
    const slot = this.#slotOf('bsp.get', variable);
    const tag = tagOf(destination);
    const length = tag === undefined ? 0 : lengthOf(destination);
    const n = count ?? length - start;
    const width = tag === slot.tag ? slot.width : this.#widthOf('bsp.get', 'destination', destination, tag, slot);
    if (!isCount(start) || !isCount(n) || start + n > length) {
      throw partError('bsp.get', 'destination', destination, start, n);
    }
    this.#check('bsp.get', pid, slot, offset, n * width);
    this.#core.outgoing.get(pid, slot.id, offset * slot.width, destination, start * width, n * width);
  }

  /**
   * The same without the promise of what is read (`bsp_hpget`): variable and destination must stay as they are until
   * the superstep has ended. Today it is as quick as `get`.
   */
  hpget(
    pid: number,
    variable: TypedArray,
    offset: number,
    destination: TypedArray,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    this.get(pid, variable, offset, destination, count, start);
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
    this.#checkPid('bsp.send', pid);
    if (tag !== null) checkBuffer('bsp.send', 'tag', tag);
    if (payload !== null) checkBuffer('bsp.send', 'payload', payload);
    const tagBytes = tag === null ? 0 : byteLengthOf(tag);
    if (tagBytes !== core.tagSize) {
      throw new RmaError(
        'ERR_TRUNCATE',
        `bsp.send: the tag has ${tagBytes} bytes, but tags have ${core.tagSize} in this superstep; setTagsize() sets it for the next one`,
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
   * What the supersteps that have ended were: work, h-relation, time, and who computed longest; with a machine (from
   * `probe` of `onesided/bsp/model`, or a table), what the model predicts beside it. Collective; the computation was
   * begun with `{ report: true }`. `reportTable` and `reportPicture` show it.
   * Errors: `ERR_ARG` if it was not; those of `Communicator.allgather`.
   * Cost: 32 bytes a superstep from each process to all others.
   */
  async report(machine?: BspMachine, options?: WaitOptions): Promise<BspReport> {
    const { ledger } = this.#core;
    if (ledger === undefined) {
      throw new RmaError('ERR_ARG', 'bsp.report: nothing was kept; begin the computation with { report: true }');
    }
    const mine = ledger.numbers;
    const all = new Float64Array(mine.length * this.nprocs);
    await this.comm.allgather(mine, all, options);
    const each = Array.from({ length: this.nprocs }, (_, pid) =>
      all.subarray(mine.length * pid, mine.length * (pid + 1)),
    );
    return reportOf(each, machine);
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
   * Errors: those of `sync`.
   */
  async end(options?: WaitOptions): Promise<void> {
    if (this.#core.isEnded) return;
    const wait = readWait('bsp.end', options);
    try {
      this.#core.beginSync('bsp.end', true);
      await this.comm.job.progress.wait(this.#core.await(), wait);
      await this.comm.collective(this.#farewell(), wait).promise;
      this.#core.close();
    } finally {
      this.#forget();
    }
  }

  /** Ends the computation and blocks this thread until all processes have done so; otherwise the same as `end`. */
  endSync(options?: WaitOptions): void {
    if (this.#core.isEnded) return;
    this.comm.job.refuseSync('bsp.end');
    const wait = readWait('bsp.end', options);
    try {
      this.#core.beginSync('bsp.end', true);
      this.comm.job.progress.waitSync(this.#core.await(), wait);
      this.comm.collectiveSync(this.#farewell(), wait);
      this.#core.close();
    } finally {
      this.#forget();
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
  #forget(): void {
    this.#last = this.#lastSlot = undefined;
    this.#core.end();
  }

  /** The variable that an array names; mostly, the same as in the last call. */
  #slotOf(call: string, variable: TypedArray): Slot {
    const core = this.#core;
    core.check(call);
    if (variable === this.#last && core.step === this.#lastStep) return this.#lastSlot!;
    const slot = core.registrations.find(call, variable);
    this.#last = variable;
    this.#lastSlot = slot;
    this.#lastStep = core.step;
    return slot;
  }

  /** Bytes of an element of an array that is not of the variable's type. Errors: `ERR_TYPE`, `ERR_BUFFER`. */
  #widthOf(call: string, name: string, array: TypedArray, tag: string | undefined, slot: Slot): number {
    if (tag === undefined || (tag !== BYTES && slot.tag !== BYTES)) throw typeError(call, name, array, slot);
    return TYPE_SIZES[typeCodeOf(array)];
  }

  /** @param offset in elements of this process's variable */
  #check(call: string, pid: number, slot: Slot, offset: number, bytes: number): void {
    if ((pid | 0) !== pid || pid < 0 || pid >= this.nprocs) this.#checkPid(call, pid);
    if (!isCount(offset)) throw argumentRangeError(`${call}: the offset must be a whole number from 0 on`, 'ERR_DISP');
    const { lengths } = slot;
    const length = typeof lengths === 'number' ? lengths : lengths[pid];
    const at = offset * slot.width;
    if (at + bytes <= length) return;
    throw new RmaError(
      'ERR_RMA_RANGE',
      length < 0
        ? `${call}: process ${pid} has registered null, not a variable`
        : `${call}: bytes ${at} to ${at + bytes - 1} are beyond the variable at process ${pid}, which has ${length} bytes`,
    );
  }

  #checkPid(call: string, pid: number): void {
    if (typeof pid !== 'number') {
      throw argumentTypeError(`${call}: ${show(pid)} is not the number of a process`, 'ERR_RANK');
    }
    if (!Number.isInteger(pid) || pid < 0 || pid >= this.nprocs) {
      throw argumentRangeError(`${call}: ${pid} is not the number of a process (0 … ${this.nprocs - 1})`, 'ERR_RANK');
    }
  }
}

const NOTHING = new Uint8Array(0);

function typeError(call: string, name: string, array: TypedArray, slot: Slot): Error {
  const tag = tagOf(array);
  if (tag === undefined)
    return argumentTypeError(`${call}: ${name} must be a typed array, not ${show(array)}`, 'ERR_BUFFER');
  return argumentTypeError(
    `${call}: ${name} is a ${tag}, the variable a ${slot.tag}; use arrays of one type, or a Uint8Array to copy bytes`,
    'ERR_TYPE',
  );
}

function partError(call: string, name: string, array: TypedArray, start: number, count: number): Error {
  return argumentRangeError(
    `${call}: ${show(count)} elements from element ${show(start)} on are not part of ${name}, which has ${lengthOf(array)}`,
    'ERR_BUFFER',
  );
}
