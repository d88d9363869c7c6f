/** Requests that wait for a word, of a modelled adapter: when each goes on. In virtual time. */
import { expect, onTestFinished, test } from 'vitest';
import { loadFabric } from '../../src/fabrics/index.ts';
import { Faults } from '../../src/providers/modelled/faults.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { type QueuePair, SendFlag } from '../../src/verbs/queue-pair.ts';
import { bringUp, End } from './conformance/harness.ts';

const WORD = 512;
const OTHER = 1024;

/** Two ends with three connections, and what lets the simulation go on until nothing happens any more. */
function begin(): { a: End; b: End; pairs: (readonly [QueuePair, QueuePair])[]; settle: () => void } {
  const simulator = new Simulator(2, 1, false);
  const fabric = loadFabric('infinihost-64');
  const waiting = { ...fabric, adapter: { ...fabric.adapter, step: 0.7 } };
  const shared = new ModelledFabric(waiting, simulator, new Faults('test', {}, 2, 1), 2);
  const contexts = [0, 1].map((member) => shared.open(member));
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [a, b] = contexts.map((context) => new End(context).make());
  const open = ({ pd, sendCq }: End): QueuePair => pd.createQueuePair({ sendCq, recvCq: sendCq });
  const pairs = [0, 1, 2].map(() => [open(a), open(b)] as const);
  for (const [here, there] of pairs) {
    bringUp(here, there);
    bringUp(there, here);
  }
  for (const { bytes } of [a, b]) bytes.fill(0);
  const settle = (): void => {
    const end = simulator.now + 1000;
    let reached = false;
    simulator.at(end, 0, {
      happen: () => {
        reached = true;
      },
    });
    simulator.drain(() => reached);
  };
  return { a, b, pairs, settle };
}

function post(qp: QueuePair, build: () => void): void {
  qp.wrStart();
  build();
  qp.wrComplete();
}

test('a wait behind a message that is sent again stands behind those that the adapter has come to meanwhile', () => {
  const { a, b, pairs, settle } = begin();
  const [[refused], [other], [, back]] = pairs;
  const store = (at: number): void => {
    post(back, () => {
      back.wrRdmaWrite(9, 0, a.region.rkey, a.at(at));
      back.wrSetInlineData(Uint8Array.of(1, 0, 0, 0), 0, 4);
    });
    settle();
  };
  // No receive is there yet.
  post(refused, () => {
    refused.wrSend(1, 0);
    refused.wrSetInlineData(Uint8Array.of(1), 0, 1);
    refused.wrWait(2, SendFlag.SIGNALED, a.region.lkey, a.at(WORD), 1);
  });
  settle();
  post(other, () => other.wrWait(3, SendFlag.SIGNALED, a.region.lkey, a.at(WORD), 1));
  settle();
  store(OTHER);
  pairs[0][1].postRecv(4, b.region.lkey, b.at(0), 64);
  settle();
  expect(a.sendCq.poll(8)).toBe(0);
  store(WORD);
  expect(a.sendCq.poll(8)).toBe(2);
  expect([...a.sendCq.wc.wrId.subarray(0, 2)]).toEqual([3, 2]);
});
