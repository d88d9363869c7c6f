/**
 * What the lock schemes with an agent have in common: how the agent is made, and the word of a rank that network
 * atomics change.
 */
import { OperationMessages } from '../../transfer/served/operation-messages.ts';
import { OperationQueue } from '../../transfer/served/operation-queue.ts';
import { type Gate, LockAgent } from './lock-agent.ts';
import type { LockParts, Locks, PassiveQueue } from './lock-kind.ts';
import { type LockCounts, noLocks, type TargetLock } from './lock-scheme.ts';
import { LockWord } from './lock-word.ts';

/** What a scheme makes its gate and locks from. */
export interface Words {
  readonly counts: LockCounts;
  /** The word of a rank, for its locks there. */
  wordOf(rank: number): LockWord;
  /** That of this rank, for its agent. */
  ownWord(): LockWord;
}

/**
 * @param makeGate what the agent takes for those that it serves
 * @param queues whether operations under locks are queued, and the agent carries them out; or under which
 */
export function locksByAgent(
  parts: LockParts,
  makeGate: (words: Words) => Gate,
  queues: boolean | PassiveQueue['takes'],
  makeLock: (agent: LockAgent, rank: number, words: Words) => TargetLock,
): Locks {
  const { comm, wire, channel, description } = parts;
  const { rank: me, size, job } = comm;
  const { messenger, progress } = job;
  const counts = noLocks();
  // One seed for each pair, and one for the agent.
  const word = (rank: number, seed: number): LockWord =>
    new LockWord(wire!, parts.remoteWord(rank, 0), size, () => progress.now(), seed, counts);
  const words: Words = {
    counts,
    wordOf: (rank) => word(rank, size * me + rank),
    ownWord: () => word(me, -1 - me),
  };
  const takes = typeof queues === 'function' ? queues : undefined;
  const queue = queues ? new OperationQueue(size, parts.kernels, parts.queueTrace?.('lock')) : undefined;
  const poll = (): void => {
    messenger.poll();
    wire?.poll();
  };
  const handedTooLate = (rank: number): void => words.wordOf(rank).give(me);
  const operations = queue && new OperationMessages(channel!, queue, parts.server);
  const agent = new LockAgent(channel!, makeGate(words), counts, poll, handedTooLate, description, operations);
  const stop = comm.members.serve(() => agent.advance(), true);
  return {
    counts,
    serve: () => agent.serve(),
    ...(queue && { passive: { queue, origin: agent.origin, takes } }),
    make: (rank) => makeLock(agent, rank, words),
    release() {
      stop();
      agent.close();
    },
  };
}
