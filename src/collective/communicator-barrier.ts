/**
 * The barrier of a communicator: the words that its ranks share for it, or messages where memory cannot be shared, and
 * the waits of promises. A barrier that a promise waits for takes place before the next one that is called, even if
 * that wait ends early (left-barriers.ts).
 */
import { Op } from '../datatype/op.ts';
import { RmaError } from '../errors.ts';
import type { Job } from '../job/job.ts';
import type { Channel } from '../message/message-channel.ts';
import type { Block } from '../message/word-blocks.ts';
import type { Operation } from '../wait/operation.ts';
import { agreedOf, type BarrierKind, makeBarrierWithoutWords, wishes } from './barrier-kinds.ts';
import type { BarrierWait } from './collective-operation.ts';
import type { CollectiveTurns } from './collective-turns.ts';
import { allreduce } from './collectives.ts';
import type { Group } from './group.ts';
import type { LeftBarrier } from './left-barriers.ts';
import { type BarrierState, type BarrierTraits, barrierWords, makeBarrier, type Signals } from './word-barrier.ts';

/** What a barrier needs of the communicator that it belongs to. */
interface BarrierOwner {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly job: Job;
  readonly group: Group;
  exchange(block: Float64Array): Generator<void, Float64Array>;
  onRelease(release: () => void): unknown;
  giveBack(block: Pick<Block, 'free'>): void;
  signals(id: string): Signals | undefined;
}

/** Barriers that were called, and that this rank goes on with. */
export interface RestOfBarriers {
  /** So many are not complete. */
  readonly pending: number;
  readonly steps: Generator<void, void>;
}

/** A wait for a barrier; `ended` once it is complete. */
interface AwaitedBarrier extends LeftBarrier {
  ended: boolean;
}

/**
 * Words for the barrier of a communicator of at most `size` ranks; `undefined` where there are none. Errors:
 * `ERR_VERBS` (no memory).
 */
export function allocateBarrier(job: Job, size: number): Block | undefined {
  return job.context.capabilities.loadStore ? job.blocks.allocate(barrierWords(size)) : undefined;
}

function notEverywhere(name: string, kind: BarrierKind): never {
  throw new RmaError('ERR_COMM', `${name}: another rank could not make its barrier '${kind}', and says why`);
}

export class CommunicatorBarrier {
  /** What the ranks have agreed on. */
  readonly kind: BarrierKind;
  readonly traits: BarrierTraits;
  readonly state: BarrierState;
  /** The wait of a call that blocks. */
  readonly operation: Operation;
  /** The wait of a promise for a barrier: the next barrier comes after it. */
  #awaited: AwaitedBarrier | undefined;
  readonly #turns: CollectiveTurns;
  /** Whether everything that was sent has left, where barriers are messages. */
  readonly #hasSent: () => boolean;
  /** The barrier in which a call that blocks was last found to wait long, and how often. */
  #lingering = 0;
  #times = 0;
  /** No barrier takes place any more: why. */
  #over: RmaError | undefined;

  private constructor(
    kind: BarrierKind,
    state: BarrierState,
    size: number,
    traits: BarrierTraits,
    turns: CollectiveTurns,
    hasSent: () => boolean = () => true,
  ) {
    this.kind = kind;
    this.state = state;
    this.#hasSent = hasSent;
    this.traits = traits;
    this.#turns = turns;
    this.operation = {
      advance: () => this.#advance(),
      describe: () => `barrier of ${size} ranks (waiting for ${state.waitsFor()})`,
      abandon: () => this.await().abandon!(),
      // While this thread is blocked, nothing else is called.
      linger: () => {
        const { barriers, sequence } = turns;
        this.#times = barriers === this.#lingering ? this.#times + 1 : 1;
        this.#lingering = barriers;
        this.#ask(barriers, sequence, this.#times);
      },
    };
  }

