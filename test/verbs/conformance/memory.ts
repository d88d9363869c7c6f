import { expect } from 'vitest';
import { WcStatus } from '../../../src/verbs/completion-queue.ts';
import { Access } from '../../../src/verbs/memory.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { ALL_ACCESS, connect, name, poll, pollSuccess, post, refused, type Suite, write } from './harness.ts';

export function memory({ check, capabilities, keepsPages, device }: Suite): void {
  check('library memory is zeroed, and has integer addresses that do not overlap', ([a]) => {
    const pieces = [1, 100, 4096, 65537].map((bytes) => a.context.allocateMemory(bytes));
    for (const piece of pieces) {
      expect(Number.isSafeInteger(piece.address)).toBe(true);
      expect(piece.buffer.byteLength).toBeGreaterThanOrEqual(piece.byteLength);
      expect(new Uint8Array(piece.buffer).every((byte) => byte === 0)).toBe(true);
      expect(piece.fromLibrary).toBe(true);
      for (const other of pieces) {
        if (other === piece) continue;
        expect(
          other.address >= piece.address + piece.byteLength || other.address + other.byteLength <= piece.address,
        ).toBe(true);
      }
    }
  });

  check('memory of no bytes, of a fraction, or of more than there can be is refused', ([a]) => {
    for (const bytes of [0, -1, 1.5, Number.NaN, 2 ** 53]) refused(() => a.context.allocateMemory(bytes), /bytes/);
  });

  check('keys are 32 bits, never 0, all different, and, where they are random, every bit as often 1 as 0', ([a]) => {
    a.make();
    const keys = Array.from({ length: 512 }, () => a.pd.registerMemory(a.memory, 0, 8, ALL_ACCESS).rkey);
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(key > 0 && key >>> 0 === key).toBe(true);
    for (let bit = 0; capabilities.randomKeys && bit < 32; bit++) {
      const ones = keys.filter((key) => (key >>> bit) & 1).length;
      // 256 are expected, with a deviation of 11: a good generator leaves ±10 deviations once in 10^23 runs.
      expect(Math.abs(ones - 256), `bit ${bit}`).toBeLessThan(113);
    }
  });

  check('a region outside its memory, or with rights that do not go together, is refused', ([a]) => {
    a.make();
    const { pd, memory: piece } = a;
    for (const [offset, length] of [
      [0, 4097],
      [1, 4096],
      [4096, 1],
      [-1, 8],
      [0, -1],
      [0.5, 1],
      [Number.NaN, 1],
    ]) {
      refused(() => pd.registerMemory(piece, offset, length, ALL_ACCESS), /offset|length/);
    }
    refused(() => pd.registerMemory(piece, 0, 8, Access.REMOTE_WRITE), /LOCAL_WRITE/);
    refused(() => pd.registerMemory(piece, 0, 8, Access.REMOTE_ATOMIC), /LOCAL_WRITE/);
    refused(() => pd.registerMemory(piece, 0, 8, 16), /access/);
    pd.registerMemory(piece, 4096, 0, ALL_ACCESS).deregister();
  });

  check('memory of the process itself can be registered for local use', async ([a, b]) => {
    connect(a, b);
    const own = new Uint8Array(100).fill(7);
    const adopted = a.context.adoptMemory(own.buffer);
    expect(adopted.fromLibrary).toBe(false);
    const region = a.pd.registerMemory(adopted, 0, 100, Access.LOCAL_WRITE);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(10));
      qp.wrSetSge(region.lkey, adopted.address + 5, 20);
    });
    await pollSuccess(a.sendCq);
    expect([...b.bytes.subarray(9, 31)]).toEqual([10, ...new Array(20).fill(7), 31]);
    post(a, (qp) => {
      qp.wrRdmaRead(2, SendFlag.SIGNALED, b.region.rkey, b.at(100));
      qp.wrSetSge(region.lkey, adopted.address, 3);
    });
    await pollSuccess(a.sendCq);
    expect([...own.subarray(0, 4)]).toEqual([101, 102, 103, 7]);
    region.deregister();
    adopted.free();
  });

  check('memory of the process itself that was detached meanwhile does no harm', async ([a, b]) => {
    connect(a, b);
    const own = new ArrayBuffer(100);
    const adopted = a.context.adoptMemory(own);
    const region = a.pd.registerMemory(adopted, 0, 100, Access.LOCAL_WRITE);
    structuredClone(own, { transfer: [own] });
    const before = b.bytes.slice();
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
      qp.wrSetSge(region.lkey, adopted.address, 20);
    });
    // A device keeps the pages, and sends what is in them.
    const { status } = (await poll(a.sendCq, 1))[0];
    if (capabilities.remoteUserMemory && keepsPages) expect(status).toBe(name(WcStatus.SUCCESS));
    else {
      expect(status).toBe(name(WcStatus.LOC_PROT_ERR));
      expect(b.bytes).toEqual(before);
    }
  });

  if (!capabilities.remoteUserMemory) {
    check(
      'memory of the process itself cannot be given remote rights, nor receive, and the refusal says why',
      ([a]) => {
        a.make();
        const adopted = a.context.adoptMemory(new ArrayBuffer(100));
        for (const access of [Access.REMOTE_READ, ALL_ACCESS]) {
          refused(() => a.pd.registerMemory(adopted, 0, 100, access), /remoteUserMemory/);
        }
        const region = a.pd.registerMemory(adopted, 0, 100, Access.LOCAL_WRITE);
        a.qp.modify({ state: 1 });
        refused(() => a.qp.postRecv(1, region.lkey, adopted.address, 100), /allocateMemory/);
      },
    );
  }

  check('a key that was revoked is none, also for a peer that has used it', async ([a, b]) => {
    connect(a, b);
    write(a, b, 1, 0, 100, 8);
    await pollSuccess(a.sendCq);
    b.region.deregister();
    const before = b.bytes.slice();
    write(a, b, 2, 50, 100, 8);
    expect((await poll(a.sendCq, 1))[0].status).toBe(name(WcStatus.REM_ACCESS_ERR));
    expect(b.bytes).toEqual(before);
  });

  check('a local key that was revoked is a local protection error', async ([a, b]) => {
    connect(a, b);
    write(a, b, 1, 0, 100, 8);
    await pollSuccess(a.sendCq);
    a.region.deregister();
    write(a, b, 2, 50, 100, 8);
    expect((await poll(a.sendCq, 1))[0].status).toMatch(/LOC_(PROT|QP_OP)_ERR/);
  });

  check('memory registered again has a new key, and the new one works', async ([a, b]) => {
    connect(a, b);
    const { rkey } = b.region;
    b.region.deregister();
    b.region = b.pd.registerMemory(b.memory, 0, 4096, ALL_ACCESS);
    expect(b.region.rkey).not.toBe(rkey);
    write(a, b, 1, 0, 100, 8);
    await pollSuccess(a.sendCq);
    expect(b.bytes[100]).toBe(1);
  });

  check('what is in use is not destroyed: memory, domains, completion queues, shared receive queues', ([a]) => {
    a.make({ srqWr: 4 });
    refused(() => a.memory.free(), /deregister/);
    refused(() => a.pd.dealloc(), /still belong/);
    refused(() => a.sendCq.destroy(), /queue pairs/);
    refused(() => a.recvCq.destroy(), /queue pairs/);
    refused(() => a.srq!.destroy(), /queue pairs/);
    a.qp.destroy();
    a.sendCq.destroy();
    a.recvCq.destroy();
    refused(() => a.pd.dealloc(), /still belong/);
    a.srq!.destroy();
    a.region.deregister();
    a.memory.free();
    a.pd.dealloc();
    // All of it may be said twice.
    a.qp.destroy();
    a.sendCq.destroy();
    a.srq!.destroy();
    a.region.deregister();
    a.memory.free();
    a.pd.dealloc();
  });

  check('what was destroyed refuses every use', ([a]) => {
    a.make({ srqWr: 4 });
    a.qp.destroy();
    refused(() => a.qp.modify({ state: 1 }), /destroyed/);
    refused(() => {
      a.qp.wrStart();
      a.qp.wrSend(1, 0);
      a.qp.wrComplete();
    }, /destroyed/);
    a.srq!.destroy();
    refused(() => a.srq!.postRecv(1, 0, 0, 0), /destroyed/);
    refused(() => a.srq!.arm(1), /destroyed/);
    a.sendCq.destroy();
    refused(() => a.sendCq.poll(1), /destroyed/);
    refused(() => a.sendCq.reqNotify(), /destroyed/);
    a.region.deregister();
    a.pd.dealloc();
    refused(() => a.pd.registerMemory(a.memory, 0, 1, 0), /deallocated/);
    a.memory.free();
    const other = a.context.allocPd();
    refused(() => other.registerMemory(a.memory, 0, 1, 0), /freed/);
    a.context.close();
    a.context.close();
    refused(() => a.context.allocPd(), /closed/);
    refused(() => a.context.createCq(1), /closed/);
    refused(() => a.context.allocateMemory(1), /closed/);
  });

  check('freed memory is not reached by the keys it once had', async ([a, b]) => {
    connect(a, b);
    const piece = b.context.allocateMemory(64);
    const region = b.pd.registerMemory(piece, 0, 64, ALL_ACCESS);
    const { rkey } = region;
    region.deregister();
    piece.free();
    const next = b.context.allocateMemory(64);
    const target = new Uint8Array(next.buffer);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, rkey, piece.address);
      qp.wrSetSge(a.region.lkey, a.at(0), 64);
    });
    expect((await poll(a.sendCq, 1))[0].status).toBe(name(WcStatus.REM_ACCESS_ERR));
    expect(target.every((byte) => byte === 0)).toBe(true);
  });

  check('many regions come and go', ([a]) => {
    a.make();
    const rounds = Math.min(3000, 4 * device.maxMr);
    const live = [];
    for (let i = 0; i < rounds; i++) {
      live.push(a.pd.registerMemory(a.memory, i % 4096, 1, ALL_ACCESS));
      if (live.length > 100) live.shift()!.deregister();
    }
    expect(new Set(live.map(({ rkey }) => rkey)).size).toBe(live.length);
  });
}
