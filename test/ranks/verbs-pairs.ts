/**
 * What queue pairs between all ranks of a job do: every verb, faults and their traces at the other end, and pointers.
 */
import assert from 'node:assert/strict';
import type { Communicator } from 'onesided';
import { Access, GRH_BYTES, QpState, QpType, SendFlag, WcFlag, WcOpcode, wcStatusName } from 'onesided/verbs';
import { runCases } from './support/cases.ts';
import { ALL_ACCESS, connectAll, expectCompletion, pollOrSleep } from './support/verbs.ts';

const { SIGNALED } = SendFlag;

/** A byte that says who wrote it where. */
const mark = (writer: number, target: number, i: number): number => (31 * writer + 7 * target + i) & 255;

await runCases({
  async 'every rank writes to every rank, inline and gathered, and reads it back'(world) {
    const mesh = await connectAll(world);
    const { rank, size } = world;
    const bytes = new Uint8Array(mesh.memory.buffer);
    const block = 64;
    for (let target = 0; target < size; target++) {
      const qp = mesh.queuePairs[target];
      const { rkey, address } = mesh.remotes[target];
      const data = Uint8Array.from({ length: block }, (_, i) => mark(rank, target, i));
      const stage = 32768;
      bytes.set(data, stage);
      qp.wrStart();
      qp.wrRdmaWrite(1, 0, rkey, address + rank * block);
      qp.wrSetInlineData(data, 0, 24);
      qp.wrRdmaWrite(2, SIGNALED, rkey, address + rank * block + 24);
      qp.wrSetSge(mesh.region.lkey, mesh.region.address + stage + 24, block - 24);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, 2);
    }
    await world.barrier();
    for (let writer = 0; writer < size; writer++) {
      for (let i = 0; i < block; i++) assert.equal(bytes[writer * block + i], mark(writer, rank, i));
    }
    for (let target = 0; target < size; target++) {
      const qp = mesh.queuePairs[target];
      const { rkey, address } = mesh.remotes[target];
      qp.wrStart();
      qp.wrRdmaRead(3, SIGNALED, rkey, address);
      qp.wrSetSge(mesh.region.lkey, mesh.region.address + 16384, size * block);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, 3);
      for (let writer = 0; writer < size; writer++) {
        for (let i = 0; i < block; i++) assert.equal(bytes[16384 + writer * block + i], mark(writer, target, i));
      }
    }
    await mesh.close();
  },

  async 'messages go round the ring, waking each rank in its turn'(world) {
    const mesh = await connectAll(world);
    const { rank, size } = world;
    const next = mesh.queuePairs[(rank + 1) % size];
    const words = new Int32Array(mesh.memory.buffer);
    const previous = mesh.queuePairs[(rank + size - 1) % size];
    const rounds = 200;
    previous.postRecv(0, mesh.region.lkey, mesh.region.address, 4);
    await world.barrier();
    for (let round = 0; round < rounds; round++) {
      if (rank > 0 || round > 0) {
        await expectCompletion(mesh, mesh.recvCq, round - (rank === 0 ? 1 : 0));
        assert.equal(words[0], size * (round - (rank === 0 ? 1 : 0)) + ((rank + size - 1) % size));
        previous.postRecv(round + (rank === 0 ? 0 : 1), mesh.region.lkey, mesh.region.address, 4);
      }
      words[16] = size * round + rank;
      next.wrStart();
      next.wrSend(round, SIGNALED);
      next.wrSetSge(mesh.region.lkey, mesh.region.address + 64, 4);
      next.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, round);
    }
    if (rank === 0) await expectCompletion(mesh, mesh.recvCq, rounds - 1);
    await mesh.close();
  },

  async 'a receiver that posts late is waited for, and immediates tell who wrote'(world) {
    const mesh = await connectAll(world, { srqWr: 256 });
    const { rank, size } = world;
    const each = 20;
    for (let i = 0; i < each; i++) {
      for (const [target, qp] of mesh.queuePairs.entries()) {
        qp.wrStart();
        qp.wrRdmaWriteImm(
          i,
          SIGNALED,
          mesh.remotes[target].rkey,
          mesh.remotes[target].address + 8 * rank,
          rank * 1000 + i,
        );
        qp.wrSetInlineData(Uint8Array.of(rank, i), 0, 2);
        qp.wrComplete();
      }
    }
    let sent = 0;
    let received = 0;
    const seen = new Array<number>(size).fill(0);
    let posted = 0;
    while (sent < each * size || received < each * size) {
      // A few at a time, so that senders wait again and again.
      while (posted < each * size && posted < received + 3) mesh.srq!.postRecv(posted++, 0, 0, 0);
      const n = mesh.recvCq.poll(16);
      for (let i = 0; i < n; i++) {
        const { opcode, immData, qpNum, status } = mesh.recvCq.wc;
        assert.deepEqual([status[i], opcode[i]], [0, WcOpcode.RECV_RDMA_WITH_IMM]);
        const source = mesh.rankOf(qpNum[i]);
        assert.equal(immData[i], source * 1000 + seen[source]++);
        received++;
      }
      const m = mesh.sendCq.poll(16);
      for (let i = 0; i < m; i++) assert.equal(mesh.sendCq.wc.status[i], 0);
      sent += m;
      if (n + m === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.deepEqual(seen, new Array(size).fill(each));
    await mesh.close();
  },

  async 'faults complete with their status, and the other end hears of them'(world) {
    const { rank, size } = world;
    if (size < 2) return;
    const mesh = await connectAll(world);
    const bytes = new Uint8Array(mesh.memory.buffer);
    const readOnly = mesh.pd.registerMemory(mesh.memory, 0, 64, Access.REMOTE_READ);
    const revoked = mesh.pd.registerMemory(mesh.memory, 0, 64, ALL_ACCESS);
    const keys = new Float64Array(3 * size);
    await world.allgather(Float64Array.of(mesh.region.rkey, readOnly.rkey, revoked.rkey), keys);
    const numbers = new Float64Array(size * size);
    await world.allgather(
      Float64Array.from(mesh.queuePairs, ({ number }) => number),
      numbers,
    );
    // Everybody writes to the next rank once with the key that is going to be revoked, so that it is known there.
    const next = (rank + 1) % size;
    const qp = mesh.queuePairs[next];
    qp.wrStart();
    qp.wrRdmaWrite(0, SIGNALED, keys[3 * next + 2], mesh.remotes[next].address);
    qp.wrSetInlineData(Uint8Array.of(66), 0, 1);
    qp.wrComplete();
    await expectCompletion(mesh, mesh.sendCq, 0);
    await world.barrier();
    assert.equal(bytes[0], 66);
    revoked.deregister();
    await world.barrier();
    for (let i = 0; i < 5 * size; i++) {
      const culprit = i % size;
      const target = (culprit + 1) % size;
      const { address } = mesh.remotes[target];
      const [key, readKey, oldKey] = keys.subarray(3 * target);
      const faults: [number, number][] = [
        [oldKey, address],
        [readKey, address],
        [key, address + 65536],
        [key, address - 1],
        [(key ^ 0x10101) >>> 0, address],
      ];
      const end = rank === culprit ? mesh.queuePairs[target] : rank === target ? mesh.queuePairs[culprit] : undefined;
      if (rank === target) for (let k = 0; k < 2; k++) end!.postRecv(k, mesh.region.lkey, mesh.region.address + 128, 8);
      await world.barrier();
      if (rank === culprit) {
        qp.wrStart();
        qp.wrRdmaWrite(1, 0, ...faults[Math.floor(i / size)]);
        qp.wrSetInlineData(Uint8Array.of(77), 0, 1);
        qp.wrSend(2, SIGNALED);
        qp.wrComplete();
        await expectCompletion(mesh, mesh.sendCq, 1, 'REM_ACCESS_ERR');
        await expectCompletion(mesh, mesh.sendCq, 2, 'WR_FLUSH_ERR');
      }
      if (rank === target) {
        for (let k = 0; k < 2; k++) await expectCompletion(mesh, mesh.recvCq, k, 'WR_FLUSH_ERR');
        assert.deepEqual(mesh.context.pollAsyncEvent(), { type: 'QP_ACCESS_ERR', qpNumber: end!.number });
      }
      await world.barrier();
      if (end === undefined) continue;
      assert.equal(end.state, QpState.ERR);
      const peer = rank === culprit ? target : culprit;
      end.modify({ state: QpState.RESET });
      end.modify({ state: QpState.INIT, access: ALL_ACCESS });
      end.modify({ state: QpState.RTR, dest: { member: peer, qpNumber: numbers[peer * size + rank] } });
      end.modify({ state: QpState.RTS });
    }
    await world.barrier();
    assert.equal(bytes[0], 66);
    assert.ok(bytes.subarray(1, 64).every((byte) => byte === 0));
    readOnly.deregister();
    await mesh.close();
  },

  async 'datagrams go from every rank to every rank, and to a group that all are attached to'(world) {
    const { rank, size } = world;
    const qkey = 0x1357;
    const mesh = await connectAll(world, { bytes: 262_144 });
    const { context, pd, region, memory, sendCq, recvCq } = mesh;
    const qp = pd.createQueuePair({ sendCq, recvCq, qpType: QpType.UD, maxSendWr: 256, maxRecvWr: 256 });
    qp.modify({ state: QpState.INIT, qkey });
    qp.modify({ state: QpState.RTR });
    qp.modify({ state: QpState.RTS });
    const group = context.multicastGroup(9);
    qp.attachMulticast(group.gid, group.lid);
    const peers = new Float64Array(2 * size);
    await world.allgather(Float64Array.of(context.member, qp.number), peers);
    const bytes = new Uint8Array(memory.buffer);
    const each = 30;
    const room = GRH_BYTES + 8;
    const post = (i: number): void => qp.postRecv(i, region.lkey, region.address + i * room, room);
    for (let i = 0; i < 2 * each * size; i++) post(i);
    await world.barrier();
    const handles = Array.from({ length: size }, (_, peer) => pd.createAh({ member: peers[2 * peer] }));
    const all = pd.createAh(group);
    for (let i = 0; i < each; i++) {
      qp.wrStart();
      for (let peer = 0; peer < size; peer++) {
        qp.wrSendImm(i, 0, rank * 1000 + i);
        qp.wrSetUdAddr(handles[peer], peers[2 * peer + 1], qkey);
        qp.wrSetInlineData(Uint8Array.of(rank, i), 0, 2);
      }
      qp.wrSendImm(i, SIGNALED, 100_000 + rank * 1000 + i);
      qp.wrSetUdAddr(all, 1, qkey);
      qp.wrSetInlineData(Uint8Array.of(rank, i), 0, 2);
      qp.wrComplete();
      await expectCompletion(mesh, sendCq, i);
    }
    // Memory loses nothing, and there is a receive for each.
    const single = new Array<number>(size).fill(0);
    const grouped = new Array<number>(size).fill(0);
    for (let received = 0; received < 2 * each * size; received++) {
      assert.equal(await pollOrSleep(context, recvCq, 1), 1);
      const { wc } = recvCq;
      assert.deepEqual([wc.status[0], wc.byteLen[0], wc.qpNum[0]], [0, GRH_BYTES + 2, qp.number]);
      assert.equal(wc.flags[0], WcFlag.GRH | WcFlag.WITH_IMM);
      const counts = wc.immData[0] >= 100_000 ? grouped : single;
      const source = Math.floor((wc.immData[0] % 100_000) / 1000);
      const i = wc.immData[0] % 1000;
      assert.equal(wc.srcQp[0], peers[2 * source + 1]);
      assert.equal(i, counts[source]++);
      const at = wc.wrId[0] * room + GRH_BYTES;
      assert.deepEqual([...bytes.subarray(at, at + 2)], [source, i]);
    }
    assert.deepEqual([single, grouped], [new Array(size).fill(each), new Array(size).fill(each)]);
    await world.barrier();
    // Without receives they are dropped, and nobody waits.
    qp.wrStart();
    qp.wrSend(7, SIGNALED);
    qp.wrSetUdAddr(all, 1, qkey);
    qp.wrComplete();
    await expectCompletion(mesh, sendCq, 7);
    await world.barrier();
    assert.equal(recvCq.poll(1), 0);
    for (const ah of [...handles, all]) ah.destroy();
    qp.detachMulticast(group.gid, group.lid);
    qp.destroy();
    await mesh.close();
  },

  async 'a message that is too long ends both queue pairs'(world) {
    const { rank, size } = world;
    if (size < 2) return;
    const mesh = await connectAll(world);
    if (rank === 1) mesh.queuePairs[0].postRecv(5, mesh.region.lkey, mesh.region.address, 8);
    await world.barrier();
    if (rank === 0) {
      const qp = mesh.queuePairs[1];
      qp.wrStart();
      qp.wrSend(6, 0);
      qp.wrSetSge(mesh.region.lkey, mesh.region.address, 9);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, 6, 'REM_INV_REQ_ERR');
    }
    if (rank === 1) {
      await expectCompletion(mesh, mesh.recvCq, 5, 'LOC_LEN_ERR');
      assert.equal(mesh.queuePairs[0].state, QpState.ERR);
    }
    await mesh.close();
  },

  async 'a queue pair that is gone is found gone, and one connected elsewhere does not answer'(world) {
    const { rank, size } = world;
    if (size < 2) return;
    const mesh = await connectAll(world);
    if (rank === 1) mesh.queuePairs[0].destroy();
    await world.barrier();
    if (rank === 0) {
      const qp = mesh.queuePairs[1];
      qp.wrStart();
      qp.wrRdmaWrite(1, 0, mesh.remotes[1].rkey, mesh.remotes[1].address);
      qp.wrSetInlineData(Uint8Array.of(1), 0, 1);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, 1, 'RETRY_EXC_ERR');
    }
    await mesh.close();
  },

  async 'a pointer shows what others store, and its memory may be freed by its owner first'(world) {
    const { rank, size } = world;
    const mesh = await connectAll(world);
    const { context } = mesh;
    for (let round = 0; round < 5; round++) {
      const memory = context.allocateMemory(8 * size);
      const region = mesh.pd.registerMemory(memory, 0, 8 * size, ALL_ACCESS);
      const places = new Float64Array(2 * size);
      await world.allgather(Float64Array.of(region.rkey, region.address), places);
      const pointers = mesh.queuePairs.map((_, member) =>
        context.remotePointer(member, places[2 * member], places[2 * member + 1] + 8 * rank, 8, ALL_ACCESS),
      );
      for (const { buffer, offset } of pointers) Atomics.store(new Int32Array(buffer, offset, 2), 0, 1 + rank + round);
      await world.barrier();
      const words = new Int32Array(memory.buffer);
      for (let writer = 0; writer < size; writer++) assert.equal(Atomics.load(words, 2 * writer), 1 + writer + round);
      await world.barrier();
      region.deregister();
      memory.free();
      await world.barrier();
      for (const [member, pointer] of pointers.entries()) {
        if (member !== rank) new Uint8Array(pointer.buffer, pointer.offset, 8).fill(99);
        pointer.release();
      }
      assert.throws(() => context.remotePointer((rank + 1) % size, places[2 * ((rank + 1) % size)], 0, 8, 0), {
        code: 'ERR_VERBS',
      });
    }
    await mesh.close();
  },

  async 'a write finds its memory again when a pointer to it was released'(world) {
    const mesh = await connectAll(world);
    const { rank, size } = world;
    const { context } = mesh;
    const target = (rank + 1) % size;
    const qp = mesh.queuePairs[target];
    const { rkey, address } = mesh.remotes[target];
    const place = address + 8 * rank;
    for (const value of [1, 2, 3]) {
      qp.wrStart();
      qp.wrRdmaWrite(value, SIGNALED, rkey, place);
      qp.wrSetInlineData(Uint8Array.of(value), 0, 1);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, value);
      if (context.capabilities.loadStore) context.remotePointer(target, rkey, place, 8, ALL_ACCESS).release();
    }
    await world.barrier();
    assert.equal(new Uint8Array(mesh.memory.buffer)[8 * ((rank + size - 1) % size)], 3);
    await mesh.close();
  },

  async 'a low watermark wakes the receiver from its sleep'(world) {
    const { rank, size } = world;
    if (size < 2) return;
    const mesh = await connectAll(world, { srqWr: 16 });
    if (rank === 0) {
      for (let i = 0; i < size; i++) mesh.srq!.postRecv(i, 0, 0, 0);
      mesh.srq!.arm(2);
    }
    await world.barrier();
    if (rank !== 0) {
      const qp = mesh.queuePairs[0];
      qp.wrStart();
      qp.wrSend(1, SIGNALED);
      qp.wrComplete();
      await expectCompletion(mesh, mesh.sendCq, 1);
    } else {
      const { parking } = mesh.context;
      for (
        let event = mesh.context.pollAsyncEvent();
        event?.type !== 'SRQ_LIMIT_REACHED';
        event = mesh.context.pollAsyncEvent()
      ) {
        assert.equal(event, undefined);
        const token = parking.arm();
        if (mesh.srq!.posted > 1) await parking.sleep(token, 30_000);
        parking.disarm();
      }
      assert.equal(mesh.srq!.posted, 1);
      let received = 0;
      while (received < size - 1) received += await pollOrSleep(mesh.context, mesh.recvCq, 16);
      for (let i = 0; i < received; i++) assert.equal(wcStatusName(mesh.recvCq.wc.status[i]), 'IBV_WC_SUCCESS');
    }
    await mesh.close();
  },
} satisfies Record<string, (world: Communicator) => unknown>);
