/**
 * What posting and polling cost: one queue pair to the other end in the same thread, so that nothing but the emulator's
 * own work is measured. Run with `node build/programs/bench/micro/verbs.js`.
 */

import { bench, do_not_optimize, group, run } from 'mitata';
import { Access, type CompletionQueue, openLocalDevices, QpState, type QueuePair, SendFlag } from 'onesided/verbs';

const WINDOW = 1 << 21;
const ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

const [here, there] = openLocalDevices(2).map((context) => {
  const pd = context.allocPd();
  const memory = context.allocateMemory(WINDOW);
  const region = pd.registerMemory(memory, 0, WINDOW, ALL);
  const sendCq = context.createCq(256);
  const recvCq = context.createCq(256);
  const qp = pd.createQueuePair({ sendCq, recvCq, maxSendWr: 256, maxRecvWr: 256, maxInlineData: 64 });
  return { context, memory, region, sendCq, recvCq, qp };
});
connect(here.qp, there.qp);
connect(there.qp, here.qp);

function connect(qp: QueuePair, other: QueuePair): void {
  qp.modify({ state: QpState.INIT, access: ALL });
  qp.modify({ state: QpState.RTR, dest: other.address });
  qp.modify({ state: QpState.RTS });
}

function await1(cq: CompletionQueue): void {
  while (cq.poll(1) === 0);
  if (cq.wc.status[0] !== 0) throw new Error(`a request completed with status ${cq.wc.status[0]}`);
}

const { qp, sendCq } = here;
const { lkey, address: from } = here.region;
const { rkey, address: to } = there.region;
const bytes = new Uint8Array(64);

group('post and poll', () => {
  bench('RDMA write, 8 bytes inline', () => {
    qp.wrStart();
    qp.wrRdmaWrite(1, SendFlag.SIGNALED, rkey, to + 64);
    qp.wrSetInlineData(bytes, 0, 8);
    qp.wrComplete();
    await1(sendCq);
  });
  bench('RDMA write, 8 bytes inline, 64 a doorbell, last one signalled (cost of all)', () => {
    qp.wrStart();
    for (let i = 0; i < 64; i++) {
      qp.wrRdmaWrite(i, i === 63 ? SendFlag.SIGNALED : 0, rkey, to + 8 * i);
      qp.wrSetInlineData(bytes, 0, 8);
    }
    qp.wrComplete();
    await1(sendCq);
  });
  for (const length of [8, 64, 1024, 65536]) {
    bench(`RDMA write, ${length} bytes`, () => {
      qp.wrStart();
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, rkey, to);
      qp.wrSetSge(lkey, from, length);
      qp.wrComplete();
      await1(sendCq);
    });
  }
  bench('RDMA read, 8 bytes', () => {
    qp.wrStart();
    qp.wrRdmaRead(1, SendFlag.SIGNALED, rkey, to);
    qp.wrSetSge(lkey, from, 8);
    qp.wrComplete();
    await1(sendCq);
  });
  bench('fetch and add', () => {
    qp.wrStart();
    qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, rkey, to, 1, 0);
    qp.wrSetSge(lkey, from, 8);
    qp.wrComplete();
    await1(sendCq);
  });
  bench('compare and swap', () => {
    qp.wrStart();
    qp.wrAtomicCmpSwp(1, SendFlag.SIGNALED, rkey, to, 1, 0, 2, 0);
    qp.wrSetSge(lkey, from, 8);
    qp.wrComplete();
    await1(sendCq);
  });
  bench('send and receive, 8 bytes, with both polls and the next receive posted', () => {
    there.qp.postRecv(1, there.region.lkey, there.region.address, 64);
    qp.wrStart();
    qp.wrSend(1, SendFlag.SIGNALED);
    qp.wrSetSge(lkey, from, 8);
    qp.wrComplete();
    await1(sendCq);
    await1(there.recvCq);
  });
  bench('poll of an empty completion queue', () => do_not_optimize(sendCq.poll(1)));
});

await run();
here.context.close();
there.context.close();
