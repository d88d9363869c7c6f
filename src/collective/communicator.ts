/** Communicators (MPI 4.1, chapters 6 and 7): who takes part, and the collective calls among them. */

import { bytesOf, type TypedArray, type TypedArrayConstructor } from '../datatype/base-types.ts';
import { Op } from '../datatype/op.ts';
import { argumentRangeError, argumentTypeError, type RmaError, show } from '../errors.ts';
import type { Job } from '../job/job.ts';
import { ranksInWords } from '../job/late.ts';
import { Members } from '../job/members.ts';
import type { Block } from '../message/word-blocks.ts';
import type { AdapterBarrierStatistics } from '../verbs/adapter-barrier.ts';
import {
  abandonQuietly,
  type GeneratorOperation,
  type Operation,
  readWait,
  type WaitOptions,
} from '../wait/operation.ts';
import { DONE } from '../wait/progress.ts';
import { allocateArray, freeArray } from './allocated-memory.ts';
import { type BarrierKind, type BarrierWish, byAdapters, makeBarrierWithoutWords } from './barrier-kinds.ts';
import { makeChannel, makeOwnChannel, makeRoomChannel, type OwnChannel } from './channels.ts';
import type { BegunCollective, CollectiveCall } from './collective-calls.ts';
import { CollectiveChannel } from './collective-channel.ts';
import type { Agreed } from './collective-signature.ts';
import { CollectiveTurns } from './collective-turns.ts';
import * as collectives from './collectives.ts';
import { allocateBarrier, CommunicatorBarrier, type RestOfBarriers } from './communicator-barrier.ts';
import type { FenceOrder } from './fence-order.ts';
import { Group } from './group.ts';
import { Spaces, WORLD_SPACE } from './message-spaces.ts';
import { PointToPoint } from './point-to-point.ts';
import { hearWhy, type Refusal } from './refusals.ts';
import { Releases } from './releases.ts';
import { SurvivorCalls } from './survivor-calls.ts';
import { recordSignals, traceCommunicator } from './traced-calls.ts';
import type { BarrierState, BarrierTraits, Signals } from './word-barrier.ts';

/** Looks that `Sync` forms take in a tight loop of their own before they wait like everything else. */
const SPIN = 2000;

export type { OwnChannel };

/** The ranks of the last world: all tasks of a job have the same list. */
let lastRanks: readonly number[] = [];

function allRanks(size: number): readonly number[] {
  if (lastRanks.length !== size) lastRanks = Object.freeze(Array.from({ length: size }, (_, rank) => rank));
  return lastRanks;
}

/** What all communicators of a job share at this rank. */
interface Shared {
  readonly spaces: Spaces;
  /** Those that are not finalized. */
  readonly communicators: Set<Communicator>;
}

/** What `Communicator.statistics` says. */
export interface CommunicatorStatistics {
  /** How its barriers go. */
  readonly barrier: Exclude<BarrierKind, 'auto'>;
  /** Of barriers of kind `'adapter'`: what this rank's adapter has done. */
  readonly adapter?: AdapterBarrierStatistics;
}

/**
 * A group of ranks that communicate with each other, isolated from all other communicators (`MPI_Comm`). `init` returns
 * the world, which contains all ranks; `split`, `splitType` and `dup` create further communicators.
 */
export class Communicator extends SurvivorCalls<Communicator> {
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
  /** @internal What waits for these ranks. */
  readonly members: Members;
  /** @internal `central`: some rank shares its core with others, so it is better not to spin. */
  traits: BarrierTraits = { central: false, plainFlags: false };
  readonly #channel: CollectiveChannel;
  #barrier!: CommunicatorBarrier;
  readonly #id: number;
  /** The same at all its ranks, and no other's: the parts of a split have one context id. */
  readonly #traceId: string;
  /** Collectives take place one after the other. */
  readonly #turns: CollectiveTurns;
  /** The barriers that this rank has called and not completed, once it parts from the others. */
  #going: RestOfBarriers | undefined;
  /** The `finalize` that is under way or was. */
  #leaving: Promise<void> | undefined;
  /** Windows that were made on it: the number names the last one, the same at all ranks. */
  #windows = 0;
  readonly #releases = new Releases();
  readonly #shared: Shared;
  /** @internal */
  isFreed = false;

