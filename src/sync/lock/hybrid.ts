/**
 * The hybrid lock (dissertation chapter 5): processors' atomics for ranks of the target's node, the network's for the
 * others. The two do not see each other, so the lock is in one of two modes, and the manager, an agent at the target,
 * changes it.
 *
 *   the CPU lock      a `QueueLock` in memory that the ranks of the node share; the manager is one more rank there
 *   MODE              a word beside it
 *   the network lock  a word that only the device's atomics touch (lock-word.ts)
 *
 *   CPU mode          the network word says so (`size + 1`), and belongs to the manager. Ranks of the node take the CPU
 *                     lock and look at MODE. Others find the word taken for
 *                     the CPU mode and ask the manager, who takes the CPU lock for them.
 *   network mode      exclusive locks are compare-and-swaps on the word. Shared ones go through the manager, who takes
 *                     it for them (`size + 2`). Who has taken the CPU lock
 *                     sees MODE, gives it back, and goes the network's way.
 *
 * Mutual exclusion. MODE changes only while the manager holds the CPU lock exclusively and the network word is
 * `size + 1`, that is, while it holds both locks. So a rank that holds the CPU lock and has seen CPU mode knows that
 * the mode stays, and that the word stays `size + 1`: nobody holds the network lock. In network mode nobody's CPU lock
 * counts, and the word has one holder. The manager is one line (agent.ts), and takes the lock of the mode that it finds
 * for the head of that line: CPU mode and network mode change only between its grants.
 *
 * Starvation. In CPU mode the CPU lock is first come, first served, and the manager stands in its line; behind it, its
 * own line is. In network mode it is as with `direct`. A rank that has asked the manager keeps its place in the line,
 * whatever the mode becomes meanwhile: it is granted the lock in either mode, so that changes to and fro keep nobody
 * out. For a shared request the manager leaves CPU mode only if nobody holds the lock: a shared holder may wait for
 * others to share it with, and would wait for ever.
 *
 * Memory order. The CPU lock orders as ever (queue.ts); MODE is stored and loaded by `Atomics` under it. The network's
 * word: as in direct.ts.
 *
 * In virtual time the words of the node are touched in its order (`ProcessorTime.inOrder`): locks are taken when this
 * rank waits, and given back by `touch`.
 */

import type { ProcessorTime } from '../../comm/job.ts';
import type { Operation } from '../../comm/operation.ts';
import { type Ask, attemptByAgent, type Gate, Grant, type LockAgent, type LockRequest } from './agent.ts';
import { locksByAgent, type Words } from './by-agent.ts';
import { LEAST_BATCH } from './direct.ts';
import { lockKind } from './kind.ts';
import type { LockWord } from './lock-word.ts';
import { MigrationPolicy } from './migration.ts';
import { QueueLock, queueLockWords } from './queue.ts';
import type { Attempt, LockCounts, TargetLock } from './scheme.ts';

/** Words in front of the CPU lock's. */
const MODE = 0;
/**
 * Locks that ranks of the node have had in CPU mode; written under the lock, by shared holders at the same time
 * perhaps: nearly right is enough.
 */
const NEAR = 1;
/** Requests of ranks of the node in network mode since it began. */
const RUN = 2;
/** So many of them ask the manager to change it. */
const LIMIT = 3;
export const HYBRID_WORDS = 32;

export const CPU = 0;
export const NETWORK = 1;

/**
 * Sets the words up. Before any other rank can see them: one that saw another mode for a moment would take the wrong
 * lock.
 */
export function setUpHybrid(words: Int32Array, mode: number, policy: MigrationPolicy): void {
  words[MODE] = mode;
  words[LIMIT] = policy.limit;
}

/** What the ranks of the target's node share. */
export interface NodeWords {
  readonly words: Int32Array;
  readonly lock: QueueLock;
  /** Where processor time is part of a model. */
  readonly processor?: ProcessorTime | undefined;
}

