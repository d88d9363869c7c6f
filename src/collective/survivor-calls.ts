/**
 * The calls of a communicator whose ranks go on when others have failed (ULFM): what they agree on is in survivors.ts,
 * how a `shrink` goes on after a wait that ended early in shrinking.ts.
 */
import { RmaError } from '../errors.ts';
import type { Block } from '../message/word-blocks.ts';
import { abandonQuietly, type Operation, readWait, type WaitOptions } from '../wait/operation.ts';
import type { CollectiveTurns } from './collective-turns.ts';
import { allocateBarrier } from './communicator-barrier.ts';
import type { PointToPoint } from './point-to-point.ts';
import { type Failure, kept, Shrinking, type ShrinkStep } from './shrinking.ts';
import { notMade } from './split.ts';
import { SplitCalls } from './split-calls.ts';
import { readFlag, Survivors } from './survivors.ts';

interface MadeBefore {
  readonly name: number;
  /** Of the barrier; `undefined` where it needs none. */
  readonly block: Block | undefined;
  /** What this rank has: `ALL_WELL`, or without what it lacks. */
  readonly flags: number;
  /** Why it lacks that. */
  readonly cause: unknown;
}

/** `C`: the communicator, and those that are made of it. */
export abstract class SurvivorCalls<C extends SurvivorCalls<C>> extends SplitCalls<C> {
  /** @internal */
  abstract readonly isFreed: boolean;
  readonly #space: number;
  /** Made when first asked for: few communicators lose a rank. */
  #asked: Survivors | undefined;
  /** A `shrink` that is under way, or whose wait ended early. */
  #shrinking: Shrinking<C> | undefined;
  #shrunk: C | undefined;

  /** @internal @param space of the messages of agreements */
  constructor(turns: CollectiveTurns, messages: PointToPoint, space: number) {
    super(turns, messages);
    this.#space = space;
  }

  /** @internal */
  abstract refusal(call: string): RmaError | undefined;
  /** @internal Sets up its barriers, as its first collective. */
  abstract beginSetUp(block: Block | undefined): Operation;

  /** Ranks of this communicator that are known here to have failed. Local; one load while no rank of the job has. */
  get failed(): readonly number[] {
    return this.#survivors.failed;
  }

  /**
   * Combines flags by AND over all ranks that have not failed, and gives all of them the same, whichever ranks fail
   * meanwhile (ULFM's `MPI_Comm_agree`). Collective among the ranks that live, also after a failure. The flags of ranks
   * that fail meanwhile may count or not. If a wait ends early, the next `agree` or `shrink` goes on with it.
   * @param flag a boolean, or a number of 32 bits
   * Cost: 2p (p − 1) messages in p steps, for p ranks. Errors: `ERR_ARG`, `ERR_RMA_TIMEOUT`, the signal's reason.
   */
  async agree<F extends boolean | number>(
    flag: F,
    options?: WaitOptions,
  ): Promise<F extends boolean ? boolean : number> {
    this.#checkSurvivors('agree');
    const agreement = this.#survivors.agreement('agree', readFlag(flag), 0);
    await this.#survivors.members.wait(agreement, readWait('agree', options));
    return asGiven(flag, agreement.result.flags);
  }

  /** The same as `agree`, and blocks this thread. */
  agreeSync<F extends boolean | number>(flag: F, options?: WaitOptions): F extends boolean ? boolean : number {
    this.job.refuseSync('agree');
    this.#checkSurvivors('agree');
    const agreement = this.#survivors.agreement('agree', readFlag(flag), 0);
    this.#survivors.members.waitSync(agreement, readWait('agree', options));
    return asGiven(flag, agreement.result.flags);
  }

  /**
   * Makes a communicator of the ranks that have not failed, in their order (ULFM's `MPI_Comm_shrink`). Collective among
   * them; all get the same. What was made on this communicator goes on saying that a rank has failed, and can be freed;
   * `finalize` of this one then ends with the ranks of the new one. If a wait ends early, the next `shrink` goes on
   * with it.
   * Cost: some agreements (see `agree`), and that of `split`. Errors: `ERR_RMA_TIMEOUT`, the signal's reason,
   * `ERR_COMM`, `ERR_SIZE` (at all ranks: one of them has no memory for it, or could not set it up),
   * `ERR_RMA_RANK_FAILED` (the others have declared this rank failed).
   */
  async shrink(options?: WaitOptions): Promise<C> {
    const wait = readWait('shrink', options);
    const shrinking = this.#beginShrink();
    try {
      return await shrinking.run(wait);
    } finally {
      if (shrinking.isOver) this.#shrinking = undefined;
    }
  }

