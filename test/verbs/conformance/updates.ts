import { expect } from 'vitest';
import { OpCode } from '../../../src/datatype/op.ts';
import { TypeCode } from '../../../src/datatype/type-codes.ts';
import { WcOpcode, WcStatus } from '../../../src/verbs/completion-queue.ts';
import { Access } from '../../../src/verbs/memory.ts';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { ALL_ACCESS, connect, type End, name, pollStatuses, pollSuccess, post, type Suite } from './harness.ts';

const SWAP_ELEMENT = 255;
const HOLDER = 7;
/** Where the lock is at the owner, and where the word and the elements are here. */
const LOCK = 64;
const HERE = 1024;

interface Asked {
  readonly op?: number;
  readonly type?: number;
  readonly fetches?: boolean;
  readonly round?: number;
  readonly at?: number;
  /** Bytes of the request's entry. */
  readonly bytes?: number;
  readonly lock?: number;
  readonly lockRkey?: number;
  readonly rkey?: number;
  readonly holder?: number;
}

/** Posts an update of doubles at byte 128 of the owner's memory. */
function update(a: End, b: End, asked: Asked = {}, wrId = 1): void {
  const { op = OpCode.SUM, type = TypeCode.FLOAT64, fetches = false, round = 0, at = 128, bytes = 16 } = asked;
  const { lock = b.at(LOCK), lockRkey = b.region.rkey, rkey = b.region.rkey, holder = HOLDER } = asked;
  post(a, (qp) => {
    const does = op + type * 2 ** 8 + (fetches ? 2 ** 16 : 0) + round * 2 ** 24;
    qp.wrUpdate!(wrId, SendFlag.SIGNALED, rkey, b.at(at), does, lockRkey, lock, holder);
    qp.wrSetSge(a.region.lkey, a.at(HERE), bytes);
  });
}

const doubles = (end: End, at: number, n = 1): Float64Array => new Float64Array(end.memory.buffer, at, n);
const word = (end: End, at: number): BigUint64Array => new BigUint64Array(end.memory.buffer, at, 1);

function ready(a: End, b: End): void {
  connect(a, b);
  word(b, LOCK)[0] = 0n;
  doubles(b, 128, 4).set([1, 2, 3, 4]);
}

