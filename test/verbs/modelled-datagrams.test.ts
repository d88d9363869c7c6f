/** Datagrams on a modelled fabric: how long they take, that they are lost and overtaken, and what switches copy. */
import { expect, test } from 'vitest';
import { loadFabric } from '../../src/fabrics/index.ts';
import { type FaultOptions, Faults } from '../../src/providers/modelled/faults.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Network } from '../../src/providers/modelled/network.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { QpType, SendFlag } from '../../src/verbs/queue-pair.ts';
import { makeUd, QKEY } from './conformance/datagrams.ts';
import { bringUp, connect, End, post, send } from './conformance/harness.ts';

function fabric(size: number, faults: FaultOptions = {}, seed = 1, name = 'infinihost-64'): [End[], Simulator] {
  const simulator = new Simulator(size, seed, false);
  const shared = new ModelledFabric(loadFabric(name), simulator, new Faults('test', faults, size, seed), size);
  return [Array.from({ length: size }, (_, member) => new End(shared.open(member))), simulator];
}

const nothingLeft = (): boolean => false;

/** Sends `count` numbered datagrams to a group of all the others. @returns by receiver, which came, in their order */
function numbered(count: number, faults: FaultOptions, seed: number): { came: number[][]; time: number } {
  const [ends, simulator] = fabric(4, faults, seed);
  for (const end of ends) makeUd(end, { maxRecvWr: 1024, maxSendWr: 1024, cqe: 1024 });
  const [a, ...others] = ends;
  const group = a.context.multicastGroup(1);
  for (const end of others) {
    end.qp.attachMulticast(group.gid, group.lid);
    for (let i = 0; i < count; i++) end.receive(i, 0, 64);
  }
  const ah = a.pd.createAh(group);
  for (let i = 0; i < count; i++) {
    post(a, (qp) => {
      qp.wrSendImm(i, SendFlag.SIGNALED, i);
      qp.wrSetUdAddr(ah, 1, QKEY);
    });
  }
  simulator.drain(nothingLeft);
  const came = others.map((end) => {
    const found: number[] = [];
    for (let n = end.recvCq.poll(64); n > 0; n = end.recvCq.poll(64)) found.push(...end.recvCq.wc.immData.slice(0, n));
    return found;
  });
  let left = 0;
  for (let n = a.sendCq.poll(64); n > 0; n = a.sendCq.poll(64)) left += n;
  expect(left).toBe(count);
  return { came, time: simulator.now };
}

test('without faults all come, in order', () => {
  for (const came of numbered(100, {}, 1).came) expect(came).toEqual(Array.from({ length: 100 }, (_, i) => i));
});

test('a share of the copies is lost for good, each by itself, and its sender sees no difference', () => {
  const { came } = numbered(400, { loss: 0.25 }, 7);
  for (const one of came) {
    expect(one.length).toBeGreaterThan(250);
    expect(one.length).toBeLessThan(350);
  }
  expect(new Set(came.map(String)).size).toBe(3);
  expect(numbered(400, { loss: 0.25 }, 7).came).toEqual(came);
});

test('all are lost if the share is 1, where a connection would give up', () => {
  expect(numbered(10, { loss: 1 }, 1).came).toEqual([[], [], []]);
});

