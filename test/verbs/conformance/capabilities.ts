import { expect } from 'vitest';
import { Access } from '../../../src/verbs/memory.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { ALL_ACCESS, connect, pollSuccess, post, refused, type Suite, write } from './harness.ts';

const BOTH = Access.REMOTE_READ | Access.REMOTE_WRITE;

export function capabilities({ checkIf }: Suite): void {
  checkIf('loadStore', 'remote memory can be loaded and stored through a pointer, both ways', ([a, b]) => {
    a.make();
    b.make();
    const pointer = a.context.remotePointer(b.context.member, b.region.rkey, b.at(100), 50, BOTH);
    const view = new Uint8Array(pointer.buffer, pointer.offset, 50);
    expect(view).toEqual(b.bytes.subarray(100, 150));
    view[0] = 99;
    expect(b.bytes[100]).toBe(99);
    b.bytes[149] = 98;
    expect(view[49]).toBe(98);
    pointer.release();
    pointer.release();
  });

  checkIf('loadStore', 'a pointer is refused where a request would be, and says why', ([a, b]) => {
    a.make();
    b.make();
    const { member } = b.context;
    const { rkey } = b.region;
    refused(() => a.context.remotePointer(member, rkey ^ 1, b.at(0), 8, BOTH), /names no memory region/);
    refused(() => a.context.remotePointer(member, 0, b.at(0), 8, BOTH), /names no memory region/);
    refused(() => a.context.remotePointer(member, rkey, b.at(4089), 8, BOTH), /not within the region/);
    refused(() => a.context.remotePointer(member, rkey, b.at(-1), 8, BOTH), /not within the region/);
    refused(() => a.context.remotePointer(member, rkey, b.at(0), 4097, BOTH), /not within the region/);
    refused(() => a.context.remotePointer(member, rkey, b.at(0), -1, BOTH), /not within the region/);
    refused(() => a.context.remotePointer(member, rkey, b.at(0) + 0.5, 1, BOTH), /not within the region/);
    refused(() => a.context.remotePointer(member, rkey, Number.NaN, 1, BOTH), /not within the region/);
    const readOnly = b.pd.registerMemory(b.memory, 0, 64, Access.REMOTE_READ);
    refused(() => a.context.remotePointer(member, readOnly.rkey, b.at(0), 8, BOTH), /rights/);
    a.context.remotePointer(member, readOnly.rkey, b.at(0), 8, Access.REMOTE_READ).release();
    readOnly.deregister();
    refused(
      () => a.context.remotePointer(member, readOnly.rkey, b.at(0), 8, Access.REMOTE_READ),
      /names no memory region/,
    );
    refused(() => a.context.remotePointer(99, rkey, b.at(0), 8, BOTH), /no device/);
    refused(() => a.context.remotePointer(-1, rkey, b.at(0), 8, BOTH), /no device/);
    b.context.close();
    refused(() => a.context.remotePointer(member, rkey, b.at(0), 8, BOTH), /no device/);
  });

  checkIf('loadStore', 'one can have a pointer to one’s own memory, and several to the same', ([a, b]) => {
    a.make();
    b.make();
    const own = a.context.remotePointer(a.context.member, a.region.rkey, a.at(8), 8, BOTH);
    new Uint8Array(own.buffer, own.offset, 1)[0] = 77;
    expect(a.bytes[8]).toBe(77);
    own.release();
    expect(a.bytes[8]).toBe(77);
    const [first, second] = [0, 1].map(() =>
      a.context.remotePointer(b.context.member, b.region.rkey, b.at(0), 16, BOTH),
    );
    first.release();
    const view = new Uint8Array(second.buffer, second.offset, 16);
    view[15] = 66;
    expect(b.bytes[15]).toBe(66);
    second.release();
  });

  checkIf('loadStore', 'a pointer and a queue pair reach the same memory', async ([a, b]) => {
    connect(a, b);
    const pointer = a.context.remotePointer(b.context.member, b.region.rkey, b.at(0), 4096, BOTH);
    const view = new Uint8Array(pointer.buffer, pointer.offset, 4096);
    write(a, b, 1, 0, 1000, 8);
    await pollSuccess(a.sendCq);
    expect(view.subarray(1000, 1008)).toEqual(a.bytes.subarray(0, 8));
    pointer.release();
    write(a, b, 2, 8, 1000, 8);
    await pollSuccess(a.sendCq);
    expect(b.bytes[1000]).toBe(9);
  });

  checkIf('atomicsAgree', 'atomic verbs and Atomics see each other’s results on the same word', async ([a, b]) => {
    connect(a, b);
    const words = new BigInt64Array(b.memory.buffer, 0, 8);
    words[1] = 0n;
    for (let i = 0; i < 100; i++) {
      post(a, (qp) => {
        qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, b.region.rkey, b.at(8), 1, 0);
        qp.wrSetSge(a.region.lkey, a.at(0), 8);
      });
      Atomics.add(words, 1, 1000n);
      await pollSuccess(a.sendCq);
    }
    expect(Atomics.load(words, 1)).toBe(100_100n);
  });

  checkIf('immediateCompletion', 'a request has taken effect when wrComplete returns, without any poll', ([a, b]) => {
    connect(a, b);
    b.receive(1, 2000, 8);
    a.qp.wrStart();
    a.qp.wrRdmaWrite(1, 0, b.region.rkey, b.at(100));
    a.qp.wrSetSge(a.region.lkey, a.at(0), 8);
    a.qp.wrAtomicFetchAdd(2, 0, b.region.rkey, b.at(800), 1, 0);
    a.qp.wrSetSge(a.region.lkey, a.at(512), 8);
    a.qp.wrRdmaRead(3, 0, b.region.rkey, b.at(300));
    a.qp.wrSetSge(a.region.lkey, a.at(600), 8);
    a.qp.wrSend(4, 0);
    a.qp.wrSetSge(a.region.lkey, a.at(0), 8);
    const before = b.bytes[800];
    a.qp.wrComplete();
    expect(b.bytes.subarray(100, 108)).toEqual(a.bytes.subarray(0, 8));
    expect(b.bytes[800]).toBe(before + 1);
    expect(a.bytes.subarray(600, 608)).toEqual(b.bytes.subarray(300, 308));
    expect(b.bytes.subarray(2000, 2008)).toEqual(a.bytes.subarray(0, 8));
    expect(b.recvCq.poll(1)).toBe(1);
  });

  checkIf('completionImpliesPlacement', 'what a write that is complete has written is in memory', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 20; i++) {
      a.bytes.fill(i + 1, 0, 64);
      post(a, (qp) => {
        qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
        qp.wrSetSge(a.region.lkey, a.at(0), 64);
      });
      await pollSuccess(a.sendCq);
      expect(b.bytes.subarray(0, 64)).toEqual(a.bytes.subarray(0, 64));
    }
  });

  checkIf('remoteUserMemory', 'memory of the process itself can be written by a peer', async ([a, b]) => {
    connect(a, b);
    const own = new Uint8Array(64);
    const adopted = b.context.adoptMemory(own.buffer);
    const region = b.pd.registerMemory(adopted, 0, 64, ALL_ACCESS);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, region.rkey, adopted.address + 8);
      qp.wrSetSge(a.region.lkey, a.at(0), 8);
    });
    await pollSuccess(a.sendCq);
    expect(own.subarray(8, 16)).toEqual(a.bytes.subarray(0, 8));
  });
}
