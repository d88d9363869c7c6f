/**
 * What the direct emulator keeps mapped of its peers, and what it lets go; and what stands besides the verbs' promises.
 */
import { afterEach, expect, test } from 'vitest';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import type { Attachment, EmulatorFabric } from '../../src/providers/emulator/emulator-fabric.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import type { Context } from '../../src/verbs/device.ts';
import { QpState, SendFlag } from '../../src/verbs/queue-pair.ts';
import { ALL_ACCESS, bringUp, connect, End, poll, pollSuccess, refused, send, write } from './conformance/harness.ts';

/** Counts the attachments that a member holds of each other member, and their bytes. */
function counting(fabric: EmulatorFabric, held: number[], bytes: number[]): EmulatorFabric {
  return {
    member: fabric.member,
    size: fabric.size,
    parking: fabric.parking,
    allocate: (byteLength) => fabric.allocate(byteLength),
    free: (allocation) => fabric.free(allocation),
    attach(member, handle, byteLength): Attachment {
      const attachment = fabric.attach(member, handle, byteLength);
      held[member]++;
      bytes[member] += byteLength;
      let live = true;
      return {
        buffer: attachment.buffer,
        release() {
          if (live) {
            held[member]--;
            bytes[member] -= byteLength;
          }
          live = false;
          attachment.release();
        },
      };
    },
    publishRoot: (allocation) => fabric.publishRoot(allocation),
    root: (member) => fabric.root(member),
    wake: (member) => fabric.wake(member),
    close: () => fabric.close(),
  };
}

const contexts: Context[] = [];

afterEach(() => {
  for (const context of contexts.splice(0)) context.close();
});

/** Two ends; `held[member]` is what the first one has attached of `member`, `bytes[member]` how much that is. */
function ends(): { a: End; b: End; held: number[]; bytes: number[] } {
  const fabrics = createLocalFabric(2);
  const held = [0, 0];
  const bytes = [0, 0];
  contexts.push(openEmulator(counting(fabrics[0], held, bytes)), openEmulator(fabrics[1]));
  const [a, b] = contexts.map((context) => new End(context));
  return { a, b, held, bytes };
}

/** Writes a byte to the beginning of a region. */
async function writeTo(a: End, region: { readonly rkey: number; readonly address: number }): Promise<void> {
  a.qp.wrStart();
  a.qp.wrRdmaWrite(1, SendFlag.SIGNALED, region.rkey, region.address);
  a.qp.wrSetInlineData(Uint8Array.of(1), 0, 1);
  a.qp.wrComplete();
  await pollSuccess(a.sendCq);
}

test('a piece of memory is attached once, for regions, pointers and rings alike', async () => {
  const { a, b, held } = ends();
  connect(a, b);
  expect(held[1]).toBe(1); // The root.
  const regions = Array.from({ length: 5 }, (_, i) => b.pd.registerMemory(b.memory, 8 * i, 64, ALL_ACCESS));
  for (const region of regions) {
    await writeTo(a, region);
  }
  expect(held[1]).toBe(2);
  const pointer = a.context.remotePointer(1, b.region.rkey, b.at(0), 8, 0);
  expect(held[1]).toBe(2);
  b.receive(1, 0, 8);
  send(a, 1, 0, 8);
  await pollSuccess(a.sendCq);
  // Its receives and its completion ring.
  expect(held[1]).toBe(4);
  a.qp.modify({ state: QpState.RESET });
  expect(held[1]).toBe(2);
  pointer.release();
  expect(held[1]).toBe(2);
});

test('memory whose regions were all revoked is let go with the next key that is new', async () => {
  const { a, b, held } = ends();
  connect(a, b);
  write(a, b, 1, 0, 0, 8);
  await pollSuccess(a.sendCq);
  expect(held[1]).toBe(2);
  for (let i = 0; i < 10; i++) {
    const memory = b.context.allocateMemory(64);
    const region = b.pd.registerMemory(memory, 0, 64, ALL_ACCESS);
    await writeTo(a, region);
    expect(held[1]).toBe(3);
    region.deregister();
    memory.free();
  }
});

test('a pointer keeps its memory attached after the key was revoked, until it is released', () => {
  const { a, b, held } = ends();
  a.make();
  b.make();
  const pointer = a.context.remotePointer(1, b.region.rkey, b.at(0), 8, 0);
  b.region.deregister();
  const other = b.pd.registerMemory(b.context.allocateMemory(64), 0, 64, ALL_ACCESS);
  const second = a.context.remotePointer(1, other.rkey, other.address, 8, 0);
  expect(held[1]).toBe(3);
  second.release();
  expect(held[1]).toBe(2);
  pointer.release();
  expect(held[1]).toBe(1);
});

test('one’s own memory is not attached a second time', async () => {
  const { a, held } = ends();
  a.make();
  bringUp(a.qp, a.qp);
  write(a, a, 1, 0, 100, 8);
  await pollSuccess(a.sendCq);
  a.context.remotePointer(0, a.region.rkey, a.at(0), 8, 0);
  // Its root, as of any peer.
  expect(held[0]).toBe(1);
});

