/**
 * Unreliable datagrams. A datagram may be lost, also where nothing is done to lose one: what must arrive is sent again
 * until it has (`tell`), and what must not is looked for after one that must.
 */
import { expect } from 'vitest';
import { type AddressHandle, GRH_BYTES } from '../../../src/verbs/address-handle.ts';
import { WcFlag, WcOpcode, WcStatus } from '../../../src/verbs/completion-queue.ts';
import { QpState, QpType, type QueuePair, SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  bringUp,
  type Completion,
  type End,
  type EndOptions,
  expectNothing,
  pattern,
  poll,
  pollSuccess,
  post,
  refused,
  type Suite,
  turn,
} from './harness.ts';

export const QKEY = 0x1234567;
/** Where receives lie in an end's memory, and how long they are. */
const AT = 8192;
const ROOM = GRH_BYTES + 4096;

/** Makes an end whose queue pair is of type UD and ready, with the key `QKEY`. */
export function makeUd(end: End, options: EndOptions = {}): End {
  end.make({ qpType: QpType.UD, ...options }, 32_768);
  ready(end.qp);
  return end;
}

export function ready(qp: QueuePair, qkey = QKEY): void {
  qp.modify({ state: QpState.INIT, qkey });
  qp.modify({ state: QpState.RTR });
  qp.modify({ state: QpState.RTS });
}

/** A signalled datagram with the first `length` bytes of `from`'s memory. */
export function datagram(from: End, ah: AddressHandle, qpn: number, length: number, qkey = QKEY): void {
  post(from, (qp) => {
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetUdAddr(ah, qpn, qkey);
    qp.wrSetSge(from.region.lkey, from.at(0), length);
  });
}

/** What `tell` waits for after each try: the clock of a device, or until nothing is under way in virtual time. */
function patience({ keepsPages }: Suite): () => boolean {
  const until = performance.now() + 2000;
  let turns = 0;
  return () => (keepsPages ? performance.now() < until : turns++ < 50);
}

/** Sends until each of `to` has received one. @returns its completion at each; duplicates are taken away */
export async function tell(suite: Suite, from: End, to: readonly End[], again: () => void): Promise<Completion[]> {
  const found = new Map<End, Completion>();
  for (let tries = 0; found.size < to.length; tries++) {
    expect(tries, 'tries').toBeLessThan(50);
    for (const end of to) if (!found.has(end)) end.receive(70 + tries, AT, ROOM);
    again();
    await pollSuccess(from.sendCq);
    const waits = patience(suite);
    do {
      for (const end of to) {
        if (end.recvCq.poll(1) === 0 || found.has(end)) continue;
        const { wc } = end.recvCq;
        expect(wc.status[0]).toBe(0);
        found.set(end, {
          ...{ wrId: wc.wrId[0], status: 'IBV_WC_SUCCESS', opcode: wc.opcode[0], flags: wc.flags[0] },
          ...{ byteLen: wc.byteLen[0], immData: wc.immData[0], qpNum: wc.qpNum[0], srcQp: wc.srcQp[0] },
        });
      }
      await turn();
    } while (found.size < to.length && waits());
  }
  return to.map((end) => found.get(end)!);
}

/** The data of the last datagram of `length` bytes. */
export function dataOf(end: End, length: number): Uint8Array {
  return end.bytes.slice(AT + GRH_BYTES, AT + GRH_BYTES + length);
}

