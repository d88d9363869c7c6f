import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpCode } from '../../src/datatype/op.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { STRIPE_WORDS } from '../../src/transfer/loads/stripes.ts';
import { MODELS } from '../ranks/support/operations.ts';
import { addon, mappedWords } from '../support/addon.ts';
import { runProgram, startWorker, workerEnded } from '../support/children.ts';

const native = addon();

type Numbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;
type NumbersConstructor = new (source: ArrayBufferLike | readonly never[] | number) => Numbers;

const ARRAYS = {
  INT8: Int8Array,
  UINT8: Uint8Array,
  INT16: Int16Array,
  UINT16: Uint16Array,
  INT32: Int32Array,
  UINT32: Uint32Array,
  INT64: BigInt64Array,
  UINT64: BigUint64Array,
  FLOAT32: Float32Array,
  FLOAT64: Float64Array,
  BYTE: Uint8Array,
};
/** Floating-point numbers and pairs go through `accumulateAt`. */
const typeNames = Object.keys(ARRAYS).filter((type) => !isFloat(type)) as (keyof typeof ARRAYS)[];
const opNames = Object.keys(OpCode) as (keyof typeof OpCode)[];

function isFloat(type: string): boolean {
  return type.startsWith('FLOAT');
}

function defined(op: string, type: string): boolean {
  const { integers, floats, bytes } = MODELS[op]!;
  if (type === 'BYTE') return bytes === true;
  return (isFloat(type) ? floats : integers) !== undefined;
}

/** What an element must become: integers by exact arithmetic on bigints, which the array's element type then wraps. */
function model(op: keyof typeof OpCode, a: number | bigint, b: number | bigint, float: boolean): number | bigint {
  const { integers, floats } = MODELS[op]!;
  return float ? floats!(Number(a), Number(b)) : integers!(BigInt(a), BigInt(b));
}

function store(array: Numbers, index: number, value: number | bigint): void {
  if (array instanceof BigInt64Array || array instanceof BigUint64Array) array[index] = BigInt(value);
  else array[index] = typeof value === 'bigint' ? Number(BigInt.asIntN(32, value)) : value;
}

/** With Object.is, so that −0 and NaN count. */
function expectSame(found: Numbers, expected: Numbers): void {
  for (let i = 0; i < expected.length; i++) {
    if (!Object.is(found[i], expected[i])) throw new Error(`element ${i} is ${found[i]}, not ${expected[i]}`);
  }
}

/**
 * Random bits make every kind of value: extremes, subnormals, infinities, several NaNs. Zeros and ones are frequent,
 * for the logic.
 */
const word = fc.oneof(fc.constantFrom(0n, 1n, 2n ** 63n), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
const operands = fc.array(fc.tuple(word, word), { minLength: 1, maxLength: 20 });

function arrayOf(array: NumbersConstructor, words: readonly bigint[], shared: boolean): Numbers {
  const bytes = 8 * words.length;
  const buffer = shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
  new BigUint64Array(buffer).set(words);
  return new array(buffer);
}

describe.each(typeNames)('accumulate on %s', (type) => {
  const array = ARRAYS[type] as NumbersConstructor;

  it.each(opNames.filter((op) => defined(op, type)))('%s does what the model says, element by element', (op) => {
    fc.assert(
      fc.property(operands, fc.boolean(), fc.boolean(), (pairs, shared, wantsResult) => {
        const target = arrayOf(
          array,
          pairs.map(([a]) => a),
          shared,
        );
        const origin = arrayOf(
          array,
          pairs.map(([, b]) => b),
          false,
        );
        const before = target.slice();
        const expected = target.slice();
        for (let i = 0; i < expected.length; i++) store(expected, i, model(op, before[i], origin[i], isFloat(type)));
        const result = new array(target.length);
        native.accumulate(
          OpCode[op],
          TypeCode[type],
          target,
          0,
          origin,
          0,
          target.length,
          wantsResult ? result : undefined,
        );
        expectSame(target, expected);
        if (wantsResult) expectSame(result, before);
      }),
      { numRuns: 60 },
    );
  });

  it.each(opNames.filter((op) => defined(op, type)))('%s reaches scattered elements, in their order', (op) => {
    const displacement = fc.nat({ max: 9 });
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 10, maxLength: 10 }),
        fc.array(fc.tuple(displacement, word), { maxLength: 200 }),
        (words, updates) => {
          const target = arrayOf(array, words, false).slice(0, 10) as Numbers;
          const values = arrayOf(
            array,
            updates.map(([, value]) => value),
            false,
          ).slice(0, updates.length) as Numbers;
          const expected = target.slice();
          updates.forEach(([at], i) => {
            store(expected, at, model(op, expected[at], values[i], isFloat(type)));
          });
          native.accumulateIndexed(
            OpCode[op],
            TypeCode[type],
            target,
            0,
            Int32Array.from(updates, ([at]) => at),
            values,
          );
          expectSame(target, expected);
        },
      ),
      { numRuns: 30 },
    );
  });
});

