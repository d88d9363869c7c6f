import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ALIGNMENTS, DATA_SIZES } from '../../src/datatype/base-types.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Signature } from '../../src/datatype/signature.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { assertRefused, noDatatypes, noIndices, noLists } from '../ranks/support/hostile.ts';
import { seedOfRun } from '../support/ranks.ts';

const signatureOf = (codes: readonly number[]): Signature =>
  Signature.joined(codes.map((code) => Signature.of(code, 1)))!;

/** A constructor tree by definition: the type map, element by element, and bounds (MPI 4.1, 5.1). All in bytes. */
interface Tree {
  readonly map: readonly (readonly [code: number, offset: number])[];
  readonly lb: number;
  readonly ub: number;
  /** Bounds that were given: of it, or of what it is made of. */
  readonly markers: readonly (readonly [lb: number, ub: number])[];
  readonly type: Datatype;
}

type TypeMap = Tree['map'];

const SHORT_INT_PARTS = [
  [0, 2],
  [4, 4],
] as const;

/** The bytes that an element has data in. */
function bytesOf([code, offset]: readonly [number, number]): number[] {
  const parts = code === TypeCode.SHORT_INT ? SHORT_INT_PARTS : [[0, DATA_SIZES[code]] as const];
  return parts.flatMap(([at, n]) => range(n).map((i) => offset + at + i));
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const moved = (map: TypeMap, by: number): TypeMap => map.map(([code, offset]) => [code, offset + by] as const);

/** Instances of trees at byte offsets, with the bounds that they have together. */
function placed(type: Datatype, pieces: readonly (readonly [Tree, number])[]): Tree {
  return {
    type,
    map: pieces.flatMap(([tree, at]) => moved(tree.map, at)),
    lb: pieces.length === 0 ? 0 : Math.min(...pieces.map(([tree, at]) => tree.lb + at)),
    ub: pieces.length === 0 ? 0 : Math.max(...pieces.map(([tree, at]) => tree.ub + at)),
    markers: pieces.flatMap(([tree, at]) => tree.markers.map(([lb, ub]) => [lb + at, ub + at] as const)),
  };
}

/** Blocks of instances that begin at byte offsets. */
function blocks(type: Datatype, inner: Tree, list: readonly (readonly [start: number, length: number])[]): Tree {
  const extent = inner.ub - inner.lb;
  return placed(
    type,
    list.flatMap(([start, length]) => range(length).map((i) => [inner, start + i * extent] as const)),
  );
}

const small = fc.integer({ min: 0, max: 4 });
const stride = fc.integer({ min: -5, max: 5 });
const byteStride = fc.integer({ min: -40, max: 40 });
const displacement = fc.integer({ min: -6, max: 9 });
const lists = fc.array(fc.tuple(displacement, small), { maxLength: 5 });

const BASES = [
  Datatype.INT8,
  Datatype.FLOAT64,
  Datatype.UINT16,
  Datatype.BYTE,
  Datatype.FLOAT_INT,
  Datatype.DOUBLE_INT,
  Datatype.SHORT_INT,
];

/** Trees of at most 500 elements: nesting multiplies, and so does the time to name each byte. */
const trees: fc.Arbitrary<Tree> = fc
  .letrec<{ tree: Tree }>((tie) => {
    const tree = tie('tree');
    return {
      tree: fc.oneof(
        { maxDepth: 3, depthIdentifier: 'tree' },
        fc
          .constantFrom(...BASES)
          .map((type) => ({ type, map: [[type.base, 0] as const], lb: 0, ub: type.extent, markers: [] })),
        fc
          .tuple(small, tree)
          .map(([count, inner]) => blocks(Datatype.contiguous(count, inner.type), inner, [[0, count]])),
        fc.tuple(small, small, stride, tree).map(([count, length, step, inner]) => {
          const list = range(count).map((i) => [i * step * (inner.ub - inner.lb), length] as const);
          return blocks(Datatype.vector(count, length, step, inner.type), inner, list);
        }),
        fc.tuple(small, small, byteStride, tree).map(([count, length, step, inner]) => {
          const list = range(count).map((i) => [i * step, length] as const);
          return blocks(Datatype.hvector(count, length, step, inner.type), inner, list);
        }),
        fc.tuple(lists, fc.boolean(), tree).map(([list, inBytes, inner]) => {
          const lengths = list.map(([, length]) => length);
          const starts = list.map(([start]) => start);
          const type = Datatype[inBytes ? 'hindexed' : 'indexed'](lengths, starts, inner.type);
          const unit = inBytes ? 1 : inner.ub - inner.lb;
          return blocks(
            type,
            inner,
            list.map(([start, length]) => [start * unit, length] as const),
          );
        }),
        fc
          .tuple(small, fc.array(displacement, { maxLength: 5 }), fc.constantFrom('list', 'typed', 'bytes'), tree)
          .map(([length, starts, how, inner]) => {
            const type =
              how === 'bytes'
                ? Datatype.hindexedBlock(length, starts, inner.type)
                : Datatype.indexedBlock(length, how === 'typed' ? Int32Array.from(starts) : starts, inner.type);
            const unit = how === 'bytes' ? 1 : inner.ub - inner.lb;
            return blocks(
              type,
              inner,
              starts.map((start) => [start * unit, length] as const),
            );
          }),
        fc.array(fc.tuple(small, byteStride, tree), { maxLength: 3 }).map((members) => {
          const type = Datatype.struct(
            members.map(([length]) => length),
            members.map(([, at]) => at),
            members.map(([, , { type }]) => type),
          );
          const pieces = members.flatMap(([length, at, inner]) =>
            range(length).map((i) => [inner, at + i * (inner.ub - inner.lb)] as const),
          );
          const tree = placed(type, pieces);
          if (tree.markers.length > 0) {
            const [lb, ub] = [tree.markers.map(([lb]) => lb), tree.markers.map(([, ub]) => ub)];
            return { ...tree, lb: Math.min(...lb), ub: Math.max(...ub) };
          }
          const some = members.filter(([length]) => length > 0);
          const alignment = Math.max(1, ...some.flatMap(([, , { map }]) => map.map(([code]) => ALIGNMENTS[code])));
          return { ...tree, ub: tree.lb + Math.ceil((tree.ub - tree.lb) / alignment) * alignment };
        }),
        fc
          .tuple(
            fc.array(fc.tuple(fc.nat({ max: 2 }), fc.integer({ min: 1, max: 3 }), fc.nat({ max: 2 })), {
              minLength: 1,
              maxLength: 3,
            }),
            fc.constantFrom('C' as const, 'F' as const),
            tree,
          )
          .map(([dimensions, order, inner]) => {
            const sizes = dimensions.map(([before, n, after]) => before + n + after);
            const subsizes = dimensions.map(([, n]) => n);
            const starts = dimensions.map(([before]) => before);
            const extent = inner.ub - inner.lb;
            const places = grid(order, subsizes).map((index) =>
              offsetIn(
                order,
                sizes,
                index.map((x, d) => x + starts[d]),
              ),
            );
            const type = Datatype.subarray(sizes, subsizes, starts, inner.type, order);
            const tree = blocks(
              type,
              inner,
              places.map((place) => [place * extent, 1] as const),
            );
            const whole = sizes.reduce((product, n) => product * n, extent);
            return { ...tree, lb: 0, ub: whole, markers: [[0, whole] as const] };
          }),
        fc.tuple(byteStride, byteStride, tree).map(([lb, extent, inner]) => ({
          ...inner,
          lb,
          ub: lb + extent,
          markers: [[lb, lb + extent] as const],
          type: Datatype.resized(inner.type, lb, extent),
        })),
        tree.map((inner) => ({ ...inner, type: Datatype.dup(inner.type) })),
      ),
    };
  })
  .tree.filter(({ map }) => map.length <= 500);

/** All indices of an array, in the order of their memory. */
function grid(order: 'C' | 'F', sizes: readonly number[]): number[][] {
  const slowestFirst = order === 'C' ? sizes : [...sizes].reverse();
  const all = slowestFirst.reduce<number[][]>(
    (list, n) => list.flatMap((index) => range(n).map((x) => [...index, x])),
    [[]],
  );
  return order === 'C' ? all : all.map((index) => index.reverse());
}

function offsetIn(order: 'C' | 'F', sizes: readonly number[], index: readonly number[]): number {
  const dimensions = range(sizes.length);
  if (order === 'F') dimensions.reverse();
  return dimensions.reduce((at, d) => at * sizes[d] + index[d], 0);
}

/** The bytes of a flattened datatype, in order. */
function bytesOfRuns(type: Datatype): number[] {
  const bytes: number[] = [];
  type.runs.forEach(0, (start, n) => bytes.push(...range(n).map((i) => start + i)));
  return bytes;
}

describe('datatypes are flattened', () => {
  test('into the bytes, base types and bounds that their constructors mean, in their order', () => {
    const property = fc.property(trees, ({ type, map, lb, ub }) => {
      const bytes = map.flatMap(bytesOf);
      expect(bytesOfRuns(type)).toEqual(bytes);
      expect(type.elements).toBe(map.length);
      expect(type.size).toBe(bytes.length);
      expect([type.lb, type.ub, type.extent]).toEqual([lb, ub, ub - lb]);
      const ends = bytes.length === 0 ? [0, 0] : [Math.min(...bytes), Math.max(...bytes) + 1 - Math.min(...bytes)];
      expect([type.trueLb, type.trueExtent]).toEqual(ends);
      expect(type.runs.overlapping).toBe(new Set(bytes).size < bytes.length);
      const codes = map.map(([code]) => code);
      expect(type.signature.equals(signatureOf(codes))).toBe(true);
      expect(type.base).toBe(new Set(codes).size === 1 ? codes[0] : -1);
      expect(String(type).length).toBeLessThan(200);
    });
    fc.assert(property, { numRuns: 2000, seed: seedOfRun() });
  });

  test('two are equal if they mean the same, however they were made', () => {
    const property = fc.property(trees, trees, (a, b) => {
      const same = a.lb === b.lb && a.ub === b.ub && JSON.stringify(a.map) === JSON.stringify(b.map);
      expect(a.type.equals(b.type)).toBe(same);
      // The same elements, named one by one.
      const again = Datatype.resized(
        Datatype.struct(
          a.map.map(() => 1),
          a.map.map(([, offset]) => offset),
          a.map.map(([code]) => Datatype.ofCode(code)),
        ),
        a.lb,
        a.ub - a.lb,
      );
      expect(again.equals(a.type) && a.type.equals(again)).toBe(true);
      expect(Datatype.resized(a.type, a.lb, a.ub - a.lb + 1).equals(a.type)).toBe(false);
    });
    fc.assert(property, { numRuns: 1000, seed: seedOfRun() });
  });

  test('pack takes their bytes together, unpack puts them back and touches nothing else', () => {
    const property = fc.property(trees, fc.nat({ max: 3 }), ({ type, map, lb, ub }, count) => {
      const bytes = range(count).flatMap((i) => moved(map, i * (ub - lb)).flatMap(bytesOf));
      const length = Math.max(0, ...bytes.map((at) => at + 1));
      fc.pre(bytes.every((at) => at >= 0) && length < 20_000);
      const memory = Uint8Array.from({ length }, (_, i) => 1 + (i % 250));
      const packed = type.pack(memory, count);
      expect([...packed]).toEqual(bytes.map((at) => memory[at]));
      if (bytes.length > 0)
        expect(() => type.pack(memory.subarray(1), count)).toThrow(expect.objectContaining({ code: 'ERR_BUFFER' }));
      const empty = new Uint8Array(memory.length + 3);
      type.unpack(packed, empty, count);
      const places = new Set(bytes);
      expect([...empty]).toEqual(range(empty.length).map((i) => (places.has(i) ? memory[i] : 0)));
      expect(() => type.unpack(new Uint8Array(packed.length + 1), empty, count)).toThrow(
        expect.objectContaining({ code: 'ERR_TRUNCATE' }),
      );
    });
    fc.assert(property, { numRuns: 1000, seed: seedOfRun() });
  });

  test('signatures are compared as sequences, not as they are written', () => {
    const codes = fc.array(fc.tuple(fc.constantFrom(2, 4, 9), fc.integer({ min: 1, max: 3 })), { maxLength: 4 });
    const property = fc.property(
      codes,
      codes,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 5 }),
      (a, b, m, n) => {
        const written = (list: typeof a): number[] => list.flatMap(([code, count]) => Array<number>(count).fill(code));
        const times = (list: number[], k: number): number[] => range(k).flatMap(() => list);
        const [x, y] = [times(written(a), m), times(written(b), n)];
        const same = JSON.stringify(x) === JSON.stringify(y);
        expect(
          signatureOf(written(a))
            .times(m)
            .equals(signatureOf(written(b)).times(n)),
        ).toBe(same);
        expect(signatureOf(written(a)).times(m).equals(signatureOf(x))).toBe(true);
      },
    );
    fc.assert(property, { numRuns: 2000, seed: seedOfRun() });
  });

  test('what is regular takes no list, however large', () => {
    const huge = Datatype.contiguous(2 ** 31 - 1, Datatype.INT8);
    expect([huge.runs.count, huge.elements]).toEqual([1, 2 ** 31 - 1]);
    const nested = Datatype.contiguous(1000, Datatype.contiguous(1000, Datatype.contiguous(1000, Datatype.FLOAT64)));
    expect([nested.runs.count, nested.size]).toEqual([1, 8e9]);
    const far = Datatype.vector(2 ** 30, 1, 5, Datatype.vector(2, 3, 4, Datatype.FLOAT64));
    expect([far.runs.starts, far.runs.count, far.elements]).toEqual([undefined, 2 ** 31, 6 * 2 ** 30]);
    const block = Datatype.subarray([1e5, 1e5], [5e4, 5e4], [7, 9], Datatype.FLOAT32);
    expect([block.runs.starts, block.runs.count, block.runs.first]).toEqual([undefined, 5e4, 4 * (7e5 + 9)]);
    const indexed = Datatype.indexed([2, 2, 2], [0, 5, 10], Datatype.INT32);
    expect([indexed.runs.starts, indexed.runs.count]).toEqual([undefined, 3]);
    const mixed = Datatype.contiguous(1e9, Datatype.struct({ x: Datatype.FLOAT64, tag: Datatype.INT32 }));
    expect([mixed.runs.count, mixed.elements, mixed.signature.codes.length]).toEqual([1e9, 2e9, 2]);
  });

  test('a thousand constructors deep they are as flat as one', () => {
    let type: Datatype = Datatype.FLOAT64;
    for (let i = 0; i < 1000; i++) type = Datatype.resized(Datatype.contiguous(1, type), 0, 8);
    expect(type.equals(Datatype.FLOAT64)).toBe(true);
    expect(String(type).length).toBeLessThan(200);
  });

  test('bounds that were given stay given, in whatever list the displacements are', () => {
    const marked = Datatype.resized(Datatype.INT8, 0, 1);
    for (const displacements of [[0], Int32Array.of(0)]) {
      const blocks = Datatype.indexedBlock(1, displacements, marked);
      expect(Datatype.struct([1, 1], [0, 8], [blocks, Datatype.FLOAT64]).extent).toBe(1);
    }
  });

  test('displacements are copied: what the caller does with them later changes nothing', () => {
    for (const length of [3, 5000]) {
      const displacements = Int32Array.from({ length }, (_, i) => 2 * i + (i & 1));
      const type = Datatype.indexedBlock(1, displacements, Datatype.INT32);
      const before = bytesOfRuns(type);
      displacements.fill(-1);
      expect(bytesOfRuns(type)).toEqual(before);
    }
  });

  test('keep bounds of the type that are not those of its bytes, with displacements of any kind', () => {
    const inner = Datatype.resized(Datatype.FLOAT32, 1, 4);
    for (const starts of [[0, 2], Int32Array.of(0, 2)]) {
      const { lb, ub, trueLb, trueExtent } = Datatype.indexedBlock(1, starts, inner);
      expect([lb, ub, trueLb, trueExtent]).toEqual([1, 13, 0, 12]);
    }
  });

  test('many small ones do not run into each other', () => {
    const types = range(3000).map((i) => Datatype.indexedBlock(1, Int32Array.of(i, i + 1, i + 5), Datatype.INT8));
    for (const [i, type] of types.entries()) expect(bytesOfRuns(type)).toEqual([i, i + 1, i + 5]);
  });
});

