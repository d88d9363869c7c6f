/**
 * Notices over libfabric: writes of no bytes with immediate data, which leave with the small accesses before them
 * (native/fabric_batches.cc), and may be acknowledged by what goes to the peer on another connection
 * (native/fabric_messages.cc). On the loopback interface; run by `npm run test:tcp`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WcFlag, WcOpcode, WcStatus } from '../../src/verbs/completion-queue.ts';
import { Access } from '../../src/verbs/memory.ts';
import { QpState, type QueuePair, SendFlag } from '../../src/verbs/queue-pair.ts';
import {
  bringUp,
  End,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  reaches,
  send,
} from '../verbs/conformance/harness.ts';
import { openMembers, segments } from './device.ts';
import { FLUSHED, LONG, list, PLACES, SUCCESS, warm, word, wordAt } from './together.ts';

function notice(from: End, to: End, id: number, immediate: number, flags: number = SendFlag.SIGNALED): void {
  post(from, (qp) => qp.wrRdmaWriteImm(id, flags, to.region.rkey, to.at(0), immediate));
}

/** Of notices, which have no bytes. */
const told = (immediate: number): object => ({
  status: SUCCESS,
  opcode: WcOpcode.RECV_RDMA_WITH_IMM,
  flags: WcFlag.WITH_IMM,
  byteLen: 0,
  immData: immediate,
});

describe('a notice behind writes', () => {
  test('comes when they are there, and completes behind them', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 1; round <= 60; round++) {
      const count = 1 + (round % 5);
      b.receive(round, 3000, 8);
      for (let i = 0; i < count; i++) list(a, b, [{ at: 8 * i, bytes: word(round + i) }], i);
      notice(a, b, 9, round);
      expect(await poll(b.recvCq, 1)).toMatchObject([{ wrId: round, ...told(round) }]);
      for (let i = 0; i < count; i++) expect(wordAt(b, 8 * i)).toBe(round + i);
      const ids = [...Array.from({ length: count }, (_, i) => i), 9];
      expect(await pollStatuses(a.sendCq, count + 1)).toEqual(ids.map((id) => [id, SUCCESS]));
    }
  });

  test('leaves with them', LONG, async () => {
    const [a, b] = await warm();
    const ROUNDS = 10;
    let least = Number.POSITIVE_INFINITY;
    // Others may use TCP here, too, and take the processor.
    for (let tries = 0; tries < 2000 && least > 3.5; tries++) {
      const before = segments();
      for (let round = 0; round < ROUNDS; round++) {
        b.receive(round, 3000, 8);
        list(a, b, [{ at: 0, bytes: word(round), flags: 0 }]);
        notice(a, b, 1, round);
        while (b.recvCq.poll(1) === 0);
        while (a.sendCq.poll(1) === 0);
      }
      least = Math.min(least, (segments() - before) / ROUNDS);
    }
    // A message and its acknowledgement. Each by itself would be four, without those of TCP.
    expect(least).toBeLessThan(4);
  });

  test('waits for its receive, they do not; what comes behind waits, too', LONG, async () => {
    const [a, b] = await warm();
    new Float64Array(b.memory.buffer).fill(7, 0, 4);
    for (const at of [0, 8, 16]) list(a, b, [{ at, bytes: word(1 + at), flags: 0 }]);
    notice(a, b, 1, 5);
    list(a, b, [{ at: 24, bytes: word(25) }], 2);
    // As on a device, where a write needs no receive.
    const deadline = performance.now() + 60_000;
    while (wordAt(b, 16) !== 17 && performance.now() < deadline) await sleep(1);
    expect([0, 8, 16].map((at) => wordAt(b, at))).toEqual([1, 9, 17]);
    await sleep(50);
    expect(a.sendCq.poll(1)).toBe(0);
    expect(wordAt(b, 24)).toBe(7);
    // They are not carried out again.
    new Float64Array(b.memory.buffer).fill(7, 0, 3);
    b.receive(3, 3000, 8);
    expect(await poll(b.recvCq, 1)).toMatchObject([{ wrId: 3, ...told(5) }]);
    expect([0, 8, 16].map((at) => wordAt(b, at))).toEqual([7, 7, 7]);
    expect(await pollStatuses(a.sendCq, 2)).toEqual([
      [1, SUCCESS],
      [2, SUCCESS],
    ]);
    expect(wordAt(b, 24)).toBe(25);
  });

  // As on a device, where a write needs no receive.
  test('that is not received in time fails alone: they have been carried out', LONG, async () => {
    const [a, b] = await warm();
    for (const qp of [a.qp, b.qp]) qp.modify({ state: QpState.RESET });
    bringUp(a.qp, b.qp, { rnrRetry: 1 });
    bringUp(b.qp, a.qp);
    for (let i = 0; i < 3; i++) list(a, b, [{ at: 8 * i, bytes: word(-1 - i) }], i);
    notice(a, b, 3, 5);
    expect(await pollStatuses(a.sendCq, 4)).toEqual([
      ...[0, 1, 2].map((id) => [id, SUCCESS]),
      [3, name(WcStatus.RNR_RETRY_EXC_ERR)],
    ]);
    expect([0, 8, 16].map((at) => wordAt(b, at))).toEqual([-1, -2, -3]);
  });

  test('does not come if one of them is not allowed', LONG, async () => {
    const [a, b] = await warm();
    const readable = b.pd.registerMemory(b.memory, 0, 64, Access.REMOTE_READ);
    b.receive(3, 3000, 8);
    list(a, b, [{ at: 0, bytes: word(1) }], 0);
    list(a, b, [{ at: 8, bytes: word(2), rkey: readable.rkey }], 1);
    notice(a, b, 2, 5);
    expect(await pollStatuses(a.sendCq, 3)).toEqual([
      [0, SUCCESS],
      [1, name(WcStatus.REM_ACCESS_ERR)],
      [2, FLUSHED],
    ]);
    await reaches(b.qp, QpState.ERR);
    expect(await pollStatuses(b.recvCq, 1)).toEqual([[3, FLUSHED]]);
    expect(wordAt(b, 0)).toBe(1);
  });

  test('with a fence, comes when the reads before it have brought what they read', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 1; round <= 60; round++) {
      new Float64Array(b.memory.buffer)[0] = round;
      b.receive(round, 3000, 8);
      const reads = 1 + (round % 3);
      for (let i = 0; i < reads; i++) {
        post(a, (qp) => {
          qp.wrRdmaRead(i, SendFlag.SIGNALED, b.region.rkey, b.at(0));
          qp.wrSetSge(a.region.lkey, a.at(2048 + 8 * i), 8);
        });
      }
      list(a, b, [{ at: 8, bytes: word(-round) }], 7);
      notice(a, b, 8, round, SendFlag.SIGNALED | SendFlag.FENCE);
      // Who is told may write what was read.
      const deadline = performance.now() + 60_000;
      let got = 0;
      while ((got += b.recvCq.poll(1)) === 0 && performance.now() < deadline) a.sendCq.poll(0);
      new Float64Array(b.memory.buffer)[0] = -1000;
      expect([got, wordAt(b, 8)]).toEqual([1, -round]);
      expect(await pollStatuses(a.sendCq, reads + 2)).toEqual(
        [...Array.from({ length: reads }, (_, i) => i), 7, 8].map((id) => [id, SUCCESS]),
      );
      for (let i = 0; i < reads; i++) expect(wordAt(a, 2048 + 8 * i)).toBe(round);
    }
  });
});

