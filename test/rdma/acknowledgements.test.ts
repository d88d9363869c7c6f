/**
 * Acknowledgements of small messages over libfabric, which wait a moment for an answer that carries them
 * (native/fabric_messages.cc). What every provider promises of them is in the verbs' conformance suite. On the loopback
 * interface; run by `npm run test:tcp`.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { QpState } from '../../src/verbs/queue-pair.ts';
import { bringUp, connect, End, name, pollStatuses, pollSuccess, send } from '../verbs/conformance/harness.ts';
import { openMembers, segments } from './device.ts';

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
  const deadline = performance.now() + 20_000;
  let found = 0;
  while (found === 0 && performance.now() < deadline) found = cq.poll(1);
  expect([found, cq.wc.status[0]]).toEqual([1, 0]);
}

test('an answer carries the acknowledgement of what it answers', LONG, () => {
  // So few that other programs leave them alone now and then, also on a busy machine.
  const ROUNDS = 10;
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
  pingPong(0);
  let least = Number.POSITIVE_INFINITY;
  // Others may use TCP here, too, and take the processor: then the acknowledgement does not wait for the answer.
  for (let tries = 0; tries < 4000 && least > 2.5; tries++) {
    const before = segments();
    for (let i = 1; i <= ROUNDS; i++) pingPong(i);
    least = Math.min(least, (segments() - before) / ROUNDS);
  }
  // Each message, and its acknowledgement, would be four.
  expect(least).toBeLessThan(3);
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

/**
 * Milliseconds that a send takes whose receiver polls no more when it has it: a quarter of some take no longer. (Beside
 * other programs the others may wait for a processor.)
 */
function quartile([a, b]: [End, End], before: () => void, behind: () => void): number {
  const all: number[] = [];
  for (let i = 0; i < 31; i++) {
    b.receive(i, 0, 64);
    before();
    send(a, i, 0, 8);
    pollAtOnce(b, 'recvCq');
    behind();
    const since = performance.now();
    pollAtOnce(a, 'sendCq');
    all.push(performance.now() - since);
  }
  return all.sort((x, y) => x - y)[7];
}

test('nothing waits of a receiver that has done something else, or says that it will', LONG, () => {
  const ends = pair();
  const [, b] = ends;
  const during = (milliseconds: number, run: () => void): void => {
    for (const since = performance.now(); performance.now() - since < milliseconds; ) run();
  };
  const looks = (): void => expect(b.recvCq.poll(1)).toBe(0);
  const polls = (): void => during(2, looks);
  // Longer than a thread of the provider looks for more.
  const computes = (): void => {
    during(5, () => {});
    looks();
  };
  const nothing = (): void => {};
  for (const [before, behind] of [
    [computes, nothing],
    [polls, () => b.context.acknowledge!()],
  ]) {
    let share = Number.POSITIVE_INFINITY;
    // Others may want the processor.
    for (let tries = 0; tries < 10 && share > 0.3; tries++) {
      share = quartile(ends, before, behind) / quartile(ends, polls, nothing);
    }
    expect(share).toBeLessThan(0.3);
  }
});
