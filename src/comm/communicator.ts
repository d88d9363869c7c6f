/** Communicators (MPI 4.1, chapters 6 and 7): who takes part, and the collective calls among them. */
import {
  bytesOf,
  checkBuffer,
  isTypedArrayConstructor,
  opAllowed,
  TYPE_NAMES,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base.ts';
import { isOp, Op } from '../datatype/op.ts';
import { argumentRangeError, argumentTypeError, RmaError, readList, show } from '../errors.ts';
import { type BarrierState, type BarrierTraits, barrierWords, makeBarrier, type Signals } from './barrier.ts';
import * as collectives from './collectives.ts';
import { Group, Rank, showRank } from './group.ts';
import type { Job } from './job.ts';
import { MessageBarrier } from './message-barrier.ts';
import { GeneratorOperation, type Operation, readWait, type WaitOptions } from './operation.ts';
import { DONE } from './progress.ts';
import { recordSignals, traceCommunicator } from './traced.ts';

/** The number of looks that a `Sync` barrier takes in its own tight loop before it waits like everything else. */
const SPIN = 2000;
/** From one communicator's spaces of messages to the next one's. */
const ID_STEP = 4;

/** `receive` from `Rank.NULL`. */
const NOTHING_TO_RECEIVE: Operation = { advance: () => true, describe: () => 'receive() from Rank.NULL' };

/** A wait for a barrier; `ended` once it is complete, or was given up. */
interface AwaitedBarrier extends Operation {
  ended: boolean;
}

/** Messages among the ranks that only one thing uses. */
export interface OwnChannel extends collectives.Channel {
  /** The number of its space, for `openChannel` of the next. */
  readonly space: number;
  /** Hands over messages as they arrive (`Messenger.listen`), instead of `receive`. */
  listen(listener: (source: number, message: Uint8Array) => void): () => void;
}

/** The ranks of the last world: all tasks of a job have the same list. */
let lastRanks: readonly number[] = [];

function allRanks(size: number): readonly number[] {
  if (lastRanks.length !== size) lastRanks = Object.freeze(Array.from({ length: size }, (_, rank) => rank));
  return lastRanks;
}

/** What all communicators of a job share at this rank. */
interface Shared {
  /** The highest context id in use. */
  lastId: number;
  /** Those that are not finalized. */
  readonly communicators: Set<Communicator>;
}

export class Communicator {
  readonly rank: number;
  readonly size: number;
  readonly group: Group;
  readonly name: string;
  /** @internal */
  readonly job: Job;
  /** @internal `central`: some rank shares its core with others, so that spinning is to be avoided. */
  traits: BarrierTraits = { central: false, plainFlags: false };
  readonly #channel: collectives.Channel;
  readonly #pointToPoint: collectives.Channel;
  /** For barriers where memory cannot be shared: they may be under way beside another collective. */
  readonly #barrierChannel: collectives.Channel;
  #barrier!: BarrierState;
  #barrierOperation!: Operation;
  /** The wait of a promise for a barrier: the next barrier comes after it. */
  #awaited: AwaitedBarrier | undefined;
  readonly #id: number;
  /** Collectives that were begun and are not complete, oldest first: they take place one after the other. */
  #turn: Operation[] = [];
  /** Receives that wait, by source, in the order of the calls: messages go to them in that order. */
  #receiving = new Map<number, Receive[]>();
  /** Set when a collective ended early: the ranks no longer agree on what comes next. */
  #broken: string | undefined;
  /** The `finalize` that is under way or was. */
  #leaving: Promise<void> | undefined;
  /** Windows that were made on it, for traces. */
  #traced = 0;
  /** What is to be given back when the communicator is finalized, oldest first. */
  #release = new Set<() => void>();
  #refusals = new Set<() => RmaError | undefined>();
  readonly #shared: Shared;

  /** @param contextId names the messages of collectives; point-to-point messages and those of barriers have the numbers after it */
  private constructor(job: Job, group: Group, contextId: number, shared: Shared, name: string) {
    this.job = job;
    this.group = group;
    this.rank = group.rank;
    this.size = group.size;
    this.name = name;
    this.#shared = shared;
    shared.communicators.add(this);
    this.#channel = makeChannel(job, group, contextId);
    this.#pointToPoint = makeChannel(job, group, contextId + 1);
    this.#barrierChannel = makeChannel(job, group, contextId + 2);
    this.#id = contextId;
    const { recorder } = job;
    if (recorder !== undefined) traceCommunicator(this, recorder, `${contextId}|${name}`, group.worldRanks);
  }

  /** @internal Whether `value` is a communicator; runs no code of the caller's. */
  static is(value: unknown): value is Communicator {
    return typeof value === 'object' && value !== null && #turn in value;
  }

  /** @internal The communicator of all ranks of a job. */
  static async world(job: Job, options: WaitOptions): Promise<Communicator> {
    const group = new Group(allRanks(job.size), job.rank);
    const world = new Communicator(job, group, ID_STEP, { lastId: ID_STEP, communicators: new Set() }, 'world');
    await job.progress.wait(
      {
        advance: () => job.complete,
        describe: () => `init() (waiting until all ${job.size} ranks have called it)`,
        isPolling: () => !job.context.capabilities.loadStore,
      },
      options,
    );
    await world.#collective(world.#setUp(), 'init', options).promise;
    return world;
  }

  /**
   * Completes when all ranks have entered it. After a deadline or an abort, the next `barrier` goes on with the one that was not completed.
   * Cost: ⌈log2 p⌉ stores to and loads from other ranks' memory.
   */
  barrier(options?: WaitOptions): Promise<void> {
    try {
      const refusal = this.#refusal('barrier');
      if (refusal) throw refusal;
      const wait = readWait('barrier', options);
      if (this.#turn.length > 0 || this.#awaited !== undefined) {
        return this.#collective(this.#barrierInTurn(), 'barrier', wait).promise;
      }
      this.#barrier.begin();
      if (wait === undefined && this.#barrier.advance()) return DONE;
      this.#awaited = this.#awaitBarrier();
      return this.job.progress.wait(this.#awaited, wait);
    } catch (error) {
      return Promise.reject(this.job.explain(error));
    }
  }

  barrierSync(options?: WaitOptions): void {
    this.job.refuseSync('barrier');
    const refusal = this.#refusal('barrier');
    if (refusal) throw refusal;
    const wait = readWait('barrier', options);
    if (this.#turn.length > 0 || this.#awaited !== undefined) {
      this.#collectiveSync(this.#barrierInTurn(), 'barrier', wait);
      return;
    }
    const barrier = this.#barrier;
    const spin = this.traits.central || this.job.recorder !== undefined ? 1 : SPIN;
    try {
      barrier.begin();
      for (let i = 0; i < spin; i++) if (barrier.advance()) return;
    } catch (error) {
      throw this.job.explain(error);
    }
    this.job.progress.waitSync(this.#barrierOperation, wait);
  }

  /**
   * Passes time on this rank's processor, as work would: virtual time where ranks are tasks, else real time, in which this thread does nothing but that.
   * @param microseconds at least 0
   * Errors: `TypeError`, `RangeError`.
   */
  compute(microseconds: number): Promise<void> {
    if (typeof microseconds !== 'number') {
      throw argumentTypeError(`compute: microseconds must be a number, not ${show(microseconds)}`);
    }
    if (!(microseconds >= 0 && microseconds < Number.POSITIVE_INFINITY)) {
      throw argumentRangeError(`compute: microseconds must be at least 0, not ${show(microseconds)}`);
    }
    const { tasks } = this.job;
    if (tasks !== undefined) return tasks.compute(microseconds);
    const end = performance.now() + microseconds / 1000;
    while (performance.now() < end);
    return DONE;
  }

  /** Microseconds since some time in the past: virtual ones where ranks are tasks, by this rank's processor. */
  now(): number {
    return this.job.tasks?.now() ?? performance.now() * 1000;
  }

  /** Copies `buffer` of rank `root` into everybody's `buffer`. ⌈log2 p⌉ steps. */
  async broadcast(buffer: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    await this.#collective(this.#broadcast(buffer, root), 'broadcast', options).promise;
  }

  broadcastSync(buffer: TypedArray, root: number, options?: WaitOptions): void {
    this.#collectiveSync(this.#broadcast(buffer, root), 'broadcast', options);
  }

  /** `receive[i]` becomes the combination of all ranks' `send[i]`, bit for bit the same on all ranks. ⌈log2 p⌉ exchanges. */
  async allreduce(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.#collective(this.#allreduce(send, receive, op), 'allreduce', options).promise;
  }

  allreduceSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.#collectiveSync(this.#allreduce(send, receive, op), 'allreduce', options);
  }

  /**
   * Combines all ranks' `send` and gives rank r the part of `counts[r]` elements that is r's (equal parts without `counts`).
   * ⌈log2 p⌉ exchanges, each of half as much as the one before.
   */
  async reduceScatter(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts?: readonly number[],
    options?: WaitOptions,
  ): Promise<void> {
    await this.#collective(this.#reduceScatter(send, receive, op, counts), 'reduceScatter', options).promise;
  }

  reduceScatterSync(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts?: readonly number[],
    options?: WaitOptions,
  ): void {
    this.#collectiveSync(this.#reduceScatter(send, receive, op, counts), 'reduceScatter', options);
  }

  /** `receive` holds p blocks of `send.length` elements, by rank. ⌈log2 p⌉ steps. */
  async allgather(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.#collective(this.#allgather(send, receive), 'allgather', options).promise;
  }

  allgatherSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.#collectiveSync(this.#allgather(send, receive), 'allgather', options);
  }

  /** Block r of `send` goes to rank r; block r of `receive` comes from rank r. p − 1 messages a rank. */
  async alltoall(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.#collective(this.#alltoall(send, receive), 'alltoall', options).promise;
  }

  alltoallSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.#collectiveSync(this.#alltoall(send, receive), 'alltoall', options);
  }

  /** As `alltoall`, with as many elements from and to each rank as the counts say; blocks lie one after the other. */
  async alltoallv(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
    options?: WaitOptions,
  ): Promise<void> {
    await this.#collective(this.#alltoallv(send, sendCounts, receive, receiveCounts), 'alltoallv', options).promise;
  }

  alltoallvSync(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
    options?: WaitOptions,
  ): void {
    this.#collectiveSync(this.#alltoallv(send, sendCounts, receive, receiveCounts), 'alltoallv', options);
  }

  /**
   * Starts a message to `target`. The contents are copied before this returns; it never waits. What finds no room at the target at once
   * leaves during later calls that wait.
   */
  send(buffer: TypedArray, target: number): void {
    const refusal = this.#refusal('send');
    if (refusal) throw refusal;
    checkBuffer('send', 'buffer', buffer);
    if (target === Rank.NULL) return;
    this.#checkRank('send', target);
    try {
      this.#pointToPoint.send(target, bytesOf(buffer));
    } catch (error) {
      throw this.job.explain(error);
    }
  }

  /** Waits for the next message from `source`, which must fill `buffer` exactly. From `Rank.NULL` nothing is received. */
  async receive(buffer: TypedArray, source: number, options?: WaitOptions): Promise<void> {
    const wait = readWait('receive', options);
    await this.job.progress.wait(this.#receive(buffer, source), wait);
  }

  receiveSync(buffer: TypedArray, source: number, options?: WaitOptions): void {
    this.job.refuseSync('receive');
    const wait = readWait('receive', options);
    this.job.progress.waitSync(this.#receive(buffer, source), wait);
  }

  /**
   * Collective: one communicator for each `color`, ranks ordered by `key`, then by rank here. A rank whose color is
   * `Rank.UNDEFINED` takes part and gets `undefined`. Errors: `ERR_ARG` for any other negative color.
   */
  async split(color: number, key = 0, options?: WaitOptions): Promise<Communicator | undefined> {
    const begun = this.#collective(this.#split(color, key), 'split', options);
    await begun.promise;
    return begun.operation.result;
  }

  splitSync(color: number, key = 0, options?: WaitOptions): Communicator | undefined {
    this.job.refuseSync('split');
    const wait = readWait('split', options);
    const operation = this.#begin(this.#split(color, key), 'split');
    this.job.progress.waitSync(operation, wait);
    return operation.result;
  }

  /** Collective: the same ranks, with messages and barriers of their own. */
  async dup(options?: WaitOptions): Promise<Communicator> {
    return (await this.split(0, this.rank, options))!;
  }

  dupSync(options?: WaitOptions): Communicator {
    return this.splitSync(0, this.rank, options)!;
  }

  /**
   * Memory from the library, zeroed, local: it can become part of a window by `Window.create`, or serve as a fast origin
   * (`MPI_Alloc_mem`).
   */
  allocMem<T extends TypedArray>(type: TypedArrayConstructor<T>, length: number): T {
    const refusal = this.#refusal('allocMem');
    if (refusal) throw refusal;
    if (!isTypedArrayConstructor(type)) {
      throw argumentTypeError(`allocMem: the first argument must be a typed-array constructor, not ${show(type)}`);
    }
    checkLength('allocMem', length);
    const bytes = Math.max(1, length * type.BYTES_PER_ELEMENT);
    try {
      return new type(this.job.allocateMemory(bytes).buffer, 0, length);
    } catch (cause) {
      throw new RmaError('ERR_SIZE', `allocMem: ${bytes} bytes of shared memory could not be had`, { cause });
    }
  }

  /** Gives memory from `allocMem` back; the array is detached where the platform can (`MPI_Free_mem`). */
  freeMem(array: TypedArray): void {
    const memory = typeCodeOf(array) < 0 ? undefined : this.job.libraryMemory.get(array.buffer);
    if (memory === undefined)
      throw argumentTypeError(`freeMem: ${show(array)} is not memory from allocMem`, 'ERR_BUFFER');
    this.job.origins.forget(array.buffer);
    try {
      memory.free();
    } catch (cause) {
      throw new RmaError('ERR_BUFFER', `freeMem: ${show(array)} is part of a window; free that first`, { cause });
    }
    this.job.libraryMemory.delete(array.buffer);
  }

  /**
   * Collective. On the world: leaves the job, after a last barrier; nothing of it can be used afterwards. On another communicator:
   * gives its resources back (`MPI_Comm_free`). If a rank has failed, the call fails too, but what this rank holds is released all the same.
   */
  async finalize(options?: WaitOptions): Promise<void> {
    if (this.job.finalized) return;
    const wait = readWait('finalize', options);
    this.#refuseToLeave();
    this.#leaving ??= this.#end(wait);
    await this.#leaving;
  }

  async #end(wait: WaitOptions | undefined): Promise<void> {
    let agreed = false;
    try {
      await this.#collective(this.#farewell(), 'finalize', wait).promise;
      agreed = true;
    } finally {
      this.#leave(agreed);
    }
  }

  finalizeSync(options?: WaitOptions): void {
    if (this.job.finalized) return;
    this.job.refuseSync('finalize');
    const wait = readWait('finalize', options);
    this.#refuseToLeave();
    let agreed = false;
    try {
      this.#collectiveSync(this.#farewell(), 'finalize', wait);
      agreed = true;
    } finally {
      this.#leave(agreed);
    }
  }

  /** Nobody leaves with an epoch open: others may wait for its end. Unless a rank has failed, and what is open can perhaps not be ended any more. */
  #refuseToLeave(): void {
    if (this.job.failure() !== undefined || this.#broken !== undefined) return;
    const leaving = this.name === 'world' ? [this, ...this.#shared.communicators] : [this];
    for (const communicator of leaving) {
      for (const refusal of communicator.#refusals) {
        const error = refusal();
        if (error !== undefined) throw error;
      }
    }
  }

  /** @param agreed whether all ranks have come to the end together */
  #leave(agreed: boolean): void {
    this.#shared.communicators.delete(this);
    if (this.name !== 'world') {
      this.#giveBack();
      this.#broken = 'it was finalized';
      return;
    }
    for (const other of this.#shared.communicators) other.#giveBack();
    this.#giveBack();
    this.job.finalize(agreed);
  }

  /** The newest first, as the others may stand on it. Each may take itself from the list. */
  #giveBack(): void {
    for (const release of [...this.#release].reverse()) release();
    this.#release.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.finalize();
  }

  // ---- for the floors above -------------------------------------------------------------------------------------------

  /** @internal Begins a collective written as a generator; it takes place in its turn, as it is advanced. */
  begin<T>(generator: Generator<void, T>, call: string): GeneratorOperation<T> {
    return this.#begin(generator, call);
  }

  /** @internal Gathers one block of numbers from each rank: for exchanges that set something up. */
  *exchange(block: Float64Array): Generator<void, Float64Array> {
    const all = new Float64Array(this.size * block.length);
    yield* collectives.allgather(this.#channel, bytesOf(block), bytesOf(all));
    return all;
  }

  /** @internal Whose message the collective that is under way waits for, in words. */
  get awaited(): string {
    const { awaited } = this.#channel;
    return awaited < 0 ? 'the other ranks' : `rank ${awaited}`;
  }

  /** @internal The sum of all ranks' `counts[rank]` for this rank: a reduce-scatter, by halving. */
  sumForMe(counts: Int32Array): Generator<void, number> {
    return collectives.sumForEach(this.#channel, counts);
  }

  /** @internal The same by an allreduce of the whole vector, as the dissertation's remote-notify fence does it. */
  *sumForMeOfAll(counts: Int32Array): Generator<void, number> {
    yield* collectives.allreduce(this.#channel, counts, 0);
    return counts[this.rank];
  }

  /**
   * @internal Messages of something's own among the ranks. Local; but all must have made as many, in the same order, and `agreed` is the greatest of their
   * `lastSpace`.
   */
  openChannel(agreed: number): OwnChannel {
    const id = agreed + ID_STEP;
    this.#shared.lastId = Math.max(this.#shared.lastId, id);
    const { messenger } = this.job;
    const ranks = this.group.worldRanks;
    return {
      ...makeChannel(this.job, this.group, id),
      space: id,
      listen: (listener) => messenger.listen(id, (source, message) => listener(ranks.indexOf(source), message)),
    };
  }

  /** @internal The number of the last space of messages that this rank has. */
  get lastSpace(): number {
    return this.#shared.lastId;
  }

  /** @internal Names a window that all ranks make together, the same at all of them. For traces. */
  traceId(): string {
    return `${this.#id}.${++this.#traced}`;
  }

  /** @internal Who records a barrier, in a job that is traced. @param id the same at all ranks */
  signals(id: string): Signals | undefined {
    const { recorder, size } = this.job;
    return recorder && recordSignals(recorder.channel('barrier', id, size), this.group.worldRanks);
  }

  /** @internal A barrier by messages, for what gives shared memory back afterwards. */
  farewell(): Generator<void, void> {
    return this.#farewell();
  }

  /** @internal The error for calls that come too late, or undefined. */
  refusal(call: string): RmaError | undefined {
    return this.#refusal(call);
  }

  /**
   * @internal `release` runs when the communicator is finalized, or the world.
   * @param refusal what has to be ended before that
   * @returns what takes it from the list, and says whether it stood there
   */
  onRelease(release: () => void, refusal?: () => RmaError | undefined): () => boolean {
    this.#release.add(release);
    if (refusal !== undefined) this.#refusals.add(refusal);
    return () => {
      if (refusal !== undefined) this.#refusals.delete(refusal);
      return this.#release.delete(release);
    };
  }

  // ---- collectives ----------------------------------------------------------------------------------------------------

  #collective<T>(
    generator: Generator<void, T>,
    call: string,
    options: WaitOptions | undefined,
  ): { operation: GeneratorOperation<T>; promise: Promise<void> } {
    const wait = readWait(call, options);
    const operation = this.#begin(generator, call);
    return { operation, promise: this.job.progress.wait(operation, wait) };
  }

  #collectiveSync(generator: Generator<void, unknown>, call: string, options: WaitOptions | undefined): void {
    this.job.refuseSync(call);
    const wait = readWait(call, options);
    this.job.progress.waitSync(this.#begin(generator, call), wait);
  }

  #begin<T>(generator: Generator<void, T>, call: string): GeneratorOperation<T> {
    const refusal = this.#refusal(call);
    if (refusal) throw refusal;
    const operation = new CollectiveOperation(
      this.#thenDrain(generator),
      `${call} among ${this.size} ranks`,
      this.#channel,
      this.#turn,
      (why) => {
        this.#broken ??= why;
      },
    );
    this.#turn.push(operation);
    return operation;
  }

  *#setUp(): Generator<void, void> {
    const { blocks, context, oversubscribed } = this.job;
    if (!context.capabilities.loadStore) {
      const anybody = Int32Array.of(oversubscribed ? 1 : 0);
      yield* collectives.allreduce(this.#channel, anybody, Op.MAX.code);
      this.traits = { central: anybody[0] !== 0, plainFlags: false };
      this.#useBarrier(new MessageBarrier(this.#barrierChannel));
      return;
    }
    const { seesPlainStores } = context.parking;
    const lids = this.group.worldRanks;
    const words = barrierWords(this.size);
    const block = blocks.allocate(words);
    this.onRelease(() => block.free());
    const own = Float64Array.of(oversubscribed ? 1 : 0, seesPlainStores ? 0 : 1, ...block.place);
    const all = yield* this.exchange(own);
    const stride = own.length;
    const map = (rank: number): Int32Array =>
      rank === this.rank
        ? block.words
        : blocks.map(lids[rank], all.subarray(stride * rank + 2, stride * (rank + 1)), words);
    const anybody = (column: number): boolean => all.some((value, i) => i % stride === column && value !== 0);
    this.traits = { central: anybody(0), plainFlags: !anybody(1) };
    this.#useBarrier(makeBarrier(context, this.rank, lids, this.traits, map, this.signals(String(this.#id))));
  }

  #useBarrier(barrier: BarrierState): void {
    this.#barrier = barrier;
    this.#barrierOperation = {
      advance: () => barrier.advance(),
      describe: () => `barrier of ${this.size} ranks (waiting for ${barrier.waitsFor()})`,
    };
  }

  /** A barrier by messages: nobody's flags are read any more when the first rank gives its memory back. */
  #farewell(): Generator<void, void> {
    return collectives.barrier(this.#channel);
  }

  /**
   * A collective is complete here when what it sends has left, too: a rank that computes or exits afterwards would otherwise keep others
   * waiting for messages that found no room at once.
   */
  *#thenDrain<T>(generator: Generator<void, T>): Generator<void, T> {
    const result = yield* generator;
    const { messenger } = this.job;
    while (!messenger.drained) {
      messenger.poll();
      if (!messenger.drained) yield;
    }
    return result;
  }

  /** The wait of one promise for the barrier that has begun. */
  #awaitBarrier(): AwaitedBarrier {
    const operation: AwaitedBarrier = {
      ended: false,
      advance: () => {
        if (operation.ended) return true;
        if (!this.#barrier.advance()) return false;
        this.#endWait(operation);
        return true;
      },
      describe: () => this.#barrierOperation.describe(),
      abandon: () => this.#endWait(operation),
    };
    return operation;
  }

  #endWait(operation: AwaitedBarrier): void {
    operation.ended = true;
    if (this.#awaited === operation) this.#awaited = undefined;
  }

  /** After the barrier that a promise waits for, if there is one; instead of it, if that wait ends early. */
  *#barrierInTurn(): Generator<void, void> {
    const before = this.#awaited;
    if (before !== undefined) while (!before.advance()) yield;
    this.#barrier.begin();
    while (!this.#barrier.advance()) yield;
  }

  *#broadcast(buffer: TypedArray, root: number): Generator<void, void> {
    checkBuffer('broadcast', 'buffer', buffer);
    this.#checkRank('broadcast', root);
    yield* collectives.broadcast(this.#channel, buffer, root);
  }

  *#allreduce(send: TypedArray, receive: TypedArray, op: Op): Generator<void, void> {
    this.#checkReduction('allreduce', send, receive, op);
    if (send.length !== receive.length) {
      throw argumentRangeError(
        `allreduce: send has ${send.length} elements and receive ${receive.length}`,
        'ERR_BUFFER',
      );
    }
    bytesOf(receive).set(bytesOf(send));
    yield* collectives.allreduce(this.#channel, receive, op.code);
  }

  *#reduceScatter(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts: readonly number[] | undefined,
  ): Generator<void, void> {
    this.#checkReduction('reduceScatter', send, receive, op);
    const parts = this.#checkCounts(
      'reduceScatter',
      send,
      counts === undefined ? new Array(this.size).fill(send.length / this.size) : counts,
    );
    if (parts[this.rank] !== receive.length) {
      throw argumentRangeError(
        `reduceScatter: rank ${this.rank} gets ${parts[this.rank]} elements, but receive has ${receive.length}`,
        'ERR_BUFFER',
      );
    }
    yield* collectives.reduceScatter(this.#channel, send, receive, parts, op.code);
  }

  *#allgather(send: TypedArray, receive: TypedArray): Generator<void, void> {
    this.#checkBuffers('allgather', send, receive);
    if (receive.length !== send.length * this.size) {
      throw argumentRangeError(
        `allgather: ${this.size} ranks with ${send.length} elements each need a receive of ${send.length * this.size}, not ${receive.length}`,
        'ERR_BUFFER',
      );
    }
    yield* collectives.allgather(this.#channel, bytesOf(send), bytesOf(receive));
  }

  *#alltoall(send: TypedArray, receive: TypedArray): Generator<void, void> {
    this.#checkBuffers('alltoall', send, receive);
    const counts = new Array<number>(this.size).fill(send.length / this.size);
    yield* this.#exchangeBlocks('alltoall', send, counts, receive, counts);
  }

  *#alltoallv(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
  ): Generator<void, void> {
    this.#checkBuffers('alltoallv', send, receive);
    yield* this.#exchangeBlocks('alltoallv', send, sendCounts, receive, receiveCounts);
  }

  *#exchangeBlocks(
    call: string,
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
  ): Generator<void, void> {
    const width = send.BYTES_PER_ELEMENT;
    const out = this.#checkCounts(call, send, sendCounts).map((count) => count * width);
    const into = this.#checkCounts(call, receive, receiveCounts).map((count) => count * width);
    yield* collectives.alltoall(this.#channel, bytesOf(send), out, bytesOf(receive), into);
  }

  *#split(color: number, key: number): Generator<void, Communicator | undefined> {
    for (const [name, value] of [
      ['color', color],
      ['key', key],
    ] as const) {
      if (!Number.isSafeInteger(value))
        throw argumentTypeError(`split: ${name} must be an integer, not ${show(value)}`);
    }
    const apart = color === Rank.UNDEFINED;
    if (color < 0 && !apart) {
      throw argumentRangeError(
        `split: color must be at least 0, not ${color}; a rank that is to be in no communicator gives Rank.UNDEFINED`,
      );
    }
    const all = yield* this.exchange(Float64Array.of(color, key, this.#shared.lastId));
    let last = 0;
    const members: { rank: number; key: number }[] = [];
    for (let rank = 0; rank < this.size; rank++) {
      last = Math.max(last, all[3 * rank + 2]);
      if (all[3 * rank] === color) members.push({ rank, key: all[3 * rank + 1] });
    }
    // Ids grow at every rank that takes part, so communicators that share a rank never share an id; others cannot meet.
    const id = last + ID_STEP;
    this.#shared.lastId = id;
    if (apart) return undefined;
    members.sort((a, b) => a.key - b.key || a.rank - b.rank);
    const group = this.group.include(members.map((member) => member.rank));
    const part = new Communicator(this.job, group, id, this.#shared, `communicator ${id} of ${group.size} ranks`);
    yield* part.#setUp();
    return part;
  }

  #receive(buffer: TypedArray, source: number): Operation {
    const refusal = this.#refusal('receive');
    if (refusal) throw refusal;
    checkBuffer('receive', 'buffer', buffer);
    if (source === Rank.NULL) return NOTHING_TO_RECEIVE;
    this.#checkRank('receive', source);
    let line = this.#receiving.get(source);
    if (line === undefined) {
      line = [];
      this.#receiving.set(source, line);
    }
    const receive = new Receive(this.#pointToPoint, buffer, source, line);
    line.push(receive);
    return receive;
  }

  // ---- checks ---------------------------------------------------------------------------------------------------------

  #refusal(call: string): RmaError | undefined {
    if (this.job.finalized)
      return new RmaError('ERR_COMM', `${call}: the job was finalized; no call can follow finalize()`);
    if (this.#broken !== undefined) {
      // What ended early may have done so because of a rank that is gone, which is then what is wrong.
      const failure = this.job.failure();
      if (failure !== undefined) return failure;
      return new RmaError('ERR_COMM', `${call}: ${this.name} can no longer be used: ${this.#broken}`);
    }
    return undefined;
  }

  #checkRank(call: string, rank: number): void {
    if (Number.isInteger(rank) && rank >= 0 && rank < this.size) return;
    throw argumentRangeError(
      `${call}: ${showRank(rank)} is no rank of ${this.name} (0 … ${this.size - 1})`,
      'ERR_RANK',
    );
  }

  #checkBuffers(call: string, send: TypedArray, receive: TypedArray): number {
    const code = checkBuffer(call, 'send', send);
    if (checkBuffer(call, 'receive', receive) !== code) {
      throw argumentTypeError(`${call}: send and receive must be of the same type`, 'ERR_TYPE');
    }
    if (
      send.buffer === receive.buffer &&
      send.byteOffset < receive.byteOffset + receive.byteLength &&
      receive.byteOffset < send.byteOffset + send.byteLength
    ) {
      throw argumentRangeError(`${call}: send and receive overlap`, 'ERR_BUFFER');
    }
    return code;
  }

  #checkReduction(call: string, send: TypedArray, receive: TypedArray, op: Op): void {
    const code = this.#checkBuffers(call, send, receive);
    if (!isOp(op)) throw argumentTypeError(`${call}: op must be one of Op's, not ${show(op)}`, 'ERR_OP');
    if (op === Op.REPLACE || op === Op.NO_OP) throw new RmaError('ERR_OP', `${call}: ${op} is for windows only`);
    if (!opAllowed(op.code, code)) throw new RmaError('ERR_OP', `${call}: ${op} is not defined on ${TYPE_NAMES[code]}`);
  }

  #checkCounts(call: string, buffer: TypedArray, counts: readonly number[]): number[] {
    const list = readList(call, 'the list of counts', counts) as number[];
    if (list.length !== this.size) {
      throw argumentTypeError(`${call}: counts must be an array of ${this.size} numbers, not of ${list.length}`);
    }
    let sum = 0;
    for (const count of list) {
      if (!Number.isInteger(count) || count < 0) {
        throw argumentRangeError(
          `${call}: a count of ${show(count)} elements; ${buffer.length} elements must divide among ${this.size} ranks`,
        );
      }
      sum += count;
    }
    if (sum !== buffer.length) {
      throw argumentRangeError(
        `${call}: the counts add up to ${sum}, the buffer has ${buffer.length} elements`,
        'ERR_BUFFER',
      );
    }
    return list;
  }
}