describe('darray', () => {
  /** What the definition says (MPI 4.1, 5.1.4): each element of each dimension belongs to one coordinate. */
  const owner = (kind: string, arg: number | 'default', gsize: number, p: number, x: number): number => {
    if (kind === 'none') return 0;
    if (kind === 'block') return Math.floor(x / (arg === 'default' ? Math.ceil(gsize / p) : arg));
    return Math.floor(x / (arg === 'default' ? 1 : arg)) % p;
  };
  const dimension = fc
    .tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom('block', 'cyclic', 'none'),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 0, max: 2 }),
    )
    .map(([gsize, kind, p, arg]) => {
      const processes = kind === 'none' ? 1 : p;
      const least = Math.ceil(gsize / processes);
      return {
        gsize,
        kind,
        processes,
        arg: arg === 0 ? ('default' as const) : kind === 'block' ? least + arg - 1 : arg,
      };
    });

  test('deals every element to one process, in the order of the array', () => {
    const property = fc.property(
      fc.array(dimension, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('C' as const, 'F' as const),
      (dimensions, order) => {
        const gsizes = dimensions.map(({ gsize }) => gsize);
        const psizes = dimensions.map(({ processes }) => processes);
        const size = psizes.reduce((product, p) => product * p, 1);
        const all: number[] = [];
        for (let rank = 0; rank < size; rank++) {
          const type = Datatype.darray(
            size,
            rank,
            gsizes,
            dimensions.map(({ kind }) => kind as 'block'),
            dimensions.map(({ arg }) => arg),
            psizes,
            Datatype.INT8,
            order,
          );
          const mine = grid(order, gsizes).filter((index) => {
            const coordinates = dimensions.map(({ kind, arg, gsize, processes }, d) =>
              owner(kind, arg, gsize, processes, index[d]),
            );
            return coordinates.reduce((at, c, d) => at * psizes[d] + c, 0) === rank;
          });
          const places = mine.map((index) => offsetIn(order, gsizes, index));
          expect(bytesOfRuns(type)).toEqual(places);
          expect([type.lb, type.extent]).toEqual([0, gsizes.reduce((product, n) => product * n, 1)]);
          all.push(...places);
        }
        expect(all.sort((a, b) => a - b)).toEqual(range(all.length));
        expect(all.length).toBe(gsizes.reduce((product, n) => product * n, 1));
      },
    );
    fc.assert(property, { numRuns: 500, seed: seedOfRun() });
  });

  test.each([
    ['a grid of another size', [4, 0, [8], ['block'], ['default'], [3]]],
    ['a rank outside', [2, 2, [8], ['block'], ['default'], [2]]],
    ['blocks that are too small', [2, 0, [8], ['block'], [3], [2]]],
    ['no such distribution', [2, 0, [8], ['random'], ['default'], [2]]],
    ['a dimension that is not distributed over two', [2, 0, [8], ['none'], ['default'], [2]]],
    ['lists of different lengths', [2, 0, [8, 8], ['block'], ['default'], [2]]],
    ['a block of 0', [2, 0, [8], ['cyclic'], [0], [2]]],
    ['no dimension', [1, 0, [], [], [], []]],
    ['no list', [1, 0, [8], null, ['default'], [1]]],
  ])('refuses %s', (name, args) => {
    // biome-ignore lint/suspicious/noExplicitAny: wrong types are what this is about
    assertRefused('Datatype.darray', name, () => (Datatype.darray as any)(...args, Datatype.INT8));
  });
});

