/**
 * Many ranks at once on the shared structures of one: completion rings, shared receives, atomics. Nothing may be lost,
 * doubled, mixed or out of order. `--messages=N` is what each rank sends.
 */
import assert from 'node:assert/strict';
import type { Communicator } from 'onesided';
import { SendFlag } from 'onesided/verbs';
import { argument, runCases } from './support/cases.ts';
import { connectAll, type Mesh, pollOrSleep } from './support/verbs.ts';

const { SIGNALED } = SendFlag;
const messages = Number(argument('messages') ?? 10_000);
const updates = Number(argument('updates') ?? 10_000);

/** Posts `total` requests to rank 0, as many at a time as the queue takes; each `signalEvery`th is signalled. */
async function pump(mesh: Mesh, total: number, build: (i: number, signalled: boolean) => void): Promise<void> {
  const qp = mesh.queuePairs[0];
  const batch = 32;
  let outstanding = 0;
  let completed = 0;
  for (let i = 0; i < total; ) {
    qp.wrStart();
    for (const end = Math.min(total, i + batch); i < end; i++) build(i, i === end - 1);
    qp.wrComplete();
    outstanding++;
    while (outstanding >= 4 || (i >= total && outstanding > 0)) {
      const n = await pollOrSleep(mesh.context, mesh.sendCq, 16);
      for (let k = 0; k < n; k++) {
        assert.equal(mesh.sendCq.wc.status[k], 0);
        // One completion for each batch, in order.
        assert.equal(mesh.sendCq.wc.wrId[k], Math.min(total, ++completed * batch) - 1);
      }
      outstanding -= n;
    }
  }
}

