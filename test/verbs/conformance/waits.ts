/** Requests that wait for a word of this side's memory (`wrWait`). */
import { expect, test } from 'vitest';
import { WcOpcode, WcStatus } from '../../../src/verbs/completion-queue.ts';
import { Access } from '../../../src/verbs/memory.ts';
import { QpState, QpType, type QueuePair, SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  bringUp,
  connect,
  type End,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  refused,
  type Suite,
} from './harness.ts';

/** Where the words are that are waited for, and what is written meanwhile. */
const WORD = 512;
const DATA = 1024;

export function waits({ check, checkIf, capabilities, device }: Suite): void {
  const wordsOf = (end: End): Int32Array => new Int32Array(end.memory.buffer, WORD, 16);
  /** One byte from `from`, behind waits for the words with these numbers. */
  const waitAndWrite = (from: End, to: End, wrId: number, value: number, ...words: number[]): void => {
    post(from, (qp) => {
      for (const word of words) qp.wrWait(100 + word, 0, from.region.lkey, from.at(WORD + 4 * word), value);
      qp.wrRdmaWrite(wrId, SendFlag.SIGNALED, to.region.rkey, to.at(DATA + wrId));
      qp.wrSetInlineData(Uint8Array.of(200 + wrId), 0, 1);
    });
  };
  const store = async (from: End, to: End, word: number, value: number): Promise<void> => {
    post(from, (qp) => {
      qp.wrRdmaWrite(0, SendFlag.SIGNALED, to.region.rkey, to.at(WORD + 4 * word));
      qp.wrSetInlineData(new Uint8Array(Int32Array.of(value).buffer), 0, 4);
    });
    await pollSuccess(from.sendCq);
  };
  /** Both ends' words are 0, and the bytes that are written. */
  const begin = (ends: readonly End[], options = {}): void => {
    connect(ends[0], ends[1], options);
    for (const end of ends.slice(0, 2)) end.bytes.fill(0, WORD, 2048);
  };

  checkIf('waits', 'hold up those behind them until the word has come', async ([a, b]) => {
    begin([a, b]);
    waitAndWrite(a, b, 1, 5, 0);
    await expectNothing(a.sendCq);
    await store(b, a, 0, 4);
    await expectNothing(a.sendCq);
    expect(b.bytes[DATA + 1]).toBe(0);
    await store(b, a, 0, 5);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(1);
    expect(b.bytes[DATA + 1]).toBe(201);
  });

  checkIf('waits', 'that are over already pass, and complete as waits', async ([a, b]) => {
    begin([a, b]);
    await store(b, a, 0, 7);
    post(a, (qp) => {
      for (const value of [7, 6, -1]) qp.wrWait(value + 10, SendFlag.SIGNALED, a.region.lkey, a.at(WORD), value);
    });
    const found = await poll(a.sendCq, 3);
    expect(found.map(({ wrId, status, opcode }) => [wrId, status, opcode])).toEqual(
      [17, 16, 9].map((wrId) => [wrId, name(WcStatus.SUCCESS), WcOpcode.WAIT]),
    );
  });

  checkIf('waits', 'leave the queue when their completions are polled', async ([a, b]) => {
    begin([a, b], { maxSendWr: 16 });
    await store(b, a, 0, 1);
    for (let i = 0; i < 100; i++) {
      post(a, (qp) => qp.wrWait(i, SendFlag.SIGNALED, a.region.lkey, a.at(WORD), 1));
      expect((await pollSuccess(a.sendCq)).wrId).toBe(i);
    }
  });

  checkIf('waits', 'in a row end when all words have come, in whatever order', async ([a, b]) => {
    begin([a, b]);
    waitAndWrite(a, b, 1, 1, 0, 1, 2);
    for (const word of [2, 0]) {
      await store(b, a, word, 1);
      await expectNothing(a.sendCq);
    }
    await store(b, a, 1, 1);
    await pollSuccess(a.sendCq);
    expect(b.bytes[DATA + 1]).toBe(201);
  });

  checkIf('waits', 'are for a value or a later one, past 2^32', async ([a, b]) => {
    begin([a, b]);
    for (const [before, awaited, later] of [
      [-3, -2, -2],
      [-2, 1, 2],
      [2 ** 31 - 1, -(2 ** 31), -(2 ** 31) + 5],
    ]) {
      await store(b, a, 0, before);
      waitAndWrite(a, b, 1, awaited >>> 0, 0);
      await expectNothing(a.sendCq);
      await store(b, a, 0, later);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(1);
    }
  });

  checkIf('waits', 'are ended by atomics and by messages of peers, too', async ([a, b]) => {
    begin([a, b]);
    waitAndWrite(a, b, 1, 3, 0);
    post(b, (qp) => {
      qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, a.region.rkey, a.at(WORD), 3, 0);
      qp.wrSetSge(b.region.lkey, b.at(0), 8);
    });
    await pollSuccess(b.sendCq);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(1);
    waitAndWrite(a, b, 2, 9, 2);
    a.receive(1, WORD + 8, 4);
    post(b, (qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetInlineData(new Uint8Array(Int32Array.of(9).buffer), 0, 4);
    });
    await pollSuccess(b.sendCq);
    await pollSuccess(a.recvCq);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(2);
  });

  checkIf('waits', 'keep those behind them from reading their data, except inline data', async ([a, b]) => {
    begin([a, b]);
    const inline = Uint8Array.of(33);
    post(a, (qp) => {
      qp.wrWait(1, 0, a.region.lkey, a.at(WORD), 1);
      qp.wrRdmaWrite(2, 0, b.region.rkey, b.at(DATA));
      qp.wrSetSge(a.region.lkey, a.at(0), 1);
      qp.wrRdmaWrite(3, SendFlag.SIGNALED, b.region.rkey, b.at(DATA + 1));
      qp.wrSetInlineData(inline, 0, 1);
    });
    await expectNothing(a.sendCq);
    a.bytes[0] = 77;
    inline[0] = 34;
    await store(b, a, 0, 1);
    await pollSuccess(a.sendCq);
    expect([...b.bytes.subarray(DATA, DATA + 2)]).toEqual([77, 33]);
  });

  checkIf('waits', 'hold up no other queue pair', async ([a, b]) => {
    begin([a, b]);
    const [there, back] = [a, b].map((end) => end.pd.createQueuePair({ sendCq: end.recvCq, recvCq: end.recvCq }));
    bringUp(there, back);
    bringUp(back, there);
    waitAndWrite(a, b, 1, 1, 0);
    there.wrStart();
    there.wrRdmaWrite(2, SendFlag.SIGNALED, b.region.rkey, b.at(DATA));
    there.wrSetInlineData(Uint8Array.of(55), 0, 1);
    there.wrComplete();
    expect((await pollSuccess(a.recvCq)).wrId).toBe(2);
    expect([b.bytes[DATA], b.bytes[DATA + 1]]).toEqual([55, 0]);
    await expectNothing(a.sendCq);
    await store(b, a, 0, 1);
    await pollSuccess(a.sendCq);
  });

  checkIf('waits', 'count among the requests that a queue holds', ([a, b]) => {
    begin([a, b], { maxSendWr: 4 });
    const { maxSendWr } = a.qp.cap;
    post(a, (qp) => {
      for (let i = 0; i < maxSendWr; i++) qp.wrWait(i, 0, a.region.lkey, a.at(WORD), 1);
    });
    a.qp.wrStart();
    refused(() => a.qp.wrWait(99, 0, a.region.lkey, a.at(WORD), 1), /full|ENOMEM/);
  });

  const ends: readonly (readonly [string, (qp: QueuePair) => void])[] = [
    ['ERR', (qp) => qp.modify({ state: QpState.ERR })],
    ['RESET', (qp) => qp.modify({ state: QpState.RESET })],
    ['nothing, destroyed', (qp) => qp.destroy()],
  ];
  for (const [to, end] of ends) {
    checkIf('waits', `end when their queue pair goes to ${to}`, async ([a, b]) => {
      begin([a, b]);
      post(a, (qp) => {
        qp.wrWait(1, SendFlag.SIGNALED, a.region.lkey, a.at(WORD), 1);
        qp.wrRdmaWrite(2, SendFlag.SIGNALED, b.region.rkey, b.at(DATA));
        qp.wrSetInlineData(Uint8Array.of(1), 0, 1);
      });
      await expectNothing(a.sendCq);
      end(a.qp);
      const flushed = name(WcStatus.WR_FLUSH_ERR);
      if (to === 'ERR')
        expect(await pollStatuses(a.sendCq, 2)).toEqual([
          [1, flushed],
          [2, flushed],
        ]);
      // The other end reaches the word by another connection: nothing goes on.
      const [there, back] = [a, b].map((one) => one.pd.createQueuePair({ sendCq: one.recvCq, recvCq: one.recvCq }));
      bringUp(there, back);
      bringUp(back, there);
      back.wrStart();
      back.wrRdmaWrite(3, SendFlag.SIGNALED, a.region.rkey, a.at(WORD));
      back.wrSetInlineData(Uint8Array.of(1, 0, 0, 0), 0, 4);
      back.wrComplete();
      await pollSuccess(b.recvCq);
      await expectNothing(a.sendCq);
      expect(b.bytes[DATA]).toBe(0);
      if (to !== 'RESET') return;
      bringUp(a.qp, b.qp);
      waitAndWrite(a, b, 4, 1, 0);
      expect((await poll(a.sendCq, 1)).map(({ wrId }) => wrId)).toEqual([4]);
    });
  }

  const wrong: readonly (readonly [string, (a: End) => readonly [lkey: number, address: number]])[] = [
    ['a key that names no region', (a) => [a.region.lkey ^ 1, a.at(WORD)]],
    ['an address that is not aligned', (a) => [a.region.lkey, a.at(WORD + 2)]],
    ['an address beyond the region', (a) => [a.region.lkey, a.at(4096)]],
    [
      'a key of another domain',
      (a) => [a.context.allocPd().registerMemory(a.memory, 0, 4096, Access.LOCAL_WRITE).lkey, a.at(WORD)],
    ],
  ];
  for (const [what, of] of wrong) {
    checkIf('waits', `for ${what} complete with LOC_PROT_ERR`, async ([a, b]) => {
      begin([a, b]);
      const [lkey, address] = of(a);
      post(a, (qp) => {
        qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(DATA));
        qp.wrSetInlineData(Uint8Array.of(9), 0, 1);
        qp.wrWait(2, SendFlag.SIGNALED, lkey, address, 0);
        qp.wrRdmaWrite(3, SendFlag.SIGNALED, b.region.rkey, b.at(DATA + 1));
        qp.wrSetInlineData(Uint8Array.of(9), 0, 1);
      });
      expect(await pollStatuses(a.sendCq, 3)).toEqual([
        [1, name(WcStatus.SUCCESS)],
        [2, name(WcStatus.LOC_PROT_ERR)],
        [3, name(WcStatus.WR_FLUSH_ERR)],
      ]);
      expect([b.bytes[DATA], b.bytes[DATA + 1]]).toEqual([9, 0]);
    });
  }

  checkIf('waits', 'for a word whose region is revoked meanwhile complete with LOC_PROT_ERR', async ([a, b]) => {
    begin([a, b]);
    const region = a.pd.registerMemory(a.memory, 0, 4096, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    post(a, (qp) => qp.wrWait(1, SendFlag.SIGNALED, region.lkey, a.at(WORD), 1));
    await expectNothing(a.sendCq);
    region.deregister();
    post(b, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, a.region.rkey, a.at(WORD));
      qp.wrSetInlineData(Uint8Array.of(1, 0, 0, 0), 0, 4);
    });
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.LOC_PROT_ERR)]]);
  });

  checkIf('waits', 'that hold each other up at both ends go on in turns', async ([a, b]) => {
    begin([a, b], { maxSendWr: 64 });
    const rounds = 20;
    const each = [a, b].map((end, i) => {
      const other = [b, a][i];
      end.qp.wrStart();
      for (let n = 1; n <= rounds; n++) {
        // The first one begins, and each answers the other.
        end.qp.wrWait(n, 0, end.region.lkey, end.at(WORD), i === 0 ? n - 1 : n);
        end.qp.wrRdmaWrite(n, n === rounds ? SendFlag.SIGNALED : 0, other.region.rkey, other.at(WORD));
        end.qp.wrSetInlineData(new Uint8Array(Int32Array.of(n).buffer), 0, 4);
      }
      end.qp.wrComplete();
      return end;
    });
    const left = new Set(each);
    for (let look = 0; look < 100_000 && left.size > 0; look++) {
      for (const end of left) if (end.sendCq.poll(1) === 1) left.delete(end);
      if (look % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(left.size).toBe(0);
    expect([wordsOf(a)[0], wordsOf(b)[0]]).toEqual([rounds, rounds]);
  });

  if (capabilities.waits && capabilities.datagrams) {
    check('are refused in queue pairs of datagrams', ([a]) => {
      a.make({ qpType: QpType.UD });
      a.qp.wrStart();
      refused(() => a.qp.wrWait(1, 0, a.region.lkey, a.at(WORD), 0), /RC/);
    });
  }
  if (capabilities.waits) {
    test.skip(`are refused without the capability (not tested: ${device.name} claims it)`, () => {});
  } else {
    check('are refused without the capability', ([a, b]) => {
      connect(a, b);
      a.qp.wrStart();
      refused(() => a.qp.wrWait(1, 0, a.region.lkey, a.at(WORD), 0), /ENOTSUP/);
    });
  }
}
