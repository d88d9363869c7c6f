/**
 * BSPlib's primitives, a case for each thing that its definition says (Hill et al. 1998, section 3), on whatever ranks
 * there are.
 */
import assert from 'node:assert/strict';
import type { Communicator, RmaError, TypedArray } from 'onesided';
import { type Bsp, type BspOptions, begin } from 'onesided/bsp';
import { DIRECT } from './bsp-direct-cases.ts';
import { bspRandom } from './bsp-random.ts';
import { REPEATED, reportedOneByOne } from './bsp-repeated-cases.ts';
import type { Cases } from './cases.ts';

/** How the cases run. */
export interface BspRuns extends BspOptions {
  readonly seed: number;
  /** Every second `sync` blocks; not where ranks are tasks. */
  readonly blocks: boolean;
  /** Random programs. */
  readonly programs: number;
}

type Run = (bsp: Bsp, sync: () => Promise<void>) => Promise<void> | void;

const codeOf = (code: string) => (error: unknown) => (error as RmaError).code === code;

async function wrong(bsp: Bsp, code: string, call: () => unknown, pattern = /./): Promise<void> {
  assert.throws(call, (error: RmaError) => error.code === code && pattern.test(error.message), `${code} at ${bsp.pid}`);
}

/** Computations whose processes have disagreed, which cannot be ended as others. */
const broken = new WeakSet<Bsp>();

/** What all processes learn, and end the computation by. */
async function disagree(bsp: Bsp, sync: () => Promise<void>, pattern: RegExp): Promise<void> {
  await assert.rejects(sync(), (error: RmaError) => error.code === 'ERR_COLLECTIVE' && pattern.test(error.message));
  assert.throws(() => bsp.pushReg(null), codeOf('ERR_COLLECTIVE'));
  await assert.rejects(bsp.sync(), codeOf('ERR_COLLECTIVE'));
  broken.add(bsp);
}