export function datagrams(suite: Suite): void {
  const { checkIf, device } = suite;
  const check: Suite['check'] = (name, run, count) => checkIf('datagrams', name, run, count);

  check('a datagram lands behind a header of 40 bytes, and its completion says who sent it', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    const [received] = await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, 30));
    expect(received).toMatchObject({ opcode: WcOpcode.RECV, flags: WcFlag.GRH, byteLen: GRH_BYTES + 30, immData: 0 });
    expect(received).toMatchObject({ qpNum: b.qp.number, srcQp: a.qp.number });
    expect(dataOf(b, 30)).toEqual(pattern(30));
    expect(b.bytes[AT + GRH_BYTES + 30]).toBe(pattern(32_768)[AT + GRH_BYTES + 30]);
    expect(a.qp.state).toBe(QpState.RTS);
    expect([a.qp.qpType, b.qp.qpType]).toEqual([QpType.UD, QpType.UD]);
  });

  check('the address can be the GID of a port', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const { gid, lid } = a.pd.createAh({ member: b.context.member });
    expect(gid).toBe(b.context.gid);
    const ah = a.pd.createAh({ gid, lid });
    await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, 8));
    expect(dataOf(b, 8)).toEqual(pattern(8));
  });

  check('it can have immediate data, be inline, be empty, and be gathered from several entries', async ([a, b]) => {
    const entries = Math.min(3, device.maxSge);
    makeUd(a, { maxSendSge: entries });
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    const tellB = (build: (qp: QueuePair) => void): Promise<Completion[]> =>
      tell(suite, a, [b], () =>
        post(a, (qp) => {
          build(qp);
        }),
      );
    for (const imm of [0, 0xffffffff]) {
      const [received] = await tellB((qp) => {
        qp.wrSendImm(1, SendFlag.SIGNALED, imm);
        qp.wrSetUdAddr(ah, b.qp.number, QKEY);
        qp.wrSetInlineData(Uint8Array.of(9, 8, 7), 0, 3);
      });
      expect(received).toMatchObject({ flags: WcFlag.GRH | WcFlag.WITH_IMM, immData: imm, byteLen: GRH_BYTES + 3 });
      expect([...dataOf(b, 3)]).toEqual([9, 8, 7]);
    }
    const [empty] = await tellB((qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetUdAddr(ah, b.qp.number, QKEY);
    });
    expect(empty).toMatchObject({ byteLen: GRH_BYTES, flags: WcFlag.GRH });
    const pieces = [
      [0, 10],
      [50, 1],
      [100, 70],
    ].slice(0, entries);
    await tellB((qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetUdAddr(ah, b.qp.number, QKEY);
      for (const [at, length] of pieces) qp.wrAddSge(a.region.lkey, a.at(at), length);
    });
    const data = pieces.flatMap(([at, length]) => [...a.bytes.subarray(at, at + length)]);
    expect([...dataOf(b, data.length)]).toEqual(data);
  });

  check(
    'the longest has as many bytes as the MTU; a longer one is refused, by the device or at once',
    async ([a, b]) => {
      makeUd(a);
      makeUd(b);
      const ah = a.pd.createAh({ member: b.context.member });
      expect(device.mtu).toBeLessThanOrEqual(4096);
      const [received] = await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, device.mtu));
      expect(received.byteLen).toBe(GRH_BYTES + device.mtu);
      expect(dataOf(b, device.mtu)).toEqual(pattern(device.mtu));
      let status = '';
      try {
        datagram(a, ah, b.qp.number, device.mtu + 1);
      } catch (error) {
        status = (error as Error).message;
      }
      if (status === '') status = (await poll(a.sendCq, 1))[0].status;
      expect(status).toMatch(/IBV_WC_LOC_LEN_ERR|a message can have at most/);
      await expectNothing(b.recvCq);
    },
  );

  check('one that finds no receive is dropped, and its sender learns nothing of it', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    for (let i = 0; i < 5; i++) {
      datagram(a, ah, b.qp.number, 99);
      await pollSuccess(a.sendCq);
    }
    expect(a.context.pendingRetry).toBe(false);
    await expectNothing(b.recvCq);
    const [received] = await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, 5));
    expect(received.byteLen).toBe(GRH_BYTES + 5);
    expect([a.qp.state, b.qp.state]).toEqual([QpState.RTS, QpState.RTS]);
  });

  check(
    'one for another key, for nobody, for a connection, or for one that is not ready is dropped',
    async ([a, b]) => {
      makeUd(a);
      makeUd(b);
      const ah = a.pd.createAh({ member: b.context.member });
      const other = (init: EndOptions = {}): QueuePair =>
        b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: b.recvCq, qpType: QpType.UD, ...init });
      const unready = other();
      unready.modify({ state: QpState.INIT, qkey: QKEY });
      unready.postRecv(90, b.region.lkey, b.at(0), 200);
      const connected = other({ qpType: QpType.RC });
      bringUp(connected, connected);
      connected.postRecv(91, b.region.lkey, b.at(0), 200);
      const gone = other();
      gone.destroy();
      const before = b.bytes.slice(0, 200);
      b.receive(92, 0, 200);
      datagram(a, ah, b.qp.number, 8, QKEY ^ 1);
      for (const number of [unready.number, connected.number, gone.number, 2 ** 24 - 2]) datagram(a, ah, number, 8);
      expect((await poll(a.sendCq, 5)).map(({ status }) => status)).toEqual(new Array(5).fill('IBV_WC_SUCCESS'));
      await expectNothing(b.recvCq);
      expect(b.bytes.slice(0, 200)).toEqual(before);
      datagram(a, ah, b.qp.number, 8);
      await pollSuccess(a.sendCq);
      expect([unready.state, connected.state, a.qp.state]).toEqual([QpState.INIT, QpState.RTS, QpState.RTS]);
    },
  );

  check('one that does not fit its receive is no success, and writes no byte outside it', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    const before = b.bytes.slice();
    b.receive(5, 100, GRH_BYTES + 7);
    const waits = patience(suite);
    datagram(a, ah, b.qp.number, 8);
    await pollSuccess(a.sendCq);
    let found = 0;
    while (found === 0 && waits()) {
      found = b.recvCq.poll(1);
      await turn();
    }
    // A device that drops it says nothing.
    if (found > 0) {
      expect(b.recvCq.wc.wrId[0]).toBe(5);
      // Soft-RoCE has one status for all of its own faults in datagrams.
      expect([WcStatus.LOC_LEN_ERR, WcStatus.LOC_QP_OP_ERR]).toContain(b.recvCq.wc.status[0]);
      expect(b.qp.state).toBe(QpState.ERR);
    } else expect(b.qp.state).toBe(QpState.RTS);
    before.set(b.bytes.subarray(100, 147), 100);
    expect(b.bytes).toEqual(before);
  });

  check('a local key that is wrong ends the queue pair', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    b.receive(1, AT, ROOM);
    post(a, (qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetUdAddr(ah, b.qp.number, QKEY);
      qp.wrSetSge(a.region.lkey ^ 0x5500, a.at(0), 8);
    });
    expect(['IBV_WC_LOC_PROT_ERR', 'IBV_WC_LOC_QP_OP_ERR']).toContain((await poll(a.sendCq, 1))[0].status);
    expect([QpState.ERR, QpState.SQE]).toContain(a.qp.state);
    await expectNothing(b.recvCq);
    a.qp.modify({ state: QpState.RESET });
    ready(a.qp);
    await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, 8));
  });

  check(
    'one queue pair sends to several and to itself, and receives from all of them',
    async (ends) => {
      for (const end of ends) makeUd(end);
      for (const from of ends) {
        for (const to of ends) {
          const ah = from.pd.createAh({ member: to.context.member });
          const length = 10 * (from.context.member + 1) + to.context.member;
          const [received] = await tell(suite, from, [to], () => datagram(from, ah, to.qp.number, length));
          expect(received).toMatchObject({ srcQp: from.qp.number, byteLen: GRH_BYTES + length });
        }
      }
    },
    3,
  );

  check('receives can come from a shared receive queue', async ([a, b]) => {
    makeUd(a);
    makeUd(b, { srqWr: 64 });
    const ah = a.pd.createAh({ member: b.context.member });
    const [received] = await tell(suite, a, [b], () => datagram(a, ah, b.qp.number, 20));
    expect(received).toMatchObject({ byteLen: GRH_BYTES + 20, qpNum: b.qp.number });
    expect(dataOf(b, 20)).toEqual(pattern(20));
  });

  check('unsignalled ones complete silently, and leave the queue with the next completion', async ([a, b]) => {
    makeUd(a, { maxSendWr: 4 });
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    const room = a.qp.cap.maxSendWr;
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < room; i++) {
        post(a, (qp) => {
          qp.wrSend(10 * round + i, i === room - 1 ? SendFlag.SIGNALED : 0);
          qp.wrSetUdAddr(ah, b.qp.number, QKEY);
        });
      }
      expect((await pollSuccess(a.sendCq)).wrId).toBe(10 * round + room - 1);
    }
    await expectNothing(a.sendCq);
  });

  check('in ERR, requests and receives are flushed', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const ah = a.pd.createAh({ member: b.context.member });
    a.receive(3, AT, ROOM);
    a.qp.modify({ state: QpState.ERR });
    datagram(a, ah, b.qp.number, 8);
    expect((await poll(a.sendCq, 1))[0].status).toBe('IBV_WC_WR_FLUSH_ERR');
    expect((await poll(a.recvCq, 1))[0]).toMatchObject({ wrId: 3, status: 'IBV_WC_WR_FLUSH_ERR' });
  });

  check('what a queue pair of type UD cannot do is refused with its whole batch', async ([a, b]) => {
    makeUd(a);
    makeUd(b);
    const { qp } = a;
    const ah = a.pd.createAh({ member: b.context.member });
    const foreign = b.pd.createAh({ member: b.context.member });
    const gone = a.pd.createAh({ member: b.context.member });
    gone.destroy();
    gone.destroy();
    const set = (handle: unknown, qpn: unknown, qkey: unknown) => () => {
      qp.wrSend(1, 0);
      qp.wrSetUdAddr(handle as AddressHandle, qpn as number, qkey as number);
    };
    const number = b.qp.number;
    const faults: [RegExp, () => void][] = [
      [/RDMA needs one of type RC/, () => qp.wrRdmaWrite(1, 0, 1, 0)],
      [/RDMA needs one of type RC/, () => qp.wrRdmaWriteImm(1, 0, 1, 0, 0)],
      [/RDMA needs one of type RC/, () => qp.wrRdmaRead(1, 0, 1, 0)],
      [/atomics need one of type RC/, () => qp.wrAtomicFetchAdd(1, 0, 1, 0, 1, 0)],
      [/atomics need one of type RC/, () => qp.wrAtomicCmpSwp(1, 0, 1, 0, 1, 0, 1, 0)],
      ...[foreign, gone, undefined, null, {}, { ...ah }, 7].map((handle): [RegExp, () => void] => [
        /not an address handle of the queue pair's protection domain/,
        set(handle, number, QKEY),
      ]),
      ...[0, -1, 2 ** 24, 1.5, Number.NaN, '1', undefined].map((qpn): [RegExp, () => void] => [
        /remoteQpn/,
        set(ah, qpn, QKEY),
      ]),
      ...[-1, 2 ** 31, 1.5, Number.NaN, '1', undefined].map((qkey): [RegExp, () => void] => [
        /remoteQkey/,
        set(ah, number, qkey),
      ]),
      [
        /needs an address/,
        () => {
          qp.wrSend(1, 0);
          qp.wrComplete();
        },
      ],
    ];
    for (let i = 0; i < 8; i++) b.receive(i, AT, ROOM);
    for (const [words, build] of faults) {
      qp.wrStart();
      qp.wrSend(50, SendFlag.SIGNALED);
      qp.wrSetUdAddr(ah, number, QKEY);
      refused(build, words);
      refused(() => qp.wrComplete(), /wrStart/);
    }
    refused(() => qp.wrSetUdAddr(ah, number, QKEY), /before any request|wrStart/);
    await expectNothing(a.sendCq, b.recvCq);
    await tell(suite, a, [b], () => datagram(a, ah, number, 8));
  });

  check('what makes no sense is refused where it is asked for', ([a, b]) => {
    a.make({ qpType: QpType.UD });
    b.make();
    bringUp(b.qp, b.qp);
    const ah = b.pd.createAh({ member: a.context.member });
    refused(() => post(b, (qp) => [qp.wrSend(1, 0), qp.wrSetUdAddr(ah, 1, 1)]), /of type UD have an address/);
    const { sendCq, recvCq } = a;
    for (const qpType of [0, 3, 5, 2.5, 'UD', null]) {
      refused(() => a.pd.createQueuePair({ sendCq, recvCq, qpType: qpType as number }), /qpType/);
    }
    for (const qkey of [undefined, -1, 2 ** 31, 0.5, Number.NaN]) {
      refused(() => a.qp.modify({ state: QpState.INIT, ...(qkey !== undefined && { qkey }) }), /qkey/);
    }
    for (const member of [-1, 2, 0.5, Number.NaN, '0']) {
      refused(() => a.pd.createAh({ member: member as number }), /member/);
    }
    for (const gid of ['', 'fe80', '1.2.3.4', 'fe80::1%eth0', 7, undefined, '::1::2', 'g::1']) {
      refused(() => a.pd.createAh({ gid: gid as string }), /gid must be an IPv6 address/);
    }
    for (const lid of [-1, 65_536, 0.5]) refused(() => a.pd.createAh({ gid: a.context.gid, lid }), /lid/);
    refused(() => a.pd.createAh(undefined as never), /attributes/);
    refused(() => post(a, (qp) => [qp.wrSend(1, 0), qp.wrSetUdAddr(a.pd.createAh({ member: 0 }), 1, 1)]), /RESET/);
  });

  check(
    'a protection domain lives as long as its address handles',
    ([a]) => {
      const pd = a.context.allocPd();
      const ah = pd.createAh({ member: 0 });
      refused(() => pd.dealloc(), /address handles/);
      ah.destroy();
      pd.dealloc();
      refused(() => pd.createAh({ member: 0 }), /deallocated/);
    },
    1,
  );
}
