/** What a rank serves while it waits for nothing (`Progress.serve`). */
import { expect, onTestFinished, test } from 'vitest';
import type { Context } from '../../src/verbs/device.ts';
import type { Concerned } from '../../src/wait/concerned.ts';
import { Progress } from '../../src/wait/progress.ts';

/** A rank whose bell `ring` rings. `poll` is what brings messages in. */
function makeRank(poll: () => void) {
  const seen = { armed: 0, noted: [] as unknown[] };
  let wake: (() => void) | undefined;
  const parking = {
    arm: () => ++seen.armed,
    disarm: () => {},
    sleep: () => new Promise<void>((resolve) => (wake = resolve)),
    sleepSync: () => {},
  };
  const concerned: Concerned = {
    trouble: () => undefined,
    explain: (error) => error,
    check: () => {},
    note: (error) => seen.noted.push(error),
  };
  const liveness = { inspectPeers: () => {}, isAsked: () => false, report: () => {} };
  const progress = new Progress({ parking } as unknown as Context, liveness, poll, {
    timeout: 60_000,
    oversubscribed: true,
    expectsCalls: () => false,
    isIdle: () => true,
  });
  /** Rings, and lets the rank look. */
  const ring = async (): Promise<void> => {
    wake?.();
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  };
  return { seen, progress, concerned, ring };
}

async function until(what: () => boolean): Promise<void> {
  const began = Date.now();
  while (!what() && Date.now() - began < 60_000) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(what()).toBe(true);
}

test('what is served seldom is looked at without a bell, which nobody has to ring, until it ends', async () => {
  const { seen, progress, concerned } = makeRank(() => {});
  let looks = 0;
  const look = (): number => {
    looks++;
    if (looks === 2) throw new Error('a look');
    return Number.POSITIVE_INFINITY;
  };
  const stop = progress.serve(look, 'seldom', concerned);
  await until(() => looks >= 3);
  expect(seen).toEqual({ armed: 0, noted: [new Error('a look')] });
  // In this rank's waits it is served like everything else.
  const before = looks;
  let advanced = 0;
  progress.waitSync({ advance: () => ++advanced > 1, describe: () => 'a test' }, undefined, concerned);
  expect(looks).toBe(before + 1);
  stop();
  const after = looks;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(looks).toBe(after);
});

test('nor is it when the job is left', async () => {
  const { progress, concerned } = makeRank(() => {});
  let looks = 0;
  progress.serve(() => ++looks, 'seldom', concerned);
  progress.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(looks).toBe(0);
});

test('what bringing messages in throws while a rank waits for nothing is told by its next wait, once', async () => {
  const errors = [new Error('a listener')];
  const { progress, concerned, ring } = makeRank(() => {
    const error = errors.shift();
    if (error !== undefined) throw error;
  });
  let looks = 0;
  onTestFinished(progress.serve(() => ++looks, true, concerned));
  await ring();
  expect(errors).toEqual([]);
  // It goes on with what it serves.
  await ring();
  expect(looks).toBeGreaterThan(0);
  let advanced = 0;
  const wait = (): void =>
    progress.waitSync({ advance: () => ++advanced % 4 === 0, describe: () => 'a test' }, undefined, concerned);
  expect(wait).toThrow('a listener');
  advanced = 0;
  wait();
});