describe('records', () => {
  const Inner = Datatype.struct({ flag: Datatype.UINT8, count: Datatype.UINT16 });
  const Particle = Datatype.struct({
    tag: Datatype.INT8,
    x: Datatype.FLOAT64,
    id: Datatype.UINT64,
    best: Datatype.DOUBLE_INT,
    inner: Inner,
    spins: Datatype.contiguous(3, Datatype.INT16),
  });

  test('are laid out as a C compiler does it', () => {
    // struct { int8_t; double; uint64_t; struct { double; int32_t; }; struct { uint8_t; uint16_t; }; int16_t[3]; }
    expect(Particle.fields!.map(({ name, offset }) => [name, offset])).toEqual([
      ['tag', 0],
      ['x', 8],
      ['id', 16],
      ['best', 24],
      ['inner', 40],
      ['spins', 44],
    ]);
    expect([Particle.extent, Particle.size, Inner.extent]).toEqual([56, 1 + 8 + 8 + 12 + 3 + 6, 4]);
    expect(String(Inner)).toBe('struct { flag: UINT8, count: UINT16 }');
  });

  test('are read and written through views', () => {
    const memory = new Float64Array(3 * 7 + 1).subarray(1);
    const view = Particle.view(memory, 1);
    view.tag = -3;
    view.x = 1.5;
    view.id = 2n ** 63n;
    view.best = { value: 9.25, index: -7 };
    view.inner.count = 65_535;
    view.inner.flag = 255;
    view.spins = Int16Array.of(1, -2, 3);
    const data = new DataView(memory.buffer, memory.byteOffset + 56);
    const read = [data.getInt8(0), data.getFloat64(8, true), data.getBigUint64(16, true), data.getFloat64(24, true)];
    expect(read).toEqual([-3, 1.5, 2n ** 63n, 9.25]);
    expect([data.getInt32(32, true), data.getUint8(40), data.getUint16(42, true), data.getInt16(46, true)]).toEqual([
      -7, 255, 65_535, -2,
    ]);
    const again = Particle.view(memory.buffer, 0);
    expect([again.tag, again.x]).toEqual([0, 0]);
    expect(JSON.parse(JSON.stringify({ ...{ inner: view.inner } }))).toEqual({ inner: { flag: 255, count: 65_535 } });
    const other = Particle.view(memory, 2);
    other.inner = view.inner;
    expect([other.inner.count, other.tag]).toEqual([65_535, 0]);
    expect([...view.spins]).toEqual([1, -2, 3]);
    const pair = Datatype.DOUBLE_INT.view(new Uint8Array(memory.buffer, memory.byteOffset + 56 + 24, 16));
    expect([pair.value, pair.index]).toEqual([9.25, -7]);
  });

  test('touch no byte outside of the memory, whatever their bounds are', () => {
    const Pair = Datatype.struct({ a: Datatype.FLOAT64, b: Datatype.FLOAT64 });
    const all = new Float64Array(32).fill(1);
    const memory = all.subarray(8, 24);
    const refused = expect.objectContaining({ code: 'ERR_BUFFER' });
    for (const [type, index] of [
      [Datatype.resized(Pair, 0, 1), 127],
      [Datatype.resized(Pair, 0, 0), 2 ** 40],
      [Datatype.resized(Pair, 0, -8), 1],
      [Datatype.resized(Pair, 64, -64), 2],
      [Datatype.resized(Datatype.struct({ a: Datatype.resized(Pair, 0, 0), b: Datatype.FLOAT64 }), 0, 1), 119],
      [Datatype.resized(Datatype.struct({ a: Datatype.hindexed([1], [-16], Datatype.DOUBLE_INT) }), 0, 8), 15],
    ] as const) {
      const write = (): void => {
        for (let i = index; i <= index + 1; i++)
          Object.assign(type.view(memory, i) as object, { b: 99, a: { value: 9 } });
      };
      if (type.extent === 0) expect(type.view(memory, index)).toBeDefined();
      else expect(write, String(type)).toThrow(refused);
      expect(
        [...all].every((value) => value === 1),
        String(type),
      ).toBe(true);
    }
    // What lies within can be reached.
    Datatype.resized(Pair, 0, 1).view(memory, 112).b = 7;
    expect(all[23]).toBe(7);
    const shifted = Datatype.struct({ pair: Datatype.hindexed([1], [16], Datatype.DOUBLE_INT) }).view(memory);
    (shifted as unknown as { pair: { value: number } }).pair = { value: 5 };
    expect(all[10]).toBe(5);
  });

  test.each([1, -1])('have fields that do not overlap where a type begins %i elements from its origin', (at) => {
    const shifted = Datatype.indexed([1], [at], Datatype.INT32);
    const type = Datatype.struct({ a: shifted, b: Datatype.INT32, c: shifted });
    expect([...type.pack(Int32Array.of(1, 2, 3, 4, 5, 6))]).toHaveLength(12);
    expect(type.runs.overlapping).toBe(false);
    expect(type.runs.low).toBeGreaterThanOrEqual(0);
  });

  test('lie within the memory, and have fields that can be seen', () => {
    const memory = new Uint8Array(112);
    expect(() => Particle.view(memory, 1)).not.toThrow();
    for (const index of [2, -1, 0.5, Number.NaN, 2 ** 60])
      expect(() => Particle.view(memory, index), String(index)).toThrow(RangeError);
    expect(() => Particle.view(memory.subarray(1), 1)).toThrow(expect.objectContaining({ code: 'ERR_BUFFER' }));
    expect(() => Datatype.INT32.view(memory)).toThrow(expect.objectContaining({ code: 'ERR_TYPE' }));
    expect(() => Particle.view({} as Uint8Array)).toThrow(expect.objectContaining({ code: 'ERR_BUFFER' }));
    const gaps = Datatype.struct({ column: Datatype.vector(2, 1, 2, Datatype.INT8) });
    expect(() => gaps.view(memory).column).toThrow(expect.objectContaining({ code: 'ERR_TYPE' }));
    const view = Particle.view(memory) as unknown as Record<string, unknown>;
    for (const value of [null, 3, undefined]) expect(() => (view['inner'] = value)).toThrow(TypeError);
  });

  test.each([
    ['a name that is a number', { 0: Datatype.INT8 }],
    ['the name that JSON.stringify calls', { toJSON: Datatype.INT8 }],
    ['a field that is no datatype', { x: 'FLOAT64' }],
    [
      'fields that cannot be read',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no');
          },
        },
      ),
    ],
  ])('are refused with %s', (name, fields) => {
    assertRefused('Datatype.struct', name, () => Datatype.struct(fields as Record<string, Datatype>));
  });
});