  /**
   * What bringing messages in throws (`Messenger.poll`) is not this barrier's: a wait for its ranks is told, and the
   * barrier goes on. Errors: `ERR_COLLECTIVE` once it is known that other ranks call something else.
   */
  #advance(): boolean {
    try {
      if (this.state.advance()) return true;
    } catch (error) {
      this.#turns.note(error);
    }
    const { mismatch } = this.#turns.channel;
    if (mismatch === undefined) return false;
    this.#turns.broke(mismatch.message);
    throw mismatch;
  }

  /** @param times that its wait has been found to last long: others are asked once, and most barriers end before */
  #ask(number: number, sequence: number, times: number): void {
    this.#turns.channel.ask(times === 2 ? this.state.askedFor() : [], { number, sequence });
  }

  /** For a barrier that is called now: to be called when it waits for long. */
  #asking(): () => void {
    const { barriers, sequence } = this.#turns;
    let times = 0;
    return () => this.#ask(barriers, sequence, ++times);
  }

  /** Whether other ranks may need this one to go on with the barrier that it has begun. */
  get #owes(): boolean {
    return this.state.owes || !this.#hasSent();
  }

  /** A barrier that is called now, behind others. */
  next(): { readonly steps: Generator<void, void>; readonly wait: BarrierWait } {
    let begun = false;
    const steps = this.inTurn(1, () => {
      begun = true;
    });
    return { steps, wait: { linger: this.#asking(), owes: () => !begun || this.#owes } };
  }

  /**
   * Barriers that this rank has called are left, and it calls no others.
   * @param steps of all of them (`inTurn`)
   */
  leave(steps: Generator<void, void>): void {
    let ended = false;
    this.#turns.left.add({
      order: this.#turns.left.nextOrder(),
      advance: () => {
        ended ||= steps.next().done === true;
        return ended;
      },
      describe: () => this.operation.describe(),
      // Those behind the first one have not begun.
      owes: true,
      drop: () => {},
    });
  }

  /**
   * Collective: the ranks find out about each other and map each other's words.
   * @param channel for collectives
   * @param own for messages of barriers: they may be under way beside another collective. Its number names the barrier
   * @param block this rank's words, given back with the communicator
   * @param id the same at all ranks, for traces
   * @param turns where barriers and collectives stand in line
   */
  static *setUp(
    comm: BarrierOwner,
    channel: Channel,
    own: Channel & { readonly space: number },
    block: Block | undefined,
    id: string,
    turns: CollectiveTurns,
  ): Generator<void, CommunicatorBarrier> {
    const { rank: self, size, job } = comm;
    const { blocks, context } = job;
    const members = comm.group.worldRanks;
    // Others may be in a barrier with what this rank has made for it.
    const undo = (free: () => void): void => void comm.onRelease(() => comm.giveBack({ free }));
    const materials = { job, channel: own, members, algorithm: job.barrier.algorithm, undo, mayBegin: () => {} };
    if (block === undefined) {
      const all = Int32Array.of(wishes(job));
      yield* allreduce(channel, all, Op.BOR.code);
      const { kind, crowded } = agreedOf(all[0], comm.name);
      const state = (yield* makeBarrierWithoutWords(kind, materials)) ?? notEverywhere(comm.name, kind);
      const traits = { central: crowded, plainFlags: false };
      return new CommunicatorBarrier(kind, state, size, traits, turns, () => job.messenger.drained);
    }
    const words = barrierWords(size);
    comm.onRelease(() => comm.giveBack(block));
    const mine = Float64Array.of(wishes(job), context.parking.seesPlainStores ? 0 : 1, ...block.place);
    const all = yield* comm.exchange(mine);
    const stride = mine.length;
    const { kind, crowded } = agreedOf(
      all.reduce((wish, value, i) => (i % stride === 0 ? wish | value : wish), 0),
      comm.name,
    );
    const map = (rank: number): Int32Array =>
      rank === self
        ? block.words
        : blocks.map(members[rank], all.subarray(stride * rank + 2, stride * (rank + 1)), words);
    const traits = { central: crowded, plainFlags: all.every((value, i) => i % stride !== 1 || value === 0) };
    if (kind === 'auto' || kind === 'words') {
      const state = makeBarrier(context, self, members, traits, map, comm.signals(id));
      return new CommunicatorBarrier(kind, state, size, traits, turns);
    }
    const state = (yield* makeBarrierWithoutWords(kind, materials)) ?? notEverywhere(comm.name, kind);
    return new CommunicatorBarrier(kind, state, size, traits, turns, () => job.messenger.drained);
  }

  /** Whether the next call waits for one that was called before. */
  get isAwaited(): boolean {
    return this.#awaited !== undefined || !this.#turns.left.isEmpty;
  }

  /** The wait of one promise for the barrier that has begun. */
  await(): Operation {
    const owes = (): boolean => this.#owes;
    const operation: AwaitedBarrier = {
      order: this.#turns.left.nextOrder(),
      ended: false,
      advance: () => {
        if (operation.ended) return true;
        if (this.#over !== undefined) throw this.#over;
        if (!this.#advance()) return false;
        operation.ended = true;
        if (this.#awaited === operation) this.#awaited = undefined;
        return true;
      },
      describe: () => this.operation.describe(),
      // If it is complete, its caller was not told.
      abandon: () => {
        if (this.#over === undefined) this.#turns.left.add(operation);
      },
      get owes() {
        return owes();
      },
      // It has none.
      drop: () => {},
      linger: this.#asking(),
    };
    this.#awaited = operation;
    return operation;
  }

  /** What is left when the ranks part: the barrier that a promise waits for, and `count` more. */
  rest(count: number): RestOfBarriers {
    const rest = {
      pending: count + (this.#awaited === undefined ? 0 : 1),
      steps: this.#countDown(count, () => rest.pending--),
    };
    return rest;
  }

  /** @param passed is called when each is complete */
  *#countDown(count: number, passed: () => void): Generator<void, void> {
    if (this.#awaited !== undefined) {
      yield* this.inTurn(0);
      passed();
    }
    for (let i = 0; i < count; i++) {
      yield* this.inTurn();
      passed();
    }
  }

  /**
   * One more barrier, or `count` more, after the barrier that a promise waits for, if there is one.
   * @param began is called when each has begun
   */
  *inTurn(count = 1, began?: () => void): Generator<void, void> {
    const before = this.#awaited;
    if (before !== undefined) while (!before.advance()) yield;
    for (let i = 0; i < count; i++) {
      if (this.#over !== undefined) throw this.#over;
      this.state.begin();
      began?.();
      while (!this.#advance()) yield;
    }
  }

  /**
   * All ranks part: no barrier takes place any more, and a call that still waits for one is told why.
   * @param what ends it
   */
  end(what: string): void {
    // To say who has not come, it maps words of all ranks.
    const barrier = this.isAwaited ? this.operation.describe() : 'a barrier';
    const advice = 'await it before you call finalize() or free()';
    this.#over = new RmaError('ERR_COMM', `${what} before ${barrier} was complete; ${advice}`);
    if (this.#awaited !== undefined) this.#turns.left.take(this.#awaited);
  }
}
