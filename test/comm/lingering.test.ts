/** A rank that a message has woken looks on before it sleeps again, where the provider counts what has come. */
import { expect, test } from 'vitest';
import { RmaError } from '../../src/errors.ts';
import type { Context } from '../../src/verbs/device.ts';
import type { Operation } from '../../src/wait/operation.ts';
import { Progress } from '../../src/wait/progress.ts';

/** Messages come at the given looks, counted over the whole wait; the operation is complete with the last one. */
function wait(counts: boolean, looks: readonly number[], options: { timeout?: number; failsAt?: number } = {}) {
  const seen = { looks: 0, sleeps: 0, yields: 0, polls: 0, came: 0 };
  const parking = {
    seesPlainStores: false,
    ...(counts ? { received: 0 } : {}),
    arm: () => 0,
    sleepSync: () => {
      seen.sleeps++;
      // Whatever comes next wakes it.
      const next = looks.find((look) => look > seen.looks);
      if (next !== undefined) seen.looks = next - 1;
    },
    sleep: () => Promise.resolve(),
    disarm: () => {},
  };
  const operation: Operation = {
    advance: () => {
      seen.looks++;
      if (!looks.includes(seen.looks)) return false;
      seen.came++;
      if (counts) parking.received!++;
      return seen.came === looks.length;
    },
    describe: () => 'a test',
  };
  const concerned = {
    trouble: () => (seen.came === options.failsAt ? new RmaError('ERR_RMA_RANK_FAILED', 'rank 1 failed') : undefined),
    explain: (error: unknown) => error,
    check: () => {},
    note: () => {},
  };
  const liveness = {
    inspectPeers: () => {},
    isAsked: () => false,
    report: () => {},
  };
  const progress = new Progress({ parking } as unknown as Context, liveness, () => void seen.polls++, {
    timeout: 60_000,
    oversubscribed: true,
    schedYield: () => void seen.yields++,
    expectsCalls: () => false,
    isIdle: () => true,
  });
  let error: unknown;
  try {
    progress.waitSync(operation, undefined, concerned);
  } catch (thrown) {
    error = thrown;
  }
  return { ...seen, error };
}

/** Messages that come one after the other, soon after the last look. */
const STREAM = Array.from({ length: 50 }, (_, i) => 1000 + 2 * i);

test('messages that follow each other wake it once', () => {
  const { sleeps, came } = wait(true, STREAM);
  expect(came).toBe(STREAM.length);
  expect(sleeps).toBe(1);
});

test('it does what it does before it sleeps for two of them at most, and ends with a failure meanwhile', () => {
  const { polls, came, error } = wait(true, STREAM, { failsAt: 20 });
  expect(came).toBe(20);
  expect(polls).toBeGreaterThanOrEqual(10);
  expect(error).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
});

test('those that come late wake it each time', () => {
  const late = Array.from({ length: 5 }, (_, i) => 1000 * (i + 1));
  expect(wait(true, late).sleeps).toBe(late.length);
});

test('where nothing is counted, it sleeps after some looks', () => {
  const far = Array.from({ length: 5 }, (_, i) => 1000 + 20 * i);
  expect(wait(false, far).sleeps).toBe(far.length);
});