/** One `receive`. Whoever advances it advances those before it first, so each gets the message that is its. */
class Receive implements Operation {
  readonly #channel: collectives.Channel;
  readonly #buffer: TypedArray;
  readonly #source: number;
  readonly #line: Receive[];
  #complete = false;
  #error: RmaError | undefined;

  constructor(channel: collectives.Channel, buffer: TypedArray, source: number, line: Receive[]) {
    this.#channel = channel;
    this.#buffer = buffer;
    this.#source = source;
    this.#line = line;
  }

  advance(): boolean {
    while (!this.#complete) {
      const message = this.#channel.receive(this.#source);
      if (message === undefined) return false;
      this.#line.shift()!.#take(message);
    }
    if (this.#error !== undefined) throw this.#error;
    return true;
  }

  describe(): string {
    return `receive() from rank ${this.#source}`;
  }

  abandon(): void {
    const at = this.#line.indexOf(this);
    if (at >= 0) this.#line.splice(at, 1);
  }

  #take(message: Uint8Array): void {
    this.#complete = true;
    if (message.length === this.#buffer.byteLength) bytesOf(this.#buffer).set(message);
    else {
      this.#error = new RmaError(
        'ERR_TRUNCATE',
        `receive: the message from rank ${this.#source} has ${message.length} bytes, the buffer ${this.#buffer.byteLength}`,
      );
    }
  }
}

