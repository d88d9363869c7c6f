import { expect } from 'vitest';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  ALL_ACCESS,
  connect,
  expectNothing,
  poll,
  pollSuccess,
  post,
  refused,
  type Suite,
  send,
  write,
} from './harness.ts';

export function limits({ check, device, capabilities }: Suite): void {
  check('the device says its limits', () => {
    const { datagrams, multicast } = capabilities;
    for (const [limit, value] of Object.entries(device)) {
      const isThere = limit === 'maxAh' ? datagrams : /Mcast/.test(limit) ? multicast : true;
      if (limit !== 'name') expect(Number.isSafeInteger(value) && value > 0, limit).toBe(isThere);
    }
  });

  check('a queue pair gets at least what it asked for, and says what it got', ([a]) => {
    a.make();
    for (const ask of [
      { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 },
      { maxSendWr: 100, maxRecvWr: 33, maxSendSge: 2, maxRecvSge: 3, maxInlineData: 17 },
      {
        maxSendWr: device.maxQpWr,
        maxRecvWr: device.maxQpWr,
        maxSendSge: device.maxSge,
        maxRecvSge: device.maxSge,
        maxInlineData: device.maxInlineData,
      },
    ]) {
      const { cap } = a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq, ...ask });
      for (const [key, value] of Object.entries(ask)) {
        expect(cap[key as keyof typeof cap], key).toBeGreaterThanOrEqual(value);
      }
    }
  });

  check('what is beyond the device, and what is no number, is refused', ([a]) => {
    a.make();
    const { sendCq, recvCq, pd, context } = a;
    for (const key of ['maxSendWr', 'maxRecvWr', 'maxSendSge', 'maxRecvSge', 'maxInlineData'] as const) {
      const most = key.endsWith('Wr') ? device.maxQpWr : key.endsWith('Sge') ? device.maxSge : device.maxInlineData;
      for (const value of [most + 1, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        refused(() => pd.createQueuePair({ sendCq, recvCq, [key]: value }), new RegExp(key));
      }
    }
    for (const cqe of [0, -1, 1.5, Number.NaN, device.maxCqe + 1]) refused(() => context.createCq(cqe), /cqe/);
    for (const maxWr of [0, 1.5, Number.NaN, device.maxSrqWr + 1]) {
      refused(() => pd.createSharedReceiveQueue({ maxWr }), /maxWr/);
    }
    refused(() => pd.createSharedReceiveQueue({ maxWr: 1, maxSge: device.maxSrqSge + 1 }), /maxSge/);
  });

  check('the send queue takes as many requests as it says, and a polled completion makes room', async ([a, b]) => {
    connect(a, b, { maxSendWr: 5, cqe: 64 });
    const room = a.qp.cap.maxSendWr;
    for (let i = 0; i < room; i++) write(a, b, i, 0, i, 1);
    refused(() => write(a, b, 99, 0, 99, 1), /full/);
    await poll(a.sendCq, 1);
    write(a, b, room, 0, room, 1);
    refused(() => write(a, b, 99, 0, 99, 1), /full/);
    await poll(a.sendCq, room);
    await expectNothing(a.sendCq);
  });

  check('unsignalled requests keep their places until a later completion is polled', async ([a, b]) => {
    connect(a, b, { maxSendWr: 4, cqe: 64 });
    const room = a.qp.cap.maxSendWr;
    const silent = (): void =>
      post(a, (qp) => {
        qp.wrRdmaWrite(7, 0, b.region.rkey, b.at(0));
        qp.wrSetInlineData(Uint8Array.of(1), 0, 1);
      });
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < room - 1; i++) silent();
      write(a, b, round, 0, 0, 1);
      refused(silent, /full/);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(round);
    }
  });

  check('a batch that does not fit is not posted at all', async ([a, b]) => {
    connect(a, b, { maxSendWr: 4 });
    const before = b.bytes.slice();
    refused(() => {
      a.qp.wrStart();
      for (let i = 0; i <= a.qp.cap.maxSendWr; i++) {
        a.qp.wrRdmaWrite(i, SendFlag.SIGNALED, b.region.rkey, b.at(i));
        a.qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
      }
    }, /full/);
    refused(() => a.qp.wrComplete(), /wrStart/);
    await expectNothing(a.sendCq);
    expect(b.bytes).toEqual(before);
    write(a, b, 1, 50, 0, 1);
    await pollSuccess(a.sendCq);
  });

  check('a request that breaks a rule is refused with its whole batch, and the queue works on', async ([a, b]) => {
    connect(a, b, { maxSendSge: 2, maxInlineData: Math.min(32, device.maxInlineData) });
    const { qp } = a;
    const { maxSendSge, maxInlineData } = qp.cap;
    const big = new Uint8Array(maxInlineData + 100);
    const before = b.bytes.slice();
    const rkey = b.region.rkey;
    const faults: [RegExp, () => void][] = [
      [
        /entries/,
        () => {
          qp.wrSend(1, 0);
          for (let i = 0; i <= maxSendSge; i++) qp.wrAddSge(a.region.lkey, a.at(0), 1);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetInlineData(big, 0, maxInlineData + 1);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetInlineData(Uint8Array.of(1, 2), 1, 2);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetInlineData(Uint8Array.of(1, 2), -1, 1);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetInlineData(Uint8Array.of(1, 2), 0.5, 1);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrRdmaRead(1, 0, rkey, b.at(0));
          qp.wrSetInlineData(big, 0, 1);
        },
      ],
      [
        /inline/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetInlineData(big, 0, 1);
          qp.wrAddSge(a.region.lkey, a.at(0), 1);
        },
      ],
      [/wrId/, () => qp.wrSend(-1, 0)],
      [/wrId/, () => qp.wrSend(0.5, 0)],
      [/wrId/, () => qp.wrSend(2 ** 53, 0)],
      [/flags/, () => qp.wrSend(1, 64)],
      [/remote address/, () => qp.wrRdmaWrite(1, 0, rkey, -8)],
      [/remote address/, () => qp.wrRdmaWrite(1, 0, rkey, 8.5)],
      [/remote address/, () => qp.wrRdmaRead(1, 0, rkey, Number.NaN)],
      [/remote address/, () => qp.wrAtomicFetchAdd(1, 0, rkey, 2 ** 53, 1, 0)],
      [
        /length/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetSge(a.region.lkey, a.at(0), -1);
        },
      ],
      [
        /length/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetSge(a.region.lkey, a.at(0), 1.5);
        },
      ],
      [
        /address/,
        () => {
          qp.wrSend(1, 0);
          qp.wrSetSge(a.region.lkey, Number.NaN, 1);
        },
      ],
      [
        /message/,
        () => {
          qp.wrSend(1, 0);
          qp.wrAddSge(a.region.lkey, a.at(0), device.maxMsgSize);
          qp.wrAddSge(a.region.lkey, a.at(0), 1);
        },
      ],
    ];
    for (const [words, build] of faults) {
      qp.wrStart();
      qp.wrRdmaWrite(50, SendFlag.SIGNALED, rkey, b.at(0));
      qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
      refused(build, words);
      refused(() => qp.wrComplete(), /wrStart/);
    }
    await expectNothing(a.sendCq);
    expect(b.bytes).toEqual(before);
    write(a, b, 3, 100, 0, 1);
    expect((await pollSuccess(a.sendCq)).wrId).toBe(3);
  });

  check('builder calls out of their order are refused', ([a, b]) => {
    connect(a, b);
    refused(() => a.qp.wrSend(1, 0), /wrStart/);
    refused(() => a.qp.wrComplete(), /wrStart/);
    refused(() => a.qp.wrSetSge(1, 2, 3), /before any request/);
    a.qp.wrStart();
    refused(() => a.qp.wrSetSge(1, 2, 3), /before any request/);
    refused(() => a.qp.wrSetInlineData(new Uint8Array(1), 0, 1), /before any request/);
    a.qp.wrComplete();
    refused(() => a.qp.wrAddSge(1, 2, 3), /before any request/);
  });

  check('the receive queue takes as many receives as it says', async ([a, b]) => {
    connect(a, b, { maxRecvWr: 5 });
    const room = b.qp.cap.maxRecvWr;
    for (let i = 0; i < room; i++) b.receive(i, 0, 8);
    refused(() => b.receive(99, 0, 8), /full/);
    send(a, 1, 0, 8);
    await pollSuccess(b.recvCq);
    b.receive(99, 0, 8);
    refused(() => b.receive(100, 0, 8), /full/);
  });

  check('a receive that breaks a rule is refused, and the queue works on', async ([a, b]) => {
    connect(a, b, { maxRecvSge: 2 });
    const { lkey } = b.region;
    refused(() => {
      for (let i = 0; i <= b.qp.cap.maxRecvSge; i++) b.qp.addRecvSge(lkey, b.at(0), 8);
    }, /scatter entries/);
    refused(() => b.qp.postRecv(-1, lkey, b.at(0), 8), /wrId/);
    refused(() => b.qp.postRecv(1, lkey, b.at(0), -8), /valid range of memory/);
    refused(() => b.qp.postRecv(1, lkey, 0.5, 8), /valid range of memory/);
    b.qp.postRecv(7, lkey, b.at(1000), 4);
    send(a, 1, 0, 4);
    expect(await pollSuccess(b.recvCq)).toMatchObject({ wrId: 7, byteLen: 4 });
    expect([...b.bytes.subarray(1000, 1004)]).toEqual([1, 2, 3, 4]);
  });

  check('the largest inline data goes through', async ([a, b]) => {
    connect(a, b, { maxInlineData: device.maxInlineData });
    const n = a.qp.maxInlineData;
    const data = Uint8Array.from({ length: n }, (_, i) => 255 - (i % 256));
    post(a, (qp) => {
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(3));
      qp.wrSetInlineData(data, 0, n);
    });
    await pollSuccess(a.sendCq);
    expect(b.bytes.subarray(3, 3 + n)).toEqual(data);
  });

  check('the most entries go through, on both sides', async ([a, b]) => {
    connect(a, b, { maxSendSge: device.maxSge, maxRecvSge: device.maxSge });
    b.bytes.fill(0);
    for (let i = 0; i < device.maxSge - 1; i++) b.qp.addRecvSge(b.region.lkey, b.at(2 * i), 1);
    b.receive(1, 2 * (device.maxSge - 1), 1);
    post(a, (qp) => {
      qp.wrSend(2, SendFlag.SIGNALED);
      for (let i = 0; i < device.maxSge; i++) qp.wrAddSge(a.region.lkey, a.at(3 * i), 1);
    });
    await pollSuccess(a.sendCq);
    for (let i = 0; i < device.maxSge; i++) expect(b.bytes[2 * i]).toBe(a.bytes[3 * i]);
    expect(b.bytes.filter((byte) => byte !== 0).length).toBe(device.maxSge);
  });

  check(
    'there are as many queue pairs as the device says, and their places are used again',
    ([a]) => {
      a.make();
      // A device that has very many is believed.
      const most = Math.min(device.maxQp - 1, 10_000);
      const make = () =>
        a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq, srq, maxSendWr: 1, maxInlineData: 0 });
      const srq = a.pd.createSharedReceiveQueue({ maxWr: 1 });
      const all = Array.from({ length: most }, make);
      expect(new Set(all.map(({ number }) => number)).size).toBe(most);
      if (most === device.maxQp - 1) refused(make, /ENOMEM/);
      const gone = all.pop()!;
      gone.destroy();
      expect(all.map(({ number }) => number)).not.toContain(make().number);
      for (const qp of all) qp.destroy();
    },
    1,
  );

  check(
    'there are as many memory regions as the device says',
    ([a]) => {
      a.make();
      const most = device.maxMr <= 2 ** 16 ? device.maxMr - 1 : 20_000;
      const register = () => a.pd.registerMemory(a.memory, 0, 8, ALL_ACCESS);
      const all = Array.from({ length: most }, register);
      expect(new Set(all.map(({ rkey }) => rkey)).size).toBe(most);
      if (most === device.maxMr - 1) refused(register, /ENOMEM/);
      all.pop()!.deregister();
      register();
    },
    1,
  );
}
