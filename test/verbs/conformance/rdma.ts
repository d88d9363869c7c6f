import { expect } from 'vitest';
import { WcFlag, WcOpcode } from '../../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  ALL_ACCESS,
  bringUp,
  connect,
  End,
  expectNothing,
  pattern,
  pollSuccess,
  post,
  type Suite,
  write,
} from './harness.ts';

/** Lengths around where a copy may change its method. */
const LENGTHS = [
  1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 1023, 1024,
];

export function rdma({ check, device }: Suite): void {
  check('a write moves its bytes and no others, at every length and alignment', async ([a, b]) => {
    connect(a, b);
    for (const length of LENGTHS) {
      for (const [fromAt, toAt] of [
        [0, 0],
        [1, 0],
        [0, 3],
        [4, 8],
        [2, 2],
        [5, 6],
      ]) {
        b.bytes.fill(255);
        write(a, b, 1, fromAt, 64 + toAt, length);
        await pollSuccess(a.sendCq);
        expect(b.bytes.subarray(64 + toAt, 64 + toAt + length)).toEqual(
          pattern(4096).subarray(fromAt, fromAt + length),
        );
        expect(b.bytes[64 + toAt - 1]).toBe(255);
        expect(b.bytes[64 + toAt + length]).toBe(255);
      }
    }
  });

  check('a read moves its bytes and no others, at every length and alignment', async ([a, b]) => {
    connect(a, b);
    for (const length of LENGTHS) {
      for (const [fromAt, toAt] of [
        [0, 0],
        [1, 0],
        [0, 3],
        [4, 8],
        [5, 6],
      ]) {
        a.bytes.fill(255);
        post(a, (qp) => {
          qp.wrRdmaRead(1, SendFlag.SIGNALED, b.region.rkey, b.at(fromAt));
          qp.wrSetSge(a.region.lkey, a.at(64 + toAt), length);
        });
        expect(await pollSuccess(a.sendCq)).toMatchObject({ opcode: WcOpcode.RDMA_READ, byteLen: length });
        expect(a.bytes.subarray(64 + toAt, 64 + toAt + length)).toEqual(
          pattern(4096).subarray(fromAt, fromAt + length),
        );
        expect(a.bytes[64 + toAt - 1]).toBe(255);
        expect(a.bytes[64 + toAt + length]).toBe(255);
      }
    }
  });

  check('inline data is taken when the request is built', async ([a, b]) => {
    connect(a, b, { maxInlineData: Math.min(64, device.maxInlineData) });
    for (const length of LENGTHS.filter((n) => n <= a.qp.maxInlineData)) {
      const source = Uint8Array.from({ length: length + 2 }, (_, i) => 200 - i);
      b.bytes.fill(255);
      a.qp.wrStart();
      a.qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(10));
      a.qp.wrSetInlineData(source, 1, length);
      const kept = source.slice(1, 1 + length);
      source.fill(0);
      a.qp.wrComplete();
      await pollSuccess(a.sendCq);
      expect(b.bytes.subarray(10, 10 + length)).toEqual(kept);
      expect([b.bytes[9], b.bytes[10 + length]]).toEqual([255, 255]);
    }
  });

  check('a write gathers its entries in order', async ([a, b]) => {
    const entries = Math.min(5, device.maxSge);
    connect(a, b, { maxSendSge: entries });
    const pieces = [
      [100, 3],
      [0, 0],
      [7, 90],
      [300, 1],
      [64, 8],
    ].slice(0, entries);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(501));
      for (const [at, length] of pieces) qp.wrAddSge(a.region.lkey, a.at(at), length);
    });
    await pollSuccess(a.sendCq);
    const expected = pieces.flatMap(([at, length]) => [...a.bytes.subarray(at, at + length)]);
    expect([...b.bytes.subarray(501, 501 + expected.length)]).toEqual(expected);
    expect(b.bytes[501 + expected.length]).toBe(pattern(4096)[501 + expected.length]);
  });

  check('a read scatters to its entries in order', async ([a, b]) => {
    const entries = Math.min(4, device.maxSge);
    connect(a, b, { maxSendSge: entries });
    a.bytes.fill(0);
    const pieces = [
      [100, 3],
      [9, 90],
      [200, 0],
      [300, 8],
    ].slice(0, entries);
    post(a, (qp) => {
      qp.wrRdmaRead(1, SendFlag.SIGNALED, b.region.rkey, b.at(33));
      for (const [at, length] of pieces) qp.wrAddSge(a.region.lkey, a.at(at), length);
    });
    await pollSuccess(a.sendCq);
    let from = 33;
    for (const [at, length] of pieces) {
      expect(a.bytes.subarray(at, at + length)).toEqual(b.bytes.subarray(from, from + length));
      from += length;
    }
    expect(a.bytes.filter((byte) => byte !== 0).length).toBe(from - 33);
  });

  check('wrSetSge replaces what was set before', async ([a, b]) => {
    connect(a, b, { maxSendSge: 2 });
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
      qp.wrAddSge(a.region.lkey, a.at(0), 8);
      qp.wrSetInlineData(new Uint8Array(4), 0, 4);
      qp.wrSetSge(a.region.lkey, a.at(100), 2);
    });
    expect((await pollSuccess(a.sendCq)).byteLen).toBe(2);
    expect([...b.bytes.subarray(0, 3)]).toEqual([101, 102, 3]);
  });

  check('a write with immediate consumes a receive, and tells its length and data', async ([a, b]) => {
    connect(a, b);
    b.receive(7, 2000, 16);
    b.receive(8, 0, 0);
    post(a, (qp) => {
      qp.wrRdmaWriteImm(1, SendFlag.SIGNALED, b.region.rkey, b.at(100), 0xdeadbeef);
      qp.wrSetSge(a.region.lkey, a.at(0), 24);
    });
    expect((await pollSuccess(a.sendCq)).opcode).toBe(WcOpcode.RDMA_WRITE);
    expect(await pollSuccess(b.recvCq)).toEqual({
      wrId: 7,
      status: 'IBV_WC_SUCCESS',
      opcode: WcOpcode.RECV_RDMA_WITH_IMM,
      flags: WcFlag.WITH_IMM,
      byteLen: 24,
      immData: 0xdeadbeef,
      qpNum: b.qp.number,
    });
    // The receive's own memory is not written.
    expect(b.bytes.subarray(2000, 2016)).toEqual(pattern(4096).subarray(2000, 2016));
    expect(b.bytes.subarray(100, 124)).toEqual(pattern(24));
    post(a, (qp) => qp.wrRdmaWriteImm(2, SendFlag.SIGNALED, 0, 0, 5));
    await pollSuccess(a.sendCq);
    expect(await pollSuccess(b.recvCq)).toMatchObject({ wrId: 8, byteLen: 0, immData: 5 });
  });

  check('a write or read of no bytes succeeds, whatever its key', async ([a, b]) => {
    connect(a, b);
    const before = b.bytes.slice();
    a.qp.wrStart();
    a.qp.wrRdmaWrite(1, SendFlag.SIGNALED, 0, 0);
    a.qp.wrRdmaRead(2, SendFlag.SIGNALED, 12345, 99);
    a.qp.wrRdmaWrite(3, SendFlag.SIGNALED, b.region.rkey, b.at(0));
    a.qp.wrSetSge(1, 2, 0);
    a.qp.wrComplete();
    for (const wrId of [1, 2, 3]) expect(await pollSuccess(a.sendCq)).toMatchObject({ wrId, byteLen: 0 });
    expect(b.bytes).toEqual(before);
  });

  check('the last byte of a region can be written, and the first', async ([a, b]) => {
    connect(a, b);
    const region = b.pd.registerMemory(b.memory, 100, 50, ALL_ACCESS);
    for (const [offset, length] of [
      [0, 1],
      [49, 1],
      [0, 50],
    ]) {
      post(a, (qp) => {
        qp.wrRdmaWrite(1, SendFlag.SIGNALED, region.rkey, region.address + offset);
        qp.wrSetSge(a.region.lkey, a.at(1000), length);
      });
      await pollSuccess(a.sendCq);
    }
    expect(b.bytes.subarray(100, 150)).toEqual(a.bytes.subarray(1000, 1050));
    expect([b.bytes[99], b.bytes[150]]).toEqual([100, 151]);
  });

  check(
    'a queue pair can be connected to its own device, and to itself',
    async ([a]) => {
      const b = new End(a.context);
      connect(a, b);
      write(a, b, 1, 0, 1000, 100);
      await pollSuccess(a.sendCq);
      expect(b.bytes.subarray(1000, 1100)).toEqual(pattern(100));
      const self = new End(a.context).make();
      bringUp(self.qp, self.qp);
      write(self, self, 2, 0, 1000, 100);
      await pollSuccess(self.sendCq);
      expect(self.bytes.subarray(1000, 1100)).toEqual(pattern(100));
      self.receive(3, 2000, 10);
      post(self, (qp) => {
        qp.wrSend(4, SendFlag.SIGNALED);
        qp.wrSetSge(self.region.lkey, self.at(0), 10);
      });
      expect((await pollSuccess(self.sendCq)).wrId).toBe(4);
      expect((await pollSuccess(self.recvCq)).wrId).toBe(3);
      expect(self.bytes.subarray(2000, 2010)).toEqual(pattern(10));
    },
    1,
  );

  check('both sides write at the same time', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 100; i++) {
      write(a, b, i, 0, 1000 + i, 1);
      write(b, a, i, 1, 2000 + i, 1);
      await pollSuccess(a.sendCq);
      await pollSuccess(b.sendCq);
    }
    expect(b.bytes.subarray(1000, 1100).every((byte) => byte === 1)).toBe(true);
    expect(a.bytes.subarray(2000, 2100).every((byte) => byte === 2)).toBe(true);
    await expectNothing(a.recvCq, b.recvCq);
  });

  check('a large message moves whole', async ([a, b]) => {
    const bytes = 3 * 2 ** 20 + 5;
    a.make({}, bytes);
    b.make({}, bytes);
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    b.bytes.fill(0);
    write(a, b, 1, 3, 1, bytes - 4);
    await pollSuccess(a.sendCq);
    expect(Buffer.compare(b.bytes.subarray(1, bytes - 3), pattern(bytes).subarray(3, bytes - 1))).toBe(0);
    expect([b.bytes[0], b.bytes[bytes - 3]]).toEqual([0, 0]);
  });
}
