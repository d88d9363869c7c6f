/**
 * The calls of a communicator that divide it (MPI 4.1, section 7.4): each rank gets the communicator of its part. Which
 * ranks a part has is found out in split.ts.
 */
import type { Block } from '../message/word-blocks.ts';
import type { WaitOptions } from '../wait/operation.ts';
import type { CollectiveCall } from './collective-calls.ts';
import { allocateBarrier } from './communicator-barrier.ts';
import { type Group, Rank } from './group.ts';
import { MessageCalls } from './message-calls.ts';
import type { Refusal } from './refusals.ts';
import { checkSplit, colorOfType, type Divided, findPart, notMade, type Part } from './split.ts';

/** `C`: the communicator, and those that are made of it. */
export abstract class SplitCalls<C extends SplitCalls<C>> extends MessageCalls implements Divided {
  /** @internal */
  abstract readonly group: Group;
  /** @internal */
  abstract shares(rank: number): boolean;
  /** @internal */
  abstract exchange(block: Float64Array): Generator<void, Float64Array>;
  /** @internal */
  abstract hearWhy(rank: number, error: unknown): Generator<void, string>;
  /** @internal */
  abstract allCould(error: unknown): Generator<void, Refusal | undefined>;
  /** @internal */
  abstract nameSpaces(): number;
  /** @internal A communicator of some of these ranks, whose barriers are not set up yet. */
  abstract makePart(group: Group, id: number): C;
  /** @internal Sets up its barriers, in a collective of the communicator that it is a part of. */
  abstract setUpWithin(block: Block | undefined): Generator<void, void>;
  /** @internal */
  abstract leave(agreed: boolean): void;

  /**
   * Splits this communicator into one communicator for each `color` (`MPI_Comm_split`). Collective. `key` determines
   * the order of the ranks in the new communicator; equal keys keep the present order. A rank that passes
   * `Rank.UNDEFINED` as its color gets `undefined`. Errors: `ERR_ARG` for any other negative color.
   */
  async split(color: number, key = 0, options?: WaitOptions): Promise<C | undefined> {
    return this.#made(this.#splitCall('split', color, key), options);
  }

  /**
   * Splits this communicator into one communicator for each `color` and blocks this thread until the call is complete;
   * otherwise the same as `split`.
   */
  splitSync(color: number, key = 0, options?: WaitOptions): C | undefined {
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
  async splitType(type: 'shared', key = 0, options?: WaitOptions): Promise<C> {
    return (await this.#made(this.#splitTypeCall(type, key), options))!;
  }

  /**
   * Splits this communicator into one communicator for each group of ranks that share memory and blocks this thread
   * until the call is complete; otherwise the same as `splitType`.
   */
  splitTypeSync(type: 'shared', key = 0, options?: WaitOptions): C {
    return this.collectiveSync(this.#splitTypeCall(type, key), options)!;
  }

  /** Creates a communicator of the same ranks, with its own messages and barriers (`MPI_Comm_dup`). Collective. */
  async dup(options?: WaitOptions): Promise<C> {
    return (await this.#made(this.#splitCall('dup', 0, this.rank), options))!;
  }

  /**
   * Creates a communicator of the same ranks and blocks this thread until the call is complete; otherwise the same as
   * `dup`.
   */
  dupSync(options?: WaitOptions): C {
    return this.collectiveSync(this.#splitCall('dup', 0, this.rank), options)!;
  }

  async #made<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): Promise<T> {
    const begun = this.collective(call, options);
    await begun.promise;
    return begun.operation.result;
  }

  #splitCall(call: 'split' | 'splitType' | 'dup', color: number, key: number): CollectiveCall<C | undefined> {
    checkSplit(call, color, key);
    return { name: call, steps: () => this.#split(call, color, key) };
  }

  #splitTypeCall(type: 'shared', key: number): CollectiveCall<C | undefined> {
    return this.#splitCall('splitType', colorOfType(this, type), key);
  }

  *#split(call: string, color: number, key: number): Generator<void, C | undefined> {
    // What the new communicator needs is made before the ranks know its size: all hear of it if that fails.
    let block: Block | undefined;
    let name = 0;
    let cause: unknown;
    try {
      if (this.rank === 0) name = this.nameSpaces();
      if (color !== Rank.UNDEFINED) block = allocateBarrier(this.job, this.size);
    } catch (error) {
      cause = error;
    }
    let found: Part | undefined;
    try {
      found = yield* findPart(this, call, color, key, name, cause);
    } finally {
      // Also where the wait ends early. No other rank knows where the words are yet.
      if (found === undefined) block?.free();
    }
    const { id, ranks } = found;
    if (color === Rank.UNDEFINED) return undefined;
    const part = this.makePart(this.group.include(ranks), id);
    let failure: unknown;
    try {
      yield* part.setUpWithin(block);
    } catch (error) {
      failure = error;
    }
    // No rank gets a communicator that another rank of it does not get.
    const refusal = yield* part.allCould(failure);
    if (refusal === undefined) return part;
    part.leave(false);
    const who = `rank ${ranks[refusal.rank]}`;
    throw notMade(call, `${who} could not map the other ranks' memory for it: ${refusal.why}`, failure);
  }
}
