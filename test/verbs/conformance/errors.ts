import { expect } from 'vitest';
import { WcStatus } from '../../../src/verbs/completion-queue.ts';
import { Access, type MemoryRegion } from '../../../src/verbs/memory.ts';
import { QpState, SendFlag } from '../../../src/verbs/queue-pair.ts';
import {
  bringUp,
  connect,
  type End,
  expectNothing,
  name,
  nextEvent,
  pattern,
  poll,
  pollStatuses,
  pollSuccess,
  reaches,
  type Suite,
  send,
} from './harness.ts';

interface Fault {
  readonly name: string;
  /** Builds the request that fails, between wrStart and wrComplete. */
  readonly build: (a: End, b: End) => void;
  /** The statuses that it may complete with: more than one where devices differ. */
  readonly status: readonly number[];
  /** The event at the other end, if its device finds the fault. */
  readonly event?: 'QP_ACCESS_ERR' | 'QP_REQ_ERR';
}

const { LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE } = Access;
const EVERYTHING = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC;

function remoteFault(name: string, build: Fault['build'], ...others: number[]): Fault {
  return { name, build, status: [WcStatus.REM_ACCESS_ERR, ...others], event: 'QP_ACCESS_ERR' };
}

function localFault(name: string, build: Fault['build']): Fault {
  return { name, build, status: [WcStatus.LOC_PROT_ERR, WcStatus.LOC_QP_OP_ERR] };
}

/** A write, read or atomic of 8 bytes from the middle of `a`'s memory. */
function rdma(kind: 'write' | 'read' | 'atomic', rkey: number, address: number, a: End, length = 8): void {
  if (kind === 'write') a.qp.wrRdmaWrite(1, 0, rkey, address);
  else if (kind === 'read') a.qp.wrRdmaRead(1, 0, rkey, address);
  else a.qp.wrAtomicFetchAdd(1, 0, rkey, address, 1, 0);
  a.qp.wrSetSge(a.region.lkey, a.at(2048), length);
}

const KINDS = ['write', 'read', 'atomic'] as const;
const RIGHT = { write: REMOTE_WRITE, read: REMOTE_READ, atomic: REMOTE_ATOMIC };

function remoteFaults(): Fault[] {
  const region = (b: End, access: number): MemoryRegion => b.pd.registerMemory(b.memory, 1024, 64, access);
  const faults = KINDS.flatMap((kind) => [
    remoteFault(`${kind}: a key that nobody has given out`, (a, b) => {
      rdma(kind, (b.region.rkey ^ 0x5a5a5a5a) >>> 0, b.at(0), a);
    }),
    remoteFault(`${kind}: the key 0`, (a, b) => rdma(kind, 0, b.at(0), a)),
    remoteFault(`${kind}: past the end`, (a, b) => {
      const { rkey, address } = region(b, EVERYTHING);
      rdma(kind, rkey, address + 64, a);
    }),
    remoteFault(`${kind}: before the beginning`, (a, b) => {
      const { rkey, address } = region(b, EVERYTHING);
      rdma(kind, rkey, address - 8, a);
    }),
    remoteFault(`${kind}: at the highest address there is`, (a, b) => {
      rdma(kind, b.region.rkey, Number.MAX_SAFE_INTEGER - 7, a);
    }),
    remoteFault(`${kind}: at address 0`, (a, b) => rdma(kind, b.region.rkey, 0, a)),
    remoteFault(`${kind}: a region without the right`, (a, b) => {
      const { rkey, address } = region(b, EVERYTHING & ~RIGHT[kind]);
      rdma(kind, rkey, address, a);
    }),
    remoteFault(
      `${kind}: a queue pair without the right`,
      (a, b) => {
        b.qp.modify({ state: QpState.RTS, access: EVERYTHING & ~RIGHT[kind] });
        rdma(kind, b.region.rkey, b.at(0), a);
      },
      WcStatus.REM_INV_REQ_ERR,
    ),
    remoteFault(`${kind}: a region of another domain`, (a, b) => {
      const other = b.context.allocPd().registerMemory(b.memory, 0, 4096, EVERYTHING);
      rdma(kind, other.rkey, b.at(0), a);
    }),
  ]);
  for (const kind of ['write', 'read'] as const) {
    faults.push(
      remoteFault(`${kind}: one byte past the end`, (a, b) => {
        const { rkey, address } = region(b, EVERYTHING);
        rdma(kind, rkey, address + 1, a, 64);
      }),
      remoteFault(`${kind}: longer than the region by one byte`, (a, b) => {
        const { rkey, address } = region(b, EVERYTHING);
        rdma(kind, rkey, address, a, 65);
      }),
      remoteFault(`${kind}: one byte before the beginning`, (a, b) => {
        const { rkey, address } = region(b, EVERYTHING);
        rdma(kind, rkey, address - 1, a, 4);
      }),
    );
  }
  faults.push(
    remoteFault('write with immediate: past the end, and no receive is consumed', (a, b) => {
      const { rkey, address } = region(b, EVERYTHING);
      a.qp.wrRdmaWriteImm(1, 0, rkey, address + 60, 7);
      a.qp.wrSetSge(a.region.lkey, a.at(2048), 8);
    }),
    remoteFault('write inline: past the end', (a, b) => {
      const { rkey, address } = region(b, EVERYTHING);
      a.qp.wrRdmaWrite(1, 0, rkey, address + 60);
      a.qp.wrSetInlineData(new Uint8Array(8).fill(99), 0, 8);
    }),
  );
  return faults;
}

