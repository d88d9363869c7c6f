import { expect } from 'vitest';
import { WcOpcode } from '../../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { connect, type End, pollSuccess, post, type Suite } from './harness.ts';

const HALF = 2n ** 32n;
const lo = (value: bigint): number => Number(BigInt.asUintN(64, value) % HALF);
const hi = (value: bigint): number => Number(BigInt.asUintN(64, value) / HALF);

function word(end: End, offset: number): BigUint64Array {
  return new BigUint64Array(end.memory.buffer, offset, 1);
}

async function fetchAdd(a: End, b: End, at: number, add: bigint): Promise<bigint> {
  post(a, (qp) => {
    qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, b.region.rkey, b.at(at), lo(add), hi(add));
    qp.wrSetSge(a.region.lkey, a.at(800), 8);
  });
  expect(await pollSuccess(a.sendCq)).toMatchObject({ opcode: WcOpcode.FETCH_ADD, byteLen: 8 });
  return word(a, 800)[0];
}

async function compareSwap(a: End, b: End, at: number, compare: bigint, swap: bigint): Promise<bigint> {
  post(a, (qp) => {
    qp.wrAtomicCmpSwp(1, SendFlag.SIGNALED, b.region.rkey, b.at(at), lo(compare), hi(compare), lo(swap), hi(swap));
    qp.wrSetSge(a.region.lkey, a.at(800), 8);
  });
  expect(await pollSuccess(a.sendCq)).toMatchObject({ opcode: WcOpcode.COMP_SWAP, byteLen: 8 });
  return word(a, 800)[0];
}

const EDGES = [0n, 1n, HALF - 1n, HALF, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, 0x0123456789abcdefn];

export function atomics({ check, device }: Suite): void {
  check('fetch and add returns what was there, and adds all 64 bits', async ([a, b]) => {
    connect(a, b);
    const target = word(b, 64);
    const [before, after] = [word(b, 56)[0], word(b, 72)[0]];
    for (const start of EDGES) {
      for (const add of EDGES) {
        target[0] = start;
        expect(await fetchAdd(a, b, 64, add)).toBe(start);
        expect(target[0]).toBe(BigInt.asUintN(64, start + add));
      }
    }
    expect([word(b, 56)[0], word(b, 72)[0]]).toEqual([before, after]);
  });

  check(
    'compare and swap returns what was there, and swaps if that is what was expected, in all 64 bits',
    async ([a, b]) => {
      connect(a, b);
      const target = word(b, 0);
      for (const start of EDGES) {
        for (const compare of EDGES) {
          target[0] = start;
          expect(await compareSwap(a, b, 0, compare, 42n)).toBe(start);
          expect(target[0]).toBe(start === compare ? 42n : start);
        }
      }
    },
  );

  check('operands that are negative numbers are taken by their low 32 bits', async ([a, b]) => {
    connect(a, b);
    word(b, 0)[0] = 5n;
    post(a, (qp) => {
      qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, b.region.rkey, b.at(0), -1, -1);
      qp.wrSetSge(a.region.lkey, a.at(800), 8);
    });
    await pollSuccess(a.sendCq);
    expect(word(b, 0)[0]).toBe(4n);
  });

  check('the result may lie at any address', async ([a, b]) => {
    connect(a, b);
    word(b, 0)[0] = 0x1122334455667788n;
    for (const at of [801, 802, 804, 807]) {
      a.bytes.fill(0);
      post(a, (qp) => {
        qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, b.region.rkey, b.at(0), 0, 0);
        qp.wrSetSge(a.region.lkey, a.at(at), 8);
      });
      await pollSuccess(a.sendCq);
      expect(new DataView(a.memory.buffer).getBigUint64(at, true)).toBe(0x1122334455667788n);
      expect(a.bytes.filter((byte) => byte !== 0).length).toBe(8);
    }
  });

  check('several entries take the result in turn', async ([a, b]) => {
    connect(a, b, { maxSendSge: Math.min(2, device.maxSge) });
    word(b, 0)[0] = 0x1122334455667788n;
    post(a, (qp) => {
      qp.wrAtomicFetchAdd(1, SendFlag.SIGNALED, b.region.rkey, b.at(0), 0, 0);
      if (a.qp.cap.maxSendSge === 1) qp.wrAddSge(a.region.lkey, a.at(0), 8);
      else {
        qp.wrAddSge(a.region.lkey, a.at(0), 3);
        qp.wrAddSge(a.region.lkey, a.at(3), 5);
      }
    });
    await pollSuccess(a.sendCq);
    expect(word(a, 0)[0]).toBe(0x1122334455667788n);
  });

  check(
    'atomics of two queue pairs on one word lose nothing',
    async ([a, b, c]) => {
      connect(a, b);
      const other = { pd: c.pd };
      other.pd = b.pd;
      c.make();
      const second = b.pd.createQueuePair({ sendCq: b.sendCq, recvCq: b.recvCq });
      for (const [qp, dest] of [
        [c.qp, second],
        [second, c.qp],
      ] as const) {
        qp.modify({ state: 1, access: 15 });
        qp.modify({ state: 2, dest: dest.address });
        qp.modify({ state: 3 });
      }
      word(b, 8)[0] = 0n;
      const seen = new Set<bigint>();
      for (let i = 0; i < 200; i++) {
        seen.add(await fetchAdd(a, b, 8, 1n));
        seen.add(await fetchAdd(c, b, 8, 1n));
      }
      expect(word(b, 8)[0]).toBe(400n);
      expect(seen.size).toBe(400);
    },
    3,
  );
}
