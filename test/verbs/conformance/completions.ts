import { expect } from 'vitest';
import { WcStatus } from '../../../src/verbs/completion-queue.ts';
import { QpState, SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  bringUp,
  connect,
  End,
  expectNothing,
  name,
  nextEvent,
  poll,
  pollSuccess,
  refused,
  type Suite,
  send,
  turn,
} from './harness.ts';

/** Polls until the queue throws: on a device an overrun takes time to show. */
async function pollUntilRefused(poll1: () => number): Promise<void> {
  for (let i = 0; i < 10_000; i++) {
    try {
      poll1();
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_VERBS', message: expect.stringMatching(/overrun/) });
      return;
    }
    await turn();
  }
  throw new Error('the overrun was never reported');
}

export function completions({ check, checkIf, device }: Suite): void {
  check('poll fetches no more than it is asked for, and nothing when there is nothing', async ([a, b]) => {
    connect(a, b);
    expect(a.sendCq.poll(16)).toBe(0);
    for (let i = 0; i < 10; i++) {
      a.qp.wrStart();
      a.qp.wrRdmaWrite(i, SendFlag.SIGNALED, b.region.rkey, b.at(i));
      a.qp.wrSetInlineData(Uint8Array.of(i), 0, 1);
      a.qp.wrComplete();
    }
    expect(a.sendCq.poll(0)).toBe(0);
    const first = await poll(a.sendCq, 3);
    const rest = await poll(a.sendCq, 7);
    expect([...first, ...rest].map(({ wrId }) => wrId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await expectNothing(a.sendCq);
  });

  check('a queue goes round many times', async ([a, b]) => {
    connect(a, b, { cqe: 4, maxSendWr: 4, maxRecvWr: 4 });
    for (let i = 0; i < 1000; i++) {
      b.receive(i, 0, 8);
      send(a, i, 0, 8);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(i);
      expect((await pollSuccess(b.recvCq)).wrId).toBe(i);
    }
  });

  check('a queue holds as many completions as it says', async ([a, b]) => {
    connect(a, b, { cqe: 10, maxSendWr: 64, maxRecvWr: 64 });
    const { capacity } = a.sendCq;
    expect(capacity).toBeGreaterThanOrEqual(10);
    for (let i = 0; i < capacity; i++) {
      b.receive(i, 0, 8);
      send(a, i, 0, 8);
    }
    expect((await poll(a.sendCq, capacity)).map(({ wrId }) => wrId)).toEqual(
      Array.from({ length: capacity }, (_, i) => i),
    );
    expect((await poll(b.recvCq, capacity)).map(({ wrId }) => wrId)).toEqual(
      Array.from({ length: capacity }, (_, i) => i),
    );
  });

  checkIf(
    'faultEvents',
    'an overrun by requests is reported: the queue is lost, and its queue pairs with it',
    async ([a, b]) => {
      connect(a, b, { cqe: 4, maxSendWr: 64 });
      for (let i = 0; i <= a.sendCq.capacity; i++) {
        a.qp.wrStart();
        a.qp.wrRdmaWrite(i, SendFlag.SIGNALED, b.region.rkey, b.at(i));
        a.qp.wrSetInlineData(Uint8Array.of(i), 0, 1);
        a.qp.wrComplete();
      }
      await pollUntilRefused(() => a.sendCq.poll(1));
      expect(await nextEvent(a.context)).toEqual({ type: 'CQ_ERR', cq: a.sendCq });
      expect(await nextEvent(a.context)).toEqual({ type: 'QP_FATAL', qpNumber: a.qp.number });
      expect(a.qp.state).toBe(QpState.ERR);
      refused(() => a.sendCq.poll(1), /overrun/);
    },
  );

  checkIf('faultEvents', 'an overrun by receives is reported to the receiver', async ([a, b]) => {
    connect(a, b, { maxSendWr: 64, maxRecvWr: 64 });
    const small = b.context.createCq(4);
    const end = Object.assign(new End(b.context), b);
    end.qp = b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: small, maxRecvWr: 64 });
    const qp = a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq });
    bringUp(qp, end.qp);
    bringUp(end.qp, qp);
    for (let i = 0; i <= small.capacity; i++) {
      end.receive(i, 0, 8);
      qp.wrStart();
      qp.wrSend(i, SendFlag.SIGNALED);
      qp.wrComplete();
      await pollSuccess(a.sendCq);
    }
    await pollUntilRefused(() => small.poll(1));
    expect(await nextEvent(b.context)).toEqual({ type: 'CQ_ERR', cq: small });
    expect(end.qp.state).toBe(QpState.ERR);
    expect(b.qp.state).toBe(QpState.RTS);
    expect(b.recvCq.poll(1)).toBe(0);
  });

  check('completions of several queue pairs share a queue, each pair’s in order', async ([a, b]) => {
    connect(a, b, { cqe: 256, maxSendWr: 64 });
    const count = Math.min(4, device.maxQp);
    const pairs = Array.from({ length: count }, () => {
      const [mine, theirs] = [a, b].map((end) =>
        end.pd.createQueuePair({ sendCq: end.sendCq, recvCq: end.recvCq, maxSendWr: 64 }),
      );
      bringUp(mine, theirs);
      bringUp(theirs, mine);
      return mine;
    });
    for (let i = 0; i < 30; i++) {
      const qp = pairs[(i * 7) % count];
      qp.wrStart();
      qp.wrRdmaWrite(i, SendFlag.SIGNALED, b.region.rkey, b.at(i));
      qp.wrSetInlineData(Uint8Array.of(i), 0, 1);
      qp.wrComplete();
    }
    const all = await poll(a.sendCq, 30);
    expect(all.map(({ wrId }) => wrId).sort((x, y) => x - y)).toEqual(Array.from({ length: 30 }, (_, i) => i));
    for (const { number } of pairs) {
      const own = all.filter(({ qpNum }) => qpNum === number).map(({ wrId }) => wrId);
      expect(own).toEqual([...own].sort((x, y) => x - y));
    }
  });

  check('a receive that was flushed comes after those that were filled', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 4; i++) b.receive(i, 0, 8);
    send(a, 1, 0, 8);
    send(a, 2, 0, 8);
    await poll(a.sendCq, 2);
    b.qp.modify({ state: QpState.ERR });
    expect((await poll(b.recvCq, 4)).map(({ wrId, status }) => [wrId, status])).toEqual([
      [0, name(WcStatus.SUCCESS)],
      [1, name(WcStatus.SUCCESS)],
      [2, name(WcStatus.WR_FLUSH_ERR)],
      [3, name(WcStatus.WR_FLUSH_ERR)],
    ]);
  });

  check('only a context’s own completion queues serve its queue pairs', ([a, b]) => {
    a.make();
    b.make();
    refused(() => a.pd.createQueuePair({ sendCq: b.sendCq, recvCq: a.recvCq }), /sendCq/);
    refused(() => a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: b.recvCq }), /recvCq/);
  });
}
