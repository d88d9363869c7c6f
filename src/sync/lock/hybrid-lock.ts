/**
 * The hybrid lock (dissertation chapter 5): processors' atomics for ranks of the target's node, the network's for the
 * others. The two do not see each other, so the lock is in one of two modes, and the manager, an agent at the target,
 * changes it.
 *
 *   the CPU lock      a `QueueLock` in memory that the ranks of the node share, or by the hint `lock_cpu` the
 *                     dissertation's own (one-word-lock.ts); the manager is one more rank there
 *   MODE              a word beside it
 *   the network lock  a word that only the device's atomics touch (lock-word.ts)
 *
 *   CPU mode          the network word says so (`size + 1`), and belongs to the manager. Ranks of the node take the CPU
 *                     lock and look at MODE. Others find in the word that the lock is in CPU mode, and ask the manager,
 *                     which takes the CPU lock for them.
 *   network mode      exclusive locks are compare-and-swaps on the word. Shared ones go through the manager, which
 *                     takes the word for them (`size + 2`). A rank that has taken the CPU lock sees MODE, gives the
 *                     lock back, and goes the network's way.
 *
 * Mutual exclusion. MODE changes only while the manager holds the CPU lock exclusively and the network word is
 * `size + 1`, that is, while it holds both locks. So a rank that holds the CPU lock and has seen CPU mode knows that
 * the mode stays, and that the word stays `size + 1`: no rank holds the network lock. In network mode no rank's CPU
 * lock counts, and the word has one holder. The manager serves one line (lock-agent.ts), and takes the lock of the mode
 * that it finds for the head of that line: CPU mode and network mode change only between its grants.
 *
 * Starvation. In CPU mode the CPU lock has a line that is overtaken for a bounded time. The manager stands in that
 * line, and its own line is behind it. With `one-word` there is no line, and ranks of the node that take the lock again
 * and again may keep the manager waiting. In network mode it is as with `direct`. A rank that has asked the manager
 * keeps its place in the line, whatever the mode becomes meanwhile. It is granted the lock in either mode, so changes
 * to and fro keep no rank out. For a shared request the manager leaves CPU mode only if no rank holds the lock: a
 * shared holder may wait for others to share it with, and would wait for ever.
 *
 * Deferred (hint `lock_defer`): a rank of another node pays for turns in CPU mode: LOCK, grant, the operation, UNLOCK.
 * Each of them waits until the owner, which computes, enters the library. So an exclusive lock of a rank that takes the
 * mode for the CPU's asks for nothing until its epoch ends or flushes. If there is one small operation by then, it
 * travels with its lock and unlock in one message (lock-agent.ts): the manager takes the lock of the mode, carries the
 * operation out, and gives the lock back. That is why the manager may not hand over the network's lock for it: there is
 * no rank to hold that. Everything else asks for the lock, and waits for the grant.
 *
 *   Exclusion. The manager carries the operation out while it has the lock of the mode exclusively. If a deferred lock
 *   has more operations than that, they go to the manager, too, in messages. The origin gives the lock back when they
 *   are answered, or behind them in the order of messages. A lock that was handed over is given back by a request,
 *   which has no order with messages: therefore the origin waits for the answers first (`LockAgent`).
 *   Accumulates. The manager carries them out by the processor, while those under shared locks go through the device,
 *   and the two need not be atomic with each other. Under an exclusive lock there is no other holder: so only exclusive
 *   locks are deferred.
 *   Change of mode. Such an operation does not count towards a change (`note` is not told), and does not bring one
 *   about. It waits for no turn of its own, so network mode would save nothing, while it would cost the ranks of the
 *   node their lock. A rank that takes the mode for the CPU's in network mode is served all the same, and the answer
 *   tells it the mode. From then on it takes the network's lock itself, until it finds that lock in CPU mode.
 *
 * Memory order. The CPU lock orders as ever (queue-lock.ts); MODE is stored and loaded by `Atomics` under it. The
 * network's word: as in direct-lock.ts.
 *
 * In virtual time the words of the node are touched in the order of that time (`Processor.inOrder`): locks are
 * taken when this rank waits, and given back by `touch`.
 */

