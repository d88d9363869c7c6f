/**
 * Acknowledgements of small messages over libfabric, which wait a moment for an answer that carries them
 * (native/fabric_messages.cc). What every provider promises of them is in the verbs' conformance suite. On the loopback
 * interface; run by `npm run test:tcp`.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { QpState } from '../../src/verbs/queue-pair.ts';
import { runRanks } from '../support/ranks.ts';
import { bringUp, connect, End, name, pollStatuses, pollSuccess, send } from '../verbs/conformance/harness.ts';
import { ON_DEVICE, openMembers, segments } from './device.ts';

const LONG = { timeout: 120_000 };

function pair(): [End, End] {
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [a, b] = contexts.map((context) => new End(context));
  connect(a, b);
  return [a, b];
}

/** Polls until there is a completion, and does nothing else: no look comes late. */
function pollAtOnce(end: End, which: 'sendCq' | 'recvCq'): void {
  const cq = end[which];
  while (cq.poll(1) === 0);
  expect(cq.wc.status[0]).toBe(0);
}

test('an answer carries the acknowledgement of what it answers', LONG, () => {
  const ROUNDS = 20;
  const [a, b] = pair();
  const pingPong = (i: number): void => {
    for (const end of [a, b]) end.receive(i, 1000, 64);
    send(a, i, 0, 8);
    pollAtOnce(b, 'recvCq');
    send(b, i, 0, 8);
    pollAtOnce(a, 'recvCq');
    pollAtOnce(a, 'sendCq');
    // That of the answer comes with the next one.
    if (i > 0) pollAtOnce(b, 'sendCq');
  };
  for (let i = 0; i < 25 * ROUNDS; i++) pingPong(i);
  let least = Number.POSITIVE_INFINITY;
  // Others may use TCP, or take the processor, so that an answer comes too late: the best of many tries counts.
  for (let tries = 0; tries < 5000 && least >= 3 * ROUNDS; tries++) {
    const before = segments();
    for (let i = 0; i < ROUNDS; i++) pingPong(i + 1);
    least = Math.min(least, segments() - before);
  }
  // Each message, and its acknowledgement, would be four.
  expect(least / ROUNDS).toBeLessThan(3);
});

describe('a send that was received succeeds, though at once', () => {
  const ends: Record<string, (b: End) => void> = {
    'its receiver’s queue pair is reset': ({ qp }) => qp.modify({ state: QpState.RESET }),
    'its receiver’s queue pair is destroyed': ({ qp }) => qp.destroy(),
    'its receiver’s queue pair goes to the error state': ({ qp }) => qp.modify({ state: QpState.ERR }),
    'its receiver’s device is closed': ({ context }) => context.close(),
  };
  for (const [what, end] of Object.entries(ends)) {
    test(what, LONG, async () => {
      for (let round = 0; round < 5; round++) {
        const [a, b] = pair();
        b.receive(1, 0, 64);
        send(a, 1, 0, 8);
        pollAtOnce(b, 'recvCq');
        end(b);
        await pollSuccess(a.sendCq);
      }
    });
  }
});

test('numbers begin anew with a reset of both queue pairs', LONG, async () => {
  const [a, b] = pair();
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 5; i++) {
      b.receive(i, 0, 64);
      send(a, i, 0, 8);
      pollAtOnce(b, 'recvCq');
      await pollSuccess(a.sendCq);
    }
    // This one is answered, and its answer is not acknowledged yet when the queue pairs end.
    for (const end of [a, b]) end.receive(5, 0, 64);
    send(a, 5, 0, 8);
    pollAtOnce(b, 'recvCq');
    send(b, 5, 0, 8);
    pollAtOnce(a, 'recvCq');
    pollAtOnce(a, 'sendCq');
    for (const { qp } of [a, b]) qp.modify({ state: QpState.RESET });
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    // There is no receive: nothing may complete it.
    send(a, 6, 0, 8);
    send(b, 7, 0, 8);
    a.receive(6, 0, 64);
    pollAtOnce(a, 'recvCq');
    pollAtOnce(b, 'sendCq');
    expect(a.sendCq.poll(1)).toBe(0);
    b.receive(7, 0, 64);
    pollAtOnce(b, 'recvCq');
    pollAtOnce(a, 'sendCq');
  }
});

test('a send to a queue pair that ended before it came fails', LONG, async () => {
  const [a, b] = pair();
  b.receive(1, 0, 64);
  send(a, 1, 0, 8);
  pollAtOnce(b, 'recvCq');
  b.qp.modify({ state: QpState.ERR });
  send(a, 2, 0, 8);
  expect(await pollStatuses(a.sendCq, 2)).toEqual([
    [1, name(WcStatus.SUCCESS)],
    [2, name(WcStatus.RETRY_EXC_ERR)],
  ]);
});

test('who computes after a collective has acknowledged what came', LONG, async () => {
  let least = Number.POSITIVE_INFINITY;
  // The thread that acknowledges what a program has not takes more than half a millisecond.
  for (let tries = 0; tries < 10 && least > 0.5; tries++) {
    const job = { kind: 'processes', size: 2, env: ON_DEVICE } as const;
    const [{ quartile }] = await runRanks<{ quartile: number }>('comm-acknowledgements', job);
    least = Math.min(least, quartile);
  }
  expect(least).toBeLessThan(0.5);
});
