/**
 * The manager of a hybrid lock, and the words that the ranks of its node share with it: hybrid-lock.ts says what they
 * mean, and why that is right.
 */
import type { Processor } from '../../verbs/processor.ts';
import { dueOf, type Operation } from '../../wait/operation.ts';
import { Grant } from './agent-messages.ts';
import { LEAST_BATCH } from './direct-lock.ts';
import type { Gate, LockRequest } from './lock-agent.ts';
import type { MigrationPolicy } from './lock-migration.ts';
import type { LockCounts, TargetLock } from './lock-scheme.ts';
import type { LockWord } from './lock-word.ts';

/** Words in front of the CPU lock's. */
export const MODE = 0;
/**
 * Locks that ranks of the node have had in CPU mode. The count is written under the lock, perhaps by several shared
 * holders at the same time: nearly right is enough.
 */
export const NEAR = 1;
/** Requests of ranks of the node in network mode since it began. */
export const RUN = 2;
/** When there are so many of them, they ask the manager to change the mode. */
export const LIMIT = 3;
export const HYBRID_WORDS = 32;

export const CPU = 0;
export const NETWORK = 1;

/**
 * Sets the words up, before any other rank can see them: a rank that saw another mode for a moment would take the wrong
 * lock.
 */
export function setUpHybrid(words: Int32Array, mode: number, policy: MigrationPolicy): void {
  words[MODE] = mode;
  words[LIMIT] = policy.limit;
}

/** What the ranks of the target's node share. */
export interface NodeWords {
  readonly words: Int32Array;
  readonly lock: TargetLock;
  readonly processor: Processor;
}

/** The manager: takes the lock of the mode, and changes the mode. */
export class HybridGate implements Gate {
  readonly batch: number;
  readonly processor: Processor;
  readonly #words: Int32Array;
  readonly #cpu: TargetLock;
  readonly #word: LockWord;
  readonly #policy: MigrationPolicy;
  readonly #isNear: (rank: number) => boolean;
  readonly #counts: LockCounts;
  readonly #inCpuMode: number;
  readonly #shared: number;
  /** The network word is `size + 1` though the mode is the network's: it changed a moment ago. */
  #keepsWord = false;
  /** Requests from other nodes in CPU mode that are not outweighed. */
  #far = 0;
  /** NEAR at the last look, and when CPU mode began. */
  #near = 0;
  #nearBefore = 0;
  /** Waits for the CPU lock. */
  #inLine: Operation | undefined;
  /** Locks in the last network mode, as far as the ranks that had them have told of them. */
  #told = 0;

  constructor(
    node: NodeWords,
    word: LockWord,
    policy: MigrationPolicy,
    isNear: (rank: number) => boolean,
    counts: LockCounts,
  ) {
    this.#words = node.words;
    this.#cpu = node.lock;
    this.processor = node.processor;
    this.#word = word;
    this.#policy = policy;
    this.#isNear = isNear;
    this.#counts = counts;
    this.#inCpuMode = word.free + 1;
    this.#shared = word.free + 2;
    this.batch = Math.max(LEAST_BATCH, 4 * word.free);
  }

  get due(): number {
    return Math.min(this.#word.due, dueOf(this.#inLine));
  }

  note(request: LockRequest, news: number): void {
    this.#told += news;
    if (this.#mode === CPU && !this.#isNear(request.origin)) {
      const near = this.#words[NEAR];
      this.#far = Math.max(0, this.#far - (near - this.#near)) + 1;
      this.#near = near;
    }
  }

  *take(request: LockRequest): Generator<void, number | undefined> {
    const { origin, exclusive, attempt, isOne } = request;
    const near = this.#isNear(origin);
    if (!attempt && !isOne) {
      if (this.#mode === CPU && !near && this.#far >= this.#policy.limit) yield* this.#toNetwork(exclusive);
      else if (this.#mode === NETWORK && near && Atomics.load(this.#words, RUN) >= this.#policy.limit)
        yield* this.#toCpu();
    }
    if (this.#mode === CPU) {
      if (attempt) return this.#cpu.tryAcquire(exclusive) ? Grant.BY_AGENT : undefined;
      yield* this.#acquireCpu(exclusive);
      return Grant.BY_AGENT;
    }
    const word = this.#word;
    const from = this.#keepsWord ? this.#inCpuMode : word.free;
    const handed = exclusive && !isOne;
    const to = handed ? origin : this.#shared;
    if (attempt) {
      if ((yield* word.swap(from, to)) !== from) return undefined;
    } else {
      yield* word.rest();
      yield* word.take(from, to);
    }
    this.#keepsWord = false;
    return handed ? Grant.HANDED : Grant.BY_AGENT_IN_NETWORK_MODE;
  }

  // biome-ignore lint/correctness/useYield: what is posted first is done first
  *give({ origin, exclusive }: LockRequest, how: number, full: boolean): Generator<void, void> {
    if (this.#mode === CPU) {
      this.processor.atomic();
      this.#cpu.release(exclusive);
    } else {
      this.#word.give(how === Grant.HANDED ? origin : this.#shared);
      if (full) this.#word.backOff.stepAside();
    }
  }

  get #mode(): number {
    return Atomics.load(this.#words, MODE);
  }

  *#acquireCpu(exclusive: boolean): Generator<void, void> {
    this.processor.atomic();
    if (this.#cpu.tryAcquire(exclusive)) return;
    this.#inLine = this.#cpu.acquire(exclusive);
    while (!this.#inLine.advance()) yield;
    this.#inLine = undefined;
  }

  /** @param waits for those that hold the lock; otherwise the mode stays while a rank holds it */
  *#toNetwork(waits: boolean): Generator<void, void> {
    // The network word is the manager's in CPU mode, so with the CPU lock it holds both.
    if (waits) yield* this.#acquireCpu(true);
    else if (!this.#cpu.tryAcquire(true)) return;
    Atomics.store(this.#words, MODE, NETWORK);
    this.#keepsWord = true;
    this.#migrated(this.#words[NEAR] - this.#nearBefore);
    this.#told = 0;
    this.#cpu.release(true);
  }

  *#toCpu(): Generator<void, void> {
    const word = this.#word;
    if (!this.#keepsWord) {
      yield* word.rest();
      yield* word.take(word.free, this.#inCpuMode);
    }
    yield* this.#acquireCpu(true);
    Atomics.store(this.#words, MODE, CPU);
    this.#keepsWord = false;
    this.#migrated(this.#told);
    this.#nearBefore = this.#words[NEAR];
    this.#near = this.#nearBefore;
    this.#cpu.release(true);
  }

  #migrated(locks: number): void {
    this.#counts.migrations++;
    this.#policy.judge(locks);
    this.#far = 0;
    Atomics.store(this.#words, RUN, 0);
    Atomics.store(this.#words, LIMIT, this.#policy.limit);
  }
}