  /**
   * @param contextId names the messages of collectives; point-to-point messages, those of barriers, point-to-point
   * messages with tags, and agreements have the numbers after it
   */
  private constructor(job: Job, group: Group, contextId: number, shared: Shared, name: string) {
    const { messenger, processor, recorder } = job;
    const channel = new CollectiveChannel(messenger, group.rank, group.worldRanks, contextId, name, processor);
    const members = new Members(job, group.worldRanks);
    const turns = new CollectiveTurns(job, members, channel, name);
    const rooms = makeRoomChannel(job, group, contextId + 1);
    const messages = new PointToPoint(rooms, makeChannel(job, group, contextId + 3));
    super(turns, messages, contextId + 4);
    this.job = job;
    this.members = members;
    this.group = group;
    this.rank = group.rank;
    this.size = group.size;
    this.name = name;
    this.#shared = shared;
    shared.communicators.add(this);
    this.#channel = channel;
    this.onRelease(() => channel.close());
    this.onRelease(() => messages.end());
    this.#turns = turns;
    this.#id = contextId;
    this.#traceId = contextId === WORLD_SPACE ? `${contextId}` : `${contextId}@${group.worldRanks[0]}`;
    if (recorder !== undefined) traceCommunicator(this, recorder, `${this.#traceId}|${name}`, group.worldRanks);
    job.races?.communicator(this, this.#traceId);
  }

  /** @internal Whether `value` is a communicator; runs no code of the caller's. */
  static is(value: unknown): value is Communicator {
    return typeof value === 'object' && value !== null && #turns in value;
  }

  /** @internal The communicator of all ranks of a job. */
  static async world(job: Job, options: WaitOptions): Promise<Communicator> {
    const group = new Group(allRanks(job.size), job.rank);
    const shared = { spaces: new Spaces(job.rank, job.size), communicators: new Set<Communicator>() };
    const world = new Communicator(job, group, WORLD_SPACE, shared, 'world');
    await world.members.wait(
      {
        advance: () => job.complete,
        describe: () => `init() (waiting for ${ranksInWords(job.absent, job.size)} to call it)`,
        isPolling: () => !job.context.capabilities.loadStore,
      },
      options,
    );
    await world.collective({ name: 'init', steps: () => world.#setUp(allocateBarrier(job, world.size)) }, options)
      .promise;
    return world;
  }

  /**
   * Waits until all ranks of this communicator have called `barrier` (`MPI_Barrier`). If a timeout or an abort signal
   * ends the wait, the next call of `barrier` continues the same barrier.
   * Cost: ⌈log2 p⌉ stores to and loads from the memory of other ranks.
   */
  barrier(options?: WaitOptions): Promise<void> {
    let begun = false;
    try {
      this.#turns.check('barrier');
      const wait = readWait('barrier', options);
      if (this.#turns.line.length > 0 || this.#barrier.isAwaited) {
        const left = this.#turns.left.takeOldest();
        if (left !== undefined) return this.members.wait(left, wait);
        return this.members.wait(this.#nextBarrier(), wait);
      }
      const { state } = this.#barrier;
      this.#turns.barriers++;
      begun = true;
      state.begin();
      if (wait === undefined && state.advance()) return this.job.progress.done();
      return this.members.wait(this.#barrier.await(), wait);
    } catch (error) {
      // Other ranks may be in it.
      if (begun) abandonQuietly(this.#barrier.operation);
      return Promise.reject(this.members.explain(error));
    }
  }

  /** Blocks this thread until all ranks of this communicator have called `barrier` or `barrierSync`. */
  barrierSync(options?: WaitOptions): void {
    this.job.refuseSync('barrier');
    this.#turns.check('barrier');
    const wait = readWait('barrier', options);
    if (this.#turns.line.length > 0 || this.#barrier.isAwaited) {
      this.members.waitSync(this.#turns.left.takeOldest() ?? this.#nextBarrier(), wait);
      return;
    }
    const { state, operation } = this.#barrier;
    const { spin } = this;
    try {
      this.#turns.barriers++;
      state.begin();
      for (let i = 0; i < spin; i++) if (state.advance()) return;
    } catch (error) {
      abandonQuietly(operation);
      throw this.members.explain(error);
    }
    this.members.waitSync(operation, wait);
  }

  /** A barrier after those that were called before. */
  #nextBarrier(): Operation {
    this.#turns.barriers++;
    const { steps, wait } = this.#barrier.next();
    return this.#turns.enter(steps, 'barrier', undefined, undefined, wait);
  }

  /**
   * Says how the barriers of this communicator go, and what this rank's adapter has done for them so far. Not
   * collective. Cost: none.
   */
  statistics(): CommunicatorStatistics {
    const { kind, state } = this.#barrier;
    const { loadStore } = this.job.context.capabilities;
    const barrier = kind !== 'auto' ? kind : loadStore ? 'words' : 'messages';
    return { barrier, ...(state.statistics !== undefined && { adapter: { ...state.statistics } }) };
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
   * Allocates zeroed memory that `Window.create` can expose without a copy, and that is a fast origin buffer
   * (`MPI_Alloc_mem`). Local. Errors: `ERR_SIZE`, `TypeError`.
   */
  allocMem<T extends TypedArray>(type: TypedArrayConstructor<T>, length: number): T {
    this.#turns.check('allocMem');
    return allocateArray(this.job, type, length);
  }

  /**
   * Frees memory from `allocMem` (`MPI_Free_mem`), and detaches the array if the platform can. Errors: `ERR_BUFFER` if
   * the memory does not come from `allocMem` or is part of a window.
   */
  freeMem(array: TypedArray): void {
    freeArray(this.job, array);
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
      if (this.shrunk === undefined) await this.collective(this.#finalizeCall(), wait).promise;
      else if (!this.shrunk.isFreed) await this.shrunk.finalize(wait);
      agreed = true;
    } finally {
      this.leave(agreed);
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
      if (this.shrunk === undefined) this.collectiveSync(this.#finalizeCall(), wait);
      else if (!this.shrunk.isFreed) this.shrunk.finalizeSync(wait);
      agreed = true;
    } finally {
      this.leave(agreed);
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
   * No rank may leave with an epoch open, since others may wait for its end. The exception: a rank has failed, so that
   * perhaps what is open cannot be ended any more.
   */
  #refuseToLeave(): void {
    if (this.members.failure() !== undefined || this.#turns.isBroken) return;
    const leaving = this.name === 'world' ? [this, ...this.#shared.communicators] : [this];
    for (const communicator of leaving) communicator.#releases.check();
  }

  /** @internal @param agreed whether all ranks have come to the end together */
  leave(agreed: boolean): void {
    this.isFreed = true;
    this.#shared.communicators.delete(this);
    if (this.name !== 'world') {
      this.#releases.giveBack();
      this.#turns.finalized();
      if (!agreed && this.#going !== undefined) this.#barrier.leave(this.#going.steps);
      return;
    }
    for (const other of this.#shared.communicators) other.#releases.giveBack();
    this.#releases.giveBack();
    this.job.finalize(agreed);
  }

  /** Calls `finalize`, so that `await using` ends the job or frees the communicator. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finalize();
  }

  // ---- for the layers above -----------------------------------------------------------------------------------------

  /**
   * @internal Begins a collective written as a generator; it takes place in its turn, as it is advanced.
   * @param call for messages
   */
  begin<T>(generator: Generator<void, T>, call: string, agreed: Agreed): GeneratorOperation<T> {
    return this.#turns.enter(generator, call, agreed);
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

  /** @internal Fills the numbers of all ranks with those of one: what it has found out for all. */
  tell(numbers: Float64Array, root: number): Generator<void, void> {
    return collectives.broadcast(this.#channel, numbers, root);
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
  *allCould(error: unknown): Generator<void, Refusal | undefined> {
    const failed = yield* this.exchange(Float64Array.of(error === undefined ? 0 : 1));
    const rank = failed.indexOf(1);
    return rank < 0 ? undefined : { rank, why: yield* this.hearWhy(rank, error) };
  }

  /** @internal Whose message the collective that is under way waits for, in words. */
  get awaited(): string {
    const { awaited } = this.#channel;
    return awaited < 0 ? 'the other ranks' : `rank ${awaited}`;
  }

  /** @internal The same as a list: that rank, or none. */
  get awaitedRanks(): readonly number[] {
    const { awaited } = this.#channel;
    return awaited < 0 ? [] : [awaited];
  }

  /** @internal The number of the collective that was called last. */
  get sequence(): number {
    return this.#turns.sequence;
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
   * @internal Messages of something's own among the ranks. Local.
   * @param space the same at all ranks: one of the `SPACES` that `nameSpaces` of rank 0 has returned
   */
  openChannel(space: number): OwnChannel {
    return makeOwnChannel(this.job, this.group, space);
  }

  /**
   * @internal The first of `SPACES` numbers for what the ranks are making, if this rank is the one that names it.
   * Errors: `ERR_COMM`.
   */
  nameSpaces(): number {
    return this.#shared.spaces.next();
  }

  /** @internal Names a window that all ranks make together, the same at all of them. For traces. */
  traceId(): string {
    return `${this.#traceId}.${++this.#windows}`;
  }

  /** @internal The number of the window that was made last, or is being made. */
  get windows(): number {
    return this.#windows;
  }

  /** @internal Where the fences of its windows stand among its other collectives. */
  get fenceOrder(): FenceOrder {
    return this.#channel.fences;
  }

  /** @internal The ranks no longer agree on what comes next. */
  broke(why: string): void {
    this.#turns.broke(why);
  }

  /** @internal What records a barrier, in a job that is traced. @param id the same at all ranks */
  signals(id: string): Signals | undefined {
    const { recorder, size } = this.job;
    return recorder && recordSignals(recorder.flow('barrier', id, size), this.group.worldRanks);
  }

  /**
   * @internal A barrier by messages, for callers that give shared memory back afterwards: when the first rank does so,
   * no rank's flags are read any more.
   */
  farewell(): Generator<void, void> {
    return collectives.barrier(this.#channel);
  }

  /**
   * @internal Collective: a barrier of its own for what the ranks make together, as those of this communicator go.
   * @param channel nothing else goes through it
   * @param wish another one than those of this communicator; the devices of all ranks offer it
   * @param before why this rank can no longer take part in what they make: it is thrown again
   * @returns `undefined` if another rank could not make it
   */
  barrierWithoutWords(
    channel: OwnChannel,
    undo: { add(release: () => void): void },
    wish?: BarrierWish,
    before?: unknown,
  ): Generator<void, BarrierState | undefined> {
    return makeBarrierWithoutWords(wish?.kind ?? this.#barrier.kind, {
      ...{ job: this.job, channel, members: this.group.worldRanks },
      algorithm: wish?.algorithm ?? this.job.barrier.algorithm,
      undo: (free) => undo.add(() => this.giveBack({ free })),
      mayBegin() {
        if (before !== undefined) throw before;
      },
    });
  }

  /** @internal Looks before a wait that can sleep. One that is traced begins where it can be recorded. */
  get spin(): number {
    return this.traits.central || this.job.recorder !== undefined ? 1 : SPIN;
  }

  /** @internal The error for calls that come too late, or undefined. */
  refusal(call: string): RmaError | undefined {
    return this.#turns.refusal(call);
  }

  /**
   * @internal `release` runs when the communicator is finalized, or the world.
   * @param refusal what has to be ended before that
   * @returns what takes it from the list, and says whether it stood there
   */
  onRelease(release: () => void, refusal?: () => RmaError | undefined): () => boolean {
    return this.#releases.add(release, refusal);
  }

  /**
   * @internal Gives back words that all ranks have used, once they have agreed that none uses them any more. If a
   * collective of theirs has ended early, or a rank has failed, no rank knows this: then the words stay until the job
   * ends.
   */
  giveBack(block: Pick<Block, 'free'>): void {
    if (!this.#turns.isBroken && this.members.failure() === undefined) block.free();
  }

  // ---- collectives --------------------------------------------------------------------------------------------------

  /** @internal */
  override collective<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): BegunCollective<T> {
    const wait = readWait(call.name, options);
    const operation = this.#turns.enter(call.steps(this.#channel), call.name, call, call.buffers);
    return { operation, promise: this.members.wait(operation, wait) };
  }

  /** @internal */
  override collectiveSync<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): T {
    this.job.refuseSync(call.name);
    const wait = readWait(call.name, options);
    const operation = this.#turns.enter(call.steps(this.#channel), call.name, call, call.buffers);
    this.members.waitSync(operation, wait);
    return operation.result;
  }

  /** @internal */
  override makePart(group: Group, id: number): Communicator {
    return new Communicator(this.job, group, id, this.#shared, `communicator ${id} of ${group.size} ranks`);
  }

  /** @internal */
  override *setUpWithin(block: Block | undefined): Generator<void, void> {
    this.#turns.beginFirst({ name: 'init' });
    yield* this.#setUp(block);
  }

  /** @internal */
  override beginSetUp(block: Block | undefined): Operation {
    return this.#turns.enter(this.#setUp(block), 'init', { name: 'init' });
  }

  *#setUp(block: Block | undefined): Generator<void, void> {
    const own = makeOwnChannel(this.job, this.group, this.#id + 2);
    this.#barrier = yield* CommunicatorBarrier.setUp(this, this.#channel, own, block, this.#traceId, this.#turns);
    this.traits = this.#barrier.traits;
  }

  #finalizeCall(): CollectiveCall {
    const left = this.#turns.takeLeft();
    if (left > 0 || this.#barrier.isAwaited) this.#going = this.#barrier.rest(left);
    return { name: 'finalize', steps: () => this.#partings() };
  }

  /**
   * Other ranks may be in barriers that this one has called but not completed: it goes on with them until all ranks
   * have called this. Then no rank is in one, or ever will be. If a rank had such barriers, words of others may have
   * been written until then, so all ranks part once more before words are given back.
   */
  *#partings(): Generator<void, void> {
    const barrier = this.#barrier;
    if (barrier.isAwaited) this.#going ??= barrier.rest(0);
    const going = this.#going;
    // A rank that has sent the message of a round has raised its flag of that round of the barrier. So a barrier that
    // all ranks have called is complete at a rank that has the messages of all rounds.
    const goOn = (): void => {
      going?.steps.next();
    };
    const all = collectives.anyOf(this.#channel, going !== undefined, goOn);
    let step = all.next();
    while (step.done !== true) {
      goOn();
      yield;
      step = all.next();
    }
    goOn();
    if (byAdapters(barrier.kind)) {
      // That messages have come says nothing of what adapters tell each other on ways of their own.
      const { barriers } = this.#turns;
      const least = Int32Array.of(barriers);
      yield* collectives.allreduce(this.#channel, least, Op.MIN.code);
      for (goOn(); barriers - (going?.pending ?? 0) < least[0]; goOn()) yield;
    }
    barrier.end(this.name === 'world' ? 'finalize() ended the job' : `free() ended ${this.name}`);
    if (step.value) yield* this.farewell();
  }
}