test('closing lets everything go', async () => {
  const { a, b, held } = ends();
  connect(a, b);
  b.receive(1, 0, 8);
  send(a, 1, 0, 8);
  write(a, b, 2, 0, 0, 8);
  await poll(a.sendCq, 2);
  const pointer = a.context.remotePointer(1, b.region.rkey, b.at(0), 8, 0);
  a.context.close();
  expect(held).toEqual([0, 0]);
  pointer.release();
  expect(held).toEqual([0, 0]);
});

test('a request that waits for a receive is announced to those who sleep', async () => {
  const { a, b } = ends();
  connect(a, b);
  expect(a.context.pendingRetry).toBe(false);
  send(a, 1, 0, 8);
  expect(a.context.pendingRetry).toBe(true);
  b.receive(1, 0, 8);
  await pollSuccess(a.sendCq);
  expect(a.context.pendingRetry).toBe(false);
});

test('a member that has opened no device, or one of another layout, is nobody', async () => {
  const fabrics = createLocalFabric(2);
  const a = new End(openEmulator(fabrics[0])).make();
  contexts.push(a.context);
  refused(() => a.context.remotePointer(1, 1, 0, 1, 0), /no device/);
  // Roots that no emulator of this version has written.
  for (const bytes of [4 << 20, 32 << 20]) {
    fabrics[1].publishRoot(fabrics[1].allocate(bytes));
    refused(() => a.context.remotePointer(1, 1, 0, 1, 0), /no device/);
  }
  a.qp.modify({ state: QpState.INIT });
  a.qp.modify({ state: QpState.RTR, dest: { member: 1, qpNumber: 8192 } });
  a.qp.modify({ state: QpState.RTS });
  send(a, 1, 0, 8);
  expect((await poll(a.sendCq, 1))[0].status).toBe('IBV_WC_RETRY_EXC_ERR');
});

test('a number that is out of date does not reach the queue pair that has its place now', async () => {
  const { a, b } = ends();
  connect(a, b);
  const { number } = b.qp;
  b.qp.destroy();
  // Places are used again when all others have been used.
  const others = Array.from({ length: b.context.device.maxQp - 1 }, () =>
    b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: b.recvCq, maxRecvWr: 1, maxSendWr: 1, maxInlineData: 0 }),
  );
  b.qp = b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: b.recvCq });
  expect(b.qp.number % b.context.device.maxQp).toBe(number % b.context.device.maxQp);
  expect(b.qp.number).not.toBe(number);
  expect(others.length).toBe(b.context.device.maxQp - 1);
  bringUp(b.qp, a.qp);
  b.receive(1, 0, 8);
  send(a, 1, 0, 8);
  expect((await poll(a.sendCq, 1))[0].status).toBe('IBV_WC_RETRY_EXC_ERR');
});

// V8 counts what is mapped as external memory, and collects garbage when there is much more of it.
test('of a context with few objects, a quarter of a megabyte is mapped, however many it can have', async () => {
  const { a, b, held, bytes } = ends();
  connect(a, b);
  await writeTo(a, b.region);
  expect(held[1]).toBe(2);
  expect(bytes[1]).toBeLessThanOrEqual(256 * 1024 + b.memory.byteLength);
});

test('a region beyond the first few hundred is found, and its part of the table mapped once', async () => {
  const { a, b, held } = ends();
  connect(a, b);
  await writeTo(a, b.region);
  const many = Array.from({ length: 6000 }, () => b.pd.registerMemory(b.memory, 0, 64, ALL_ACCESS));
  expect(new Set(many.map(({ rkey }) => rkey)).size).toBe(6000);
  // Three levels of the table have some of them.
  for (const region of many) await writeTo(a, region);
  expect(held[1]).toBe(4);
  many[5000].deregister();
  refused(() => a.context.remotePointer(1, many[5000].rkey, many[5000].address, 8, 0), /names no memory region/);
  for (const region of many) if (region !== many[5000]) region.deregister();
  const again = b.pd.registerMemory(b.memory, 0, 64, ALL_ACCESS);
  await writeTo(a, again);
  expect(held[1]).toBe(4);
});

test('a queue pair beyond the first few hundred is found, also if named before it was made', async () => {
  const { a, b, held } = ends();
  a.make();
  b.make();
  const make = (): typeof b.qp =>
    b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: b.recvCq, maxRecvWr: 1, maxSendWr: 1, maxInlineData: 0 });
  // Numbers are given in order.
  a.qp.modify({ state: QpState.INIT });
  a.qp.modify({ state: QpState.RTR, dest: { member: 1, qpNumber: b.qp.number + 1000 } });
  a.qp.modify({ state: QpState.RTS });
  expect(held[1]).toBe(1);
  b.qp = Array.from({ length: 1000 }, make).at(-1)!;
  bringUp(b.qp, a.qp);
  await writeTo(a, b.region);
  expect(held[1]).toBe(3);
});
