/**
 * Opens an endpoint, the first of this process, and says what was found of atomics. Then a second one writes to it,
 * which it can only be asked for if it hears.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FabricAddress } from '../../../src/providers/libfabric/libfabric-addresses.ts';
import { chooseFabric } from '../../../src/providers/libfabric/libfabric-choice.ts';
import { openFabric } from '../../../src/providers/libfabric/libfabric-context.ts';
import { QpState, SendFlag } from '../../../src/verbs/queue-pair.ts';

const own: FabricAddress[] = [];
const contexts = [0, 1].map((member) => {
  const opened = openFabric(chooseFabric('', '127.0.0.1'), member, [() => own[0], () => own[1]]);
  own.push(opened.own);
  return opened.context;
});
console.log('opened', contexts[0].capabilities.atomicsAgree);
const [first, second] = contexts.map((context) => {
  const pd = context.allocPd();
  const memory = context.allocateMemory(4096);
  const cq = context.createCq(16);
  return {
    memory,
    cq,
    region: pd.registerMemory(memory, 0, 4096, 15),
    qp: pd.createQueuePair({ sendCq: cq, recvCq: cq }),
  };
});
for (const [{ qp }, other] of [
  [first, second],
  [second, first],
] as const) {
  qp.modify({ access: 15, state: QpState.INIT });
  qp.modify({ state: QpState.RTR, dest: other.qp.address });
  qp.modify({ state: QpState.RTS });
}
second.qp.wrStart();
second.qp.wrRdmaWrite(1, SendFlag.SIGNALED, first.region.rkey, first.memory.address);
second.qp.wrSetSge(second.region.lkey, second.memory.address, 8);
second.qp.wrComplete();
const deadline = performance.now() + 5000;
let written = 0;
while (written === 0 && performance.now() < deadline) {
  written = second.cq.poll(1);
  await sleep(1);
}
console.log('written', written);
for (const context of contexts) context.close();