describe('wrong arguments of datatype constructors', () => {
  // biome-ignore lint/suspicious/noExplicitAny: wrong types are what this is about
  const constructors = Datatype as any;
  const counts = [['undefined', undefined] as const, ['-1', -1] as const, ...noIndices(2 ** 31)];
  const integers = noIndices(Number.POSITIVE_INFINITY).filter(([, value]) => !Number.isSafeInteger(value));
  const lists1 = noLists(1).filter(([name]) => name !== '{}');
  const table = [
    ['contiguous', [2, Datatype.INT8], 0, counts],
    ['contiguous', [2, Datatype.INT8], 1, noDatatypes()],
    ['vector', [2, 1, 3, Datatype.INT8], 0, counts],
    ['vector', [2, 1, 3, Datatype.INT8], 1, counts],
    [
      'vector',
      [2, 1, 3, Datatype.INT8],
      2,
      noIndices(Number.POSITIVE_INFINITY).filter(([, value]) => !Number.isSafeInteger(value)),
    ],
    ['vector', [2, 1, 3, Datatype.INT8], 3, noDatatypes()],
    ['indexedBlock', [1, [0, 4], Datatype.INT8], 0, counts],
    ['indexedBlock', [1, [0, 4], Datatype.INT8], 1, noLists(1).filter(([name]) => name !== '{}')],
    ['indexedBlock', [1, [0, 4], Datatype.INT8], 2, noDatatypes()],
    ['hvector', [2, 1, 3, Datatype.INT8], 0, counts],
    ['hvector', [2, 1, 3, Datatype.INT8], 1, counts],
    ['hvector', [2, 1, 3, Datatype.INT8], 3, noDatatypes()],
    ['indexed', [[1, 2], [0, 4], Datatype.INT8], 0, lists1],
    ['indexed', [[1, 2], [0, 4], Datatype.INT8], 1, lists1],
    ['indexed', [[1, 2], [0, 4], Datatype.INT8], 2, noDatatypes()],
    ['hindexed', [[1, 2], [0, 4], Datatype.INT8], 0, lists1],
    ['hindexed', [[1, 2], [0, 4], Datatype.INT8], 2, noDatatypes()],
    ['hindexedBlock', [1, [0, 4], Datatype.INT8], 0, counts],
    ['hindexedBlock', [1, [0, 4], Datatype.INT8], 1, lists1],
    ['hindexedBlock', [1, [0, 4], Datatype.INT8], 2, noDatatypes()],
    ['struct', [[1], [0], [Datatype.INT8]], 0, lists1],
    ['struct', [[1], [0], [Datatype.INT8]], 1, lists1],
    ['struct', [[1], [0], [Datatype.INT8]], 2, noDatatypes()],
    ['subarray', [[4, 4], [2, 2], [1, 1], Datatype.INT8], 0, lists1],
    ['subarray', [[4, 4], [2, 2], [1, 1], Datatype.INT8], 1, lists1],
    ['subarray', [[4, 4], [2, 2], [1, 1], Datatype.INT8], 2, lists1],
    ['subarray', [[4, 4], [2, 2], [1, 1], Datatype.INT8], 3, noDatatypes()],
    ['resized', [Datatype.INT8, 0, 8], 0, noDatatypes()],
    ['resized', [Datatype.INT8, 0, 8], 1, integers],
    ['resized', [Datatype.INT8, 0, 8], 2, integers],
    ['dup', [Datatype.INT8], 0, noDatatypes()],
  ] as const;
  for (const [name, right, place, hostiles] of table) {
    test(`${name}, argument ${place}`, () => {
      for (const [hostile, value] of hostiles) {
        const args: unknown[] = [...right];
        args.splice(place, 1, value);
        assertRefused(`Datatype.${name}`, hostile, () => constructors[name](...args));
      }
    });
  }

  test('what would be too large is refused before memory is taken for it', () => {
    const { INT8, FLOAT64 } = Datatype;
    const gib = Datatype.contiguous(2 ** 30, INT8);
    const far = Datatype.hindexedBlock(1, [2 ** 52], INT8);
    const refusals: readonly [string, () => unknown][] = [
      ['contiguous', () => Datatype.contiguous(2 ** 31 - 1, gib)],
      ['vector', () => Datatype.vector(2 ** 20, 2 ** 12, 2 ** 13, gib)],
      ['vector', () => Datatype.vector(3, 1, -(2 ** 52), Datatype.INT16)],
      ['vector', () => Datatype.vector(2 ** 31 - 1, 2, 3, Datatype.indexedBlock(1, [0, 2, 5], INT8))],
      ['hvector', () => Datatype.hvector(3, 1, 2 ** 52, INT8)],
      ['indexedBlock', () => Datatype.indexedBlock(1, [0, 2 ** 52], FLOAT64)],
      ['indexedBlock', () => Datatype.indexedBlock(1, [0, -(2 ** 52)], FLOAT64)],
      ['indexedBlock', () => Datatype.indexedBlock(1, { length: 2 ** 40 }, INT8)],
      ['indexedBlock', () => Datatype.indexedBlock(1, { length: -1 }, INT8)],
      ['indexedBlock', () => Datatype.indexedBlock(1, { length: 0.5 }, INT8)],
      ['indexedBlock', () => Datatype.indexedBlock(2 ** 31 - 1, [0, 1, 2], Datatype.indexedBlock(1, [0, 2, 5], INT8))],
      ['struct', () => Datatype.struct([2, 2], [0, 2 ** 52], [far, far])],
      ['struct', () => Datatype.struct([2 ** 21, 1], [0, 8], [Datatype.struct({ a: INT8, b: FLOAT64 }), INT8])],
      ['subarray', () => Datatype.subarray([2 ** 30, 2 ** 30], [1, 1], [0, 0], INT8)],
      ['darray', () => Datatype.darray(2, 0, [2 ** 40], ['cyclic'], ['default'], [2], INT8)],
      ['resized', () => Datatype.resized(INT8, Number.MAX_SAFE_INTEGER, 1)],
      ['indexed', () => Datatype.indexed([1], [1, 2], INT8)],
      ['struct', () => Datatype.struct([1], [1, 2], [INT8])],
      ['subarray', () => Datatype.subarray([4], [5], [0], INT8)],
      ['subarray', () => Datatype.subarray([4], [2], [3], INT8)],
      ['subarray', () => Datatype.subarray([], [], [], INT8)],
      ['subarray', () => Datatype.subarray([4], [2], [1], INT8, 'D' as 'C')],
    ];
    for (const [name, run] of refusals) assertRefused(`Datatype.${name}`, String(run), run);
  });
});
