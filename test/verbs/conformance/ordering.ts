import { expect } from 'vitest';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { connect, poll, pollSuccess, post, type Suite, turn } from './harness.ts';

export function ordering({ check }: Suite): void {
  check('requests of a queue pair complete in the order of posting, whatever their kind', async ([a, b]) => {
    connect(a, b, { maxSendWr: 64, maxRecvWr: 64 });
    for (let i = 0; i < 16; i++) b.receive(100 + i, 2000, 64);
    a.qp.wrStart();
    for (let i = 0; i < 48; i++) {
      const kind = i % 6;
      const { rkey } = b.region;
      if (kind === 0) a.qp.wrSend(i, SendFlag.SIGNALED);
      else if (kind === 1) a.qp.wrRdmaWrite(i, SendFlag.SIGNALED, rkey, b.at(8 * i));
      else if (kind === 2) a.qp.wrRdmaRead(i, SendFlag.SIGNALED, rkey, b.at(8 * i));
      else if (kind === 3) a.qp.wrRdmaWriteImm(i, SendFlag.SIGNALED, rkey, b.at(8 * i), i);
      else if (kind === 4) a.qp.wrAtomicFetchAdd(i, SendFlag.SIGNALED, rkey, b.at(3000), 1, 0);
      else a.qp.wrAtomicCmpSwp(i, SendFlag.SIGNALED, rkey, b.at(3000), 0, 0, 1, 0);
      a.qp.wrSetSge(a.region.lkey, a.at(8 * i), 8);
    }
    a.qp.wrComplete();
    expect((await poll(a.sendCq, 48)).map(({ wrId }) => wrId)).toEqual(Array.from({ length: 48 }, (_, i) => i));
    const received = await poll(b.recvCq, 16);
    expect(received.map(({ wrId }) => wrId)).toEqual(Array.from({ length: 16 }, (_, i) => 100 + i));
  });

  check('messages arrive in the order of posting, whatever lies between them', async ([a, b]) => {
    connect(a, b, { maxSendWr: 64, maxRecvWr: 64 });
    const { rkey } = b.region;
    for (let round = 0; round < 20; round++) {
      const sends: number[] = [];
      a.qp.wrStart();
      for (let i = 0; i < 48; i++) {
        const kind = (7 * i + round * i) % 5;
        const flags = i === 47 ? SendFlag.SIGNALED : 0;
        if (kind < 3) {
          b.receive(sends.length, 2000 + i, 1);
          sends.push(i + 1);
          if (kind === 2) a.qp.wrRdmaWriteImm(i, flags, rkey, b.at(2000 + i), i);
          else a.qp.wrSend(i, flags);
        } else a.qp.wrRdmaWrite(i, flags, rkey, b.at(1000 + i));
        a.qp.wrSetInlineData(Uint8Array.of(i + 1), 0, 1);
      }
      a.qp.wrComplete();
      const received = await poll(b.recvCq, sends.length);
      expect(received.map(({ wrId }) => wrId)).toEqual(sends.map((_, i) => i));
      expect(sends.map((i) => b.bytes[1999 + i])).toEqual(sends);
      await pollSuccess(a.sendCq);
    }
  });

  check('writes take effect in order: the last one to a byte wins', async ([a, b]) => {
    connect(a, b, { maxSendWr: 64 });
    for (let round = 0; round < 20; round++) {
      a.qp.wrStart();
      for (let i = 0; i < 32; i++) {
        a.qp.wrRdmaWrite(i, i === 31 ? SendFlag.SIGNALED : 0, b.region.rkey, b.at(100));
        a.qp.wrSetInlineData(Uint8Array.of(i, round), 0, 2);
      }
      a.qp.wrComplete();
      await pollSuccess(a.sendCq);
      expect([...b.bytes.subarray(100, 102)]).toEqual([31, round]);
    }
  });

  check('what was written before is there when a send or an immediate arrives', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 100; i++) {
      b.receive(i, 2000, 8);
      a.qp.wrStart();
      a.qp.wrRdmaWrite(1, 0, b.region.rkey, b.at(0));
      a.qp.wrSetInlineData(Uint8Array.of(i, i + 1), 0, 2);
      if (i % 2) a.qp.wrSend(2, SendFlag.SIGNALED);
      else a.qp.wrRdmaWriteImm(2, SendFlag.SIGNALED, 0, 0, i);
      a.qp.wrComplete();
      await pollSuccess(b.recvCq);
      expect([...b.bytes.subarray(0, 2)]).toEqual([i, i + 1]);
      await pollSuccess(a.sendCq);
    }
  });

  check('a fenced request sees what the reads before it have brought', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 50; i++) {
      b.bytes[0] = i;
      b.bytes[100] = 255;
      a.bytes[500] = 254;
      a.qp.wrStart();
      a.qp.wrRdmaRead(1, 0, b.region.rkey, b.at(0));
      a.qp.wrSetSge(a.region.lkey, a.at(500), 1);
      a.qp.wrRdmaWrite(2, SendFlag.SIGNALED | SendFlag.FENCE, b.region.rkey, b.at(100));
      a.qp.wrSetSge(a.region.lkey, a.at(500), 1);
      a.qp.wrComplete();
      expect((await pollSuccess(a.sendCq)).wrId).toBe(2);
      expect(b.bytes[100]).toBe(i);
    }
  });

  check('nothing happens before the doorbell, nor after an abort', async ([a, b]) => {
    connect(a, b);
    a.qp.wrStart();
    a.qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
    a.qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
    await turn();
    expect(b.bytes[0]).toBe(1);
    expect(a.sendCq.poll(1)).toBe(0);
    a.qp.wrAbort();
    post(a, (qp) => {
      qp.wrRdmaWrite(2, SendFlag.SIGNALED, b.region.rkey, b.at(8));
      qp.wrSetInlineData(Uint8Array.of(77), 0, 1);
    });
    expect((await pollSuccess(a.sendCq)).wrId).toBe(2);
    expect([b.bytes[0], b.bytes[8]]).toEqual([1, 77]);
  });
}
