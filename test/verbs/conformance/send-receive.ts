import { expect } from 'vitest';
import { WcFlag, WcOpcode } from '../../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { connect, expectNothing, pattern, poll, pollSuccess, post, type Suite, send } from './harness.ts';

export function sendReceive({ check, device }: Suite): void {
  check('a send lands in the oldest receive, and both sides complete', async ([a, b]) => {
    connect(a, b);
    b.receive(10, 1000, 64);
    b.receive(11, 2000, 64);
    send(a, 1, 0, 30);
    expect(await pollSuccess(a.sendCq)).toMatchObject({ wrId: 1, opcode: WcOpcode.SEND, qpNum: a.qp.number });
    expect(await pollSuccess(b.recvCq)).toEqual({
      wrId: 10,
      status: 'IBV_WC_SUCCESS',
      opcode: WcOpcode.RECV,
      flags: 0,
      byteLen: 30,
      immData: 0,
      qpNum: b.qp.number,
    });
    expect(b.bytes.subarray(1000, 1030)).toEqual(pattern(30));
    expect(b.bytes[1030]).toBe(pattern(4096)[1030]);
    send(a, 2, 100, 64);
    expect(await pollSuccess(b.recvCq)).toMatchObject({ wrId: 11, byteLen: 64 });
    expect(b.bytes.subarray(2000, 2064)).toEqual(pattern(4096).subarray(100, 164));
  });

  check('a send with immediate tells its data, any 32 bits of it', async ([a, b]) => {
    connect(a, b);
    for (const imm of [0, 1, 0x7fffffff, 0x80000000, 0xffffffff]) {
      b.receive(1, 1000, 64);
      post(a, (qp) => {
        qp.wrSendImm(1, SendFlag.SIGNALED, imm);
        qp.wrSetSge(a.region.lkey, a.at(0), 4);
      });
      await pollSuccess(a.sendCq);
      expect(await pollSuccess(b.recvCq)).toMatchObject({
        immData: imm,
        flags: WcFlag.WITH_IMM,
        opcode: WcOpcode.RECV,
      });
    }
  });

  check('a send can be inline, and can be empty', async ([a, b]) => {
    connect(a, b);
    b.receive(1, 1000, 64);
    b.receive(2, 0, 0);
    b.receive(3, 1100, 8);
    post(a, (qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetInlineData(Uint8Array.of(9, 8, 7), 0, 3);
      qp.wrSend(2, SendFlag.SIGNALED);
      qp.wrSend(3, SendFlag.SIGNALED);
    });
    await poll(a.sendCq, 3);
    expect((await poll(b.recvCq, 3)).map(({ wrId, byteLen }) => [wrId, byteLen])).toEqual([
      [1, 3],
      [2, 0],
      [3, 0],
    ]);
    expect([...b.bytes.subarray(1000, 1004)]).toEqual([9, 8, 7, pattern(4096)[1003]]);
  });

  check('a message of several entries is scattered over several entries of other lengths', async ([a, b]) => {
    const entries = Math.min(4, device.maxSge);
    connect(a, b, { maxSendSge: entries, maxRecvSge: entries });
    const gather = [
      [0, 10],
      [50, 1],
      [100, 70],
      [300, 19],
    ].slice(0, entries);
    const scatter = [
      [1000, 7],
      [1100, 64],
      [1200, 0],
      [1300, 100],
    ].slice(0, entries);
    b.bytes.fill(0);
    for (const [at, length] of scatter.slice(0, -1)) b.qp.addRecvSge(b.region.lkey, b.at(at), length);
    b.receive(5, ...(scatter.at(-1) as [number, number]));
    post(a, (qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      for (const [at, length] of gather) qp.wrAddSge(a.region.lkey, a.at(at), length);
    });
    const message = gather.flatMap(([at, length]) => [...a.bytes.subarray(at, at + length)]);
    expect(await pollSuccess(b.recvCq)).toMatchObject({ wrId: 5, byteLen: message.length });
    let from = 0;
    for (const [at, length] of scatter) {
      const part = message.slice(from, from + length);
      expect([...b.bytes.subarray(at, at + part.length)]).toEqual(part);
      from += length;
    }
    expect(b.bytes.filter((byte) => byte !== 0).length).toBe(message.length);
  });

  check('unsignalled requests complete silently, all are signalled with signalAll', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 3; i++) b.receive(i, 1000, 64);
    send(a, 1, 0, 8, 0);
    send(a, 2, 0, 8, SendFlag.SIGNALED);
    send(a, 3, 0, 8, 0);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(2);
    await poll(b.recvCq, 3);
    await expectNothing(a.sendCq);
    connect(a, b, { signalAll: true });
    for (let i = 0; i < 2; i++) b.receive(i, 1000, 64);
    send(a, 4, 0, 8, 0);
    send(a, 5, 0, 8, SendFlag.SIGNALED);
    expect((await poll(a.sendCq, 2)).map(({ wrId }) => wrId)).toEqual([4, 5]);
  });

  check('a request id is any integer below 2^53', async ([a, b]) => {
    connect(a, b);
    for (const wrId of [0, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
      b.receive(wrId, 1000, 64);
      send(a, wrId, 0, 8);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(wrId);
      expect((await pollSuccess(b.recvCq)).wrId).toBe(wrId);
    }
  });

  check('the receive queue goes round many times', async ([a, b]) => {
    connect(a, b, { maxRecvWr: 4, maxSendWr: 4 });
    let posted = 0;
    for (let i = 0; i < 1000; i++) {
      while (posted < i + 1 + (i % b.qp.cap.maxRecvWr)) b.receive(posted, (posted++ % 16) * 64, 64);
      a.bytes[0] = i & 255;
      send(a, i, 0, 1);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(i);
      expect((await pollSuccess(b.recvCq)).wrId).toBe(i);
      expect(b.bytes[(i % 16) * 64]).toBe(i & 255);
    }
  });

  check('both directions at once', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 50; i++) {
      a.receive(i, 1000, 8);
      b.receive(i, 1000, 8);
      send(a, i, 0, 8);
      send(b, i, 0, 8);
      for (const cq of [a.sendCq, a.recvCq, b.sendCq, b.recvCq]) expect((await pollSuccess(cq)).wrId).toBe(i);
    }
  });

  check(
    'one completion queue can serve for everything',
    async ([a]) => {
      a.make();
      const cq = a.context.createCq(16);
      const qp = a.pd.createQueuePair({ sendCq: cq, recvCq: cq });
      qp.modify({ state: 1 });
      qp.modify({ state: 2, dest: qp.address });
      qp.modify({ state: 3 });
      qp.postRecv(1, a.region.lkey, a.at(0), 8);
      qp.wrStart();
      qp.wrSend(2, SendFlag.SIGNALED);
      qp.wrComplete();
      expect((await poll(cq, 2)).map(({ wrId }) => wrId).sort()).toEqual([1, 2]);
    },
    1,
  );
}