/** Two connections between the same two devices. */
function twice(): { a: End; b: End; second: [QueuePair, QueuePair] } {
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [a, b] = contexts.map((context) => new End(context).make(PLACES));
  const more = [a, b].map(({ pd, sendCq, recvCq }) =>
    pd.createQueuePair({ sendCq, recvCq, maxSendWr: 64, maxInlineData: 64 }),
  );
  for (const [mine, theirs] of [
    [a.qp, b.qp],
    [more[0], more[1]],
  ]) {
    bringUp(mine, theirs);
    bringUp(theirs, mine);
  }
  return { a, b, second: [more[0], more[1]] };
}

describe('an acknowledgement', () => {
  test('goes with what leaves for that peer on another connection', LONG, async () => {
    const { a, b, second } = twice();
    const ROUNDS = 10;
    const ANSWER = word(1);
    const until = (end: End, which: 'sendCq' | 'recvCq'): void => {
      const deadline = performance.now() + 20_000;
      let found = 0;
      while (found === 0 && performance.now() < deadline) found = end[which].poll(1);
      expect([found, end[which].wc.status[0]]).toEqual([1, 0]);
    };
    const receives = (count: number): void => {
      for (let i = 0; i < count; i++) {
        b.receive(i, 1000, 64);
        second[0].postRecv(i, a.region.lkey, a.at(1000), 64);
      }
    };
    // Nothing between an arrival and what is sent then: an acknowledgement waits for 25 µs.
    const pingPong = (i: number): void => {
      send(a, i, 0, 8);
      until(b, 'recvCq');
      second[1].wrStart();
      second[1].wrSend(i, SendFlag.SIGNALED);
      second[1].wrSetInlineData(ANSWER, 0, 8);
      second[1].wrComplete();
      // That of the answer before has come with the message.
      if (i > 0) until(b, 'sendCq');
      until(a, 'sendCq');
      until(a, 'recvCq');
    };
    receives(1);
    pingPong(0);
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 4000 && least > 2.5; tries++) {
      receives(ROUNDS);
      const before = segments();
      for (let i = 1; i <= ROUNDS; i++) pingPong(i);
      least = Math.min(least, (segments() - before) / ROUNDS);
    }
    // Each message, and its acknowledgement, would be four.
    expect(least).toBeLessThan(3);
  });

  test('of a connection that is gone harms no other', LONG, async () => {
    const { a, b, second } = twice();
    for (let round = 0; round < 20; round++) {
      b.receive(1, 1000, 64);
      notice(a, b, 1, 1);
      await pollSuccess(b.recvCq);
      // Its acknowledgement may still be due.
      a.qp.modify({ state: QpState.RESET });
      second[0].postRecv(2, a.region.lkey, a.at(1000), 64);
      second[1].wrStart();
      second[1].wrSend(2, SendFlag.SIGNALED);
      second[1].wrSetInlineData(word(round), 0, 8);
      second[1].wrComplete();
      expect(await poll(a.recvCq, 1)).toMatchObject([{ wrId: 2, status: SUCCESS }]);
      expect(wordAt(a, 1000)).toBe(round);
      await pollSuccess(b.sendCq);
      b.qp.modify({ state: QpState.RESET });
      a.qp.modify({ state: QpState.RESET });
      bringUp(a.qp, b.qp);
      bringUp(b.qp, a.qp);
    }
    await expectNothing(a.recvCq, b.recvCq);
  });
});
