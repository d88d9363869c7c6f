import { expect } from 'vitest';
import { WcStatus } from '../../../src/verbs/completion-queue.ts';
import { QpState, type QueuePair } from '../../../src/verbs/queue-pair.ts';
import {
  ALL_ACCESS,
  bringUp,
  connect,
  End,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  refused,
  type Suite,
  send,
  write,
} from './harness.ts';

const { RESET, INIT, RTR, RTS, SQD, SQE, ERR } = QpState;
const STATES = Object.entries(QpState);

/** Brings a fresh queue pair into a state. */
function into(qp: QueuePair, state: number, dest: QueuePair): void {
  const modify = (to: number): void => qp.modify({ state: to, access: ALL_ACCESS, dest: dest.address });
  if (state === ERR) modify(ERR);
  else for (const next of [INIT, RTR, RTS]) if (next <= state) modify(next);
}

export function states({ check }: Suite): void {
  /** The ways of `ibv_modify_qp` that every provider offers. */
  const ways = (from: number, to: number): boolean =>
    to === RESET ||
    to === ERR ||
    (from === RESET && to === INIT) ||
    (from === INIT && (to === INIT || to === RTR)) ||
    (from === RTR && to === RTS) ||
    (from === RTS && to === RTS);

  for (const [from, fromValue] of STATES.filter(([, value]) => value !== SQD && value !== SQE)) {
    check(`from ${from} a queue pair goes where it may, and nowhere else`, ([a, b]) => {
      b.make();
      for (const toValue of Object.values(QpState)) {
        a.make();
        into(a.qp, fromValue, b.qp);
        expect(a.qp.state).toBe(fromValue);
        const modify = (): void => a.qp.modify({ state: toValue, dest: b.qp.address });
        if (ways(fromValue, toValue)) {
          modify();
          expect(a.qp.state).toBe(toValue);
        } else {
          refused(modify, /cannot move from/);
          expect(a.qp.state).toBe(fromValue);
        }
      }
    });
  }

  check('attributes out of range are refused, and the state stays', ([a, b]) => {
    a.make();
    b.make();
    const dest = b.qp.address;
    refused(() => a.qp.modify({ state: INIT, access: 64 }), /access/);
    expect(a.qp.state).toBe(RESET);
    a.qp.modify({ state: INIT });
    refused(() => a.qp.modify({ state: RTR }), /dest/);
    refused(() => a.qp.modify({ state: RTR, dest: { member: -1, qpNumber: 1 } }), /member/);
    refused(() => a.qp.modify({ state: RTR, dest: { member: dest.member, qpNumber: 2 ** 24 } }), /qpNumber/);
    refused(() => a.qp.modify({ state: RTR, dest, minRnrTimerMs: -1 }), /minRnrTimerMs/);
    refused(() => a.qp.modify({ state: RTR, dest, minRnrTimerMs: Number.NaN }), /minRnrTimerMs/);
    refused(() => a.qp.modify({ state: RTR, dest, maxDestRdAtomic: 1000 }), /maxDestRdAtomic/);
    expect(a.qp.state).toBe(INIT);
    a.qp.modify({ state: RTR, dest });
    refused(() => a.qp.modify({ state: RTS, rnrRetry: 8 }), /rnrRetry/);
    refused(() => a.qp.modify({ state: RTS, retryCount: -1 }), /retryCount/);
    refused(() => a.qp.modify({ state: RTS, maxRdAtomic: 0.5 }), /maxRdAtomic/);
    expect(a.qp.state).toBe(RTR);
    a.qp.modify({ state: RTS });
  });

  check('requests are refused in RESET, INIT and RTR, and not half posted', async ([a, b]) => {
    b.make();
    for (const state of [RESET, INIT, RTR]) {
      a.make();
      into(a.qp, state, b.qp);
      refused(() => send(a, 1, 0, 8), /RTS/);
      if (state === RTR) {
        a.qp.modify({ state: RTS });
        await expectNothing(a.sendCq);
      }
    }
  });

  check('requests and receives posted in ERR are flushed, signalled or not', async ([a, b]) => {
    connect(a, b);
    a.qp.modify({ state: ERR });
    send(a, 1, 0, 8);
    send(a, 2, 0, 8, 0);
    a.receive(3, 0, 8);
    expect(await pollStatuses(a.sendCq, 2)).toEqual([
      [1, name(WcStatus.WR_FLUSH_ERR)],
      [2, name(WcStatus.WR_FLUSH_ERR)],
    ]);
    expect(await pollStatuses(a.recvCq, 1)).toEqual([[3, name(WcStatus.WR_FLUSH_ERR)]]);
    await expectNothing(a.sendCq, a.recvCq);
  });

  check('receives are refused in RESET, and taken from INIT on', async ([a, b]) => {
    a.make();
    b.make();
    refused(() => b.receive(1, 0, 64), /RESET/);
    b.qp.modify({ state: INIT });
    b.receive(2, 0, 64);
    bringUp(a.qp, b.qp);
    b.qp.modify({ state: RTR, dest: a.qp.address });
    b.receive(3, 0, 64);
    send(a, 4, 0, 8);
    send(a, 5, 0, 8);
    // RTR is ready to receive.
    expect((await poll(b.recvCq, 2)).map(({ wrId }) => wrId)).toEqual([2, 3]);
  });

  check('going to ERR flushes what is posted, in order', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 5; i++) a.receive(i, 8 * i, 8);
    a.qp.modify({ state: ERR });
    expect(await pollStatuses(a.recvCq, 5)).toEqual([0, 1, 2, 3, 4].map((i) => [i, name(WcStatus.WR_FLUSH_ERR)]));
    await expectNothing(a.sendCq, a.recvCq);
  });

  check(
    'RESET forgets receives, completions and the connection, and the queue pair can be connected anew',
    async ([a, b]) => {
      connect(a, b);
      b.receive(1, 0, 8);
      write(a, b, 2, 0, 100, 8);
      send(a, 3, 0, 8);
      b.receive(4, 0, 8);
      await pollSuccess(a.sendCq);
      for (const end of [a, b]) end.qp.modify({ state: RESET });
      await expectNothing(a.sendCq, a.recvCq, b.sendCq, b.recvCq);
      bringUp(a.qp, b.qp);
      bringUp(b.qp, a.qp);
      b.receive(5, 200, 8);
      send(a, 6, 0, 8);
      expect((await pollSuccess(b.recvCq)).wrId).toBe(5);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(6);
      expect(b.bytes[200]).toBe(1);
    },
  );

  check('the rights of a queue pair can be changed in INIT and in RTS', async ([a, b]) => {
    connect(a, b);
    b.qp.modify({ state: RESET });
    b.qp.modify({ state: INIT, access: 0 });
    b.qp.modify({ state: INIT, access: ALL_ACCESS });
    b.qp.modify({ state: RTR, dest: a.qp.address });
    b.qp.modify({ state: RTS });
    write(a, b, 1, 0, 8, 8);
    await pollSuccess(a.sendCq);
    b.qp.modify({ state: RTS, access: 0 });
    write(a, b, 2, 0, 8, 8);
    expect((await poll(a.sendCq, 1))[0].status).toMatch(/REM_(ACCESS|INV_REQ)_ERR/);
  });

  const unreachable = async (a: End): Promise<void> => {
    const before = a.qp.state;
    expect(before).toBe(RTS);
    send(a, 1, 0, 8, 0);
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.RETRY_EXC_ERR)]]);
    expect(a.qp.state).toBe(ERR);
  };

  check('a peer that is not ready to receive does not answer', async ([a, b]) => {
    a.make();
    b.make();
    b.qp.modify({ state: INIT });
    b.receive(9, 0, 64);
    bringUp(a.qp, b.qp, { retryCount: 0 });
    await unreachable(a);
    await expectNothing(b.recvCq);
  });

  check('a peer in ERR does not answer', async ([a, b]) => {
    connect(a, b);
    b.qp.modify({ state: ERR });
    await unreachable(a);
  });

  check('a queue pair that was destroyed does not answer, nor the next one in its place', async ([a, b]) => {
    connect(a, b);
    b.qp.destroy();
    const next = new End(b.context).make();
    bringUp(next.qp, a.qp);
    next.receive(9, 0, 64);
    await unreachable(a);
    await expectNothing(next.recvCq);
  });

  check(
    'a queue pair that is connected to somebody else does not answer',
    async ([a, b, c]) => {
      for (const end of [a, b, c]) end.make();
      bringUp(a.qp, b.qp);
      bringUp(b.qp, c.qp);
      b.receive(9, 0, 64);
      await unreachable(a);
      await expectNothing(b.recvCq);
    },
    3,
  );

  check('nor does one that is connected to another queue pair of the same device', async ([a, b]) => {
    for (const end of [a, b]) end.make();
    const other = new End(a.context).make();
    bringUp(a.qp, b.qp);
    bringUp(b.qp, other.qp);
    b.receive(9, 0, 64);
    await unreachable(a);
    await expectNothing(b.recvCq);
  });

  check('a device that was closed does not answer', async ([a, b]) => {
    connect(a, b);
    write(a, b, 7, 0, 0, 8);
    await pollSuccess(a.sendCq);
    b.context.close();
    await unreachable(a);
  });

  check('destroying a queue pair drops its completions, and only its', async ([a, b]) => {
    connect(a, b);
    const pd = a.pd;
    const other = pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq });
    const far = new End(b.context).make();
    bringUp(other, far.qp);
    bringUp(far.qp, other);
    b.receive(1, 0, 8);
    for (const [qp, id] of [
      [a.qp, 10],
      [other, 20],
      [a.qp, 11],
      [other, 21],
    ] as const) {
      qp.wrStart();
      qp.wrRdmaWrite(id, 2, qp === other ? far.region.rkey : b.region.rkey, (qp === other ? far : b).at(0));
      qp.wrSetSge(a.region.lkey, a.at(0), 8);
      qp.wrComplete();
    }
    a.receive(30, 0, 8);
    post(b, (qp) => {
      qp.wrSend(1, 0);
    });
    a.qp.destroy();
    expect((await poll(a.sendCq, 2)).map(({ wrId }) => wrId)).toEqual([20, 21]);
    await expectNothing(a.sendCq, a.recvCq);
  });
}
