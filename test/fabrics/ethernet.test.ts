/** Queue pairs and ranks on an Ethernet: what goes as which frames, what is lost, and what becomes of it. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { observeFabric } from '../../src/fabrics/index.ts';
import { frameTime } from '../../src/providers/modelled/ethernet/ethernet-numbers.ts';
import type { Fabric } from '../../src/providers/modelled/fabric-numbers.ts';
import { type FaultOptions, Faults } from '../../src/providers/modelled/faults.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { Window } from '../../src/window/calls/window.ts';
import { bus10, switch100 } from '../support/ethernet.ts';
import { IN_GATE } from '../support/gate.ts';
import { makeUd, QKEY } from '../verbs/conformance/datagrams.ts';
import { connect, End, post, send, write } from '../verbs/conformance/harness.ts';

const NAMES = ['ethernet-10-bus', 'ethernet-100-bus', 'ethernet-100-switch'];

interface Devices {
  readonly ends: End[];
  readonly simulator: Simulator;
  readonly shared: ModelledFabric;
  /** Frames that were sent. */
  frames(): number;
  /** Lets time pass until a completion comes. @returns its status and when it came */
  next(end: End, which: 'sendCq' | 'recvCq'): [status: number, time: number];
}

function devices(size: number, fabric: Fabric = bus10, faults: FaultOptions = {}, seed = 1): Devices {
  const simulator = new Simulator(size, seed, false);
  const shared = new ModelledFabric(fabric, simulator, new Faults('test', faults, size, seed), size);
  const ends = Array.from({ length: size }, (_, member) => new End(shared.open(member)));
  return {
    ...{ ends, simulator, shared },
    frames: () => shared.ethernet!.medium.statistics.frames,
    next: (end, which) => {
      let n = 0;
      simulator.drain(() => (n = end[which].poll(1)) > 0);
      if (n === 0) n = end[which].poll(1);
      expect(n).toBe(1);
      return [end[which].wc.status[0], simulator.now];
    },
  };
}

const silence = (): boolean => false;

describe('a request of a connected queue pair', () => {
  const { host, ethernet, tcp } = bus10;

  test('is a write to a socket: it comes when driver, wire and driver have passed', () => {
    const { ends, next } = devices(2);
    const [a, b] = ends;
    connect(a, b);
    b.receive(1, 0, 2000);
    send(a, 1, 0, 1418, 0);
    const [status, time] = next(b, 'recvCq');
    expect(status).toBe(WcStatus.SUCCESS);
    const { driver, propagation } = ethernet;
    const wire = frameTime(ethernet, 1418 + tcp.header + 40);
    expect(time).toBeCloseTo(host.post + driver + wire + propagation + driver, 9);
    expect(b.bytes[1417]).toBe(a.bytes[1417]);
  });

  test('costs an answer only if its sender wants a completion; of a row that is the last one', () => {
    const { ends, next, frames, simulator } = devices(2);
    const [a, b] = ends;
    connect(a, b);
    const rows = 5;
    for (let i = 0; i < rows; i++) b.receive(i, 0, 4096);
    for (let i = 0; i < rows; i++) send(a, i, 0, 1000, i === rows - 1 ? SendFlag.SIGNALED : 0);
    expect(next(a, 'sendCq')[0]).toBe(WcStatus.SUCCESS);
    expect(frames()).toBe(rows + 1);
    simulator.drain(silence);
    // The answer brought TCP's acknowledgement along; what acknowledges the answer is one more.
    expect(frames()).toBe(rows + 2);
  });

  test('without a completion of its own is complete when TCP has acknowledged it', () => {
    const { ends, simulator, frames, next } = devices(2);
    const [a, b] = ends;
    connect(a, b);
    for (const id of [1, 2]) b.receive(id, 0, 4096);
    send(a, 1, 0, 1000, 0);
    simulator.drain(silence);
    expect(frames()).toBe(2);
    expect(a.sendCq.poll(1)).toBe(0);
    // Requests complete in order: this one could not otherwise.
    send(a, 2, 0, 1000);
    expect(next(a, 'sendCq')[0]).toBe(WcStatus.SUCCESS);
  });

  test('that waits behind a longer one on the same connection comes after it', () => {
    const { ends, next } = devices(2);
    const [a, b] = ends;
    connect(a, b, {}, {});
    b.receive(1, 0, 4096);
    write(a, b, 1, 0, 0, 4096);
    send(a, 2, 0, 1);
    const [, came] = next(b, 'recvCq');
    expect(came).toBeGreaterThan(3 * frameTime(ethernet, 1400));
    expect([next(a, 'sendCq')[0], next(a, 'sendCq')[0]]).toEqual([WcStatus.SUCCESS, WcStatus.SUCCESS]);
  });

  test('fails when TCP gives up, and is not sent again: it may have been carried out', () => {
    const { ends, next, simulator } = devices(2, { ...bus10, tcp: { ...tcp, retries: 3 } }, { loss: 1 });
    const [a, b] = ends;
    connect(a, b);
    write(a, b, 1, 0, 0, 8);
    const [status, time] = next(a, 'sendCq');
    expect(status).toBe(WcStatus.RETRY_EXC_ERR);
    // 500 + 1000 + 2000 + 4000 milliseconds.
    expect(time / 1000).toBeCloseTo(7500, 1);
    simulator.drain(silence);
    expect(simulator.underWay).toBe(0);
  });

  test('of a queue pair that is used again has a connection of its own', () => {
    const { ends, next, simulator } = devices(3);
    const [a, b, c] = ends;
    connect(a, b);
    b.receive(1, 0, 4096);
    send(a, 1, 0, 100);
    next(b, 'recvCq');
    a.qp.destroy();
    b.qp.destroy();
    connect(a, c);
    c.receive(1, 0, 4096);
    send(a, 2, 0, 100);
    expect(next(c, 'recvCq')[0]).toBe(WcStatus.SUCCESS);
    simulator.drain(silence);
    expect(simulator.underWay).toBe(0);
  });
});

