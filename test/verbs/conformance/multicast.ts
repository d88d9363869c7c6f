/** Multicast groups. As datagrams are, what must arrive is sent again until it has. */
import { expect } from 'vitest';
import { GRH_BYTES, type MulticastGroup } from '../../../src/verbs/address-handle.ts';
import { WcFlag } from '../../../src/verbs/completion-queue.ts';
import { QpType, type QueuePair, SendFlag } from '../../../src/verbs/queue-pair.ts';
import { datagram, dataOf, makeUd, QKEY, ready, tell } from './datagrams.ts';
import { type End, expectNothing, pattern, pollSuccess, post, refused, type Suite } from './harness.ts';

/** Of no meaning in a datagram for a group. */
const ANY_QPN = 1;

export function multicast(suite: Suite): void {
  const { checkIf, device } = suite;
  const check: Suite['check'] = (name, run, count = 3) => checkIf('multicast', name, run, count);
  const join = (end: End, { gid, lid }: MulticastGroup): void => end.qp.attachMulticast(gid, lid);

  check('the address of a group is the same at all contexts, and another one for each number', ([a, b]) => {
    const addresses = [0, 1, 255, 256, 65_535].map((number) => a.context.multicastGroup(number));
    expect(new Set(addresses.map(({ gid }) => gid)).size).toBe(5);
    expect([0, 1, 255, 256, 65_535].map((number) => b.context.multicastGroup(number))).toEqual(addresses);
    for (const number of [-1, 65_536, 0.5, Number.NaN, '1']) {
      refused(() => a.context.multicastGroup(number as number), /number/);
    }
  });

  check('a datagram for a group comes to all that are attached, its sender too, and to nobody else', async (ends) => {
    const [a, b, c] = ends;
    for (const end of ends) makeUd(end);
    const group = a.context.multicastGroup(77);
    join(a, group);
    join(b, group);
    c.receive(1, 0, 200);
    const ah = a.pd.createAh(group);
    const received = await tell(suite, a, [a, b], () => datagram(a, ah, ANY_QPN, 25));
    for (const [i, end] of [a, b].entries()) {
      expect(received[i]).toMatchObject({ srcQp: a.qp.number, qpNum: end.qp.number, byteLen: GRH_BYTES + 25 });
      expect(received[i].flags).toBe(WcFlag.GRH);
      expect(dataOf(end, 25)).toEqual(pattern(25));
    }
    await expectNothing(c.recvCq);
    for (const end of [a, b]) end.qp.detachMulticast(group.gid, group.lid);
  });

  check('whoever sends need not be attached, and immediate data come along', async (ends) => {
    const [a, b, c] = ends;
    for (const end of ends) makeUd(end);
    const group = a.context.multicastGroup(78);
    join(b, group);
    join(c, group);
    const ah = a.pd.createAh(group);
    const received = await tell(suite, a, [b, c], () =>
      post(a, (qp) => {
        qp.wrSendImm(1, SendFlag.SIGNALED, 0x89abcdef);
        qp.wrSetUdAddr(ah, ANY_QPN, QKEY);
      }),
    );
    for (const one of received) expect(one).toMatchObject({ immData: 0x89abcdef, byteLen: GRH_BYTES });
    for (const end of [b, c]) end.qp.detachMulticast(group.gid, group.lid);
  });

  check('groups are apart, one can be in two of them, and leave one', async (ends) => {
    const [a, b, c] = ends;
    for (const end of ends) makeUd(end);
    const [first, second] = [79, 80].map((number) => a.context.multicastGroup(number));
    const [toFirst, toSecond] = [first, second].map((group) => a.pd.createAh(group));
    join(b, first);
    join(b, second);
    join(c, second);
    await tell(suite, a, [b], () => datagram(a, toFirst, ANY_QPN, 11));
    await expectNothing(c.recvCq);
    await tell(suite, a, [b, c], () => datagram(a, toSecond, ANY_QPN, 12));
    b.qp.detachMulticast(second.gid, second.lid);
    b.receive(5, 0, 200);
    await tell(suite, a, [c], () => datagram(a, toSecond, ANY_QPN, 13));
    await expectNothing(b.recvCq);
    // Again, and twice, which is once.
    join(b, second);
    join(b, second);
    await tell(suite, a, [b], () => datagram(a, toSecond, ANY_QPN, 14));
    b.qp.detachMulticast(second.gid, second.lid);
    refused(() => b.qp.detachMulticast(second.gid, second.lid), /not attached/);
    b.qp.detachMulticast(first.gid, first.lid);
    c.qp.detachMulticast(second.gid, second.lid);
  });

  check('each drops its own copy: for want of a receive, or for another key', async (ends) => {
    const [a, b, c] = ends;
    makeUd(a);
    makeUd(b);
    c.make({ qpType: QpType.UD }, 32_768);
    ready(c.qp, QKEY + 1);
    const group = a.context.multicastGroup(81);
    join(b, group);
    join(c, group);
    const ah = a.pd.createAh(group);
    datagram(a, ah, ANY_QPN, 8);
    await pollSuccess(a.sendCq);
    await expectNothing(b.recvCq);
    c.receive(1, 0, 200);
    await tell(suite, a, [b], () => datagram(a, ah, ANY_QPN, 9));
    await expectNothing(c.recvCq);
    for (const end of [b, c]) end.qp.detachMulticast(group.gid, group.lid);
  });

  check('what is no group is refused, and so are connections', ([a]) => {
    makeUd(a);
    const { gid, lid } = a.context.multicastGroup(1);
    for (const wrong of [a.context.gid, '::ffff:10.0.0.1', '::', 'fe80::1']) {
      refused(() => a.qp.attachMulticast(wrong, 0), /not the GID of a multicast group/);
    }
    for (const wrong of ['', 'ff', 7, undefined, null, {}]) {
      refused(() => a.qp.attachMulticast(wrong as string, 0), /gid must be/);
    }
    for (const wrong of [-1, 65_536, 0.5, undefined, '0']) {
      refused(() => a.qp.attachMulticast(gid, wrong as number), /lid must be/);
    }
    refused(() => a.qp.detachMulticast(gid, lid), /not attached/);
    const connection = a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq });
    refused(() => connection.attachMulticast(gid, lid), /not of type UD/);
    refused(() => connection.detachMulticast(gid, lid), /not of type UD/);
  });

  check('a queue pair cannot be destroyed while it is attached; with its context it can', async ([a, b, c]) => {
    for (const end of [a, b, c]) makeUd(end);
    const group = a.context.multicastGroup(82);
    join(b, group);
    refused(() => b.qp.destroy(), /attached to 1 multicast groups.*EBUSY/);
    b.qp.detachMulticast(group.gid, group.lid);
    b.qp.destroy();
    refused(() => b.qp.attachMulticast(group.gid, group.lid), /was destroyed/);
    join(c, group);
    c.context.close();
    const ah = a.pd.createAh(group);
    datagram(a, ah, ANY_QPN, 8);
    await pollSuccess(a.sendCq);
  });

  check(
    'as many queue pairs can be attached to a group as the device says',
    ([a]) => {
      a.make();
      const { gid, lid } = a.context.multicastGroup(83);
      const most = Math.min(device.maxMcastQpAttach, device.maxTotalMcastQpAttach);
      const make = (): QueuePair =>
        a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq, qpType: QpType.UD, maxSendWr: 1, maxRecvWr: 1 });
      const all = Array.from({ length: most }, make);
      for (const qp of all) qp.attachMulticast(gid, lid);
      const another = make();
      refused(() => another.attachMulticast(gid, lid), /ENOMEM/);
      all[0].detachMulticast(gid, lid);
      another.attachMulticast(gid, lid);
      for (const qp of all.slice(1)) qp.detachMulticast(gid, lid);
      another.detachMulticast(gid, lid);
    },
    1,
  );
}