/** A collective in its turn: it begins when those before it are complete. */
class CollectiveOperation<T> extends GeneratorOperation<T> {
  readonly #channel: collectives.Channel;
  #turn: Operation[];
  #broke: (why: string) => void;
  #state: 'open' | 'complete' | 'ended' = 'open';
  #error: unknown;

  constructor(
    generator: Generator<void, T>,
    description: string,
    channel: collectives.Channel,
    turn: Operation[],
    broke: (why: string) => void,
  ) {
    super(generator, description);
    this.#channel = channel;
    this.#turn = turn;
    this.#broke = broke;
  }

  override advance(): boolean {
    while (this.#state === 'open') {
      const head = this.#turn[0];
      if (head !== this) {
        try {
          if (!head.advance()) return false;
        } catch {
          // It has left the line and will tell its own caller.
        }
        continue;
      }
      try {
        if (!super.advance()) return false;
      } catch (error) {
        this.#error = error;
        this.#leave('ended');
        // Somebody may still wait for what this rank would have sent next.
        if (error instanceof RmaError && error.code === 'ERR_TRUNCATE') this.#broke(error.message);
        throw error;
      }
      this.#leave('complete');
    }
    if (this.#state === 'ended') throw this.#error;
    return true;
  }

  override describe(): string {
    const words = super.describe();
    if (this.#state !== 'open') return words;
    const [head] = this.#turn;
    if (head !== this) return `${words} (after ${head.describe()})`;
    const { awaited } = this.#channel;
    return awaited < 0 ? words : `${words} (waiting for rank ${awaited})`;
  }

  override abandon(): void {
    if (this.#state !== 'open') return;
    super.abandon();
    this.#leave('ended');
    this.#broke(`${this.describe()} ended early`);
  }

  #leave(state: 'complete' | 'ended'): void {
    this.#state = state;
    const at = this.#turn.indexOf(this);
    if (at >= 0) this.#turn.splice(at, 1);
  }
}

function makeChannel(job: Job, group: Group, contextId: number): collectives.Channel {
  const { messenger } = job;
  const ranks = group.worldRanks;
  return {
    rank: group.rank,
    size: group.size,
    awaited: -1,
    processor: job.context.processor,
    send: (target, payload) => messenger.send(ranks[target], contextId, payload),
    receive: (source) => {
      const waiting = messenger.receive(ranks[source], contextId);
      if (waiting !== undefined) return waiting;
      messenger.poll();
      return messenger.receive(ranks[source], contextId);
    },
  };
}

export function checkLength(call: string, length: number): void {
  if (typeof length !== 'number')
    throw argumentTypeError(`${call}: length must be a number, not ${show(length)}`, 'ERR_SIZE');
  if (!Number.isSafeInteger(length) || length < 0) {
    throw argumentRangeError(`${call}: length must be a whole number of elements, not ${show(length)}`, 'ERR_SIZE');
  }
}