import type { Job } from '../../job/job.ts';
import type { Deferrable } from '../../job/rank-locks.ts';
import { dueOf, type Operation } from '../../wait/operation.ts';
import { Grant } from './agent-messages.ts';
import {
  CPU,
  HYBRID_WORDS,
  HybridGate,
  LIMIT,
  MODE,
  NEAR,
  NETWORK,
  type NodeWords,
  RUN,
  setUpHybrid,
} from './hybrid-gate.ts';
import type { Gate, LockAgent } from './lock-agent.ts';
import { locksByAgent, type Words } from './lock-by-agent.ts';
import { type CpuLockName, lockKind } from './lock-kind.ts';
import { MigrationPolicy } from './lock-migration.ts';
import type { Ask } from './lock-origin.ts';
import { type LockOrder, overtakingBy } from './lock-overtaking.ts';
import type { Attempt, TargetLock } from './lock-scheme.ts';
import type { LockWord } from './lock-word.ts';
import { OneWordLock, oneWordLockWords } from './one-word-lock.ts';
import { QueueLock, queueLockWords } from './queue-lock.ts';

/** How a lock is held. */
const Held = Object.freeze({ NOT: 0, CPU: 1, NETWORK: 2, BY_MANAGER: 3, DEFERRED: 4 });

export class HybridLock implements TargetLock {
  readonly #agent: LockAgent;
  readonly #word: LockWord;
  readonly #rank: number;
  readonly #target: number;
  readonly #node: NodeWords | undefined;
  readonly #migrates: boolean;
  readonly #defers: boolean;
  /** The mode that was seen last; what other ranks of the node share says it better. */
  #mode: number;
  #held: number = Held.NOT;
  #ask: Ask | undefined;
  /** Network locks since the manager was told. */
  #untold = 0;

  /**
   * @param word the target's
   * @param node what the target's node shares, if this rank is there
   * @param defers exclusive locks of other nodes are deferred, in CPU mode
   * @param mode in which the lock begins
   */
  constructor(
    agent: LockAgent,
    word: LockWord,
    rank: number,
    target: number,
    node: NodeWords | undefined,
    migrates: boolean,
    defers = false,
    mode = CPU,
  ) {
    this.#agent = agent;
    this.#defers = defers;
    this.#mode = mode;
    this.#word = word;
    this.#rank = rank;
    this.#target = target;
    this.#node = node;
    this.#migrates = migrates;
  }

  /** The CPU lock, if that is the one to take and it is free. */
  tryAcquire(exclusive: boolean): boolean {
    const node = this.#node;
    if (node === undefined || !node.processor.inOrder) return false;
    if (Atomics.load(node.words, MODE) !== CPU || !node.lock.tryAcquire(exclusive)) return false;
    return this.#haveCpu(node, exclusive);
  }

  attempt(): Attempt {
    return this.#agent.origin.attempt(this.#target, (ask) => {
      this.#held = Held.BY_MANAGER;
      this.#ask = ask;
    });
  }

  /** Whether what is done under the lock is queued for the manager, all the epoch long. */
  get isDeferred(): boolean {
    return this.#held === Held.DEFERRED;
  }

  get pending(): Deferrable['pending'] {
    return this.isDeferred ? this.#ask!.pending : undefined;
  }

  confirm(): Operation {
    return this.#agent.origin.confirm(this.#ask!);
  }

  get isGivenBack(): boolean {
    return this.isDeferred && this.#ask!.state === 'left';
  }

  defer(exclusive: boolean): boolean {
    if (!this.#defers || !exclusive || this.#node !== undefined || this.#mode !== CPU) return false;
    this.#ask = this.#agent.origin.askLater(this.#target, exclusive);
    this.#held = Held.DEFERRED;
    return true;
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
        if (this.#node?.processor.inOrder === false) this.#node.processor.touch(() => {});
        else if (!done) done = steps.next().done === true;
        return done;
      },
      describe: () =>
        asked === undefined
          ? `lock of rank ${this.#target}${line === undefined ? '' : `: ${line.describe()}`}`
          : `lock of rank ${this.#target} (waiting for its manager, which serves requests only while ` +
            'that rank is in the library)',
      abandon: () => {
        if (done) return;
        const takeBack = (): void => {
          // Perhaps only now in line, or asked only now: the word was not free, and the mode has changed meanwhile.
          const inLine = line;
          if (inLine !== undefined) this.#node!.processor.touch(() => inLine.abandon!());
          if (asked === undefined) return;
          const handed = asked.state === 'granted' && asked.how === Grant.HANDED;
          if (handed) this.#word.give(this.#rank);
          else this.#agent.origin.unlock(asked);
        };
        if (this.#word.deciding) this.#word.settle(steps, () => this.release(exclusive), takeBack);
        else takeBack();
      },
      // This rank's own manager rings no bell for it.
      isPolling: () =>
        this.#node !== undefined && this.#rank === this.#target ? true : Math.min(this.#word.due, dueOf(line)),
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
        node.processor.atomic();
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
        this.#mode = found === word.free + 1 ? CPU : NETWORK;
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
      const ask = this.#agent.origin.ask(this.#target, exclusive, false, this.#untold);
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
    else this.#releaseAsked(this.#ask!, held);
  }

  /** Operations of a deferred lock are complete by now, so their answer or grant has told of the mode. */
  #releaseAsked(ask: Ask, held: number): void {
    this.#agent.origin.unlock(ask);
    if (held !== Held.DEFERRED || ask.how === Grant.BY_AGENT) return;
    this.#mode = NETWORK;
    if (ask.how === Grant.HANDED) this.#word.give(this.#rank);
  }

  #releaseCpu(node: NodeWords, exclusive: boolean): void {
    node.processor.atomic();
    node.processor.touch(() => {
      node.lock.release(exclusive);
      // This rank's own manager may stand in line, and no bell rings for it where this rank alone is the node.
      if (this.#rank === this.#target) this.#agent.kick();
    });
  }
}