test('one can overtake another that was delayed', () => {
  const { came } = numbered(100, { delay: 50 }, 3);
  for (const one of came) {
    expect(one.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(one).not.toEqual(one.toSorted((x, y) => x - y));
  }
});

test('it takes as long as a message of a connection to come, and its sender waits for nobody', () => {
  const [[a, b], simulator] = fabric(2);
  connect(a, b);
  b.receive(1, 0, 64);
  const arrival = (to: End): number => {
    const since = simulator.now;
    simulator.drain(() => to.recvCq.poll(1) > 0);
    return simulator.now - since;
  };
  send(a, 1, 0, 8);
  const message = arrival(b);
  simulator.drain(nothingLeft);
  const whole = simulator.now;
  const [[c, d], another] = fabric(2);
  for (const end of [c, d]) makeUd(end);
  d.receive(1, 0, 64);
  const ah = c.pd.createAh({ member: 1 });
  post(c, (qp) => {
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetUdAddr(ah, d.qp.number, QKEY);
    qp.wrSetSge(c.region.lkey, c.at(0), 8);
  });
  another.drain(() => c.sendCq.poll(1) > 0);
  const left = another.now;
  another.drain(() => d.recvCq.poll(1) > 0);
  expect(another.now).toBeCloseTo(message, 9);
  expect(left).toBeLessThan(message);
  expect(left).toBeLessThan(whole);
});

test('the data are those of the time when it left', () => {
  const [[a, b], simulator] = fabric(2);
  for (const end of [a, b]) makeUd(end);
  b.receive(1, 0, 64);
  const ah = a.pd.createAh({ member: 1 });
  a.bytes[0] = 11;
  post(a, (qp) => {
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetUdAddr(ah, b.qp.number, QKEY);
    qp.wrSetSge(a.region.lkey, a.at(0), 1);
  });
  simulator.drain(() => a.sendCq.poll(1) > 0);
  a.bytes[0] = 22;
  simulator.drain(() => b.recvCq.poll(1) > 0);
  expect(b.bytes[40]).toBe(11);
});

test('each link carries one for a group once, and each leaf switch gets it once', () => {
  const described = loadFabric('infinihost-64');
  const small = { ...described, switch: { ...described.switch, leafPorts: 2, uplinks: 1 } };
  const bytes = 1000;
  const toAll = (count: number): number[] => {
    const arrivals: number[] = [];
    const nodes = Array.from({ length: count }, (_, i) => i);
    new Network(small, 64 * small.node.ranks).departToGroup(0, 0, nodes, 5, bytes, 1, arrivals);
    return arrivals;
  };
  const arrivals = toAll(64);
  // All other leaves at the same time, later than the own one.
  expect(new Set(arrivals.slice(2)).size).toBe(1);
  expect(arrivals[1]).toBeLessThan(arrivals[2]);
  expect(arrivals.slice(0, 4)).toEqual(toAll(4));
  // One after the other, they would wait for each other.
  const network = new Network(small, 64 * small.node.ranks);
  const singly = Array.from({ length: 63 }, (_, i) => network.depart(0, 0, (i + 1) * small.node.ranks, bytes, 1));
  expect(Math.max(...singly)).toBeGreaterThan(10 * Math.max(...arrivals));
});

test('to ranks of the same node it goes through memory where messages do', () => {
  const [[a, b], simulator] = fabric(2, {}, 1, 'connectx-16-cores');
  for (const end of [a, b]) makeUd(end);
  b.receive(1, 0, 64);
  const ah = a.pd.createAh({ member: 1 });
  post(a, (qp) => {
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetUdAddr(ah, b.qp.number, QKEY);
  });
  const { host, node } = loadFabric('connectx-16-cores');
  simulator.drain(() => b.recvCq.poll(1) > 0);
  expect(simulator.now).toBeCloseTo(host.post + node.latency, 9);
});

test('a rank that has died takes nothing in, and a connection to it does not hold datagrams up', () => {
  const [[a, b], simulator] = fabric(2);
  for (const end of [a, b]) makeUd(end);
  const connection = a.pd.createQueuePair({ sendCq: a.sendCq, recvCq: a.recvCq, qpType: QpType.RC });
  bringUp(connection, b.qp);
  b.receive(1, 0, 64);
  (b.context as unknown as { cpu: { dead: boolean } }).cpu.dead = true;
  const ah = a.pd.createAh({ member: 1 });
  post(a, (qp) => {
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetUdAddr(ah, b.qp.number, QKEY);
  });
  simulator.drain(nothingLeft);
  expect([a.sendCq.poll(4), b.recvCq.poll(4)]).toEqual([1, 0]);
});
