import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesOf, checkBuffer, ownView, type TypedArray, typeCodeOf } from '../../src/datatype/base-types.ts';
import { copyPlaces } from '../../src/datatype/copy.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { checkFetch, checkSides, elementOffsets, forEachSegment, isOverlapping } from '../../src/datatype/layout.ts';
import type { Layout, Side } from '../../src/datatype/sides.ts';
import { noBuffers } from '../ranks/support/hostile.ts';
import { Guarded, liar } from '../ranks/support/liars.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const MOST = 24;

/** A layout of so many elements, and where they are. */
interface Laid {
  readonly layout: Layout | undefined;
  readonly offsets: readonly number[];
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Layouts of `n` INT16 elements without an element below 0. */
function layouts(n: number): fc.Arbitrary<Laid> {
  const divisors = range(n + 1).filter((d) => d > 0 && n % d === 0);
  const type = Datatype.INT16;
  if (n === 0)
    return fc.constantFrom<Laid>({ layout: undefined, offsets: [] }, { layout: { type, count: 0 }, offsets: [] });
  return fc.oneof(
    fc.constant<Laid>({ layout: undefined, offsets: range(n) }),
    fc
      .constantFrom(...divisors)
      .map(
        (block): Laid => ({ layout: { type: Datatype.contiguous(block, type), count: n / block }, offsets: range(n) }),
      ),
    fc.tuple(fc.constantFrom(...divisors), fc.integer({ min: 0, max: 3 })).map(([block, gap]): Laid => {
      const stride = block + gap;
      return {
        layout: { type: Datatype.vector(n / block, block, stride, type) },
        offsets: range(n / block).flatMap((b) => range(block).map((i) => b * stride + i)),
      };
    }),
    fc
      .tuple(fc.constantFrom(...divisors), fc.array(fc.integer({ min: 0, max: 60 }), { minLength: n, maxLength: n }))
      .map(([block, places]): Laid => {
        const starts = places.slice(0, n / block);
        return {
          layout: { type: Datatype.indexedBlock(block, starts, type), count: 1 },
          offsets: starts.flatMap((start) => range(block).map((i) => start + i)),
        };
      }),
    // Several instances of a datatype, which lie one extent apart.
    fc.constantFrom(...divisors).map((count): Laid => {
      const each = range(n / count).map((i) => 2 * i);
      const extent = each[each.length - 1] + 1;
      return {
        layout: { type: Datatype.indexedBlock(1, each, type), count },
        offsets: range(count).flatMap((c) => each.map((offset) => c * extent + offset)),
      };
    }),
  );
}

const pairs = fc.nat({ max: MOST }).chain((n) => fc.tuple(layouts(n), layouts(n)));

function sidesOf(from: Laid, to: Laid, origin: Int16Array): { from: Side; to: Side } {
  return checkSides('put', origin, {
    ...(from.layout && { origin: from.layout }),
    ...(to.layout && { target: to.layout }),
  });
}

function originFor(from: Laid): Int16Array {
  const length = from.layout === undefined ? from.offsets.length : 1 + Math.max(-1, ...from.offsets);
  return Int16Array.from({ length }, (_, i) => 1000 + i);
}

describe('two sides of a transfer', () => {
  test('each knows where its elements are, and the lowest and highest byte', () => {
    const property = fc.property(pairs, ([a, b]) => {
      const { from, to } = sidesOf(a, b, originFor(a));
      for (const [side, { offsets }] of [
        [from, a],
        [to, b],
      ] as const) {
        expect([...elementOffsets(side)]).toEqual(offsets.map((offset) => 2 * offset));
        expect(side.elements).toBe(offsets.length);
        if (offsets.length > 0)
          expect([side.low, side.high]).toEqual([2 * Math.min(...offsets), 2 * Math.max(...offsets) + 2]);
      }
    });
    fc.assert(property, { numRuns: 600, seed: seedOfRun() });
  });

  test('copyPlaces moves element i of the one to element i of the other, and nothing else', () => {
    const property = fc.property(pairs, fc.nat({ max: 7 }), fc.nat({ max: 7 }), ([a, b], sourceAt, sinkAt) => {
      const origin = originFor(a);
      const { from, to } = sidesOf(a, b, origin);
      const bytes = new Uint8Array(origin.buffer);
      const source = new Uint8Array(sourceAt + bytes.length);
      source.set(bytes, sourceAt);
      const sink = new Uint8Array(sinkAt + to.high + 5).fill(0xee);
      const expected = sink.slice();
      for (const [i, offset] of b.offsets.entries()) {
        const at = 2 * a.offsets[i];
        expected.set(bytes.subarray(at, at + 2), sinkAt + 2 * offset);
      }
      copyPlaces(from, source, sourceAt, to, sink, sinkAt, undefined);
      expect([...sink]).toEqual([...expected]);
    });
    fc.assert(property, { numRuns: 1000, seed: seedOfRun() });
  });

  test('forEachSegment gives the same bytes in stretches that are consecutive on both sides', () => {
    const property = fc.property(pairs, ([a, b]) => {
      const { from, to } = sidesOf(a, b, originFor(a));
      const moved: [number, number][] = [];
      forEachSegment(from, to, (fromOffset, toOffset, length) => {
        expect(length).toBeGreaterThan(0);
        for (let i = 0; i < length; i++) moved.push([fromOffset + i, toOffset + i]);
      });
      expect(moved).toEqual(
        a.offsets.flatMap((offset, i) => [0, 1].map((byte) => [2 * offset + byte, 2 * b.offsets[i] + byte])),
      );
    });
    fc.assert(property, { numRuns: 1000, seed: seedOfRun() });
  });

  test('an origin that is a byte too short is refused, one that is just long enough is not', () => {
    const property = fc.property(pairs, ([a, b]) => {
      fc.pre(a.layout !== undefined && a.offsets.length > 0);
      const origin = originFor(a);
      expect(() => sidesOf(a, b, origin)).not.toThrow();
      expect(() => sidesOf(a, b, origin.subarray(0, origin.length - 1))).toThrow(/origin of/);
    });
    fc.assert(property, { numRuns: 300, seed: seedOfRun() });
  });
});

describe('a layout of more runs than can be looked at', () => {
  const type = Datatype.resized(Datatype.hindexed([1, 1, 1], [0, 100, 3], Datatype.INT8), 0, 1);
  const layout = { type, count: 2 ** 23 };
  const plain = { type: Datatype.INT8, count: 3 * 2 ** 23 };
  const origin = new Int8Array(3 * 2 ** 23);
  const refusal = (call: string) =>
    expect.objectContaining({
      code: 'ERR_TYPE',
      message: expect.stringMatching(new RegExp(`^${call}: 8388608 × .* is too large: `)),
    });

  test('is refused by all calls, on either side', () => {
    for (const call of ['put', 'get', 'accumulate']) {
      expect(() => checkSides(call, origin, { origin: layout, target: plain })).toThrow(refusal(call));
      expect(() => checkSides(call, origin, { target: layout })).toThrow(refusal(call));
    }
    expect(() => checkFetch('getAccumulate', origin, origin.slice(), { result: layout })).toThrow(
      refusal('getAccumulate'),
    );
  });

  test('is taken where its pieces do not interleave, however many they are', () => {
    const apart = Datatype.resized(type, 0, 101);
    expect(() => checkSides('put', origin, { target: { type: apart, count: 2 ** 23 } })).not.toThrow();
    const rows = Datatype.vector(2 ** 12, 1, 2, Datatype.INT8);
    const sides = checkSides('put', new Int8Array(2 ** 25), { target: { type: rows, count: 2 ** 13 } });
    expect(isOverlapping('put', sides.to)).toBe(false);
  });
});

test('a datatype in place of a layout is told from one with a wrong name', () => {
  const type = Datatype.vector(2, 1, 2, Datatype.INT32);
  const origin = new Int32Array(4);
  expect(() => checkSides('put', origin, type as never)).toThrow(
    'put: the layout must be { origin, target }, not a Datatype: say whose it is, as { target: { type } }',
  );
  expect(() => checkSides('put', origin, { target: type as never })).toThrow(
    'put: the target layout must be { type: Datatype, count }, not a Datatype alone',
  );
});

describe('buffers', () => {
  test('are told by what they are, not by what they look like', () => {
    for (const [name, value] of noBuffers(Float64Array.of(1, 2))) {
      expect(() => checkBuffer('put', 'origin', value as TypedArray), name).toThrow(
        expect.objectContaining({ code: 'ERR_BUFFER' }),
      );
    }
    class Own extends Float32Array {}
    expect(typeCodeOf(new Own(1))).toBe(typeCodeOf(new Float32Array(1)));
    expect(typeCodeOf(Buffer.alloc(1))).toBe(typeCodeOf(new Uint8Array(1)));
    expect(typeCodeOf(Object.setPrototypeOf(new Int32Array(1), Float64Array.prototype))).toBe(
      typeCodeOf(new Int32Array(1)),
    );
    expect(() => checkBuffer('put', 'origin', new Int8Array(0))).not.toThrow();
  });

  test('are seen as they really are, whatever they say of themselves', () => {
    const random = new Random(seedOfRun());
    for (let i = 0; i < 300; i++) {
      const memory = new Guarded(40);
      const { array, lie } = liar(memory, Int32Array, random);
      const own = ownView('put', 'origin', array);
      expect([own.length, own.byteLength, own.byteOffset, own.BYTES_PER_ELEMENT], lie).toEqual([10, 40, 64, 4]);
      expect(own.buffer, lie).toBe(memory.as(Int32Array).buffer);
      expect(bytesOf(array).length, lie).toBe(40);
    }
  });
});

test('an origin that is no typed array is told as what it is', () => {
  const told = (origin: unknown): string => {
    try {
      checkBuffer('put', 'origin', origin as TypedArray);
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  };
  const refusal = 'put: origin must be a typed array or Buffer, not';
  expect(told(new DataView(new ArrayBuffer(8)))).toBe(`${refusal} a DataView of 8 bytes`);
  expect(told([1])).toBe(`${refusal} an array`);
  expect(told(Buffer.alloc(8))).toBe('nothing');
});