function localFaults(maxSge: number): Fault[] {
  const faults = (['write', 'read', 'atomic', 'send'] as const).flatMap((kind) => {
    const build = (a: End, b: End, lkey: number, address: number): void => {
      if (kind === 'send') a.qp.wrSend(1, 0);
      else rdma(kind, b.region.rkey, b.at(0), a);
      a.qp.wrSetSge(lkey, address, 8);
    };
    return [
      localFault(`${kind}: a local key that nobody has given out`, (a, b) => {
        build(a, b, (a.region.lkey ^ 0x5a5a5a5a) >>> 0, a.at(0));
      }),
      localFault(`${kind}: the peer’s key for local memory`, (a, b) => build(a, b, b.region.lkey, b.at(0))),
      localFault(`${kind}: local memory one byte past the end`, (a, b) => build(a, b, a.region.lkey, a.at(4089))),
      localFault(`${kind}: local memory one byte before the beginning`, (a, b) => {
        build(a, b, a.region.lkey, a.at(-1));
      }),
      localFault(`${kind}: a local region of another domain`, (a, b) => {
        const other = a.context.allocPd().registerMemory(a.memory, 0, 4096, EVERYTHING);
        build(a, b, other.lkey, a.at(0));
      }),
    ];
  });
  for (const kind of ['read', 'atomic'] as const) {
    faults.push(
      localFault(`${kind}: into a local region without LOCAL_WRITE`, (a, b) => {
        const readOnly = a.pd.registerMemory(a.memory, 0, 4096, REMOTE_READ);
        rdma(kind, b.region.rkey, b.at(0), a);
        a.qp.wrSetSge(readOnly.lkey, a.at(0), 8);
      }),
    );
  }
  if (maxSge > 1) {
    faults.push(
      localFault('write: a bad entry behind a good one', (a, b) => {
        a.qp.wrRdmaWrite(1, 0, b.region.rkey, b.at(0));
        a.qp.wrAddSge(a.region.lkey, a.at(2048), 8);
        a.qp.wrAddSge(a.region.lkey, a.at(4095), 2);
      }),
    );
  }
  return faults;
}

