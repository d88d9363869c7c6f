/** A hybrid lock by hand: the moments in which a wait is given up, and the mode changes. */
import { expect, test } from 'vitest';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { CPU, HYBRID_WORDS, MODE, NETWORK } from '../../src/sync/lock/hybrid-gate.ts';
import { HybridLock } from '../../src/sync/lock/hybrid-lock.ts';
import type { LockAgent } from '../../src/sync/lock/lock-agent.ts';
import { noLocks } from '../../src/sync/lock/lock-scheme.ts';
import { LockWord } from '../../src/sync/lock/lock-word.ts';
import { QueueLock, queueLockWords } from '../../src/sync/lock/queue-lock.ts';
import type { RemoteWord } from '../../src/transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';

const SIZE = 2;

test('a wait that is given up while its swap is under way leaves no ticket in the processors’ line', () => {
  const [context] = createLocalFabric(1).map((fabric) => openEmulator(fabric));
  const words = new Int32Array(HYBRID_WORDS + queueLockWords(SIZE));
  words[MODE] = NETWORK;
  const members = [context.member, context.member];
  const cpuLockOf = (rank: number): QueueLock => new QueueLock(words.subarray(HYBRID_WORDS), rank, members, context);
  /** Of the swap that was not answered, and what nobody waits for any more. */
  let answer: (lo: number, hi: number) => void = () => {};
  const left: Generator<void, unknown>[] = [];
  const requests = {
    remote: { compareSwap: (...of: unknown[]) => void (answer = of[5] as typeof answer), fetchAdd() {} },
    settle: (steps: Generator<void, unknown>) => void left.push(steps),
  } as unknown as RequestTransfer;
  // A machine so busy that each wait is over when this rank looks at the clock again.
  let time = 0;
  const word = new LockWord(requests, {} as RemoteWord, SIZE, () => (time += 1000), 1, noLocks());
  const agent = { advance() {}, kick() {} } as unknown as LockAgent;
  const node = { words, lock: cpuLockOf(1), processor: REAL_PROCESSOR };
  const lock = new HybridLock(agent, word, 1, 0, node, true);

  words[2] = -1000;
  const wait = lock.acquire(true);
  expect(wait.advance()).toBe(false);
  wait.abandon!();
  // Meanwhile the manager has gone to CPU mode, and another rank has the lock.
  const other = cpuLockOf(0);
  words[MODE] = CPU;
  expect(other.tryAcquire(true)).toBe(true);
  answer(SIZE + 1, 0);
  for (let look = 0; look < 5; look++) for (const steps of left) steps.next();
  other.release(true);

  const third = cpuLockOf(0);
  const next = third.acquire(true);
  expect(next.advance()).toBe(true);
  third.release(true);
  // Who stands in line behind it gets it, too.
  expect(other.tryAcquire(true)).toBe(true);
  const behind = third.acquire(true);
  expect(behind.advance()).toBe(false);
  other.release(true);
  expect(behind.advance()).toBe(true);
  context.close();
});
