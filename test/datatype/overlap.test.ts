/** Which bytes two layouts share, against a set of the bytes of each. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { forEachRun } from '../../src/datatype/copy.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { denseExtent, type Extent, sharedBytes } from '../../src/datatype/overlap.ts';
import { seedOfRun } from '../support/ranks.ts';

const small = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });

/** Nested constructors of all forms: runs that interleave, overlap, descend, repeat at no distance. */
const types: fc.Arbitrary<Datatype> = fc.letrec<{ type: Datatype }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Datatype>(Datatype.INT8, Datatype.INT16, Datatype.INT32),
    fc.tuple(small(1, 3), tie('type')).map(([n, type]) => Datatype.contiguous(n, type)),
    fc
      .tuple(small(1, 4), small(1, 2), small(-9, 9), tie('type'))
      .map(([n, block, stride, type]) => Datatype.hvector(n, block, stride, type)),
    fc
      .tuple(fc.array(small(-12, 12), { minLength: 1, maxLength: 5 }), tie('type'))
      .map(([places, type]) => Datatype.hindexedBlock(1, places, type)),
    fc
      .tuple(fc.array(fc.tuple(small(1, 2), small(-12, 12)), { minLength: 1, maxLength: 4 }), tie('type'))
      .map(([blocks, type]) =>
        Datatype.hindexed(
          blocks.map(([length]) => length),
          blocks.map(([, place]) => place),
          type,
        ),
      ),
    fc.tuple(tie('type'), small(-20, 20)).map(([type, extent]) => Datatype.resized(type, 0, extent)),
  ),
})).type;

/** As a call on a window has it. It may begin before its starting point, as those of targets do. */
function extentOf(type: Datatype, count: number): Extent {
  const { runs, extent: stride } = type;
  return { ...type.span('put', count), runs, count, stride };
}

function bytesOf(side: Extent, at: number): Set<number> {
  const bytes = new Set<number>();
  forEachRun(side, (offset, length) => {
    for (let i = 0; i < length; i++) bytes.add(at + offset + i);
  });
  return bytes;
}

const extents: fc.Arbitrary<Extent> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(types, small(0, 4)).map(([type, count]) => extentOf(type, count)) },
  small(0, 40).map(denseExtent),
);

test('what is told is in both, and is told if and only if something is', () => {
  const told = { yes: 0, no: 0 };
  fc.assert(
    fc.property(extents, small(-60, 60), extents, (a, aAt, b) => {
      const [mine, theirs] = [bytesOf(a, aAt), bytesOf(b, 0)];
      const shared = sharedBytes(a, aAt, b, 0);
      if (shared === undefined) {
        told.no++;
        expect([...mine].filter((byte) => theirs.has(byte))).toEqual([]);
        return;
      }
      told.yes++;
      expect(shared.high).toBeGreaterThan(shared.low);
      for (let byte = shared.low; byte < shared.high; byte++) {
        expect(mine.has(byte) && theirs.has(byte), `byte ${byte}`).toBe(true);
      }
      // Whichever is asked about first.
      expect(sharedBytes(b, 0, a, aAt)).toBeDefined();
    }),
    { numRuns: 4000, seed: seedOfRun() },
  );
  expect(Math.min(told.yes, told.no)).toBeGreaterThan(100);
});

const columns = (rows: number, width: number, columns: number): Extent =>
  extentOf(Datatype.vector(rows, columns, width, Datatype.FLOAT64), 1);

test('columns of one array share nothing unless they are the same', () => {
  const column = columns(1000, 10, 1);
  const three = columns(1000, 10, 3);
  for (let i = 0; i < 10; i++) {
    for (let j = 0; j < 10; j++) {
      const [low, high] = [8 * i, 8 * i + 8];
      expect(sharedBytes(column, 8 * i, column, 8 * j)).toEqual(i === j ? { low, high } : undefined);
    }
    const within = i >= 4 && i < 7 ? { low: 8 * i, high: 8 * i + 8 } : undefined;
    expect(sharedBytes(column, 8 * i, three, 32)).toEqual(within);
  }
  // The last row of the one is the first of the other.
  expect(sharedBytes(column, 0, column, 999 * 80)).toEqual({ low: 999 * 80, high: 999 * 80 + 8 });
  expect(sharedBytes(column, 0, column, 1000 * 80)).toBeUndefined();
});

test('more columns than anything could go through are told apart', () => {
  const [one, other] = [columns(2 ** 30, 4, 1), columns(2 ** 30, 4, 2)];
  expect(sharedBytes(one, 0, other, 8)).toBeUndefined();
  expect(sharedBytes(one, 16, other, 8)).toEqual({ low: 16, high: 24 });
  // The same, as instances of a row of blocks.
  const row = Datatype.resized(Datatype.vector(2 ** 10, 1, 4, Datatype.FLOAT64), 0, 2 ** 15);
  expect(sharedBytes(extentOf(row, 2 ** 20), 0, other, 8)).toBeUndefined();
  expect(sharedBytes(extentOf(row, 2 ** 20), 8, other, 8)).toEqual({ low: 8, high: 16 });
});

test('rows of another pitch are walked', () => {
  const [tens, sevens] = [columns(500_000, 10, 1), columns(500_000, 7, 1)];
  expect(sharedBytes(tens, 0, sevens, 8 * 3)).toEqual({ low: 80, high: 88 });
  expect(sharedBytes(columns(500_000, 10, 2), 0, columns(250_000, 20, 3), 8 * 4)).toBeUndefined();
});