export function errors({ check, device, capabilities }: Suite): void {
  /** The event that a fault raises at the other end, where the device raises events for faults. */
  const expectEvent = async (end: End, ...types: string[]): Promise<void> => {
    if (!capabilities.faultEvents) return;
    const event = await nextEvent(end.context);
    expect(types).toContain(event.type);
    expect(event.qpNumber).toBe(end.qp.number);
  };

  const cases = [...remoteFaults(), ...localFaults(device.maxSge)];
  for (const fault of cases) {
    check(`${fault.name}: fails, moves nothing, and ends the queue pair`, async ([a, b]) => {
      connect(a, b, { maxSendSge: Math.min(2, device.maxSge) });
      const before = [a.bytes.slice(), b.bytes.slice()];
      for (let i = 0; i < 2; i++) {
        a.receive(50 + i, 0, 8);
        b.receive(60 + i, 0, 8);
      }
      a.qp.wrStart();
      // Not signalled: a request that fails completes all the same, and so do those behind it.
      fault.build(a, b);
      a.qp.wrRdmaWrite(2, 0, b.region.rkey, b.at(8));
      a.qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
      a.qp.wrSend(3, SendFlag.SIGNALED);
      a.qp.wrComplete();
      const [failed, ...flushed] = await poll(a.sendCq, 3);
      expect(failed.wrId).toBe(1);
      expect(fault.status.map(name)).toContain(failed.status);
      expect(failed.qpNum).toBe(a.qp.number);
      expect(flushed.map(({ wrId, status }) => [wrId, status])).toEqual([
        [2, name(WcStatus.WR_FLUSH_ERR)],
        [3, name(WcStatus.WR_FLUSH_ERR)],
      ]);
      expect(a.qp.state).toBe(QpState.ERR);
      expect(await pollStatuses(a.recvCq, 2)).toEqual([
        [50, name(WcStatus.WR_FLUSH_ERR)],
        [51, name(WcStatus.WR_FLUSH_ERR)],
      ]);
      // An atomic whose result cannot be stored has happened at the target all the same, on some devices.
      expect(a.bytes).toEqual(before[0]);
      if (!fault.name.startsWith('atomic') || fault.event !== undefined) expect(b.bytes).toEqual(before[1]);
      if (fault.event === undefined) {
        expect(b.qp.state).toBe(QpState.RTS);
        await expectNothing(b.recvCq);
        return;
      }
      await expectEvent(b, 'QP_ACCESS_ERR', 'QP_REQ_ERR');
      await reaches(b.qp, QpState.ERR);
      // Some devices use up a receive for a write with immediate before they find that the write cannot be.
      const unused = await pollStatuses(b.recvCq, 2);
      expect(unused.map(([wrId]) => wrId)).toEqual([60, 61]);
      expect(unused[0][1]).toMatch(capabilities.faultEvents ? /WR_FLUSH_ERR/ : /_ERR$/);
      expect(unused[1][1]).toBe(name(WcStatus.WR_FLUSH_ERR));
      await expectNothing(a.sendCq, a.recvCq, b.sendCq, b.recvCq);
    });
  }

  for (const off of [1, 2, 4, 7]) {
    check(`an atomic ${off} bytes off its alignment is refused, by the device or at once`, async ([a, b]) => {
      connect(a, b);
      const before = b.bytes.slice();
      const atomic = (): void => {
        a.qp.wrStart();
        rdma('atomic', b.region.rkey, b.at(64 + off), a);
        a.qp.wrComplete();
      };
      let thrown: unknown;
      try {
        atomic();
      } catch (error) {
        thrown = error;
      }
      if (thrown === undefined) {
        const [failed] = await poll(a.sendCq, 1);
        expect([WcStatus.REM_INV_REQ_ERR, WcStatus.REM_ACCESS_ERR, WcStatus.REM_OP_ERR].map(name)).toContain(
          failed.status,
        );
        await expectEvent(b, 'QP_ACCESS_ERR', 'QP_REQ_ERR');
        await reaches(b.qp, QpState.ERR);
      } else expect(thrown).toMatchObject({ code: 'ERR_VERBS' });
      expect(b.bytes).toEqual(before);
    });
  }

  for (const length of [0, 4, 16]) {
    check(`an atomic with a result of ${length} bytes is refused, by the device or at once`, async ([a, b]) => {
      connect(a, b);
      const before = b.bytes.slice();
      let thrown: unknown;
      try {
        a.qp.wrStart();
        rdma('atomic', b.region.rkey, b.at(64), a, length);
        a.qp.wrComplete();
      } catch (error) {
        thrown = error;
      }
      if (thrown === undefined) {
        expect((await poll(a.sendCq, 1))[0].status).toBe(name(WcStatus.LOC_LEN_ERR));
      } else expect(thrown).toMatchObject({ code: 'ERR_VERBS' });
      expect(b.bytes).toEqual(before);
    });
  }

  check('a send that is longer than its receive fails at both ends, and flushes what is behind', async ([a, b]) => {
    connect(a, b);
    const before = b.bytes.slice();
    for (let i = 0; i < 3; i++) b.receive(10 + i, 1000, 16);
    send(a, 1, 0, 17, 0);
    expect((await poll(a.sendCq, 1))[0].status).toMatch(/REM_(INV_REQ|OP)_ERR/);
    const [tooShort, ...behind] = await pollStatuses(b.recvCq, 3);
    expect(tooShort[0]).toBe(10);
    expect(tooShort[1]).toMatch(/LOC_(LEN|QP_OP)_ERR/);
    expect(behind).toEqual([
      [11, name(WcStatus.WR_FLUSH_ERR)],
      [12, name(WcStatus.WR_FLUSH_ERR)],
    ]);
    expect([a.qp.state, b.qp.state]).toEqual([QpState.ERR, QpState.ERR]);
    expect(b.bytes).toEqual(before);
  });

  const badReceives: [string, (b: End) => [number, number]][] = [
    ['key', (b) => [(b.region.lkey ^ 0x1234) >>> 0, b.at(0)]],
    ['range', (b) => [b.region.lkey, b.at(4095)]],
    ['domain', (b) => [b.context.allocPd().registerMemory(b.memory, 0, 4096, LOCAL_WRITE).lkey, b.at(0)]],
    ['right', (b) => [b.pd.registerMemory(b.memory, 0, 4096, REMOTE_READ).lkey, b.at(0)]],
  ];
  for (const [what, place] of badReceives) {
    check(
      `a receive whose ${what} is wrong fails at the receiver, and the sender learns that it did`,
      async ([a, b]) => {
        connect(a, b);
        const before = b.bytes.slice();
        b.qp.postRecv(10, ...place(b), 16);
        b.receive(11, 0, 16);
        send(a, 1, 0, 8, 0);
        expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.REM_OP_ERR)]]);
        const [failed, flushed] = await pollStatuses(b.recvCq, 2);
        expect(failed[0]).toBe(10);
        expect(failed[1]).toMatch(/LOC_(PROT|QP_OP|LEN)_ERR/);
        expect(flushed).toEqual([11, name(WcStatus.WR_FLUSH_ERR)]);
        expect(b.bytes).toEqual(before);
        await reaches(b.qp, QpState.ERR);
      },
    );
  }

  check(
    'a queue pair that may have no reads outstanding cannot read: refused by the device or at once',
    async ([a, b]) => {
      connect(a, b, {}, { maxRdAtomic: 0 });
      const before = a.bytes.slice();
      a.qp.wrStart();
      rdma('read', b.region.rkey, b.at(0), a);
      let thrown: unknown;
      try {
        a.qp.wrComplete();
      } catch (error) {
        thrown = error;
      }
      if (thrown === undefined) expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.LOC_QP_OP_ERR)]]);
      else expect(thrown).toMatchObject({ code: 'ERR_VERBS', message: expect.stringMatching(/no outstanding reads/) });
      expect(a.bytes).toEqual(before);
    },
  );

  for (const kind of ['read', 'atomic'] as const) {
    check(`a peer that serves no reads refuses the ${kind}`, async ([a, b]) => {
      connect(a, b, {}, { maxDestRdAtomic: 0 });
      a.qp.wrStart();
      rdma(kind, b.region.rkey, b.at(0), a);
      a.qp.wrComplete();
      expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.REM_INV_REQ_ERR)]]);
      await expectEvent(b, 'QP_REQ_ERR');
    });
  }

  check('after RESET both ends work again', async ([a, b]) => {
    connect(a, b);
    for (let round = 0; round < 3; round++) {
      a.qp.wrStart();
      rdma('write', 0, 0, a);
      a.qp.wrComplete();
      expect((await poll(a.sendCq, 1))[0].status).toBe(name(WcStatus.REM_ACCESS_ERR));
      await reaches(b.qp, QpState.ERR);
      await expectEvent(b, 'QP_ACCESS_ERR');
      for (const end of [a, b]) end.qp.modify({ state: QpState.RESET });
      bringUp(a.qp, b.qp);
      bringUp(b.qp, a.qp);
      b.bytes.fill(0);
      b.receive(5, 100, 8);
      send(a, 6, 0, 8);
      await pollSuccess(a.sendCq);
      await pollSuccess(b.recvCq);
      expect(b.bytes.subarray(100, 108)).toEqual(pattern(8));
      expect(b.context.pollAsyncEvent()).toBeUndefined();
    }
  });

  check('a fault on one queue pair leaves the others alone', async ([a, b]) => {
    connect(a, b);
    const pair = [a, b].map((end) => end.pd.createQueuePair({ sendCq: end.sendCq, recvCq: end.recvCq }));
    bringUp(pair[0], pair[1]);
    bringUp(pair[1], pair[0]);
    a.qp.wrStart();
    rdma('write', 0, 0, a);
    a.qp.wrComplete();
    await poll(a.sendCq, 1);
    await reaches(b.qp, QpState.ERR);
    const [qp] = pair;
    qp.wrStart();
    qp.wrRdmaWrite(9, SendFlag.SIGNALED, b.region.rkey, b.at(0));
    qp.wrSetInlineData(Uint8Array.of(77), 0, 1);
    qp.wrComplete();
    expect((await pollSuccess(a.sendCq)).qpNum).toBe(qp.number);
    expect(b.bytes[0]).toBe(77);
    expect(pair[1].state).toBe(QpState.RTS);
  });
}
