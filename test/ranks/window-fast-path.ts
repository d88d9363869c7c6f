/**
 * Which calls take the fast path, and that what they move is right on it: each call, each type of 32 and 64 bits, with
 * the arrays of the call before, with those of the call before that, and with new ones. Each rank writes to the next
 * one, alone in its part.
 */
import assert from 'node:assert/strict';
import { type Communicator, Op, type TypedArray, type TypedArrayConstructor, Window } from 'onesided';
import { type Cases, runCases } from './support/cases.ts';

const TYPES: readonly TypedArrayConstructor[] = [
  Int32Array,
  Uint32Array,
  Float32Array,
  BigInt64Array,
  BigUint64Array,
  Float64Array,
];
/** Enough for V8 to compile the calls. */
const ROUNDS = 3000;

type Value = number | bigint;

/** One type: its arrays of one element, and a window of them in which the next rank's part is open. */
interface Setting {
  readonly win: Window;
  readonly target: number;
  readonly type: TypedArrayConstructor;
  of(value: number): Value;
  /** An array of its own, as the engine keeps few bytes; `far`: over a buffer. */
  array(value: number, far?: boolean): TypedArray;
  /** The element of the target that the calls change. */
  there(): Value;
}

const AT = 5;

async function withTarget(
  world: Communicator,
  type: TypedArrayConstructor,
  body: (setting: Setting) => void,
): Promise<void> {
  const win = (await Window.allocate(world, type, 64)) as Window;
  const target = (world.rank + 1) % world.size;
  const isBig = type.name.startsWith('Big');
  const of = (value: number): Value => (isBig ? BigInt(value) : value);
  const array = (value: number, far = false): TypedArray => {
    const bytes = type.BYTES_PER_ELEMENT;
    const result = far
      ? new type(new ArrayBuffer(3 * bytes), bytes, 1)
      : new (type as unknown as new (length: number) => TypedArray)(1);
    result[0] = of(value) as never;
    return result;
  };
  win.lockAllSync();
  // The first call to a target maps its part.
  win.put(array(0), target, AT);
  const part = win.sharedQuery(target);
  body({ win, target, type, of, array, there: () => part[AT] as Value });
  win.unlockAllSync();
  await win.free();
}

/** The arrays of round after round. */
const WAYS: Readonly<Record<string, (make: () => TypedArray) => (round: number) => TypedArray>> = {
  'the same arrays': (make) => {
    const array = make();
    return () => array;
  },
  'two arrays in turn': (make) => {
    const arrays = [make(), make()];
    return (round) => arrays[round & 1];
  },
  'new arrays each time': (make) => () => make(),
};

const cases: Cases = {};