/** The manager: takes the lock of the mode, and changes the mode. */
export class HybridGate implements Gate {
  readonly batch: number;
  readonly processor: ProcessorTime | undefined;
  readonly #words: Int32Array;
  readonly #cpu: QueueLock;
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
  /** Locks in the last network mode that the ranks which had them have told of. */
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
    return this.#word.due;
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
    const { origin, exclusive, attempt } = request;
    const near = this.#isNear(origin);
    if (!attempt) {
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
    const to = exclusive ? origin : this.#shared;
    if (attempt) {
      if ((yield* word.swap(from, to)) !== from) return undefined;
    } else {
      yield* word.rest();
      yield* word.take(from, to);
    }
    this.#keepsWord = false;
    return exclusive ? Grant.HANDED : Grant.BY_AGENT;
  }

  // biome-ignore lint/correctness/useYield: what is posted first is done first
  *give({ origin, exclusive }: LockRequest, how: number, full: boolean): Generator<void, void> {
    if (this.#mode === CPU) {
      this.processor?.atomic();
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
    this.processor?.atomic();
    if (this.#cpu.tryAcquire(exclusive)) return;
    const acquisition = this.#cpu.acquire(exclusive);
    while (!acquisition.advance()) yield;
  }

  /** @param waits for those that hold the lock; else the mode stays while somebody does */
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

/** How a lock is held. */
const Held = Object.freeze({ NOT: 0, CPU: 1, NETWORK: 2, BY_MANAGER: 3 });

export class HybridLock implements TargetLock {
  readonly #agent: LockAgent;
  readonly #word: LockWord;
  readonly #rank: number;
  readonly #target: number;
  readonly #node: NodeWords | undefined;
  readonly #migrates: boolean;
  #held: number = Held.NOT;
  #ask: Ask | undefined;
  /** Network locks since the manager was told. */
  #untold = 0;

  /**
   * @param word the target's
   * @param node what the target's node shares, if this rank is there
   */
  constructor(
    agent: LockAgent,
    word: LockWord,
    rank: number,
    target: number,
    node: NodeWords | undefined,
    migrates: boolean,
  ) {
    this.#agent = agent;
    this.#word = word;
    this.#rank = rank;
    this.#target = target;
    this.#node = node;
    this.#migrates = migrates;
  }

  /** The CPU lock, if that is the one to take and it is free. */
  tryAcquire(exclusive: boolean): boolean {
    const node = this.#node;
    if (node === undefined || node.processor?.inOrder === false) return false;
    if (Atomics.load(node.words, MODE) !== CPU || !node.lock.tryAcquire(exclusive)) return false;
    return this.#haveCpu(node, exclusive);
  }

  attempt(): Attempt {
    return attemptByAgent(this.#agent, this.#target, (ask) => {
      this.#held = Held.BY_MANAGER;
      this.#ask = ask;
    });
  }

  acquire(exclusive: boolean): Operation {
    let line: Operation | undefined;
    let asked: Ask | undefined;
    const steps = this.#acquire(
      exclusive,
      (operation) => {
        line = operation;
      },
      (ask) => {
        asked = ask;
      },
    );
    let done = false;
    return {
      advance: () => {
        this.#agent.advance();
        if (this.#node?.processor?.inOrder === false) this.#node.processor.touch(() => {});
        else if (!done) done = steps.next().done === true;
        return done;
      },
      describe: () =>
        asked === undefined
          ? `lock of rank ${this.#target}${line === undefined ? '' : `: ${line.describe()}`}`
          : `lock of rank ${this.#target} (waiting for its manager, which serves requests only while that rank is in the library)`,
      abandon: () => {
        if (done) return;
        if (line !== undefined) touch(this.#node!, () => line!.abandon!());
        const takeBack = (): void => {
          // Perhaps asked only now, since the word was found in CPU mode.
          if (asked === undefined) return;
          const handed = asked.state === 'granted' && asked.how === Grant.HANDED;
          if (handed) this.#word.give(this.#rank);
          else this.#agent.unlock(asked);
        };
        if (this.#word.deciding) this.#word.settle(steps, () => this.release(exclusive), takeBack);
        else takeBack();
      },
      // This rank's own manager rings no bell for it.
      isPolling: () => (this.#node !== undefined && this.#rank === this.#target ? true : this.#word.due),
    };
  }

  *#acquire(
    exclusive: boolean,
    inLine: (operation: Operation | undefined) => void,
    onAsk: (ask: Ask) => void,
  ): Generator<void, void> {
    const node = this.#node;
    const word = this.#word;
    let counted = false;
    word.backOff.reset();
    for (;;) {
      if (node !== undefined && Atomics.load(node.words, MODE) === CPU) {
        node.processor?.atomic();
        if (!node.lock.tryAcquire(exclusive)) {
          const operation = node.lock.acquire(exclusive);
          inLine(operation);
          while (!operation.advance()) yield;
          inLine(undefined);
        }
        if (this.#haveCpu(node, exclusive)) return;
        continue;
      }
      let asks = !exclusive;
      if (node !== undefined && this.#migrates && !counted) {
        counted = true;
        if (Atomics.add(node.words, RUN, 1) + 1 >= Atomics.load(node.words, LIMIT)) asks = true;
      }
      if (!asks) {
        yield* word.giveWay();
        const found = yield* word.swap(word.free, this.#rank);
        if (found === word.free) {
          this.#held = Held.NETWORK;
          this.#untold++;
          return;
        }
        // Another node finds the lock in CPU mode; for a rank of this one the mode is just changing.
        asks = found === word.free + 1 && node === undefined;
        if (!asks) {
          yield* word.pause();
          continue;
        }
      }
      const ask = this.#agent.ask(this.#target, exclusive, false, this.#untold);
      this.#untold = 0;
      onAsk(ask);
      while (ask.state === 'waiting') yield;
      this.#held = ask.how === Grant.HANDED ? Held.NETWORK : Held.BY_MANAGER;
      this.#ask = ask;
      return;
    }
  }

  /** The CPU lock was taken: it counts if the mode is the processors'. */
  #haveCpu(node: NodeWords, exclusive: boolean): boolean {
    const { words } = node;
    if (Atomics.load(words, MODE) !== CPU) {
      this.#releaseCpu(node, exclusive);
      return false;
    }
    words[NEAR]++;
    this.#held = Held.CPU;
    return true;
  }

  release(exclusive: boolean): void {
    const held = this.#held;
    this.#held = Held.NOT;
    if (held === Held.CPU) this.#releaseCpu(this.#node!, exclusive);
    else if (held === Held.NETWORK) this.#word.give(this.#rank);
    else this.#agent.unlock(this.#ask!);
  }

  #releaseCpu(node: NodeWords, exclusive: boolean): void {
    node.processor?.atomic();
    touch(node, () => {
      node.lock.release(exclusive);
      // The own manager may stand in line; nobody rings where this rank alone is the node.
      if (this.#rank === this.#target) this.#agent.kick();
    });
  }
}

/** Does something to the words of a node in order. */
function touch({ processor }: NodeWords, access: () => void): void {
  if (processor === undefined) access();
  else processor.touch(access);
}

export const hybrid = lockKind({
  name: 'hybrid',
  byRequests: () => true,
  agent: true,
  firstWord: (size, { lock_mode }) => (lock_mode === 'cpu' ? size + 1 : size),
  // The manager is one more rank of the node's lock.
  nodeWords: (size) => HYBRID_WORDS + queueLockWords(size + 1),
  setUpNode: (words, { lock_mode, lock_migration }) =>
    setUpHybrid(words, lock_mode === 'cpu' ? CPU : NETWORK, new MigrationPolicy(lock_migration)),
  make(parts) {
    const { rank: me, size, job, group } = parts.comm;
    const { context } = job;
    const members = group.worldRanks;
    const isNear = (rank: number): boolean =>
      rank === me || (context.near?.(members[rank]) ?? context.capabilities.loadStore);
    const nodeOf = (rank: number, as: number): NodeWords => {
      const words = parts.nodeWords(rank);
      const lock = new QueueLock(words.subarray(HYBRID_WORDS), as, [...members, members[rank]], context);
      return { words, lock, processor: job.processor };
    };
    const policy = new MigrationPolicy(parts.options.lock_migration);
    const gate = ({ counts, ownWord }: Words): Gate =>
      new HybridGate(nodeOf(me, size), ownWord(), policy, isNear, counts);
    return locksByAgent(parts, gate, false, (agent, rank, { wordOf }) => {
      const node = isNear(rank) ? nodeOf(rank, me) : undefined;
      return new HybridLock(agent, wordOf(rank), me, rank, node, policy.migrates);
    });
  },
});
