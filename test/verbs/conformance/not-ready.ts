import { expect } from 'vitest';
import { WcStatus } from '../../../src/verbs/completion-queue.ts';
import { QpState, SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  bringUp,
  connect,
  End,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  type Suite,
  send,
  write,
} from './harness.ts';

export function notReady({ check, clock }: Suite): void {
  check(
    'a send waits for a receive, posting it does not block, and what comes behind it keeps its order',
    async ([a, b]) => {
      connect(a, b, {}, { rnrRetry: 7, minRnrTimerMs: 0.01 });
      const before = b.bytes.slice();
      send(a, 1, 0, 8);
      write(a, b, 2, 50, 100, 8);
      send(a, 3, 8, 8);
      await expectNothing(a.sendCq, b.recvCq);
      expect(b.bytes).toEqual(before);
      b.receive(10, 1000, 64);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(1);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(2);
      await expectNothing(a.sendCq);
      b.receive(11, 2000, 64);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(3);
      expect((await poll(b.recvCq, 2)).map(({ wrId }) => wrId)).toEqual([10, 11]);
      expect(b.bytes.subarray(2000, 2008)).toEqual(a.bytes.subarray(8, 16));
      expect(a.context.pendingRetry).toBe(false);
    },
  );

  check('a write with immediate waits too, and writes nothing meanwhile', async ([a, b]) => {
    connect(a, b);
    const before = b.bytes.slice();
    post(a, (qp) => {
      qp.wrRdmaWriteImm(1, SendFlag.SIGNALED, b.region.rkey, b.at(0), 5);
      qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
    });
    await expectNothing(a.sendCq, b.recvCq);
    b.receive(10, 0, 0);
    await pollSuccess(a.sendCq);
    before[0] = 99;
    expect(b.bytes).toEqual(before);
  });

  check('a queue pair that waits does not hold up the others', async ([a, b]) => {
    connect(a, b);
    send(a, 1, 0, 8);
    const [c, d] = [new End(a.context), new End(b.context)];
    connect(c, d);
    write(c, d, 2, 0, 100, 8);
    expect((await pollSuccess(c.sendCq)).wrId).toBe(2);
    await expectNothing(a.sendCq);
    b.receive(10, 0, 64);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(1);
  });

  check('without retries the request fails at once, and everything behind it is flushed', async ([a, b]) => {
    connect(a, b, {}, { rnrRetry: 0 });
    a.qp.wrStart();
    a.qp.wrSend(1, 0);
    a.qp.wrRdmaWrite(2, 0, b.region.rkey, b.at(0));
    a.qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
    a.qp.wrComplete();
    expect(await pollStatuses(a.sendCq, 2)).toEqual([
      [1, name(WcStatus.RNR_RETRY_EXC_ERR)],
      [2, name(WcStatus.WR_FLUSH_ERR)],
    ]);
    expect(a.qp.state).toBe(QpState.ERR);
    expect(b.qp.state).toBe(QpState.RTS);
    expect(b.bytes[0]).toBe(1);
    expect(a.context.pendingRetry).toBe(false);
  });

  check('retries are counted, and as far apart as the receiver asks for', async ([a, b]) => {
    connect(a, b, {}, { rnrRetry: 2, minRnrTimerMs: 4 });
    const began = clock.now();
    send(a, 1, 0, 8, 0);
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.RNR_RETRY_EXC_ERR)]]);
    // Two retries come before the third refusal, each after at least the receiver's time.
    expect(clock.now() - began).toBeGreaterThanOrEqual(8);
    expect(a.context.pendingRetry).toBe(false);
  });

  check('each request has all the retries', async ([a, b]) => {
    connect(a, b, {}, { rnrRetry: 6, minRnrTimerMs: 4 });
    for (let i = 0; i < 10; i++) {
      send(a, i, 0, 8);
      // Every request needs retries: fewer than it has, also if this thread gets no core for a while; and all together
      // need more than one has.
      clock.pass(6, () => a.sendCq.poll(0));
      b.receive(i, 0, 64);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(i);
    }
  });

  check('a request that waits is flushed when its queue pair goes to ERR, and dropped by RESET', async ([a, b]) => {
    connect(a, b);
    send(a, 1, 0, 8, 0);
    await expectNothing(a.sendCq);
    a.qp.modify({ state: QpState.ERR });
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.WR_FLUSH_ERR)]]);
    a.qp.modify({ state: QpState.RESET });
    b.qp.modify({ state: QpState.RESET });
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    send(a, 2, 0, 8);
    await expectNothing(a.sendCq);
    for (const end of [a, b]) end.qp.modify({ state: QpState.RESET });
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    for (const wrId of [10, 11]) b.receive(wrId, 0, 64);
    send(a, 3, 0, 8);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(3);
    expect((await pollSuccess(b.recvCq)).wrId).toBe(10);
    await expectNothing(a.sendCq, b.recvCq);
    expect(a.context.pendingRetry).toBe(false);
  });

  check('a request that waits fails when the receiver is gone', async ([a, b]) => {
    connect(a, b);
    send(a, 1, 0, 8, 0);
    await expectNothing(a.sendCq);
    b.qp.destroy();
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.RETRY_EXC_ERR)]]);
  });
}