describe('a datagram', () => {
  const pair = (fabric: Fabric, size: number, faults: FaultOptions = {}): Devices => {
    const all = devices(size, fabric, faults);
    for (const end of all.ends) makeUd(end, { maxRecvWr: 1024, maxSendWr: 1024, cqe: 4096 });
    return all;
  };
  const toGroup = (all: Devices, count: number): void => {
    const [a, ...others] = all.ends;
    const group = a.context.multicastGroup(1);
    for (const end of others) {
      end.qp.attachMulticast(group.gid, group.lid);
      for (let i = 0; i < count; i++) end.receive(i, 0, 1600);
    }
    const ah = a.pd.createAh(group);
    for (let i = 0; i < count; i++) {
      post(a, (qp) => {
        qp.wrSend(i, SendFlag.SIGNALED);
        qp.wrSetUdAddr(ah, 1, QKEY);
        qp.wrSetSge(a.region.lkey, a.at(0), 1000);
      });
    }
  };

  test('is one frame, also for a group, and its request completes when that has left', () => {
    const all = pair(bus10, 5);
    toGroup(all, 3);
    const { host, ethernet, tcp } = bus10;
    const wire = frameTime(ethernet, 1000 + tcp.header + 28);
    for (let i = 0; i < 3; i++) {
      const [, time] = all.next(all.ends[0], 'sendCq');
      // Each is written in a doorbell of its own; they wait for the wire.
      expect(time).toBeCloseTo(host.post + ethernet.driver + (i + 1) * wire + i * ethernet.interframe, 6);
    }
    all.simulator.drain(silence);
    expect(all.frames()).toBe(3);
    for (const end of all.ends.slice(1)) expect(end.recvCq.poll(10)).toBe(3);
    expect(all.simulator.underWay).toBe(0);
  });

  test('is lost for good, each copy by itself', () => {
    const all = pair(switch100, 4, { loss: 0.3 });
    toGroup(all, 300);
    all.simulator.drain(silence);
    for (const end of all.ends.slice(1)) {
      let came = 0;
      for (let n = end.recvCq.poll(64); n > 0; n = end.recvCq.poll(64)) came += n;
      expect(came).toBeGreaterThan(170);
      expect(came).toBeLessThan(250);
    }
    let complete = 0;
    for (let n = all.ends[0].sendCq.poll(64); n > 0; n = all.ends[0].sendCq.poll(64)) complete += n;
    expect(complete).toBe(300);
    expect(all.simulator.underWay).toBe(0);
  });

  test('has as many bytes as a frame has room for, and no more', () => {
    const all = pair(bus10, 2);
    expect(all.ends[0].context.device.mtu).toBe(1500 - 28 - bus10.tcp.header);
    const ah = all.ends[0].pd.createAh({ member: 1 });
    all.ends[1].receive(1, 0, 2000);
    for (const [bytes, status] of [
      [1464, WcStatus.SUCCESS],
      [1465, WcStatus.LOC_LEN_ERR],
    ]) {
      post(all.ends[0], (qp) => {
        qp.wrSend(1, SendFlag.SIGNALED);
        qp.wrSetUdAddr(ah, all.ends[1].qp.number, QKEY);
        qp.wrSetSge(all.ends[0].region.lkey, all.ends[0].at(0), bytes);
      });
      expect(all.next(all.ends[0], 'sendCq')[0]).toBe(status);
    }
  });
});

