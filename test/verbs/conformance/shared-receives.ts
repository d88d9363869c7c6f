import { expect } from 'vitest';
import { WcOpcode } from '../../../src/verbs/completion-queue.ts';
import { QpState } from '../../../src/verbs/queue-pair.ts';
import { bringUp, End, expectNothing, nextEvent, poll, pollSuccess, refused, type Suite, send } from './harness.ts';

/** `server` receives from all `clients` through one shared receive queue; its other ends are returned. */
function serve(server: End, clients: End[], receives: number): End[] {
  server.make({ srqWr: receives });
  return clients.map((client, i) => {
    client.make();
    let end = server;
    if (i > 0) {
      end = Object.assign(new End(server.context), server);
      end.qp = server.pd.createQueuePair({ sendCq: server.sendCq, recvCq: server.recvCq, srq: server.srq! });
    }
    bringUp(client.qp, end.qp);
    bringUp(end.qp, client.qp);
    return end;
  });
}

export function sharedReceives({ check, device }: Suite): void {
  check(
    'receives go to whoever sends first, and completions name the queue pair',
    async ([server, a, b]) => {
      const [fromA, fromB] = serve(server, [a, b], 8);
      for (let i = 0; i < 4; i++) server.receive(i, i * 64, 64);
      expect(server.srq!.posted).toBe(4);
      for (const [i, client] of [b, a, a, b].entries()) {
        send(client, 100 + i, i, 1);
        const at = client === a ? fromA : fromB;
        expect(await pollSuccess(server.recvCq)).toMatchObject({ wrId: i, opcode: WcOpcode.RECV, qpNum: at.qp.number });
        expect(server.bytes[i * 64]).toBe(i + 1);
      }
      expect(server.srq!.posted).toBe(0);
    },
    3,
  );

  check('a queue pair with a shared receive queue has no receives of its own', ([server, a]) => {
    serve(server, [a], 8);
    refused(() => server.qp.postRecv(1, server.region.lkey, server.at(0), 8), /shared receive queue/);
  });

  check('a shared receive queue takes as many receives as it says, and not one more', async ([server, a]) => {
    serve(server, [a], 5);
    const { maxWr } = server.srq!;
    expect(maxWr).toBeGreaterThanOrEqual(5);
    for (let i = 0; i < maxWr; i++) server.receive(i, 0, 64);
    refused(() => server.receive(99, 0, 64), /full/);
    send(a, 1, 0, 8);
    expect((await pollSuccess(server.recvCq)).wrId).toBe(0);
    server.receive(99, 0, 64);
    refused(() => server.receive(100, 0, 64), /full/);
  });

  check('the low watermark raises one event when it is passed, and wakes', async ([server, a]) => {
    serve(server, [a], 8);
    for (let i = 0; i < 4; i++) server.receive(i, 0, 64);
    server.srq!.arm(3);
    send(a, 1, 0, 8);
    await pollSuccess(server.recvCq);
    expect(server.context.pollAsyncEvent()).toBeUndefined();
    const { parking } = server.context;
    const token = parking.arm();
    const woken = parking.sleep(token, 60_000);
    send(a, 2, 0, 8);
    await woken;
    parking.disarm();
    expect(await nextEvent(server.context)).toMatchObject({ type: 'SRQ_LIMIT_REACHED', srq: server.srq });
    send(a, 3, 0, 8);
    await poll(server.recvCq, 2);
    expect(server.context.pollAsyncEvent()).toBeUndefined();
    for (let i = 0; i < 3; i++) server.receive(i, 0, 64);
    server.srq!.arm(4);
    server.srq!.arm(0);
    send(a, 4, 0, 8);
    await pollSuccess(server.recvCq);
    expect(server.context.pollAsyncEvent()).toBeUndefined();
  });

  check('a watermark above what is posted raises its event at once', async ([server, a]) => {
    serve(server, [a], 8);
    server.receive(1, 0, 64);
    server.srq!.arm(2);
    expect(await nextEvent(server.context)).toMatchObject({ type: 'SRQ_LIMIT_REACHED' });
    expect(server.context.pollAsyncEvent()).toBeUndefined();
    refused(() => server.srq!.arm(-1), /limit/);
    refused(() => server.srq!.arm(1.5), /limit/);
    refused(() => server.srq!.arm(2 ** 31), /limit/);
  });

  check(
    'a queue pair that goes to ERR leaves the shared receives to the others, and says that it takes no more',
    async ([server, a, b]) => {
      const [fromA] = serve(server, [a, b], 8);
      server.receive(1, 0, 64);
      fromA.qp.modify({ state: QpState.ERR });
      expect(await nextEvent(server.context)).toEqual({ type: 'QP_LAST_WQE_REACHED', qpNumber: fromA.qp.number });
      await expectNothing(server.recvCq);
      expect(server.srq!.posted).toBe(1);
      send(b, 2, 0, 8);
      expect((await pollSuccess(server.recvCq)).wrId).toBe(1);
    },
    3,
  );

  check(
    'a message that is too long takes its receive with it, and nobody else’s',
    async ([server, a, b]) => {
      const [fromA, fromB] = serve(server, [a, b], 8);
      for (let i = 0; i < 3; i++) server.receive(i, i * 64, 4);
      send(a, 10, 0, 5);
      expect((await poll(a.sendCq, 1))[0].status).toMatch(/REM_(INV_REQ|OP)_ERR/);
      const [failed] = await poll(server.recvCq, 1);
      expect(failed).toMatchObject({ wrId: 0, qpNum: fromA.qp.number });
      expect(failed.status).toMatch(/LOC_(LEN|QP_OP)_ERR/);
      expect(server.srq!.posted).toBe(2);
      expect(fromB.qp.state).toBe(QpState.RTS);
      send(b, 11, 0, 4);
      expect((await pollSuccess(server.recvCq)).wrId).toBe(1);
    },
    3,
  );

  check('receives of several entries', async ([server, a]) => {
    a.make();
    server.make();
    const maxSge = Math.min(3, device.maxSrqSge);
    const srq = server.pd.createSharedReceiveQueue({ maxWr: 4, maxSge });
    const qp = server.pd.createQueuePair({ sendCq: server.sendCq, recvCq: server.recvCq, srq });
    bringUp(a.qp, qp);
    bringUp(qp, a.qp);
    for (let i = 0; i < maxSge - 1; i++) srq.addRecvSge(server.region.lkey, server.at(1000 + 100 * i), 2);
    srq.postRecv(1, server.region.lkey, server.at(2000), 50);
    refused(() => {
      for (let i = 0; i <= maxSge; i++) srq.addRecvSge(server.region.lkey, server.at(0), 2);
    }, /scatter entries/);
    send(a, 2, 0, 10);
    expect((await pollSuccess(server.recvCq)).byteLen).toBe(10);
    for (let i = 0; i < maxSge - 1; i++) {
      expect([...server.bytes.subarray(1000 + 100 * i, 1002 + 100 * i)]).toEqual([2 * i + 1, 2 * i + 2]);
    }
    expect(server.bytes[2000]).toBe(2 * (maxSge - 1) + 1);
  });

  check(
    'a shared receive queue of another domain is refused',
    ([a]) => {
      a.make();
      const srq = a.context.allocPd().createSharedReceiveQueue({ maxWr: 4 });
      refused(() => a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq, srq }), /same protection domain/);
    },
    1,
  );
}
