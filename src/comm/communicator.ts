/** Communicators (MPI 4.1, chapters 6 and 7): who takes part, and the collective calls among them. */
import {
  bytesOf,
  checkBuffer,
  isTypedArrayConstructor,
  ownView,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base.ts';
import { Op } from '../datatype/op.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { bufferOf } from '../intrinsics.ts';
import { type BarrierState, type BarrierTraits, barrierWords, makeBarrier, type Signals } from './barrier.ts';
import type { Block } from './blocks.ts';
import { checkRank } from './collective-arguments.ts';
import { type BegunCollective, type CollectiveCall, CollectiveCalls } from './collective-calls.ts';
import { CollectiveChannel } from './collective-channel.ts';
import { CollectiveOperation, type Turn } from './collective-operation.ts';
import type { Agreed } from './collective-signature.ts';
import * as collectives from './collectives.ts';
import { Group, Rank } from './group.ts';
import type { Job } from './job.ts';
import { MessageBarrier } from './message-barrier.ts';
import { type GeneratorOperation, type Operation, readWait, type WaitOptions } from './operation.ts';
import { DONE } from './progress.ts';
import { NOTHING_TO_RECEIVE, Receive } from './receive.ts';
import { hearWhy, type Refusal } from './refusals.ts';
import { recordSignals, traceCommunicator } from './traced.ts';

/** The number of looks that a `Sync` barrier takes in its own tight loop before it waits like everything else. */
const SPIN = 2000;
/** From one communicator's spaces of messages to the next one's. */
const ID_STEP = 4;

/** A wait for a barrier; `ended` once it is complete, or was given up. */
interface AwaitedBarrier extends Operation {
  ended: boolean;
}

/** Messages among the ranks that only one thing uses. */
export interface OwnChannel extends collectives.MessageChannel {
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

/**
 * A group of ranks that communicate with each other, isolated from all other communicators (`MPI_Comm`). `init` returns
 * the world, which contains all ranks; `split`, `splitType` and `dup` create further communicators.
 */
export class Communicator extends CollectiveCalls {
  /** The rank of the caller in this communicator: 0 … `size` − 1 (`MPI_Comm_rank`). */
  readonly rank: number;
  /** The number of ranks in this communicator (`MPI_Comm_size`). */
  readonly size: number;
  /** The group of this communicator: its ranks, in order (`MPI_Comm_group`). */
  readonly group: Group;
  /** The name of this communicator in error messages, for example `world`. */
  readonly name: string;
  /** @internal */
  readonly job: Job;
  /** @internal `central`: some rank shares its core with others, so that spinning is to be avoided. */
  traits: BarrierTraits = { central: false, plainFlags: false };
  readonly #channel: CollectiveChannel;
  readonly #pointToPoint: collectives.Channel;
  /** For barriers where memory cannot be shared: they may be under way beside another collective. */
  readonly #barrierChannel: collectives.Channel;
  #barrier!: BarrierState;
  #barrierOperation!: Operation;
  /** The wait of a promise for a barrier: the next barrier comes after it. */
  #awaited: AwaitedBarrier | undefined;
  readonly #id: number;
  /** Collectives take place one after the other. */
  readonly #turn: Turn;
  /**
   * How many collectives that exchange messages were called; the first one, which sets up the communicator, is not
   * counted.
   */
  #sequence = -1;
  /** Receives that wait, by source, in the order of the calls: messages go to them in that order. */
  #receiving = new Map<number, Receive[]>();
  /** Set when a collective ended early: the ranks no longer agree on what comes next. */
  #broken: string | undefined;
  /** The `finalize` that is under way or was. */
  #leaving: Promise<void> | undefined;
  /** Windows that were made on it: the number names the last one, the same at all ranks. */
  #windows = 0;
  /** What is to be given back when the communicator is finalized, oldest first. */
  #release = new Set<() => void>();
  #refusals = new Set<() => RmaError | undefined>();
  readonly #shared: Shared;

  /**
   * @param contextId names the messages of collectives; point-to-point messages and those of barriers have the numbers
   * after it
   */
  private constructor(job: Job, group: Group, contextId: number, shared: Shared, name: string) {
    super();
    this.job = job;
    this.group = group;
    this.rank = group.rank;
    this.size = group.size;
    this.name = name;
    this.#shared = shared;
    shared.communicators.add(this);
    const { messenger, processor } = job;
    this.#channel = new CollectiveChannel(messenger, group.rank, group.worldRanks, contextId, name, processor);
    this.onRelease(() => this.#channel.close());
    this.#turn = {
      channel: this.#channel,
      line: [],
      refusal: (call) => this.#refusal(call),
      broke: (why) => {
        this.#broken ??= why;
      },
    };
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
        describe: () => `init() (waiting for all ${job.size} ranks to call it)`,
        isPolling: () => !job.context.capabilities.loadStore,
      },
      options,
    );
    await world.collective({ name: 'init', steps: () => world.#setUp(world.#barrierWords(world.size)) }, options)
      .promise;
    return world;
  }

  /**
   * Waits until all ranks of this communicator have called `barrier` (`MPI_Barrier`). If a timeout or an abort signal
   * ends the wait, the next call of `barrier` continues the same barrier.
   * Cost: ⌈log2 p⌉ stores to and loads from the memory of other ranks.
   */
  barrier(options?: WaitOptions): Promise<void> {
    try {
      const refusal = this.#refusal('barrier');
      if (refusal) throw refusal;
      const wait = readWait('barrier', options);
      if (this.#turn.line.length > 0 || this.#awaited !== undefined) {
        return this.job.progress.wait(this.#enter(this.#barrierInTurn(), 'barrier', undefined), wait);
      }
      this.#barrier.begin();
      if (wait === undefined && this.#barrier.advance()) return this.job.progress.done();
      this.#awaited = this.#awaitBarrier();
      return this.job.progress.wait(this.#awaited, wait);
    } catch (error) {
      return Promise.reject(this.job.explain(error));
    }
  }

  /** Blocks this thread until all ranks of this communicator have called `barrier` or `barrierSync`. */
  barrierSync(options?: WaitOptions): void {
    this.job.refuseSync('barrier');
    const refusal = this.#refusal('barrier');
    if (refusal) throw refusal;
    const wait = readWait('barrier', options);
    if (this.#turn.line.length > 0 || this.#awaited !== undefined) {
      this.job.progress.waitSync(this.#enter(this.#barrierInTurn(), 'barrier', undefined), wait);
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
   * Keeps the processor of this rank busy for a given time, as computation would. If the ranks are tasks, the time is
   * virtual; otherwise this thread spins.
   * @param microseconds the time to pass, at least 0
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

  /**
   * Returns the time in microseconds since a fixed point in the past (`MPI_Wtime`, in other units). If the ranks are
   * tasks, it is the virtual time of this rank's processor.
   */
  now(): number {
    return this.job.tasks?.now() ?? performance.now() * 1000;
  }

  /**
   * Sends the contents of `buffer` to rank `target`. The call copies the contents and never waits: if the target has no
   * room for the message yet, the message leaves during later calls that wait.
   */
  send(buffer: TypedArray, target: number): void {
    const refusal = this.#refusal('send');
    if (refusal) throw refusal;
    checkBuffer('send', 'buffer', buffer);
    if (target === Rank.NULL) return;
    checkRank('send', this, target);
    try {
      this.#pointToPoint.send(target, bytesOf(buffer));
    } catch (error) {
      throw this.job.explain(error);
    }
  }

  /**
   * Receives the next message from rank `source` into `buffer`. The message must have exactly the length of `buffer`.
   * With `Rank.NULL` as the source, the call receives nothing.
   */
  async receive(buffer: TypedArray, source: number, options?: WaitOptions): Promise<void> {
    const wait = readWait('receive', options);
    await this.job.progress.wait(this.#receive(buffer, source), wait);
  }

  /** Receives the next message from rank `source` into `buffer`, and blocks this thread until the message is there. */
  receiveSync(buffer: TypedArray, source: number, options?: WaitOptions): void {
    this.job.refuseSync('receive');
    const wait = readWait('receive', options);
    this.job.progress.waitSync(this.#receive(buffer, source), wait);
  }

  /** Receives the next message from rank `source` into `buffer` (MPI's name for `receive`). */
  recv(buffer: TypedArray, source: number, options?: WaitOptions): Promise<void> {
    return this.receive(buffer, source, options);
  }

  /** Receives a message and blocks this thread until it is there (MPI's name for `receiveSync`). */
  recvSync(buffer: TypedArray, source: number, options?: WaitOptions): void {
    this.receiveSync(buffer, source, options);
  }

  /**
   * Splits this communicator into one communicator for each `color` (`MPI_Comm_split`). Collective. `key` determines
   * the order of the ranks in the new communicator; equal keys keep the present order. A rank that passes
   * `Rank.UNDEFINED` as its color gets `undefined`. Errors: `ERR_ARG` for any other negative color.
   */
  async split(color: number, key = 0, options?: WaitOptions): Promise<Communicator | undefined> {
    return this.#made(this.#splitCall('split', color, key), options);
  }

  /**
   * Splits this communicator into one communicator for each `color` and blocks this thread until the call is complete;
   * otherwise the same as `split`.
   */
  splitSync(color: number, key = 0, options?: WaitOptions): Communicator | undefined {
    return this.collectiveSync(this.#splitCall('split', color, key), options);
  }

  /**
   * Splits this communicator into one communicator for each group of ranks that share memory (`MPI_Comm_split_type`).
   * Collective.
   * @param type `'shared'`: the ranks of a new communicator can load and store each other's memory, as
   * `Window.allocateShared` requires. These are usually the ranks of one host; with a device, the ranks of one host
   * that can map each other's memory; on a modelled fabric, each rank alone, because ranks cannot map memory there
   * @param key determines the order of the ranks in the new communicator; equal keys keep the present order
   * Errors: `TypeError`; those of `split`. Cost: that of `split`.
   */
  async splitType(type: 'shared', key = 0, options?: WaitOptions): Promise<Communicator> {
    return (await this.#made(this.#splitTypeCall(type, key), options))!;
  }

  /**
   * Splits this communicator into one communicator for each group of ranks that share memory and blocks this thread
   * until the call is complete; otherwise the same as `splitType`.
   */
  splitTypeSync(type: 'shared', key = 0, options?: WaitOptions): Communicator {
    return this.collectiveSync(this.#splitTypeCall(type, key), options)!;
  }

  /** Creates a communicator of the same ranks, with its own messages and barriers (`MPI_Comm_dup`). Collective. */
  async dup(options?: WaitOptions): Promise<Communicator> {
    return (await this.#made(this.#splitCall('dup', 0, this.rank), options))!;
  }

  /**
   * Creates a communicator of the same ranks and blocks this thread until the call is complete; otherwise the same as
   * `dup`.
   */
  dupSync(options?: WaitOptions): Communicator {
    return this.collectiveSync(this.#splitCall('dup', 0, this.rank), options)!;
  }

  /**
   * Allocates zeroed memory that `Window.create` can expose without a copy, and that is a fast origin buffer
   * (`MPI_Alloc_mem`). Local. Errors: `ERR_SIZE`, `TypeError`.
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
      throw new RmaError('ERR_SIZE', `allocMem: cannot allocate ${bytes} bytes of shared memory`, { cause });
    }
  }

  /**
   * Frees memory from `allocMem` (`MPI_Free_mem`), and detaches the array if the platform can. Errors: `ERR_BUFFER` if
   * the memory does not come from `allocMem` or is part of a window.
   */
  freeMem(array: TypedArray): void {
    const buffer = typeCodeOf(array) < 0 ? undefined : bufferOf(array);
    const memory = buffer && this.job.libraryMemory.get(buffer);
    if (buffer === undefined || memory === undefined)
      throw argumentTypeError(`freeMem: allocMem did not allocate ${show(array)}`, 'ERR_BUFFER');
    this.job.origins.forget(buffer);
    try {
      memory.free();
    } catch (cause) {
      throw new RmaError('ERR_BUFFER', `freeMem: ${show(array)} is part of a window; free the window first`, { cause });
    }
    this.job.libraryMemory.delete(buffer);
  }

  /**
   * Leaves the job after a final barrier (the world: `MPI_Finalize`), or frees this communicator (any other:
   * `MPI_Comm_free`). Collective. Nothing of the job or of the communicator can be used afterwards. If a rank has
   * failed, the call fails, too, but still releases the resources of this rank.
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
      await this.collective(this.#finalizeCall(), wait).promise;
      agreed = true;
    } finally {
      this.#leave(agreed);
    }
  }

  /**
   * Leaves the job, or frees this communicator, and blocks this thread until all ranks have called it; otherwise the
   * same as `finalize`.
   */
  finalizeSync(options?: WaitOptions): void {
    if (this.job.finalized) return;
    this.job.refuseSync('finalize');
    const wait = readWait('finalize', options);
    this.#refuseToLeave();
    let agreed = false;
    try {
      this.collectiveSync(this.#finalizeCall(), wait);
      agreed = true;
    } finally {
      this.#leave(agreed);
    }
  }

  /** Frees this communicator (`MPI_Comm_free`). The same as `finalize`. */
  free(options?: WaitOptions): Promise<void> {
    return this.finalize(options);
  }

  /** Frees this communicator and blocks this thread until all ranks have called it. The same as `finalizeSync`. */
  freeSync(options?: WaitOptions): void {
    this.finalizeSync(options);
  }

  /**
   * Ends all ranks of the job with an exit code (`MPI_Abort`). The call does not return. The job leaves no memory and
   * no files behind.
   *
   * A rank that waits in a call of this library, or enters one that waits, exits with the same code immediately. The
   * launcher ends ranks that compute after its grace period. In jobs without a launcher (named jobs, process managers),
   * this call sends SIGTERM to the other ranks on this host after a second, and leaves ranks on other hosts to the
   * process manager. Ranks that are tasks stop where they are, and `runTasks` rejects with `ERR_RMA_RANK_FAILED`.
   * @param code the exit code, 1 … 255
   * Errors: `TypeError`, `RangeError`. Cost: up to a second in a job without a launcher.
   */
  abort(code: number): never {
    if (typeof code !== 'number') throw argumentTypeError(`abort: the exit code must be a number, not ${show(code)}`);
    if (!Number.isInteger(code) || code < 1 || code > 255) {
      throw argumentRangeError(`abort: the exit code must be 1 … 255, not ${show(code)}; 0 would mean success`);
    }
    return this.job.abort(code);
  }

  /**
   * Nobody leaves with an epoch open: others may wait for its end. Unless a rank has failed, and what is open can
   * perhaps not be ended any more.
   */
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

  /** Calls `finalize`, so that `await using` ends the job or frees the communicator. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finalize();
  }

  // ---- for the floors above -----------------------------------------------------------------------------------------

  /**
   * @internal Begins a collective written as a generator; it takes place in its turn, as it is advanced.
   * @param call for messages
   */
  begin<T>(generator: Generator<void, T>, call: string, agreed: Agreed): GeneratorOperation<T> {
    return this.#enter(generator, call, agreed);
  }

  /** @internal Whether this rank can load and store the memory of that one. */
  shares(rank: number): boolean {
    const { capabilities, neighbours } = this.job.context;
    return capabilities.loadStore || rank === this.rank || neighbours?.has(this.group.worldRanks[rank]) === true;
  }

  /** @internal Gathers one block of numbers from each rank: for exchanges that set something up. */
  *exchange(block: Float64Array): Generator<void, Float64Array> {
    const all = new Float64Array(this.size * block.length);
    yield* collectives.allgather(this.#channel, bytesOf(block), bytesOf(all));
    return all;
  }

  /**
   * @internal Why a rank could not do its part of what is being made.
   * @param rank which one: all know it, by an exchange
   * @param error its error
   */
  hearWhy(rank: number, error: unknown): Generator<void, string> {
    return hearWhy(this.#channel, rank, error);
  }

  /**
   * @internal Every rank says whether it could do its part; a barrier by messages.
   * @param error why this one could not; `undefined` if it could
   * @returns the first rank that could not
   */
  *agree(error: unknown): Generator<void, Refusal | undefined> {
    const failed = yield* this.exchange(Float64Array.of(error === undefined ? 0 : 1));
    const rank = failed.indexOf(1);
    return rank < 0 ? undefined : { rank, why: yield* this.hearWhy(rank, error) };
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
   * @internal Messages of something's own among the ranks. Local; but all must have made as many, in the same order,
   * and `agreed` is the greatest of their `lastSpace`.
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
    return `${this.#id}.${++this.#windows}`;
  }

  /** @internal The number of the window that was made last, or is being made. */
  get windows(): number {
    return this.#windows;
  }

  /** @internal Who records a barrier, in a job that is traced. @param id the same at all ranks */
  signals(id: string): Signals | undefined {
    const { recorder, size } = this.job;
    return recorder && recordSignals(recorder.flow('barrier', id, size), this.group.worldRanks);
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

  // ---- collectives --------------------------------------------------------------------------------------------------

  /** @internal */
  override collective<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): BegunCollective<T> {
    const wait = readWait(call.name, options);
    const operation = this.#enter(call.steps(this.#channel), call.name, call, call.buffers);
    return { operation, promise: this.job.progress.wait(operation, wait) };
  }

  /** @internal */
  override collectiveSync<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): T {
    this.job.refuseSync(call.name);
    const wait = readWait(call.name, options);
    const operation = this.#enter(call.steps(this.#channel), call.name, call, call.buffers);
    this.job.progress.waitSync(operation, wait);
    return operation.result;
  }

  /** @param agreed what its messages say of it; `undefined` for one whose messages, if any, go another way */
  #enter<T>(
    generator: Generator<void, T>,
    call: string,
    agreed: Agreed | undefined,
    buffers?: readonly TypedArray[],
  ): CollectiveOperation<T> {
    const refusal = this.#refusal(call);
    if (refusal) throw refusal;
    if (agreed !== undefined) this.#sequence++;
    return new CollectiveOperation(this.#thenDrain(generator), call, this.#turn, agreed, this.#sequence, buffers);
  }

  /**
   * Words for the barrier of a communicator of at most `size` ranks; `undefined` where there are none. Errors:
   * `ERR_VERBS` (no memory).
   */
  #barrierWords(size: number): Block | undefined {
    return this.job.context.capabilities.loadStore ? this.job.blocks.allocate(barrierWords(size)) : undefined;
  }

  *#setUp(block: Block | undefined): Generator<void, void> {
    const { blocks, context, oversubscribed } = this.job;
    if (block === undefined) {
      const anybody = Int32Array.of(oversubscribed ? 1 : 0);
      yield* collectives.allreduce(this.#channel, anybody, Op.MAX.code);
      this.traits = { central: anybody[0] !== 0, plainFlags: false };
      this.#useBarrier(new MessageBarrier(this.#barrierChannel));
      return;
    }
    const { seesPlainStores } = context.parking;
    const members = this.group.worldRanks;
    const words = barrierWords(this.size);
    this.onRelease(() => block.free());
    const own = Float64Array.of(oversubscribed ? 1 : 0, seesPlainStores ? 0 : 1, ...block.place);
    const all = yield* this.exchange(own);
    const stride = own.length;
    const map = (rank: number): Int32Array =>
      rank === this.rank
        ? block.words
        : blocks.map(members[rank], all.subarray(stride * rank + 2, stride * (rank + 1)), words);
    const anybody = (column: number): boolean => all.some((value, i) => i % stride === column && value !== 0);
    this.traits = { central: anybody(0), plainFlags: !anybody(1) };
    this.#useBarrier(makeBarrier(context, this.rank, members, this.traits, map, this.signals(String(this.#id))));
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
   * A collective is complete here when what it sends has left, too: a rank that computes or exits afterwards would
   * otherwise keep others waiting for messages that found no room at once.
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

  #finalizeCall(): CollectiveCall {
    return { name: 'finalize', steps: () => this.#farewell() };
  }

  async #made<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): Promise<T> {
    const begun = this.collective(call, options);
    await begun.promise;
    return begun.operation.result;
  }

  #splitCall(
    call: 'split' | 'splitType' | 'dup',
    color: number,
    key: number,
  ): CollectiveCall<Communicator | undefined> {
    for (const [name, value] of [
      ['color', color],
      ['key', key],
    ] as const) {
      if (!Number.isSafeInteger(value))
        throw argumentTypeError(`${call}: ${name} must be an integer, not ${show(value)}`);
    }
    if (color < 0 && color !== Rank.UNDEFINED) {
      throw argumentRangeError(
        `split: color must be at least 0, not ${color}; pass Rank.UNDEFINED to join no communicator`,
      );
    }
    return { name: call, steps: () => this.#split(call, color, key) };
  }

  #splitTypeCall(type: 'shared', key: number): CollectiveCall<Communicator | undefined> {
    if (type !== 'shared') throw argumentTypeError(`splitType: the type must be 'shared', not ${show(type)}`);
    // All that share memory find the same lowest rank.
    let color = 0;
    while (!this.shares(color)) color++;
    return this.#splitCall('splitType', color, key);
  }

  *#split(call: string, color: number, key: number): Generator<void, Communicator | undefined> {
    // What the new communicator needs is made before the ranks know its size: all hear of it if that fails.
    let block: Block | undefined;
    let cause: unknown;
    try {
      if (color !== Rank.UNDEFINED) block = this.#barrierWords(this.size);
    } catch (error) {
      cause = error;
    }
    const own = Float64Array.of(color, key, this.#shared.lastId, cause === undefined ? 0 : 1);
    const stride = own.length;
    const all = yield* this.exchange(own);
    let last = 0;
    let refused = -1;
    const members: { rank: number; key: number }[] = [];
    for (let rank = 0; rank < this.size; rank++) {
      const [itsColor, itsKey, itsLast, failed] = all.subarray(stride * rank, stride * (rank + 1));
      last = Math.max(last, itsLast);
      if (itsColor === color) members.push({ rank, key: itsKey });
      if (failed !== 0 && refused < 0) refused = rank;
    }
    // Ids grow at every rank that takes part, so communicators that share a rank never share an id; others cannot meet.
    const id = last + ID_STEP;
    this.#shared.lastId = id;
    if (refused >= 0) {
      block?.free();
      const why = yield* this.hearWhy(refused, cause);
      throw new RmaError(
        'ERR_SIZE',
        `${call}: no communicator was made, because rank ${refused} has no memory for it: ${why}`,
        cause === undefined ? undefined : { cause },
      );
    }
    if (color === Rank.UNDEFINED) return undefined;
    members.sort((a, b) => a.key - b.key || a.rank - b.rank);
    const group = this.group.include(members.map((member) => member.rank));
    const part = new Communicator(this.job, group, id, this.#shared, `communicator ${id} of ${group.size} ranks`);
    // Its first collective, though not called as one: the ranks of the part have just agreed on it.
    part.#channel.begin({ name: 'init' }, ++part.#sequence);
    let failure: unknown;
    try {
      yield* part.#setUp(block);
    } catch (error) {
      failure = error;
    }
    // Nobody has a communicator that another rank of it has not.
    const refusal = yield* part.agree(failure);
    if (refusal === undefined) return part;
    part.#leave(false);
    throw new RmaError(
      'ERR_SIZE',
      `${call}: no communicator was made, because rank ${members[refusal.rank].rank} could not map the other ranks' memory for it: ${refusal.why}`,
      failure === undefined ? undefined : { cause: failure },
    );
  }

  #receive(buffer: TypedArray, source: number): Operation {
    const refusal = this.#refusal('receive');
    if (refusal) throw refusal;
    const own = ownView('receive', 'buffer', buffer);
    if (source === Rank.NULL) return NOTHING_TO_RECEIVE;
    checkRank('receive', this, source);
    let line = this.#receiving.get(source);
    if (line === undefined) {
      line = [];
      this.#receiving.set(source, line);
    }
    const receive = new Receive(this.#pointToPoint, own, source, line);
    line.push(receive);
    return receive;
  }

  // ---- checks -------------------------------------------------------------------------------------------------------

  #refusal(call: string): RmaError | undefined {
    if (this.job.finalized)
      return new RmaError('ERR_COMM', `${call}: this rank has finalized the job; make no calls after finalize()`);
    if (this.#broken !== undefined) {
      // What ended early may have done so because of a rank that is gone, which is then what is wrong.
      const failure = this.job.failure();
      if (failure !== undefined) return failure;
      return new RmaError('ERR_COMM', `${call}: ${this.name} can no longer be used: ${this.#broken}`);
    }
    return undefined;
  }
}

function makeChannel(job: Job, group: Group, contextId: number): collectives.MessageChannel {
  const { messenger } = job;
  const ranks = group.worldRanks;
  return {
    rank: group.rank,
    size: group.size,
    awaited: -1,
    processor: job.processor,
    send: (target, payload) => messenger.send(ranks[target], contextId, payload),
    give: (target, message) => messenger.give(ranks[target], contextId, message),
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