const PRIMITIVES: Record<string, Run> = {
  'pid and nprocs say which process this is, and of how many': (bsp) => {
    assert.equal(bsp.pid, bsp.comm.rank);
    assert.equal(bsp.nprocs, bsp.comm.size);
  },

  'time grows, in seconds': async (bsp) => {
    const before = bsp.time();
    await bsp.comm.compute(2000);
    const passed = bsp.time() - before;
    assert.ok(passed >= 0.0019 && passed < 60, `${passed}`);
  },

  'sync ends a superstep': async (bsp, sync) => {
    for (let i = 0; i < 20; i++) {
      assert.equal(bsp.superstep, i);
      await sync();
    }
  },

  'put: the source may be changed at once, and what was put is there after sync only': async (bsp, sync) => {
    const x = new Float64Array(bsp.nprocs).fill(-1);
    bsp.pushReg(x);
    await sync();
    const source = Float64Array.of(bsp.pid + 0.5);
    for (let pid = 0; pid < bsp.nprocs; pid++) bsp.put(pid, source, x, bsp.pid);
    source[0] = Number.NaN;
    assert.deepEqual(x, new Float64Array(bsp.nprocs).fill(-1));
    await sync();
    assert.deepEqual(
      x,
      Float64Array.from({ length: bsp.nprocs }, (_, pid) => pid + 0.5),
    );
  },

  'put: elements of each type, aligned or not, and bytes into any variable': async (bsp, sync) => {
    const types = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array] as const;
    const others = [Float32Array, Float64Array, BigInt64Array, BigUint64Array] as const;
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    for (const type of [...types, ...others]) {
      const value = (i: number): never => (type.name.startsWith('Big') ? BigInt(i) : i) as never;
      const make = (length: number, of: (i: number) => number): TypedArray =>
        (type as Uint8ArrayConstructor).from({ length }, (_, i) => value(of(i)));
      const memory = new (type as Uint8ArrayConstructor)(60);
      const x = memory.subarray(3, 55);
      bsp.pushReg(x);
      await sync();
      bsp.put(
        right,
        make(50, (i) => i + bsp.pid),
        x,
        5,
        40,
        7,
      );
      await sync();
      const expected = make(60, () => 0);
      for (let i = 0; i < 40; i++) expected[8 + i] = value(i + 7 + left);
      assert.deepEqual(memory, expected, type.name);
      bsp.put(right, Uint8Array.of(1, 2, 3), x, 1);
      await sync();
      assert.deepEqual([...new Uint8Array(memory.buffer, 4 * x.BYTES_PER_ELEMENT, 3)], [1, 2, 3], type.name);
      bsp.popReg(x);
    }
    await sync();
  },

  'put: bits are kept, of NaNs too': async (bsp, sync) => {
    const bits = BigUint64Array.of(0x7ff0_0000_0000_0001n, 0xfff8_dead_beef_0001n, 1n);
    const x = new Float64Array(3);
    bsp.pushReg(x);
    await sync();
    const source = new Float64Array(bits.buffer);
    for (let i = 0; i < 3; i++) bsp.put((bsp.pid + 1) % bsp.nprocs, source, x, i, 1, i);
    await sync();
    assert.deepEqual(new BigUint64Array(x.buffer), bits);
    const got = new Float64Array(1);
    bsp.get((bsp.pid + 1) % bsp.nprocs, x, 0, got);
    await sync();
    assert.equal(new BigUint64Array(got.buffer)[0], bits[0]);
  },

  'put: more than a chunk, and many chunks': async (bsp, sync) => {
    const x = new Int32Array(60_000);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    bsp.put(
      right,
      Int32Array.from(x, (_, i) => i * (bsp.pid + 1)),
      x,
    );
    await sync();
    assert.ok(x.every((value, i) => value === i * (left + 1)));
    for (let i = 0; i < x.length; i += 3) bsp.put(right, Int32Array.of(~i), x, i);
    await sync();
    assert.ok(x.every((value, i) => value === (i % 3 === 0 ? ~i : i * (left + 1))));
  },

  'put: those of one process to one place are written in the order of their calls': async (bsp, sync) => {
    const x = new Float64Array(100);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    for (let i = 0; i < 50; i++) bsp.put(right, new Float64Array(50).fill(i), x, i);
    await sync();
    assert.deepEqual(
      x,
      Float64Array.from(x, (_, i) => Math.min(i, i < 99 ? 49 : 0)),
    );
  },

  'get: the value is that of the end of the superstep, and before any put': async (bsp, sync) => {
    const x = Int32Array.of(1, 2, 3);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const got = new Int32Array(5);
    bsp.get(right, x, 1, got, 2, 3);
    bsp.put(right, Int32Array.of(100), x, 1);
    x[2] = 30 + bsp.pid;
    assert.deepEqual(got, new Int32Array(5));
    await sync();
    assert.deepEqual([...got], [0, 0, 0, 2, 30 + right]);
    assert.deepEqual([...x], [1, 100, 30 + bsp.pid]);
  },

  'get: all of a large variable, from all processes, in pieces of any size': async (bsp, sync) => {
    const x = Float64Array.from({ length: 9000 }, (_, i) => i + 10_000 * bsp.pid);
    bsp.pushReg(x);
    await sync();
    const copies = Array.from({ length: bsp.nprocs }, () => new Float64Array(9000));
    for (let pid = 0; pid < bsp.nprocs; pid++) {
      bsp.get(pid, x, 0, copies[pid], 1);
      for (let at = 1, n = 1; at < 9000; at += n, n = Math.min(2 * n, 9000 - at))
        bsp.get(pid, x, at, copies[pid], n, at);
    }
    await sync();
    for (let pid = 0; pid < bsp.nprocs; pid++)
      assert.ok(
        copies[pid].every((v, i) => v === i + 10_000 * pid),
        `${pid}`,
      );
  },

  'get: bytes at odd places': async (bsp, sync) => {
    const x = Uint8Array.from({ length: 101 }, (_, i) => i + bsp.pid);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const got = new Uint8Array(30);
    bsp.get(right, x, 7, got, 5, 1);
    bsp.get(right, x, 3, got, 1, 11);
    await sync();
    const expected = new Uint8Array(30);
    for (let i = 0; i < 5; i++) expected[1 + i] = 7 + i + right;
    expected[11] = 3 + right;
    assert.deepEqual(got, expected);
  },

  'put: more to one process than it has buffers for, small and large, both ways': async (bsp, sync) => {
    const x = new Float64Array(70_000);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    for (let round = 0; round < 3; round++) {
      const value = Float64Array.of(bsp.pid + round);
      for (let i = 0; i < 20_000; i += 2) bsp.put(right, value, x, i);
      bsp.put(right, new Float64Array(50_000).fill(bsp.pid - round), x, 20_000);
      await sync();
      assert.ok(x.every((v, i) => v === (i >= 20_000 ? left - round : i % 2 === 0 ? left + round : 0)));
    }
  },

  'put: variables that share memory, and places that are put to again': async (bsp, sync) => {
    const memory = new Int32Array(5000);
    const [a, b] = [memory.subarray(0, 4000), memory.subarray(2000)];
    bsp.pushReg(a);
    bsp.pushReg(b);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    for (let round = 1; round < 4; round++) {
      bsp.put(right, new Int32Array(4000).fill(round), a);
      bsp.put(right, new Int32Array(1500).fill(10 * round), b, 500);
      bsp.put(right, new Int32Array(1000).fill(100 * round), a, 2800);
      bsp.put(right, new Int32Array(3).fill(-round), b, 900);
      await sync();
      const expected = new Int32Array(5000)
        .fill(round, 0, 4000)
        .fill(10 * round, 2500, 4000)
        .fill(100 * round, 2800, 3800);
      assert.deepEqual(memory, expected.fill(-round, 2900, 2903));
    }
  },

  'put: of bytes, at odd places, of odd lengths, many': async (bsp, sync) => {
    const x = new Uint8Array(90_000);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    const source = Uint8Array.from({ length: 7000 }, (_, i) => i + bsp.pid);
    let at = 1;
    for (let n = 1; at + n < x.length; n = (n * 5 + 3) % 7000) {
      bsp.put(right, source, x, at, n);
      at += n + (n % 3);
    }
    await sync();
    const expected = new Uint8Array(90_000);
    at = 1;
    for (let n = 1; at + n < x.length; n = (n * 5 + 3) % 7000) {
      for (let i = 0; i < n; i++) expected[at + i] = i + left;
      at += n + (n % 3);
    }
    assert.deepEqual(x, expected);
  },

  'pushReg: takes effect with the next superstep': async (bsp, sync) => {
    const x = new Int32Array(2);
    bsp.pushReg(x);
    await wrong(bsp, 'ERR_RMA_ATTACH', () => bsp.put(0, x, x), /not registered yet/);
    await wrong(bsp, 'ERR_RMA_ATTACH', () => bsp.get(0, new Int32Array(1), 0, x), /register it with pushReg/);
    await sync();
    bsp.put(0, Int32Array.of(1), x);
    await sync();
  },

  'pushReg: the order of calls says which variables belong together': async (bsp, sync) => {
    const [a, b] = [new Int32Array(1), new Int32Array(1)];
    const [first, second] = bsp.pid % 2 === 0 ? [a, b] : [b, a];
    bsp.pushReg(first);
    bsp.pushReg(second);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    bsp.put(right, Int32Array.of(1), first);
    bsp.put(right, Int32Array.of(2), second);
    await sync();
    assert.deepEqual([first[0], second[0]], [1, 2]);
  },

  'pushReg: lengths and types may differ, and a process may have none': async (bsp, sync) => {
    const mine = bsp.pid === 0 ? null : new Uint8Array(8 * bsp.pid);
    bsp.pushReg(mine);
    await sync();
    const last = bsp.nprocs - 1;
    if (mine !== null) {
      await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(0, Uint8Array.of(1), mine), /has registered null/);
      await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(last, Uint8Array.of(1), mine, 8 * last), /which has \d+ bytes/);
      bsp.put(last, Uint8Array.of(bsp.pid), mine, bsp.pid - 1);
    }
    await sync();
    if (bsp.pid === last && mine !== null) {
      for (let pid = 1; pid < bsp.nprocs; pid++) assert.equal(mine[pid - 1], pid);
    }
    bsp.popReg(mine);
    await sync();
  },

  'pushReg: of one place, the newest registration counts, until it is removed': async (bsp, sync) => {
    const x = new Int32Array(10);
    bsp.pushReg(x);
    await sync();
    bsp.pushReg(x.subarray(0, 4));
    // A view that was not registered itself.
    const view = x.subarray(0, 10);
    bsp.put(0, Int32Array.of(1), view, 9);
    await sync();
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(0, Int32Array.of(1), view, 9));
    bsp.put(0, Int32Array.of(2), view, 3);
    bsp.popReg(view);
    await sync();
    bsp.put(0, Int32Array.of(3), view, 8);
    bsp.popReg(view);
    await wrong(bsp, 'ERR_RMA_ATTACH', () => bsp.popReg(x), /not registered any more/);
    await sync();
    await wrong(bsp, 'ERR_RMA_ATTACH', () => bsp.put(0, Int32Array.of(1), x));
    if (bsp.pid === 0) assert.deepEqual([...x], [0, 0, 0, 2, 0, 0, 0, 0, 3, 1]);
  },

  'pushReg: an array that was registered itself names its own registration, not a newer one of its place': async (
    bsp,
    sync,
  ) => {
    const x = new Int32Array(4);
    const part = x.subarray(0, 2);
    bsp.pushReg(x);
    bsp.pushReg(part);
    await sync();
    bsp.put(0, Int32Array.of(1), x, 3);
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(0, Int32Array.of(1), part, 2));
    bsp.put(0, Int32Array.of(2), part, 1);
    await sync();
    bsp.popReg(x);
    await sync();
    // Only the part is left, and any view of its place names it.
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(0, Int32Array.of(1), x, 3));
    bsp.put(0, Int32Array.of(5), x, 0);
    bsp.popReg(part);
    await sync();
    if (bsp.pid === 0) assert.deepEqual([...x], [5, 2, 0, 1]);
  },

  'popReg: takes effect with the next superstep, before what is registered in the same one': async (bsp, sync) => {
    const [x, y] = [new Int32Array(1), new Int32Array(1)];
    bsp.pushReg(x);
    await wrong(bsp, 'ERR_RMA_ATTACH', () => bsp.popReg(x), /was registered in this superstep/);
    await sync();
    bsp.popReg(x);
    bsp.pushReg(y);
    bsp.pushReg(x);
    bsp.put(0, Int32Array.of(5), x);
    await sync();
    if (bsp.pid === 0) assert.equal(x[0], 5);
    bsp.put(0, Int32Array.of(6), x);
    bsp.put(0, Int32Array.of(7), y);
    await sync();
    if (bsp.pid === 0) assert.deepEqual([x[0], y[0]], [6, 7]);
    bsp.popReg(y);
    bsp.popReg(x);
    await sync();
  },

  'pushReg: hundreds of variables in one superstep': async (bsp, sync) => {
    const all = Array.from({ length: 700 }, (_, i) => new Int32Array(1 + ((i + bsp.pid) % 3)));
    for (const one of all) bsp.pushReg(one);
    await sync();
    for (const [i, one] of all.entries()) bsp.put((bsp.pid + 1) % bsp.nprocs, Int32Array.of(i), one);
    await sync();
    assert.ok(all.every((one, i) => one[0] === i));
    for (const one of all.toReversed()) bsp.popReg(one);
    await sync();
  },

  'send: a message with its tag is in the queue after sync': async (bsp, sync) => {
    assert.equal(bsp.setTagsize(4), 0);
    await wrong(bsp, 'ERR_TRUNCATE', () => bsp.send(0, Int32Array.of(1), null), /tags have 0 in this superstep/);
    await sync();
    assert.equal(bsp.setTagsize(4), 4);
    for (let pid = 0; pid < bsp.nprocs; pid++) bsp.send(pid, Int32Array.of(bsp.pid), Float64Array.of(pid, bsp.pid));
    assert.deepEqual(bsp.qsize(), { messages: 0, bytes: 0 });
    await sync();
    assert.deepEqual(bsp.qsize(), { messages: bsp.nprocs, bytes: 16 * bsp.nprocs });
    const seen = new Set<number>();
    for (let left = bsp.nprocs; left > 0; left--) {
      const tag = new Int32Array(1);
      assert.equal(bsp.getTag(tag), 16);
      const payload = new Float64Array(2);
      assert.equal(bsp.move(payload), 16);
      assert.deepEqual([...payload], [bsp.pid, tag[0]]);
      seen.add(tag[0]);
      assert.deepEqual(bsp.qsize(), { messages: left - 1, bytes: 16 * (left - 1) });
    }
    assert.equal(seen.size, bsp.nprocs);
    assert.equal(bsp.getTag(), -1);
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.move(new Uint8Array(1)), /queue has no message/);
  },

  'send: messages that were not taken are gone after the next sync': async (bsp, sync) => {
    bsp.send(0, null, Uint8Array.of(1));
    await sync();
    assert.equal(bsp.qsize().messages, bsp.pid === 0 ? bsp.nprocs : 0);
    await sync();
    assert.equal(bsp.qsize().messages, 0);
  },

  'send: no bytes, more than a chunk, and views that are not copied': async (bsp, sync) => {
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    bsp.setTagsize(3);
    await sync();
    bsp.send(right, Uint8Array.of(1, 2, bsp.pid), null);
    bsp.send(
      right,
      Uint8Array.of(3, 4, bsp.pid),
      Float64Array.from({ length: 10_000 }, (_, i) => i - bsp.pid),
    );
    bsp.send(right, Uint8Array.of(5, 6, bsp.pid), Uint8Array.of(9));
    await sync();
    assert.deepEqual(bsp.qsize(), { messages: 3, bytes: 80_001 });
    const empty = bsp.hpmove()!;
    assert.deepEqual([[...empty.tag], empty.payload.length], [[1, 2, left], 0]);
    const { tag, payload } = bsp.hpmove()!;
    assert.deepEqual([...tag], [3, 4, left]);
    const numbers = new Float64Array(payload.buffer, payload.byteOffset, payload.length / 8);
    assert.ok(numbers.every((value, i) => value === i - left));
    assert.equal(bsp.move(new Uint8Array(0)), 0);
    assert.equal(bsp.hpmove(), undefined);
  },

  'setTagsize: messages have the tags of the superstep in which they were sent': async (bsp, sync) => {
    bsp.setTagsize(8);
    await sync();
    bsp.setTagsize(1);
    bsp.setTagsize(2);
    bsp.send(0, Float64Array.of(1), null);
    await sync();
    if (bsp.pid === 0) await wrong(bsp, 'ERR_TRUNCATE', () => bsp.getTag(new Uint8Array(7)), /but the array only 7/);
    if (bsp.pid === 0) assert.equal(bsp.hpmove()!.tag.length, 8);
    bsp.send(0, Uint8Array.of(1, 2), null);
    await sync();
    if (bsp.pid === 0) assert.deepEqual([...bsp.hpmove()!.tag], [1, 2]);
  },

  'arguments that are none are refused, and nothing is put': async (bsp, sync) => {
    const x = new Int32Array(4);
    bsp.pushReg(x);
    await sync();
    const one = Int32Array.of(1);
    for (const pid of [-1, bsp.nprocs, 0.5, Number.NaN]) await wrong(bsp, 'ERR_RANK', () => bsp.put(pid, one, x));
    await wrong(bsp, 'ERR_RANK', () => bsp.send('0' as never, null, null));
    for (const at of [-1, 0.3, Number.NaN]) await wrong(bsp, 'ERR_DISP', () => bsp.put(0, one, x, at));
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.put(0, one, x, 4), /bytes 16 to 19 .* which has 16 bytes/);
    await wrong(bsp, 'ERR_RMA_RANGE', () => bsp.get(0, x, 3, new Int32Array(2)));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.put(0, one, x, 0, 2));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.put(0, one, x, 0, 1, 1));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.put(0, [1] as never, x));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.get(0, x, 0, {} as never));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.pushReg(7 as never));
    await wrong(bsp, 'ERR_BUFFER', () => bsp.put(0, one, undefined as never));
    await wrong(
      bsp,
      'ERR_TYPE',
      () => bsp.put(0, Float32Array.of(1), x),
      /is a Float32Array, the variable a Int32Array/,
    );
    // What an array says of itself does not matter.
    const liar = Object.defineProperties(Uint8Array.of(1, 2, 3, 4), {
      BYTES_PER_ELEMENT: { value: 1000 },
      length: { value: 1000 },
      byteLength: { value: 1000 },
    });
    bsp.get(0, x, 0, liar);
    await wrong(bsp, 'ERR_BUFFER', () => bsp.put(0, liar, x, 0, 5));
    for (const size of [-1, 1.5, 2 ** 31]) assert.throws(() => bsp.setTagsize(size), RangeError);
    assert.throws(() => bsp.setTagsize('1' as never), TypeError);
    await sync();
    assert.deepEqual(x, new Int32Array(4));
  },

  'while sync is awaited, nothing else can be called': async (bsp) => {
    const x = new Int32Array(1);
    bsp.pushReg(x);
    await bsp.comm.barrier();
    if (bsp.nprocs === 1) return bsp.sync();
    if (bsp.pid === 0) {
      const ending = bsp.sync();
      await wrong(bsp, 'ERR_RMA_SYNC', () => bsp.pushReg(x), /superstep 0 is ending/);
      await assert.rejects(bsp.sync(), codeOf('ERR_RMA_SYNC'));
      await bsp.comm.barrier();
      return ending;
    }
    await bsp.comm.barrier();
    return bsp.sync();
  },

  'a sync whose wait has ended early goes on with the next call': async (bsp, sync) => {
    const x = new Int32Array(1);
    bsp.pushReg(x);
    await sync();
    if (bsp.nprocs === 1) return;
    if (bsp.pid === 0) {
      bsp.put(1, Int32Array.of(3), x);
      await assert.rejects(bsp.sync({ timeout: 20 }), codeOf('ERR_RMA_TIMEOUT'));
      await wrong(bsp, 'ERR_RMA_SYNC', () => bsp.pushReg(x), /call sync\(\) again/);
    }
    await bsp.comm.barrier();
    await bsp.sync();
    if (bsp.pid === 1) assert.equal(x[0], 3);
    assert.equal(bsp.superstep, 2);
  },

  'processes that do not register alike learn of it, all of them': async (bsp, sync) => {
    if (bsp.nprocs === 1) return;
    bsp.pushReg(new Int32Array(1));
    if (bsp.pid === 1) bsp.pushReg(new Int32Array(1));
    await disagree(bsp, sync, /process \d+ registered \d variables in this superstep, this one \d/);
  },

  'processes that do not remove alike learn of it': async (bsp, sync) => {
    if (bsp.nprocs === 1) return;
    const [x, y] = [new Int32Array(1), new Int32Array(1)];
    bsp.pushReg(x);
    bsp.pushReg(y);
    await sync();
    bsp.popReg(bsp.pid === 0 ? x : y);
    await disagree(bsp, sync, bsp.nprocs === 2 || bsp.pid === 0 ? /removed another variable/ : /removed another/);
  },

  'one process that removes a variable alone is told, and so are the others': async (bsp, sync) => {
    if (bsp.nprocs === 1) return;
    const x = new Int32Array(1);
    bsp.pushReg(x);
    await sync();
    if (bsp.pid === 1) bsp.popReg(x);
    await disagree(bsp, sync, /removed \d registrations in this superstep, this one \d/);
  },

  'processes that set different tag sizes learn of it': async (bsp, sync) => {
    if (bsp.nprocs === 1) return;
    bsp.setTagsize(bsp.pid === 0 ? 4 : 8);
    await disagree(bsp, sync, /set a tag size of \d bytes, this one of \d bytes/);
  },

  'processes that end at different supersteps learn of it': async (bsp, sync) => {
    if (bsp.nprocs === 1) return;
    const ends = bsp.pid === 0;
    await disagree(
      bsp,
      ends ? () => bsp.end() : sync,
      ends ? /called sync\(\), this one end\(\)/ : /end\(\), this one sync\(\)|sync\(\), this one end\(\)/,
    );
    // It has ended.
    if (ends) broken.delete(bsp);
  },
};