  /** The same as `shrink`, and blocks this thread. */
  shrinkSync(options?: WaitOptions): C {
    this.job.refuseSync('shrink');
    const wait = readWait('shrink', options);
    const shrinking = this.#beginShrink();
    try {
      return shrinking.runSync(wait);
    } finally {
      if (shrinking.isOver) this.#shrinking = undefined;
    }
  }

  /** @internal What `shrink` has made of it last: its ranks have gone on without those that failed. */
  get shrunk(): C | undefined {
    return this.#shrunk;
  }

  get #survivors(): Survivors {
    this.#asked ??= new Survivors(this.job, this.group, this.#space, this.name);
    return this.#asked;
  }

  /** Throws if this communicator was freed, or the job finalized. */
  #checkSurvivors(call: string): void {
    const refusal = this.job.finalized || this.isFreed ? this.refusal(call) : undefined;
    if (refusal !== undefined) throw refusal;
  }

  #beginShrink(): Shrinking<C> {
    this.#checkSurvivors('shrink');
    this.#shrinking ??= new Shrinking(this.#shrinkSteps());
    return this.#shrinking;
  }

  /** A number for the new communicator, and words for its barrier, whatever its size; or why there are none. */
  #madeBefore(): MadeBefore {
    let name = 0;
    let flags = ~NUMBER;
    try {
      name = this.nameSpaces();
      flags = ~MEMORY;
      return { name, block: allocateBarrier(this.job, this.size), flags: ALL_WELL, cause: undefined };
    } catch (cause) {
      return { name, block: undefined, flags, cause };
    }
  }

  *#shrinkSteps(): Generator<ShrinkStep, C, Failure | undefined> {
    const { members } = this.#survivors;
    // An `agree` that was left: the others are beyond it.
    const leftOver = this.#survivors.leftOver;
    if (leftOver !== undefined) yield { operation: leftOver, members, mayFail: false };
    for (;;) {
      // Made before the ranks agree who they are, as by `split`: all hear of it if one has nothing for it.
      const own = this.#madeBefore();
      const agreement = this.#survivors.agreement('shrink', own.flags, own.name);
      yield { operation: agreement, members, mayFail: false };
      const { failed, number, flags } = agreement.result;
      const left = failed.includes(this.rank) ? this.members.failure() : undefined;
      if (left !== undefined || flags !== ALL_WELL) own.block?.free();
      if (left !== undefined) throw left;
      if (flags !== ALL_WELL) throw whyNotMade(flags, own);
      const part = this.makePart(this.group.exclude(failed), number);
      let operation: Operation | undefined;
      let failure: Failure | undefined;
      try {
        operation = part.beginSetUp(own.block);
      } catch (error) {
        own.block?.free();
        failure = { error };
      }
      if (operation !== undefined) {
        failure = yield { operation: kept(operation), members: part.members, mayFail: true };
        if (failure !== undefined) abandonQuietly(operation);
      }
      const isAgain = part.members.failure() !== undefined || part.failed.length > 0;
      const how = failure === undefined ? ALL_WELL : isAgain ? ~AGAIN : ~SET_UP;
      const outcome = this.#survivors.agreement('shrink', how, 0);
      yield { operation: outcome, members, mayFail: false };
      if (outcome.result.flags === ALL_WELL) {
        this.#shrunk = part;
        return part;
      }
      part.leave(false);
      // Where no rank has failed since, it would be so the next time: all end it.
      if ((outcome.result.flags & SET_UP) === 0)
        throw whyNotMade(outcome.result.flags, { flags: how, cause: failure?.error });
    }
  }
}

/** What the ranks agree on: flags that are taken away where something is missing. */
const ALL_WELL = -1;
const NUMBER = 1;
const MEMORY = 2;
/** A rank could not set it up, though none has failed; or since another one has failed. */
const SET_UP = 4;
const AGAIN = 8;

/** At all ranks, where some cannot make it. @param flags of all @param own what was the matter with this one */
function whyNotMade(flags: number, own: Pick<MadeBefore, 'flags' | 'cause'>): RmaError {
  const isOwn = own.flags !== ALL_WELL;
  const who = isOwn ? 'this rank' : 'another rank';
  if ((flags & NUMBER) === 0) {
    return isOwn ? (own.cause as RmaError) : new RmaError('ERR_COMM', `shrink: ${who} has no number for it left`);
  }
  const what = (flags & MEMORY) === 0 ? 'has no memory for it' : 'could not set it up';
  return notMade('shrink', `${who} ${what}${own.cause instanceof Error ? `: ${own.cause.message}` : ''}`, own.cause);
}

/** Flags as they were given: as a boolean, or a number. */
function asGiven<F extends boolean | number>(flag: F, flags: number): F extends boolean ? boolean : number {
  return (typeof flag === 'boolean' ? flags !== 0 : flags) as never;
}
