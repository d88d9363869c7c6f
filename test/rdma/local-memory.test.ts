/**
 * Memory of this process that is taken back while requests use it: they write nowhere and send nothing of it then,
 * whether they wait, travel with others, or are under way in libfabric (native/fabric_regions.cc).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import type { Memory } from '../../src/verbs/memory.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import {
  ALL_ACCESS,
  connect,
  End,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  write,
} from '../verbs/conformance/harness.ts';
import { openMembers } from './device.ts';
import { FLUSHED, LONG, PLACES, SUCCESS, warm } from './together.ts';

const GONE = name(WcStatus.LOC_PROT_ERR);
const NEW = 0xff;

type Post = (a: End, b: End, i: number, lkey: number) => void;

const read: Post = (a, b, i, lkey) =>
  post(a, (qp) => {
    qp.wrRdmaRead(i, SendFlag.SIGNALED, b.region.rkey, b.at(8 * i));
    qp.wrSetSge(lkey, a.at(2048 + 8 * i), 8);
  });
const add: Post = (a, b, i, lkey) =>
  post(a, (qp) => {
    qp.wrAtomicFetchAdd(i, SendFlag.SIGNALED, b.region.rkey, b.at(8 * i), 1, 0);
    qp.wrSetSge(lkey, a.at(2048 + 8 * i), 8);
  });
const put: Post = (a, b, i, lkey) =>
  post(a, (qp) => {
    qp.wrRdmaWrite(i, SendFlag.SIGNALED, b.region.rkey, b.at(8 * i));
    qp.wrSetSge(lkey, a.at(2048 + 8 * i), 8);
  });
const say: Post = (a, _, i, lkey) =>
  post(a, (qp) => {
    qp.wrSend(i, SendFlag.SIGNALED);
    qp.wrSetSge(lkey, a.at(2048 + 8 * i), 8);
  });

/** Some succeed, the next one finds its memory gone, and the rest is flushed. How many succeed. */
function expectGone(statuses: readonly [number, string][]): number {
  const good = statuses.filter(([, status]) => status === SUCCESS).length;
  const wanted = statuses.map((_, i) => [i, i < good ? SUCCESS : i === good ? GONE : FLUSHED]);
  expect(statuses).toEqual(wanted);
  return good;
}

describe('of requests that wait or travel together, nothing is written or sent when it is taken back', () => {
  const COUNT = 16;
  const held = (a: End, b: End, one: Post, lkey: number): void => {
    for (let i = 0; i < COUNT; i++) one(a, b, i, lkey);
  };

  for (const [what, one] of Object.entries({ read, add })) {
    for (const wait of [0, 1]) {
      test(`${what}, ${wait === 0 ? 'at once' : 'when they have left'}`, LONG, async () => {
        const [a, b] = await warm();
        // The target's thread stands back: what leaves is not answered at once.
        b.recvCq.poll(1);
        const region = a.pd.registerMemory(a.memory, 0, 4096, ALL_ACCESS);
        held(a, b, one, region.lkey);
        if (wait > 0) a.recvCq.poll(1);
        region.deregister();
        a.bytes.fill(NEW);
        const good = expectGone(await pollStatuses(a.sendCq, COUNT));
        expect(good).toBeLessThan(COUNT);
        await sleep(20);
        expect(a.bytes.every((byte) => byte === NEW)).toBe(true);
      });
    }
  }

  test('write', LONG, async () => {
    const [a, b] = await warm();
    const region = a.pd.registerMemory(a.memory, 0, 4096, ALL_ACCESS);
    held(a, b, put, region.lkey);
    region.deregister();
    a.bytes.fill(NEW);
    expect(expectGone(await pollStatuses(a.sendCq, COUNT))).toBeLessThan(COUNT);
    await sleep(20);
    expect(b.bytes.includes(NEW)).toBe(false);
  });

  test('send, behind more than may be under way', LONG, async () => {
    const [a, b] = await warm();
    const region = a.pd.registerMemory(a.memory, 0, 4096, ALL_ACCESS);
    const many = 100;
    for (let i = 0; i < many; i++) say(a, b, i, region.lkey);
    region.deregister();
    a.bytes.fill(NEW);
    for (let i = 0; i < 64; i++) b.receive(i, 8 * i, 8);
    const statuses = await pollStatuses(a.sendCq, many);
    expect(expectGone(statuses)).toBeLessThan(many);
    await sleep(20);
    expect(b.bytes.includes(NEW)).toBe(false);
  });

  test('those before it, which use other memory, are carried out', LONG, async () => {
    const [a, b] = await warm();
    const region = a.pd.registerMemory(a.memory, 0, 4096, ALL_ACCESS);
    a.bytes.fill(7, 2048, 2048 + 64);
    for (let i = 0; i < COUNT; i++) put(a, b, i, (i < 8 ? a.region : region).lkey);
    region.deregister();
    expect(expectGone(await pollStatuses(a.sendCq, COUNT))).toBeGreaterThanOrEqual(8);
    expect(b.bytes.subarray(0, 64).every((byte) => byte === 7)).toBe(true);
  });
});