for (const type of TYPES) {
  for (const [way, inTurn] of Object.entries(WAYS)) {
    for (const far of [false, true]) {
      const where = far ? 'over buffers' : 'of their own';
      cases[`${type.name}: no call leaves the fast path, with ${way}, ${where}`] = (world) =>
        withTarget(world, type, ({ win, target, of, array, there }) => {
          const origins = inTurn(() => array(0, far));
          const compares = inTurn(() => array(0, far));
          const results = inTurn(() => array(0, far));
          const isFloat = type.name.startsWith('Float');
          const slow = win.statistics().slowCalls;
          const holding = (from: TypedArray, value: number): TypedArray => {
            from[0] = of(value) as never;
            return from;
          };
          let seen = 0;
          for (let round = 0; round < ROUNDS; round++) {
            const base = round % 1000;
            // Values are equal now and then, since arrays are compared by them.
            const result = results(round);
            win.put(holding(origins(round), base), target, AT);
            win.get(holding(result, -1 >>> 1), target, AT);
            assert.equal(result[0], of(base));
            win.accumulate(holding(origins(round), 2), target, AT, Op.SUM);
            win.fetchAndOp(holding(origins(round), 3), holding(result, 3), target, AT, Op.SUM);
            assert.equal(result[0], of(base + 2));
            win.getAccumulate(holding(origins(round), 4), result, target, AT, Op.REPLACE);
            assert.equal(result[0], of(base + 5));
            win.fetchAndOp(null, result, target, AT, Op.NO_OP);
            assert.equal(result[0], of(4));
            win.getAccumulate(null, holding(result, 0), target, AT, Op.NO_OP);
            assert.equal(result[0], of(4));
            win.fetchAndOp(holding(origins(round), 9), result, target, AT, Op.MAX);
            assert.equal(there(), of(9));
            if (isFloat) continue;
            const swap = (value: number, compare: number, before: number): Value => {
              const origin = holding(origins(round), value);
              win.compareAndSwap(origin, holding(compares(round), compare), holding(result, before), target, AT);
              return result[0] as Value;
            };
            assert.equal(swap(7, 8, 7), of(9));
            assert.equal(there(), of(9));
            assert.equal(swap(7, 9, 9), of(9));
            assert.equal(swap(7, 7, 7), of(7));
            assert.equal(there(), of(7));
            seen++;
          }
          assert.equal(seen, isFloat ? 0 : ROUNDS);
          assert.equal(win.statistics().slowCalls - slow, 0);
        });
    }
  }

  cases[`${type.name}: results that are also origin or comparand are refused, and nothing changes`] = (world) =>
    withTarget(world, type, ({ win, target, of, array, there }) => {
      const isFloat = type.name.startsWith('Float');
      const values = isFloat ? [3, Number.NaN, 0] : [3, 0, 1];
      const refused = { code: 'ERR_BUFFER' };
      for (let round = 0; round < 200; round++) {
        const value = values[round % values.length];
        win.put(array(5), target, AT);
        const buffer = array(value, round % 2 === 0);
        const again = new type(buffer.buffer, buffer.byteOffset, 1) as TypedArray;
        for (const result of [buffer, again]) {
          assert.throws(() => win.fetchAndOp(buffer, result, target, AT, Op.SUM), refused);
          assert.throws(() => win.getAccumulate(buffer, result, target, AT, Op.SUM), refused);
          if (!isFloat) {
            const other = array(8);
            assert.throws(
              () =>
                (win as Window<Int32Array>).compareAndSwap(
                  buffer as Int32Array,
                  other as Int32Array,
                  result as Int32Array,
                  target,
                  AT,
                ),
              refused,
            );
            assert.throws(
              () =>
                (win as Window<Int32Array>).compareAndSwap(
                  other as Int32Array,
                  buffer as Int32Array,
                  result as Int32Array,
                  target,
                  AT,
                ),
              refused,
            );
          }
          assert.ok(Object.is(buffer[0], of(value)) || buffer[0] === of(value));
          assert.equal(there(), of(5));
        }
        // And those that are apart, though they lie in one buffer and hold the same.
        const both = new type(new ArrayBuffer(4 * type.BYTES_PER_ELEMENT)) as TypedArray;
        both.fill(of(value) as never);
        win.fetchAndOp(both.subarray(1, 2), both.subarray(2, 3), target, AT, Op.NO_OP);
        assert.equal(both[2], of(5));
      }
    });

  cases[`${type.name}: arrays of several elements, or of none, are refused or moved whole`] = (world) =>
    withTarget(world, type, ({ win, target, of, array }) => {
      const many = new type(new ArrayBuffer(12 * type.BYTES_PER_ELEMENT)) as TypedArray;
      const into = new type(new ArrayBuffer(12 * type.BYTES_PER_ELEMENT)) as TypedArray;
      const none = new type(new ArrayBuffer(0)) as TypedArray;
      many.fill(of(2) as never);
      const refused = { code: 'ERR_BUFFER' };
      for (let round = 0; round < 100; round++) {
        win.put(many, target, 0);
        win.get(into, target, 0);
        assert.deepEqual(into, many);
        assert.throws(() => win.fetchAndOp(many, into, target, 0, Op.SUM), refused);
        assert.throws(() => win.fetchAndOp(array(1), into, target, 0, Op.SUM), refused);
        assert.throws(() => win.fetchAndOp(none, none, target, 0, Op.SUM), refused);
        assert.throws(() => win.fetchAndOp(null, into, target, 0, Op.NO_OP), refused);
        win.getAccumulate(many, into, target, 0, Op.SUM);
        win.get(into, target, 0);
        assert.equal(into[11], of(4));
        assert.throws(() => win.getAccumulate(many, many.subarray(1), target, 0, Op.SUM), { code: /^ERR_/ });
        assert.throws(() => win.getAccumulate(many.subarray(0, 11), many.subarray(1), target, 0, Op.SUM), refused);
        assert.equal(many[1], of(2));
      }
    });
}

cases['singles that are NaN keep their bits'] = (world) =>
  withTarget(world, Float32Array, ({ win, target }) => {
    const bits = [0x7f800001, 0xff98abcd, 0x7fc00000, 0x3f800000, 0xffbfffff];
    const part = win.sharedQuery(target);
    const there = new Uint32Array(part.buffer, part.byteOffset, part.length);
    for (let round = 0; round < ROUNDS; round++) {
      const [a, b] = [bits[round % 5], bits[(round + 2) % 5]];
      const origin = new Uint32Array([a]);
      const result = new Uint32Array(1);
      const [from, into] = [origin, result].map(({ buffer }) => new Float32Array(buffer));
      win.put(from, target, AT);
      assert.equal(there[AT], a);
      win.get(into, target, AT);
      assert.equal(result[0], a);
      origin[0] = b;
      win.fetchAndOp(from, into, target, AT, Op.REPLACE);
      assert.equal(result[0], a);
      assert.equal(there[AT], b);
      win.fetchAndOp(null, into, target, AT, Op.NO_OP);
      assert.equal(result[0], b);
      const several = new Uint32Array([1, a, b, a]);
      const back = new Uint32Array(4);
      win.put(new Float32Array(several.buffer), target, 8);
      win.get(new Float32Array(back.buffer), target, 8);
      assert.deepEqual(back, several);
    }
  });

cases['arrays that were apart, and have grown over each other, are refused'] = (world) =>
  withTarget(world, Float64Array, ({ win, target }) => {
    // As later versions of the language's library have it.
    const Resizable = ArrayBuffer as unknown as new (
      length: number,
      options: object,
    ) => ArrayBuffer & { resize(length: number): void };
    const buffer = new Resizable(64, { maxByteLength: 4096 });
    const origin = new Float64Array(buffer, 0, 8).fill(5);
    const result = new Float64Array(buffer, 56);
    result[0] = 7;
    const refused = { code: 'ERR_BUFFER' };
    for (let i = 0; i < 20; i++)
      assert.throws(() => win.getAccumulate(origin, result, target, 0, Op.SUM), { name: /Error/ });
    buffer.resize(120);
    assert.throws(() => win.getAccumulate(origin, result, target, 0, Op.SUM), refused);
    assert.throws(() => win.getAccumulate(new Float64Array(buffer, 0, 8), result, target, 0, Op.SUM), refused);
  });

await runCases(cases);
