/**
 * What accumulates move must arrive bit by bit, also what no arithmetic would leave as it is: NaNs, quiet and
 * signalling, with whatever payload.
 */
import assert from 'node:assert/strict';
import { Assert, Datatype, Op, type Window } from 'onesided';
import type { Trial } from './requirement.ts';

/** 32-bit words of the bits that lie at the target and that come from the origin, in turn. */
interface Sample {
  readonly type: Datatype;
  readonly there: readonly number[];
  readonly comes: readonly number[];
  /**
   * An array over these words whose elements are of the type, if there is one: else the words go as bytes, with a
   * layout.
   */
  readonly over?: (words: Uint32Array) => Float32Array | Float64Array;
}

/** Little-endian. The payload of V8's hole is among the doubles. */
const SAMPLES: readonly Sample[] = [
  {
    type: Datatype.FLOAT32,
    there: [0xff98abcd, 0x7f800001, 0xffd8abcd, 0x80000000],
    comes: [0x7fa00000, 0xff800001, 0x7fc12345, 0xffbfffff],
    over: ({ buffer, length }) => new Float32Array(buffer, 0, length),
  },
  {
    type: Datatype.FLOAT64,
    there: [1, 0x7ff00000, 0xfff7ffff, 0xfff7ffff, 0xabcd, 0xfff80000, 0, 0x80000000],
    comes: [0xdead, 0xfff4beef, 0xfff6ffff, 0xfff6ffff, 3, 0x7ff00000, 7, 0x7ff80000],
    over: ({ buffer, length }) => new Float64Array(buffer, 0, length / 2),
  },
  { type: Datatype.FLOAT_INT, there: [0xff98abcd, 5, 0x7f800001, 6], comes: [0x7fa00000, 7, 0xff800001, 8] },
  {
    type: Datatype.DOUBLE_INT,
    there: [1, 0x7ff00000, 9, 0, 0xfff7ffff, 0xfff7ffff, 10, 0],
    comes: [0xdead, 0xfff4beef, 11, 0, 2, 0xfff00000, 12, 0],
  },
];

/** Elements of one call: alone, some in JavaScript, many in native code. */
const COUNTS = [1, 3, 40];

function wordsOf(bits: readonly number[], words: number): Uint32Array {
  return Uint32Array.from({ length: words }, (_, i) => bits[i % bits.length]);
}

/** Accumulates by each rank to its own part and to the next one's; `win` has 640 bytes. */
export async function keepsBits(t: Trial, win: Window<Uint8Array>): Promise<void> {
  const part = new Uint32Array(win.local.buffer, win.local.byteOffset, win.local.length / 4);
  for (const { type, there, comes, over } of SAMPLES) {
    for (const count of COUNTS) {
      const words = (count * type.extent) / 4;
      const before = wordsOf(there, words);
      const given = wordsOf(comes, words);
      const buffer = (bits: Uint32Array): Float32Array | Float64Array | Uint8Array =>
        over === undefined ? new Uint8Array(bits.buffer) : over(bits);
      const layout = { type, count };
      const layouts = over === undefined ? { origin: layout, target: layout } : undefined;
      const fetches = over === undefined ? { ...layouts, result: layout } : undefined;
      const arithmetic = over === undefined ? Op.MINLOC : Op.SUM;
      for (const target of [t.next, t.rank]) {
        const origin = buffer(given.slice());
        for (const op of [Op.NO_OP, Op.REPLACE, arithmetic]) {
          for (const call of ['accumulate', 'getAccumulate', 'fetchAndOp'] as const) {
            if (call === 'fetchAndOp' && (count > 1 || over === undefined)) continue;
            if (call === 'accumulate' && op === arithmetic) continue;
            const what = `${call} of ${count} × ${type} with ${op} at rank ${target}`;
            part.set(before);
            await win.fence(Assert.NO_PRECEDE);
            const found = new Uint32Array(words);
            const result = buffer(found);
            if (call === 'accumulate') win.accumulate(origin, target, 0, op, layouts);
            else if (call === 'getAccumulate') win.getAccumulate(origin, result, target, 0, op, fetches);
            else win.fetchAndOp(origin, result, target, 0, op as typeof Op.SUM);
            await win.fence(Assert.NO_SUCCEED);
            if (call !== 'accumulate') assert.deepEqual(data(found, type), data(before, type), `fetched by ${what}`);
            if (op === arithmetic) continue;
            const left = op === Op.REPLACE ? given : before;
            assert.deepEqual(data(part.subarray(0, words), type), data(left, type), `left by ${what}`);
          }
        }
        if (over !== undefined) continue;
        // A NaN that comes wins over a number.
        part.fill(0);
        await win.fence(Assert.NO_PRECEDE);
        win.accumulate(origin, target, 0, Op.MAXLOC, layouts);
        await win.fence(Assert.NO_SUCCEED);
        assert.deepEqual(data(part.subarray(0, words), type), data(given, type), `MAXLOC of ${count} × ${type}`);
      }
    }
  }
}

/** The words of elements, without those that are padding. */
function data(words: Uint32Array, type: Datatype): string[] {
  const each = type.extent / 4;
  const used = type.size / 4;
  return [...words].filter((_, i) => i % each < used).map((word) => word.toString(16));
}