await runCases({
  /**
   * All ranks but 0 produce; the wrIds of 0's receives, and each producer's count, must all come exactly once, in
   * order.
   */
  async 'completions from all other ranks into one queue'(world) {
    const receives = 1024;
    const mesh = await connectAll(world, { srqWr: receives, cqe: receives, queuePair: { maxSendWr: 256 } });
    const { rank, size } = world;
    if (rank > 0) {
      const qp = mesh.queuePairs[0];
      await world.barrier();
      await pump(mesh, messages, (i, signalled) => qp.wrRdmaWriteImm(i, signalled ? SIGNALED : 0, 0, 0, i));
    } else {
      const isPosted = new Uint8Array(receives);
      const next = new Array<number>(size).fill(0);
      const post = (i: number): void => {
        isPosted[i] = 1;
        mesh.srq!.postRecv(i, 0, 0, 0);
      };
      for (let i = 0; i < receives; i++) post(i);
      await world.barrier();
      for (let left = messages * (size - 1); left > 0; ) {
        const n = await pollOrSleep(mesh.context, mesh.recvCq, 64);
        const { wrId, status, immData, qpNum } = mesh.recvCq.wc;
        for (let k = 0; k < n; k++) {
          if (status[k] !== 0) assert.fail(`status ${status[k]}`);
          const source = mesh.rankOf(qpNum[k]);
          if (immData[k] !== next[source])
            assert.fail(`from rank ${source} came ${immData[k]}, expected was ${next[source]}`);
          next[source]++;
          if (isPosted[wrId[k]] !== 1) assert.fail(`receive ${wrId[k]} completed twice`);
          isPosted[wrId[k]] = 0;
        }
        for (let k = 0; k < n; k++) post(mesh.recvCq.wc.wrId[k]);
        left -= n;
      }
      assert.deepEqual(next, [0, ...new Array(size - 1).fill(messages)]);
      assert.equal(mesh.srq!.posted, receives);
      assert.equal(mesh.recvCq.poll(1), 0);
    }
    await mesh.close();
  },

  /** Messages of different lengths, each filled with its own byte: no receive may hold parts of two. */
  async 'messages from all other ranks into one shared receive queue'(world) {
    const receives = 64;
    const slot = 512;
    const staged = 256;
    const mesh = await connectAll(world, { srqWr: receives, cqe: 256, bytes: staged * slot });
    const { rank, size } = world;
    const total = Math.ceil(messages / 4);
    const bytes = new Uint8Array(mesh.memory.buffer);
    const lengthOf = (source: number, i: number): number => 5 + ((i * 37 + source * 11) % (slot - 5));
    const fillOf = (source: number, i: number): number => (i * 13 + source * 101) & 255;
    const { lkey, address } = mesh.region;
    if (rank > 0) {
      const qp = mesh.queuePairs[0];
      await world.barrier();
      await pump(mesh, total, (i, signalled) => {
        // More slots than messages that can be outstanding.
        const at = (i % staged) * slot;
        bytes.fill(fillOf(rank, i), at, at + slot);
        new DataView(mesh.memory.buffer).setInt32(at, i);
        bytes[at + 4] = rank;
        qp.wrSend(i, signalled ? SIGNALED : 0);
        qp.wrSetSge(lkey, address + at, lengthOf(rank, i));
      });
    } else {
      const next = new Array<number>(size).fill(0);
      const view = new DataView(mesh.memory.buffer);
      for (let i = 0; i < receives; i++) mesh.srq!.postRecv(i, lkey, address + i * slot, slot);
      await world.barrier();
      for (let left = total * (size - 1); left > 0; ) {
        const n = await pollOrSleep(mesh.context, mesh.recvCq, 16);
        const { wrId, status, byteLen, qpNum } = mesh.recvCq.wc;
        for (let k = 0; k < n; k++) {
          if (status[k] !== 0) assert.fail(`status ${status[k]}`);
          const source = mesh.rankOf(qpNum[k]);
          const i = next[source]++;
          const at = wrId[k] * slot;
          if (view.getInt32(at) !== i || bytes[at + 4] !== source || byteLen[k] !== lengthOf(source, i)) {
            assert.fail(
              `message ${i} of rank ${source} came as ${view.getInt32(at)} of ${bytes[at + 4]}, ${byteLen[k]} bytes`,
            );
          }
          const fill = fillOf(source, i);
          for (let b = at + 5; b < at + byteLen[k]; b++)
            if (bytes[b] !== fill) assert.fail(`message ${i} of rank ${source} is mixed`);
          mesh.srq!.postRecv(wrId[k], lkey, address + at, slot);
        }
        left -= n;
      }
      assert.deepEqual(next, [0, ...new Array(size - 1).fill(total)]);
    }
    await mesh.close();
  },

  /** Fetch-and-adds of all ranks, rank 0's processor, and compare-and-swap loops, on neighbouring words. */
  async 'atomics of all ranks and of the owner’s processor on the same words'(world) {
    const mesh = await connectAll(world);
    const { rank, size } = world;
    const qp = mesh.queuePairs[0];
    const { rkey, address } = mesh.remotes[0];
    const words = new BigInt64Array(mesh.memory.buffer);
    const result = 1024;
    const run = async (build: () => void): Promise<bigint> => {
      qp.wrStart();
      build();
      qp.wrSetSge(mesh.region.lkey, mesh.region.address + result, 8);
      qp.wrComplete();
      if ((await pollOrSleep(mesh.context, mesh.sendCq, 1)) !== 1 || mesh.sendCq.wc.status[0] !== 0)
        assert.fail('an atomic failed');
      return words[result / 8];
    };
    await world.barrier();
    let before = -1n;
    for (let i = 0; i < updates; i++) {
      const found = await run(() => qp.wrAtomicFetchAdd(i, SIGNALED, rkey, address, 1 + rank, 0));
      if (found <= before) assert.fail(`the counter went from ${before} to ${found}`);
      before = found;
      // The owner's processor does the same on the same word, with a number that can be told apart.
      if (rank === 0) Atomics.add(words, 0, 1n << 32n);
    }
    for (let done = 0, expected = 0; done < updates / 10; ) {
      const wanted = expected;
      const found = Number(
        await run(() => qp.wrAtomicCmpSwp(done, SIGNALED, rkey, address + 8, wanted, 0, wanted + 1, 0)),
      );
      if (found === wanted) done++;
      expected = found === wanted ? wanted + 1 : found;
    }
    await world.barrier();
    if (rank === 0) {
      const ofAll = (size * (size + 1)) / 2;
      assert.equal(Atomics.load(words, 0), BigInt(updates * ofAll) + (BigInt(updates) << 32n));
      assert.equal(Atomics.load(words, 1), BigInt(size * Math.ceil(updates / 10)));
    }
    await mesh.close();
  },

  async 'everybody to everybody, sends and writes, through full queues'(world) {
    const mesh = await connectAll(world, { srqWr: 32, cqe: 1024, queuePair: { maxSendWr: 16 } });
    const { size } = world;
    const each = Math.ceil(messages / 50);
    const posted = new Array<number>(size).fill(0);
    const completed = new Array<number>(size).fill(0);
    const received = new Array<number>(size).fill(0);
    for (let i = 0; i < 32; i++) mesh.srq!.postRecv(i, 0, 0, 0);
    await world.barrier();
    const left = (): boolean => completed.some((n) => n < each) || received.some((n) => n < each);
    while (left()) {
      let moved = 0;
      for (let target = 0; target < size; target++) {
        const qp = mesh.queuePairs[target];
        while (posted[target] < each && posted[target] - completed[target] < qp.cap.maxSendWr) {
          qp.wrStart();
          qp.wrSendImm(posted[target], SIGNALED, posted[target]);
          qp.wrComplete();
          posted[target]++;
          moved++;
        }
      }
      const n = mesh.sendCq.poll(64);
      for (let k = 0; k < n; k++) {
        const { wrId, status, qpNum } = mesh.sendCq.wc;
        assert.equal(status[k], 0);
        assert.equal(wrId[k], completed[mesh.rankOf(qpNum[k])]++);
      }
      const m = mesh.recvCq.poll(64);
      for (let k = 0; k < m; k++) {
        const { wrId, status, qpNum, immData } = mesh.recvCq.wc;
        assert.equal(status[k], 0);
        assert.equal(immData[k], received[mesh.rankOf(qpNum[k])]++);
        mesh.srq!.postRecv(wrId[k], 0, 0, 0);
      }
      moved += n + m;
      if (moved === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await mesh.close();
  },
} satisfies Record<string, (world: Communicator) => unknown>);