/** Windows, locks, collectives: what each rank has found, and when. */
async function program(world: Communicator): Promise<number[]> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, size);
  await win.fence();
  for (let k = 1; k < size; k++) win.put(Float64Array.of(rank), (rank + k) % size, rank);
  await win.fence();
  const found = [...win.local];
  await world.barrier();
  await win.lock(0, Lock.EXCLUSIVE);
  win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
  await win.unlock(0);
  const sum = new Float64Array(1);
  await world.allreduce(Float64Array.of(rank), sum, Op.SUM);
  await world.barrier();
  const last = rank === 0 ? win.local[0] : 0;
  await win.free();
  return [...found, ...sum, last, world.now()];
}

const expected = (size: number): number[][] =>
  Array.from({ length: size }, (_, rank) => [
    ...Array.from({ length: size }, (_, from) => (from === rank ? 0 : from)),
    (size * (size - 1)) / 2,
    rank === 0 ? size : 0,
  ]);

describe.each(NAMES)('ranks on %s', (fabric) => {
  test.each<readonly [size: number, loss: number]>([
    [6, 0],
    [3, 0.02],
    [2, 0.1],
    // Timeouts double; whoever waits asks meanwhile: some seconds.
    ...(IN_GATE ? [] : [[2, 0.3] as const]),
  ])('find what they should: %i ranks, where %f of all frames are lost', async (size, loss) => {
    const got = await runTasks(size, program, { fabric, seed: 3, order: 'random', faults: { loss, delay: 200 } });
    expect(got.map((one) => one.slice(0, -1))).toEqual(expected(size));
  });

  test('repeat a run with its seed', async () => {
    const run = (seed: number) => runTasks(3, program, { fabric, seed, faults: { loss: 0.01 } });
    const first = await run(5);
    expect(await run(5)).toEqual(first);
    expect(await run(6)).not.toEqual(first);
  });

  test('learn that one has died', async () => {
    const main = async (world: Communicator): Promise<void> => {
      for (;;) await world.barrier();
    };
    const faults = { deaths: [{ rank: 1, time: 20_000 }] };
    await expect(runTasks(4, main, { fabric, faults })).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
  });

  test('are told that none of them can go on, also while they ask again and again, and frames are lost', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Float64Array, 1, { info: { lock: 'direct' } });
      await win.lock(world.rank, Lock.EXCLUSIVE);
      await world.barrier();
      await win.lock(1 - world.rank, Lock.EXCLUSIVE);
    };
    const run = runTasks(2, main, { fabric, faults: { loss: 0.1 } });
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_WOULD_DEADLOCK' });
  });
});

test('runs on a bus are the same on every version of Node', async () => {
  const got = await runTasks(8, program, { fabric: 'ethernet-10-bus', seed: 7, order: 'random' });
  const digest = createHash('sha256').update(new Float64Array(got.flat())).digest('hex').slice(0, 16);
  // Whoever changes the model, or the fabric, changes this.
  expect(digest).toBe('89dbdfe089380d6b');
});

test('a port of a switch that many send to overflows, and TCP recovers', async () => {
  const { ethernet } = switch100;
  const size = 24;
  const bytes = 20_000;
  const run = (room: number): Promise<number[]> =>
    runTasks(
      size,
      async (world) => {
        const all = new Uint8Array(world.rank === 0 ? size * bytes : 0);
        await world.gather(new Uint8Array(bytes).fill(world.rank + 1), all, 0);
        for (let i = 0; world.rank === 0 && i < size * bytes; i += 1000) expect(all[i]).toBe(Math.floor(i / bytes) + 1);
        return world.now();
      },
      { fabric: { ...switch100, ethernet: { ...ethernet, room } } },
    );
  const [[roomy], [tight]] = [await run(10_000), await run(8)];
  expect(tight).toBeGreaterThan(1.2 * roomy);
});

test('ranks of one node do not use the wire', async () => {
  const fabric = { ...bus10, node: { ...bus10.node, ranks: 4 } };
  const main = async (world: Communicator): Promise<number> => {
    await world.barrier();
    return world.now();
  };
  const [[time], [far]] = [await runTasks(4, main, { fabric }), await runTasks(4, main, { fabric: bus10 })];
  expect(time).toBeLessThan(far / 2);
});

test('what a run reads of the numbers of an Ethernet is told', async () => {
  const read = new Set<string>();
  const fabric = observeFabric(loadFabric('ethernet-10-bus'), (number) => void read.add(number));
  expect(await runTasks(4, program, { fabric })).toEqual(await runTasks(4, program, { fabric: 'ethernet-10-bus' }));
  for (const number of ['ethernet.gap', 'ethernet.slot', 'tcp.mss', 'tcp.header']) expect(read).toContain(number);
  for (const number of ['ethernet.room', 'link.latency', 'switch.latency']) expect(read).not.toContain(number);
});