describe('what libfabric has is waited for', () => {
  const BYTES = 16 << 20;

  function big(): [End, End, Memory, Memory] {
    const contexts = openMembers(2);
    onTestFinished(() => {
      for (const context of contexts) context.close();
    });
    const [a, b] = contexts.map((context) => new End(context));
    connect(a, b, PLACES);
    return [a, b, a.context.allocateMemory(BYTES), b.context.allocateMemory(BYTES)];
  }

  for (const ends of [false, true]) {
    test(`a long read${ends ? ', though its queue pair is destroyed' : ''}`, LONG, async () => {
      const [a, b, mine, theirs] = big();
      const target = b.pd.registerMemory(theirs, 0, BYTES, ALL_ACCESS);
      write(a, b, 1, 0, 0, 8);
      await pollSuccess(a.sendCq);
      // Its key is known then.
      const small = (id: number): void =>
        post(a, (qp) => {
          qp.wrRdmaRead(id, SendFlag.SIGNALED, target.rkey, theirs.address);
          qp.wrSetSge(a.region.lkey, a.at(0), 8);
        });
      small(2);
      await pollSuccess(a.sendCq);
      const region = a.pd.registerMemory(mine, 0, BYTES, ALL_ACCESS);
      post(a, (qp) => {
        qp.wrRdmaRead(3, SendFlag.SIGNALED, target.rkey, theirs.address);
        qp.wrSetSge(region.lkey, mine.address, BYTES);
      });
      if (ends) a.qp.destroy();
      region.deregister();
      new Uint8Array(mine.buffer).fill(NEW);
      if (!ends) expect((await poll(a.sendCq, 1))[0].status).toBe(SUCCESS);
      await sleep(200);
      expect(new Uint8Array(mine.buffer).every((byte) => byte === NEW)).toBe(true);
    });
  }

  test('a long write', LONG, async () => {
    const [a, b, mine, theirs] = big();
    const target = b.pd.registerMemory(theirs, 0, BYTES, ALL_ACCESS);
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, target.rkey, theirs.address);
      qp.wrSetSge(a.region.lkey, a.at(0), 8);
    });
    await pollSuccess(a.sendCq);
    const region = a.pd.registerMemory(mine, 0, BYTES, ALL_ACCESS);
    post(a, (qp) => {
      qp.wrRdmaWrite(2, SendFlag.SIGNALED, target.rkey, theirs.address);
      qp.wrSetSge(region.lkey, mine.address, BYTES);
    });
    region.deregister();
    new Uint8Array(mine.buffer).fill(NEW);
    await pollSuccess(a.sendCq);
    expect(new Uint8Array(theirs.buffer).includes(NEW)).toBe(false);
  });
});