/** The CPU lock by its hint: how many words it takes, and how it is made. */
const CPU_LOCK: Record<CpuLockName, CpuLock> = {
  queue: {
    words: queueLockWords,
    make: (words, rank, members, job, order) =>
      new QueueLock(words, rank, members, job.context, overtakingBy(order, job)),
  },
  'one-word': {
    words: oneWordLockWords,
    make: (words, rank, members, job) => new OneWordLock(words, rank, members, job.context, job.processor),
  },
};

interface CpuLock {
  words(size: number): number;
  make(words: Int32Array, rank: number, members: readonly number[], job: Job, order: LockOrder): TargetLock;
}

export const hybrid = lockKind({
  name: 'hybrid',
  deviceWords: () => 1,
  agent: true,
  firstWord: (size, { lock_mode }) => (lock_mode === 'cpu' ? size + 1 : size),
  // The manager is one more rank of the node's lock.
  nodeWords: (size, { lock_cpu }) => HYBRID_WORDS + CPU_LOCK[lock_cpu].words(size + 1),
  setUpNode: (words, { lock_mode, lock_migration }) =>
    setUpHybrid(words, lock_mode === 'cpu' ? CPU : NETWORK, new MigrationPolicy(lock_migration)),
  make(parts) {
    const { rank: me, size, job, group } = parts.comm;
    const { context } = job;
    const members = group.worldRanks;
    const isNear = (rank: number): boolean =>
      rank === me || (context.near?.(members[rank]) ?? context.capabilities.loadStore);
    const { lock_migration, lock_mode, lock_defer, lock_cpu, lock_order } = parts.options;
    const { processor } = job;
    const nodeOf = (rank: number, as: number): NodeWords => {
      const words = parts.nodeWords(rank);
      const lock = CPU_LOCK[lock_cpu].make(
        words.subarray(HYBRID_WORDS),
        as,
        [...members, members[rank]],
        job,
        lock_order,
      );
      return { words, lock, processor };
    };
    const policy = new MigrationPolicy(lock_migration);
    const gate = ({ counts, ownWord }: Words): Gate =>
      new HybridGate(nodeOf(me, size), ownWord(), policy, isNear, counts);
    // Where no rank is on another node, nothing is ever queued.
    const defers = lock_defer === 'true' && members.some((_, rank) => !isNear(rank));
    const locks: (HybridLock | undefined)[] = [];
    const queues = defers && ((rank: number): boolean => locks[rank]?.isDeferred === true);
    return locksByAgent(parts, gate, queues, (agent, rank, { wordOf }) => {
      const node = isNear(rank) ? nodeOf(rank, me) : undefined;
      const mode = lock_mode === 'cpu' ? CPU : NETWORK;
      const lock = new HybridLock(agent, wordOf(rank), me, rank, node, policy.migrates, defers, mode);
      locks[rank] = lock;
      return lock;
    });
  },
});