/** Of the whole: begins and ends by itself. */
const WHOLE: Record<string, (world: Communicator, options: BspRuns) => Promise<void>> = {
  'begin: other options at a rank are refused everywhere': async (world) => {
    if (world.size === 1) return;
    const options = { headers: world.rank === 0 ? 'plain' : 'compressed' } as const;
    await assert.rejects(begin(world, options), (error: RmaError) =>
      /gave headers 'plain'|gave headers 'compressed'/.test(error.message),
    );
    const misspelt = world.rank === 0 ? ({ haeders: 'plain' } as BspOptions) : {};
    await assert.rejects(begin(world, misspelt), /did you mean "headers"|rank 0 could not begin/);
    await assert.rejects(begin(world, { delivery: 'pakced' as never }), /did you mean "packed"/);
  },

  'end: nothing can be called any more, and the job goes on': async (world) => {
    const bsp = await begin(world);
    await bsp.end();
    await bsp.end();
    await wrong(bsp, 'ERR_COMM', () => bsp.pushReg(null), /has called end\(\)/);
    await assert.rejects(bsp.sync(), codeOf('ERR_COMM'));
    await world.barrier();
  },

  'computations of parts of the processes, beside each other': async (world) => {
    const whole = await begin(world);
    const part = (await world.split(world.rank % 2))!;
    const own = await begin(part);
    const [x, y] = [new Int32Array(world.size), new Int32Array(part.size)];
    whole.pushReg(x);
    own.pushReg(y);
    await Promise.all([whole.sync(), own.sync()]);
    for (let pid = 0; pid < whole.nprocs; pid++) whole.put(pid, Int32Array.of(whole.pid + 1), x, whole.pid);
    for (let pid = 0; pid < own.nprocs; pid++) own.put(pid, Int32Array.of(own.pid + 1), y, own.pid);
    await own.sync();
    await whole.sync();
    assert.deepEqual([...x, ...y], [...x.map((_, i) => i + 1), ...y.map((_, i) => i + 1)]);
    await Promise.all([own.end(), whole.end()]);
    await part.free();
  },

  'a report counts doubles that are put one by one': (world, { delivery, headers, counts }) =>
    reportedOneByOne(world, {
      ...(delivery !== undefined && { delivery }),
      ...(headers !== undefined && { headers }),
      ...(counts !== undefined && { counts }),
    }),

  'random programs leave what a sequential model leaves': async (world, { seed, blocks, programs, ...options }) => {
    for (let i = 0; i < programs; i++) await bspRandom(world, seed + i, blocks, options);
  },
};

export function bspCases(options: BspRuns): Cases {
  const { seed: _, blocks, programs: __, ...given } = options;
  let calls = 0;
  const cases: Cases = {};
  for (const [name, run] of Object.entries({ ...PRIMITIVES, ...DIRECT, ...REPEATED })) {
    cases[name] = async (world) => {
      const bsp = await begin(world, given);
      await run(bsp, async () => {
        if (blocks && ++calls % 2 === 0) bsp.syncSync();
        else await bsp.sync();
      });
      if (broken.has(bsp)) await assert.rejects(bsp.end(), codeOf('ERR_COLLECTIVE'));
      else await bsp.end();
    };
  }
  for (const [name, run] of Object.entries(WHOLE)) cases[name] = (world) => run(world, options);
  return cases;
}
