import { describe, expect, test } from 'vitest';
import type { TypedArray } from '../../src/datatype/base-types.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { checkSides, elementOffsets } from '../../src/datatype/layout.ts';
import { piecesOf } from '../../src/datatype/pieces.ts';
import type { Side } from '../../src/datatype/sides.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

/** Regions that meet at the given offsets; bytes that are in none throw. */
function meetingAt(borders: readonly number[]): (low: number, high: number) => number {
  return (low, high) => {
    const end = borders.find((border) => border > low);
    if (end === undefined || high > end) throw new RangeError(`bytes ${low} … ${high - 1} are in no region`);
    return end;
  };
}

const absolute = ({ at, side }: { at: number; side: Side }): number[] =>
  Array.from(elementOffsets(side), (o) => at + o);

describe('an access across regions', () => {
  test('is cut at their borders, once', () => {
    const origin = new Float64Array(100_000);
    const plain = checkSides('put', origin, undefined);
    expect(piecesOf('put', plain.from, plain.to, undefined, meetingAt([80_000, 560_000, 800_000])).length).toBe(3);
    // Every other element, and pairs, whose bytes have gaps.
    const type = Datatype.vector(50_000, 1, 2, Datatype.FLOAT64);
    const { from, to } = checkSides('put', origin.subarray(50_000), { target: { type } });
    expect(piecesOf('put', from, to, to, meetingAt([400_000, 800_000])).length).toBe(2);
    const mixed = { type: Datatype.struct({ a: Datatype.INT32, b: Datatype.FLOAT64, c: Datatype.INT16 }), count: 1000 };
    const both = checkSides('put', new Uint8Array(24_000), { origin: mixed, target: mixed });
    expect(piecesOf('put', both.from, both.to, undefined, meetingAt([12_000, 24_000])).length).toBe(2);
  });

  test('moves the same elements in the same order, each within one region', () => {
    const random = new Random(seedOfRun());
    for (let round = 0; round < 200; round++) {
      const base = random.pick([
        Datatype.INT32,
        Datatype.FLOAT64,
        Datatype.BYTE,
        Datatype.SHORT_INT,
        Datatype.DOUBLE_INT,
      ]);
      const count = random.between(1, 40);
      const layout = (): { type: Datatype; count: number } => {
        const places = Array.from({ length: count }, (_, i) => i);
        for (let i = 0; i < 6; i++) {
          const [a, b] = [random.below(count), random.below(count)];
          [places[a], places[b]] = [places[b], places[a]];
        }
        const dense = random.chance(0.4);
        return dense ? { type: base, count } : { type: Datatype.indexedBlock(1, places, base), count: 1 };
      };
      const origin = new Uint8Array(count * base.extent) as TypedArray;
      const { from, to } = checkSides('get', origin, { origin: layout(), target: layout() });
      const { to: into } = checkSides('get', origin, { origin: layout(), target: layout() });
      const borders = [...new Set([random.below(count) + 1, random.below(count) + 1, count])].sort((a, b) => a - b);
      const ends = borders.map((border) => border * base.extent);
      const endOf = meetingAt(ends);
      const pieces = piecesOf('get', from, to, into, endOf);
      for (const [side, whole] of [
        ['from', from],
        ['to', to],
        ['into', into],
      ] as const) {
        expect(pieces.flatMap((piece) => absolute(piece[side]!))).toEqual(Array.from(elementOffsets(whole)));
      }
      for (const { to } of pieces) {
        const [low, high] = [to.at + to.side.low, to.at + to.side.high];
        expect(() => endOf(low, high)).not.toThrow();
      }
      expect(() => piecesOf('get', from, to, into, meetingAt(ends.map((end) => end - 1)))).toThrow(/in no region/);
    }
  });
});
