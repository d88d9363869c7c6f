import { expect } from 'vitest';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { connect, type End, poll, pollSuccess, post, type Suite, send, turn, write } from './harness.ts';

/** Longer than any test waits: only a wake-up ends such a sleep in time. */
const LONG_MS = 300_000;

/** Sleeps as a rank does: announces, looks once more, sleeps. @returns a promise of the wake-up */
function sleep(end: End): { woken: Promise<void>; isAwake(): boolean } {
  const { parking } = end.context;
  let awake = false;
  const woken = parking.sleep(parking.arm(), LONG_MS).then(() => {
    awake = true;
    parking.disarm();
  });
  return { woken, isAwake: () => awake };
}

async function staysAsleep(sleeper: { isAwake(): boolean }): Promise<void> {
  for (let i = 0; i < 5; i++) await turn();
  expect(sleeper.isAwake()).toBe(false);
}

export function wakeUps({ check, checkIf }: Suite): void {
  check('a completion wakes a rank whose queue is armed, once', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 3; i++) b.receive(i, 0, 8);
    b.recvCq.reqNotify();
    const first = sleep(b);
    await staysAsleep(first);
    send(a, 1, 0, 8);
    await first.woken;
    await pollSuccess(b.recvCq);
    const second = sleep(b);
    send(a, 2, 0, 8);
    await poll(a.sendCq, 2);
    await staysAsleep(second);
    b.recvCq.reqNotify();
    await second.woken;
    await pollSuccess(b.recvCq);
  });

  check('a write with immediate wakes, a plain write does not', async ([a, b]) => {
    connect(a, b);
    b.receive(1, 0, 0);
    b.recvCq.reqNotify();
    const sleeper = sleep(b);
    write(a, b, 1, 0, 100, 8);
    await pollSuccess(a.sendCq);
    await staysAsleep(sleeper);
    post(a, (qp) => qp.wrRdmaWriteImm(2, 0, 0, 0, 1));
    await sleeper.woken;
  });

  check('a queue armed for solicited completions sleeps through the others', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 3; i++) b.receive(i, 0, 8);
    b.recvCq.reqNotify(true);
    const sleeper = sleep(b);
    send(a, 1, 0, 8);
    await pollSuccess(a.sendCq);
    await staysAsleep(sleeper);
    send(a, 2, 0, 8, SendFlag.SIGNALED | SendFlag.SOLICITED);
    await sleeper.woken;
    await poll(b.recvCq, 2);
  });

  checkIf('faultEvents', 'a completion in error counts as solicited', async ([a, b]) => {
    connect(a, b);
    b.receive(1, 0, 4);
    b.recvCq.reqNotify(true);
    const sleeper = sleep(b);
    send(a, 1, 0, 8);
    await sleeper.woken;
  });

  check('arming a queue that holds completions wakes at once', async ([a, b]) => {
    connect(a, b);
    b.receive(1, 0, 8);
    send(a, 1, 0, 8);
    await pollSuccess(a.sendCq);
    const sleeper = sleep(b);
    b.recvCq.reqNotify();
    await sleeper.woken;
  });

  check('a completion of one’s own request wakes too', async ([a, b]) => {
    connect(a, b);
    a.sendCq.reqNotify();
    const sleeper = sleep(a);
    write(a, b, 1, 0, 100, 8);
    await sleeper.woken;
    await pollSuccess(a.sendCq);
  });

  check('a queue pair that the peer has moved to ERR wakes its owner', async ([a, b]) => {
    connect(a, b);
    b.recvCq.reqNotify();
    b.receive(1, 0, 8);
    const sleeper = sleep(b);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, 0, 0, 0);
      qp.wrSetInlineData(new Uint8Array(1), 0, 1);
    });
    await sleeper.woken;
    await poll(b.recvCq, 1);
  });

  check(
    'a sleep ends with its time',
    async ([a]) => {
      const { parking } = a.context;
      await parking.sleep(parking.arm(), 1);
      parking.disarm();
      parking.sleepSync(parking.arm(), 1);
      parking.disarm();
    },
    1,
  );

  checkIf('loadStore', 'what rings between the announcement and the sleep ends it at once', async ([a, b]) => {
    const { parking } = b.context;
    const token = parking.arm();
    a.context.wake(b.context.member);
    parking.sleepSync(token, LONG_MS);
    await parking.sleep(token, LONG_MS);
    parking.disarm();
  });
}