export function updates({ checkIf }: Suite): void {
  checkIf('updates', 'an update combines elements, and fetches what was there if it is asked to', async ([a, b]) => {
    ready(a, b);
    doubles(a, HERE + 8, 3).set([10, 20, 30]);
    update(a, b, { bytes: 32 });
    expect(await pollSuccess(a.sendCq)).toMatchObject({ opcode: WcOpcode.FETCH_ADD, byteLen: 32 });
    expect(word(a, HERE)[0]).toBe(0n);
    expect([...doubles(b, 128, 4)]).toEqual([11, 22, 33, 4]);
    expect([...doubles(a, HERE + 8, 3)]).toEqual([10, 20, 30]);
    update(a, b, { op: OpCode.MAX, fetches: true, bytes: 32 });
    await pollSuccess(a.sendCq);
    expect([...doubles(a, HERE + 8, 3)]).toEqual([11, 22, 33]);
    expect([...doubles(b, 128, 4)]).toEqual([11, 22, 33, 4]);
    expect(word(b, LOCK)[0]).toBe(0n);
  });

  checkIf('updates', 'compare and swap of one element stores it only if it was the expected one', async ([a, b]) => {
    ready(a, b);
    const there = new Int32Array(b.memory.buffer, 128, 2);
    const here = new Int32Array(a.memory.buffer, HERE + 8, 2);
    there.set([5, 9]);
    for (const [wanted, expected, after] of [
      [6, 4, 5],
      [6, 5, 6],
    ]) {
      const before = there[0];
      here.set([wanted, expected]);
      update(a, b, { op: SWAP_ELEMENT, type: TypeCode.INT32, fetches: true });
      await pollSuccess(a.sendCq);
      expect(here[0]).toBe(before);
      expect([...there]).toEqual([after, 9]);
    }
  });

  checkIf(
    'updates',
    'an update whose lock is taken does nothing, nor do those behind it in its round',
    async ([a, b]) => {
      ready(a, b);
      doubles(a, HERE + 8)[0] = 100;
      word(b, LOCK)[0] = 3n;
      update(a, b);
      await pollSuccess(a.sendCq);
      expect(word(a, HERE)[0]).toBe(1n);
      expect(word(b, LOCK)[0]).toBe(3n);
      word(b, LOCK)[0] = 0n;
      update(a, b);
      await pollSuccess(a.sendCq);
      expect(word(a, HERE)[0]).toBe(1n);
      expect(doubles(b, 128)[0]).toBe(1);
      update(a, b, { round: 1 });
      await pollSuccess(a.sendCq);
      expect(word(a, HERE)[0]).toBe(0n);
      expect(doubles(b, 128)[0]).toBe(101);
    },
  );

  checkIf('updates', 'what is in the upper half of a lock stays, and is a lock that is taken', async ([a, b]) => {
    ready(a, b);
    word(b, LOCK)[0] = 2n ** 32n;
    update(a, b);
    await pollSuccess(a.sendCq);
    expect(word(a, HERE)[0]).toBe(1n);
    expect(word(b, LOCK)[0]).toBe(2n ** 32n);
  });

  checkIf('updates', 'many updates, writes and atomics of one list are carried out in their order', async ([a, b]) => {
    ready(a, b);
    doubles(a, HERE + 8)[0] = 1;
    doubles(a, 2048)[0] = 50;
    post(a, (qp) => {
      const add = OpCode.SUM + TypeCode.FLOAT64 * 2 ** 8;
      for (let i = 0; i < 20; i++) {
        qp.wrUpdate!(i, i === 19 ? SendFlag.SIGNALED : 0, b.region.rkey, b.at(128), add, b.region.rkey, b.at(LOCK), 7);
        qp.wrSetSge(a.region.lkey, a.at(HERE), 16);
        if (i !== 9) continue;
        qp.wrRdmaWrite(100, 0, b.region.rkey, b.at(128));
        qp.wrSetSge(a.region.lkey, a.at(2048), 8);
      }
    });
    await pollSuccess(a.sendCq);
    expect(doubles(b, 128)[0]).toBe(60);
  });

  checkIf('updates', 'an update of 64-bit integers needs no lock, and agrees with atomics', async ([a, b]) => {
    ready(a, b);
    const there = new BigInt64Array(b.memory.buffer, 128, 3);
    const here = new BigInt64Array(a.memory.buffer, HERE + 8, 3);
    there.set([1n, -2n, 3n]);
    here.set([10n, -20n, 2n]);
    // The round is of no meaning, nor is what has the lock of others.
    word(b, LOCK)[0] = 3n;
    update(a, b, { op: OpCode.MIN, type: TypeCode.INT64, fetches: true, bytes: 32, lock: 0, lockRkey: 0, round: 9 });
    await pollSuccess(a.sendCq);
    expect(word(a, HERE)[0]).toBe(0n);
    expect([...there]).toEqual([1n, -20n, 2n]);
    expect([...here]).toEqual([1n, -2n, 3n]);
  });

  const refused: [what: string, asked: (b: End) => Asked, status: number][] = [
    ['elements outside of the region', () => ({ at: 4088, bytes: 24 }), WcStatus.REM_ACCESS_ERR],
    ['a lock outside of the region', (b) => ({ lock: b.at(4096) }), WcStatus.REM_ACCESS_ERR],
    ['a lock at no multiple of 8', (b) => ({ lock: b.at(LOCK) + 4 }), WcStatus.REM_INV_REQ_ERR],
    ['the key of no region', (b) => ({ rkey: b.region.rkey ^ 1 }), WcStatus.REM_ACCESS_ERR],
    ["a lock's key of no region", (b) => ({ lockRkey: b.region.rkey ^ 1 }), WcStatus.REM_ACCESS_ERR],
    ['elements that are not aligned', () => ({ at: 132 }), WcStatus.LOC_LEN_ERR],
    ['half an element', () => ({ bytes: 12 }), WcStatus.LOC_LEN_ERR],
    ['no element', () => ({ bytes: 8 }), WcStatus.LOC_LEN_ERR],
    ['a type that there is not', () => ({ type: 200 }), WcStatus.LOC_LEN_ERR],
    ['an operation that the type has not', () => ({ op: OpCode.BAND }), WcStatus.LOC_LEN_ERR],
    ['a pair with padding', () => ({ type: TypeCode.DOUBLE_INT, op: OpCode.MAXLOC, bytes: 24 }), WcStatus.LOC_LEN_ERR],
    ['doubles and no lock', () => ({ lock: 0 }), WcStatus.LOC_LEN_ERR],
    ['a swap and no lock', () => ({ op: SWAP_ELEMENT, type: TypeCode.INT32, lock: 0 }), WcStatus.LOC_LEN_ERR],
    ['nobody to have the lock', () => ({ holder: 0 }), WcStatus.LOC_LEN_ERR],
  ];
  for (const [what, asked, status] of refused) {
    checkIf('updates', `an update with ${what} changes nothing, and fails`, async ([a, b]) => {
      ready(a, b);
      const before = b.bytes.slice();
      update(a, b, asked(b), 5);
      expect(await pollStatuses(a.sendCq, 1)).toEqual([[5, name(status)]]);
      expect(b.bytes).toEqual(before);
    });
  }

  checkIf('updates', 'an update of memory without the right to atomics fails', async ([a, b]) => {
    ready(a, b);
    const memory = b.context.allocateMemory(64);
    const { rkey, address } = b.pd.registerMemory(memory, 0, 64, ALL_ACCESS & ~Access.REMOTE_ATOMIC);
    post(a, (qp) => {
      const add = OpCode.SUM + TypeCode.FLOAT64 * 2 ** 8;
      qp.wrUpdate!(1, SendFlag.SIGNALED, rkey, address, add, b.region.rkey, b.at(LOCK), 7);
      qp.wrSetSge(a.region.lkey, a.at(HERE), 16);
    });
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[1, name(WcStatus.REM_ACCESS_ERR)]]);
  });
}