const stripes = new Int32Array(STRIPE_WORDS);
const held = { words: stripes, base: 0, me: 1 };

/** Offsets of `n` elements of `stride` bytes, in each of the ways to give them. */
function offsetsOf(how: 'order' | 'elements' | 'bytes', places: readonly number[], stride: number) {
  if (how === 'order') return undefined;
  return how === 'elements' ? Int32Array.from(places) : Float64Array.from(places, (place) => place * stride);
}

describe.each(Object.keys(ARRAYS) as (keyof typeof ARRAYS)[])('accumulateAt on %s', (type) => {
  const array = ARRAYS[type] as NumbersConstructor;
  const size = new array(1).byteLength;
  const kinds = fc.constantFrom('order' as const, 'elements' as const, 'bytes' as const);
  const permutation = fc.shuffledSubarray(
    Array.from({ length: 40 }, (_, i) => i),
    { minLength: 40 },
  );

  it.each(opNames.filter((op) => defined(op, type)))('%s does what the model says, wherever elements are', (op) => {
    fc.assert(
      fc.property(
        operands,
        fc.tuple(kinds, kinds, kinds),
        fc.tuple(permutation, permutation, permutation),
        fc.boolean(),
        (pairs, how, mixed, wants) => {
          const n = pairs.length;
          const [to, from, into] = how.map((kind, i) =>
            kind === 'order' ? Array.from({ length: n }, (_, j) => j) : mixed[i],
          );
          const target = new array(40);
          const origin = new array(40);
          const values = [0, 1].map((side) =>
            arrayOf(
              array,
              pairs.map((pair) => pair[side]),
              false,
            ),
          );
          for (let i = 0; i < n; i++) {
            target[to[i]] = values[0][i];
            origin[from[i]] = values[1][i];
          }
          const expected = target.slice();
          for (let i = 0; i < n; i++) store(expected, to[i], model(op, target[to[i]], origin[from[i]], isFloat(type)));
          const before = target.slice();
          const result = new array(40);
          const done = native.accumulateAt(
            OpCode[op],
            TypeCode[type],
            target,
            0,
            offsetsOf(how[0], to, size),
            origin,
            offsetsOf(how[1], from, size),
            wants ? result : undefined,
            offsetsOf(how[2], into, size),
            n,
            held.words,
            held.base,
            held.me,
          );
          expect(done).toBe(n);
          expectSame(target, expected);
          if (wants)
            expectSame(
              result,
              Object.assign(new array(40), Object.fromEntries(pairs.map((_, i) => [into[i], before[to[i]]]))),
            );
          expect(stripes.every((stripe) => stripe === 0)).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('accumulateRun', () => {
  const { SUM, PROD, MAX, REPLACE, NO_OP, BAND } = OpCode;
  const { FLOAT64, FLOAT32, DOUBLE_INT, INT64 } = TypeCode;
  const run = (numbers: readonly number[], ...arrays: readonly [unknown, unknown, unknown, unknown?]): number => {
    native.accumulatePlan.set(numbers);
    return (native.accumulateRun as (...all: unknown[]) => number)(...arrays);
  };

  it('does what accumulateAt does', () => {
    const n = 3000;
    const random = Array.from({ length: 2 * n }, (_, i) => Math.sin(i) * 10 ** (i % 9));
    for (const [type, of] of [
      [FLOAT64, Float64Array],
      [FLOAT32, Float32Array],
    ] as const) {
      for (const op of [SUM, PROD, MAX, REPLACE, NO_OP]) {
        for (const count of [0, 1, 7, n]) {
          for (const fetches of [false, true]) {
            const origin = of.from(random.slice(0, n));
            const targets = [of.from(random.slice(n)), of.from(random.slice(n))];
            const results = [0, 1].map(() => (fetches ? new of(n) : undefined));
            const at = of.BYTES_PER_ELEMENT * (n - count);
            expect(run([op, type, at, count, 24, 3], targets[0], origin, stripes, results[0])).toBe(count);
            const rest = [undefined, origin, undefined, results[1], undefined, count, stripes, 24, 3] as const;
            expect(native.accumulateAt(op, type, targets[1], at, ...rest)).toBe(count);
            expect(targets[0]).toEqual(targets[1]);
            expect(results[0]).toEqual(results[1]);
          }
        }
      }
    }
    expect(stripes.every((stripe) => stripe === 0)).toBe(true);
  });

  it('says how far it has come if somebody keeps a stripe', () => {
    const target = new Float64Array(2048);
    stripes[16] = 7;
    expect(run([SUM, FLOAT64, 0, 2048, 0, 1], target, new Float64Array(2048).fill(1), stripes)).toBe(512);
    stripes[16] = 0;
    expect(target.reduce((a, b) => a + b)).toBe(512);
  });

  it('refuses what does not fit, before it writes', () => {
    const target = new Float64Array(8);
    const origin = new Float64Array(8).fill(1);
    const wrong: (readonly number[])[] = [
      ...[
        [SUM, FLOAT64, 0, 9, 0, 1],
        [SUM, FLOAT64, 8, 8, 0, 1],
        [SUM, FLOAT64, 4, 2, 0, 1],
        [SUM, FLOAT64, -8, 2, 0, 1],
      ],
      ...[
        [SUM, FLOAT64, 0, -1, 0, 1],
        [SUM, FLOAT64, 0, 2, 0, 0],
        [SUM, INT64, 0, 2, 0, 1],
        [BAND, FLOAT64, 0, 2, 0, 1],
      ],
      ...[
        [SUM, DOUBLE_INT, 0, 1, 0, 1],
        [99, FLOAT64, 0, 2, 0, 1],
        [SUM, 99, 0, 2, 0, 1],
        [-1, FLOAT64, 0, 2, 0, 1],
      ],
      ...[
        [Number.NaN, FLOAT64, 0, 2, 0, 1],
        [SUM, FLOAT64, Number.POSITIVE_INFINITY, 2, 0, 1],
        [SUM, FLOAT64, 0, 2 ** 60, 0, 1],
      ],
    ];
    for (const numbers of wrong) expect(() => run(numbers, target, origin, stripes), `${numbers}`).toThrow(RangeError);
    const good = [SUM, FLOAT64, 0, 8, 0, 1];
    expect(() => run(good, target, new Float64Array(7), stripes)).toThrow(RangeError);
    expect(() => run(good, target, origin, stripes, new Float64Array(7))).toThrow(RangeError);
    expect(() => run(good, target, origin, new Int32Array(3))).toThrow(RangeError);
    expect(() => run(good, target, origin, new Float64Array(STRIPE_WORDS))).toThrow(RangeError);
    for (const no of [undefined, null, {}, [1], 'x']) {
      expect(() => run(good, no, origin, stripes)).toThrow(TypeError);
      expect(() => run(good, target, no, stripes)).toThrow(TypeError);
      expect(() => run(good, target, origin, no)).toThrow(TypeError);
      if (no !== undefined) expect(() => run(good, target, origin, stripes, no)).toThrow(TypeError);
    }
    expect(target.every((value) => value === 0)).toBe(true);
  });
});

describe('accumulateAt', () => {
  const { SUM, MINLOC, REPLACE } = OpCode;
  const { FLOAT64, FLOAT32, DOUBLE_INT, INT64 } = TypeCode;

  it('does elements of all stripes of a long run, and any number of them at once', () => {
    const n = 50_000;
    const target = Float64Array.from({ length: n }, (_, i) => i);
    const ones = new Float64Array(n).fill(1);
    expect(
      native.accumulateAt(SUM, FLOAT64, target, 0, undefined, ones, undefined, undefined, undefined, n, stripes, 40, 1),
    ).toBe(n);
    const backwards = Int32Array.from({ length: n }, (_, i) => n - 1 - i);
    expect(
      native.accumulateAt(SUM, FLOAT64, target, 0, backwards, ones, undefined, undefined, undefined, n, stripes, 40, 1),
    ).toBe(n);
    expect(target.every((value, i) => value === i + 2)).toBe(true);
    expect(stripes.every((stripe) => stripe === 0)).toBe(true);
  });

  it('gives up after a while on a stripe that somebody keeps, and says how far it has come', () => {
    const target = new Float64Array(2048);
    const ones = new Float64Array(2048).fill(1);
    // The second 4 KiB.
    stripes[16] = 7;
    expect(
      native.accumulateAt(
        SUM,
        FLOAT64,
        target,
        0,
        undefined,
        ones,
        undefined,
        undefined,
        undefined,
        2048,
        stripes,
        0,
        1,
      ),
    ).toBe(512);
    const both = Int32Array.of(3, 600);
    expect(
      native.accumulateAt(SUM, FLOAT64, target, 0, both, ones, undefined, undefined, undefined, 2, stripes, 0, 1),
    ).toBe(0);
    expect([target[3], target[600], stripes[0], stripes[16]]).toEqual([1, 0, 0, 7]);
    stripes[16] = 0;
  });

  it('refuses what does not fit, before it writes', () => {
    const target = new Float64Array(4);
    const origin = new Float64Array(4).fill(1);
    const call = (over: Record<number, unknown>, op: number = SUM, type: number = FLOAT64): void => {
      const args: unknown[] = [
        op,
        type,
        target,
        0,
        undefined,
        origin,
        undefined,
        undefined,
        undefined,
        4,
        stripes,
        0,
        1,
      ];
      for (const [i, value] of Object.entries(over)) args[Number(i)] = value;
      (native.accumulateAt as (...all: unknown[]) => unknown)(...args);
    };
    for (const offsets of [
      Int32Array.of(0, 1, 2, 4),
      Int32Array.of(0, -1, 2, 3),
      Float64Array.of(0, 8, 25, 16),
      Float64Array.of(0, 8, Number.NaN, 16),
    ]) {
      for (const place of [4, 6]) expect(() => call({ [place]: offsets }), `${place} ${offsets}`).toThrow(RangeError);
      expect(() => call({ 7: new Float64Array(4), 8: offsets }), `8 ${offsets}`).toThrow(RangeError);
    }
    expect(() => call({ 4: Float64Array.of(0, 4, 8, 16) })).toThrow(/aligned/);
    expect(() => call({ 4: Int32Array.of(0, 1) })).toThrow(TypeError);
    expect(() => call({ 4: [0, 1, 2, 3] })).toThrow(TypeError);
    expect(() => call({ 3: 1 })).toThrow(RangeError);
    for (const wrong of [{ 5: new Float64Array(3) }, { 7: new Float64Array(3) }, { 9: 5 }, { 9: -1 }, { 12: 0 }]) {
      expect(() => call(wrong), JSON.stringify(wrong)).toThrow(RangeError);
    }
    for (const words of [new Int32Array(3), new Float64Array(STRIPE_WORDS), undefined])
      expect(() => call({ 10: words })).toThrow(TypeError);
    expect(() => call({}, MINLOC)).toThrow(/not defined/);
    expect(() => call({ 9: 3 }, REPLACE, DOUBLE_INT)).toThrow(RangeError);
    expect(() => call({}, OpCode.BAND, FLOAT32)).toThrow(/not defined/);
    expect(target.every((value) => value === 0)).toBe(true);
    call({ 9: 2 }, MINLOC, DOUBLE_INT);
    call({ 9: 0 }, SUM, INT64);
  });

  it.each([
    ['FLOAT_INT', 8, 0, 4],
    ['DOUBLE_INT', 16, 0, 8],
    ['LONG_INT', 16, 0, 8],
    ['SHORT_INT', 8, 0, 4],
    ['TWO_INT', 8, 0, 4],
  ] as const)(
    'keeps the least or greatest value of %s with its index, and leaves padding alone',
    (type, stride, valueAt, indexAt) => {
      const [read, write] = {
        FLOAT_INT: ['getFloat32', 'setFloat32'],
        DOUBLE_INT: ['getFloat64', 'setFloat64'],
        LONG_INT: ['getBigInt64', 'setBigInt64'],
        SHORT_INT: ['getInt16', 'setInt16'],
        TWO_INT: ['getInt32', 'setInt32'],
      }[type] as ['getInt32', 'setInt32'];
      const convert = (value: number): number => (type === 'LONG_INT' ? (BigInt(value) as unknown as number) : value);
      const pair = fc.tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -2, max: 2 }));
      fc.assert(
        fc.property(
          fc.array(fc.tuple(pair, pair), { minLength: 1, maxLength: 9 }),
          fc.constantFrom('MINLOC', 'MAXLOC', 'REPLACE', 'NO_OP'),
          (pairs, op) => {
            const memories = [0, 1].map((side) => {
              const data = new DataView(new Uint8Array(stride * pairs.length).fill(0xee).buffer);
              pairs.forEach((both, i) => {
                data[write](i * stride + valueAt, convert(both[side][0]), true);
                data.setInt32(i * stride + indexAt, both[side][1], true);
              });
              return data;
            });
            const result = new DataView(new ArrayBuffer(stride * pairs.length));
            const bytes = (data: DataView): Uint8Array => new Uint8Array(data.buffer);
            native.accumulateAt(
              OpCode[op as 'MINLOC'],
              TypeCode[type],
              bytes(memories[0]),
              0,
              undefined,
              bytes(memories[1]),
              undefined,
              bytes(result),
              undefined,
              pairs.length,
              stripes,
              0,
              1,
            );
            pairs.forEach(([there, comes], i) => {
              const [a, b] = [there, comes];
              const wins = op === 'MINLOC' ? b[0] < a[0] : b[0] > a[0];
              const best = a[0] === b[0] ? [a[0], Math.min(a[1], b[1])] : wins ? b : a;
              const expected = op === 'REPLACE' ? b : op === 'NO_OP' ? a : best;
              const found = [
                memories[0][read](i * stride + valueAt, true),
                memories[0].getInt32(i * stride + indexAt, true),
              ];
              expect(found.map(Number)).toEqual(expected);
              expect([Number(result[read](i * stride, true)), result.getInt32(i * stride + indexAt, true)]).toEqual(a);
              const width = indexAt === 8 ? 8 : type === 'SHORT_INT' ? 2 : 4;
              for (let b = width; b < stride; b++)
                if (b < indexAt || b >= indexAt + 4) expect(memories[0].getUint8(i * stride + b)).toBe(0xee);
            });
          },
        ),
        { numRuns: 100 },
      );
    },
  );
});

describe('accumulate on BYTE', () => {
  const type = 'BYTE';
  const array = ARRAYS[type] as NumbersConstructor;

  it('refuses operations that are not defined on it', () => {
    const undefinedOps = opNames.filter((op) => !defined(op, type));
    expect(undefinedOps.length).toBeGreaterThan(0);
    for (const op of undefinedOps) {
      const target = new array(4);
      expect(() =>
        native.accumulate(OpCode[op], TypeCode[type], target, 0, new array(4).fill(1 as never), 0, 4),
      ).toThrow(/not defined/);
      expect(() =>
        native.accumulateIndexed(OpCode[op], TypeCode[type], target, 0, Int32Array.of(0), new array(1)),
      ).toThrow(/not defined/);
      expect(target.every((value) => Number(value) === 0)).toBe(true);
    }
  });
});

describe('accumulate', () => {
  const { SUM } = OpCode;
  const { INT32, INT64 } = TypeCode;

  it('takes offsets in target and origin, in bytes', () => {
    const target = new Int32Array(4);
    native.accumulate(SUM, INT32, target, 4, Int32Array.of(1, 2, 3), 4, 2);
    expect([...target]).toEqual([0, 2, 3, 0]);
    native.accumulate(SUM, INT32, target.buffer, 12, Uint8Array.of(9, 1, 0, 0, 0), 1, 1);
    expect([...target]).toEqual([0, 2, 3, 1]);
  });

  it('refuses what lies past the end by one byte, and what is not aligned, and writes nothing', () => {
    const target = new Int32Array(4);
    const ones = new Int32Array(5).fill(1);
    const calls: [number, number, number][] = [
      [0, 0, 5],
      [4, 0, 4],
      [16, 0, 1],
      [17, 0, 0],
      [1, 0, 1],
      [2, 0, 3],
      [-4, 0, 1],
      [0, 8, 4],
      [0, 21, 0],
      [0, 0, -1],
      [0, 0, 2 ** 62],
      [0.5, 0, 1],
      [0, 0, Number.NaN],
    ];
    for (const [targetByte, originByte, count] of calls) {
      expect(
        () => native.accumulate(SUM, INT32, target, targetByte, ones, originByte, count),
        `${targetByte} ${originByte} ${count}`,
      ).toThrow(expect.objectContaining({ name: 'RangeError', code: 'ERR_ARG' }));
    }
    expect(() => native.accumulate(SUM, INT32, target, 0, ones, 0, 4, new Int32Array(3))).toThrow(/the result/);
    expect(() => native.accumulate(SUM, INT64, target, 0, ones, 0, 3)).toThrow(RangeError);
    expect([...target]).toEqual([0, 0, 0, 0]);
  });

  it('refuses detached memory', () => {
    const target = new Int32Array(4);
    structuredClone(target.buffer, { transfer: [target.buffer] });
    expect(() => native.accumulate(SUM, INT32, target, 0, Int32Array.of(1), 0, 1)).toThrow(RangeError);
    native.accumulate(SUM, INT32, target, 0, Int32Array.of(1), 0, 0);
  });

  it('is atomic towards other processes that use Atomics or accumulate', async () => {
    const { table } = mappedWords(1024);
    const { fd } = mappedWords(1);
    native.memoryResize(fd, 4096);
    const words = new Int32Array(native.memoryMap(fd, 0, 4096));
    const child = runProgram(new URL('./programs/map-fd3.ts', import.meta.url), ['300000'], [fd]);
    let ended = false;
    void child.then(() => (ended = true));
    let own = 0;
    const ones = new Int32Array(1000).fill(1);
    const zeros = new Int32Array(1000);
    while (!ended) {
      native.accumulateIndexed(SUM, INT32, words, 0, zeros, ones);
      own += 1000;
      await new Promise(setImmediate);
    }
    expect((await child).stderr).toBe('');
    expect(Atomics.load(words, 0)).toBe(300_000 + own);
    expect(table[0]).toBe(0);
  });

  it.each(['SUM', 'MAX', 'PROD'] as const)(
    'of floats is atomic between threads, in native code and in JavaScript (%s)',
    async (op) => {
      const target = new Float64Array(new SharedArrayBuffer(64));
      target[0] = 1;
      const words = new Int32Array(new SharedArrayBuffer(4 * STRIPE_WORDS));
      const program = new URL('./programs/accumulate.ts', import.meta.url);
      const workers = [1, 2, 3].map((number) =>
        startWorker(program, { target, op: OpCode[op], rounds: 300, number, words }),
      );
      expect(await Promise.all(workers.map(workerEnded))).toEqual([0, 0, 0]);
      // Each adds 1, or multiplies by 2 and by ½, or puts larger and larger numbers, 300 × 100 times.
      expect(target[0]).toBe({ SUM: 90_001, MAX: 30_002, PROD: 1 }[op]);
    },
  );
});

describe('accumulateIndexed', () => {
  const { BXOR, SUM } = OpCode;
  const { UINT64 } = TypeCode;
  const values = (count: number): BigUint64Array => new BigUint64Array(count).fill(1n);

  it('names the first displacement that lies outside, and writes nothing', () => {
    const target = new BigUint64Array(8);
    for (const [displacements, index] of [
      [[0, 1, 8], 2],
      [[-1, 0], 0],
      [[0, -(2 ** 31)], 1],
      [[7, 2 ** 31 - 1, -5], 1],
    ] as const) {
      expect(() =>
        native.accumulateIndexed(BXOR, UINT64, target, 0, Int32Array.from(displacements), values(3)),
      ).toThrow(expect.objectContaining({ name: 'RangeError', code: 'ERR_ARG', index }));
    }
    // From byte 8 there are 7 elements.
    expect(() => native.accumulateIndexed(BXOR, UINT64, target, 8, Int32Array.of(6, 7), values(2))).toThrow(
      expect.objectContaining({ index: 1 }),
    );
    expect(() => native.accumulateIndexed(BXOR, UINT64, target, 0, Int32Array.of(3, 4), values(2), 2, 4)).toThrow(
      expect.objectContaining({ index: 1 }),
    );
    expect(target.every((value) => value === 0n)).toBe(true);
    native.accumulateIndexed(BXOR, UINT64, target, 8, Int32Array.of(6), values(1));
    native.accumulateIndexed(BXOR, UINT64, target, 0, Int32Array.of(3, 4), values(2), 1, 4);
    expect([...target]).toEqual([0n, 0n, 0n, 1n, 0n, 0n, 0n, 1n]);
  });

  it('refuses a short origin, too large a count or limit, and displacements of another type', () => {
    const target = new BigUint64Array(8);
    const call = (...args: unknown[]): unknown =>
      (native.accumulateIndexed as (...all: unknown[]) => void)(SUM, UINT64, target, 0, ...args);
    expect(() => call(Int32Array.of(0, 1), values(1))).toThrow(RangeError);
    expect(() => call(Int32Array.of(0, 1), values(2), 3)).toThrow(RangeError);
    expect(() => call(Int32Array.of(0, 1), values(2), 2, 9)).toThrow(RangeError);
    expect(() => call(Uint32Array.of(0, 1), values(2))).toThrow(TypeError);
    expect(() => call([0, 1], values(2))).toThrow(TypeError);
    expect(target.every((value) => value === 0n)).toBe(true);
  });

  it('stays inside when another thread changes the displacements during the call', async () => {
    const displacements = new Int32Array(new SharedArrayBuffer(4 * 65536));
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const worker = startWorker(new URL('./programs/scribble.ts', import.meta.url), { displacements, stop });
    const ended = workerEnded(worker);
    await new Promise((resolve) => worker.once('message', resolve));
    const target = new BigUint64Array(16);
    const origin = new BigUint64Array(65536);
    let refused = 0;
    let done = 0;
    for (let i = 0; i < 100 || refused === 0; i++) {
      try {
        native.accumulateIndexed(SUM, UINT64, target, 0, displacements, origin);
        done++;
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        refused++;
      }
    }
    Atomics.store(stop, 0, 1);
    expect(await ended).toBe(0);
    expect(refused + done).toBeGreaterThanOrEqual(100);
  });

  it.each(['targets', 'sources', 'sinks'] as const)('and so does accumulateAt, for its %s', async (side) => {
    const wild = new Int32Array(new SharedArrayBuffer(4 * 65536));
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const worker = startWorker(new URL('./programs/scribble.ts', import.meta.url), { displacements: wild, stop });
    const ended = workerEnded(worker);
    await new Promise((resolve) => worker.once('message', resolve));
    const tame = new Int32Array(65536);
    const at = (name: string): Int32Array => (name === side ? wild : tame);
    const stripes = new Int32Array(512);
    let calls = 0;
    let refused = 0;
    const deadline = Date.now() + 2000;
    for (; calls < 100 || (refused === 0 && Date.now() < deadline); calls++) {
      const type = calls % 2 === 0 ? UINT64 : TypeCode.FLOAT64;
      const sides = ['targets', 'sources', 'sinks'].map((name) => at(name)) as [Int32Array, Int32Array, Int32Array];
      const [target, origin, result] = [new Float64Array(16), new Float64Array(16), new Float64Array(16)];
      try {
        const [targets, sources, sinks] = sides;
        native.accumulateAt(SUM, type, target, 0, targets, origin, sources, result, sinks, 65536, stripes, 0, 1);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        refused++;
      }
    }
    Atomics.store(stop, 0, 1);
    expect(await ended).toBe(0);
    expect([...stripes].every((word) => word === 0)).toBe(true);
  });
});
