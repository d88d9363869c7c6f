/**
 * What is moved keeps its bits. The language allows an engine to change those of a NaN that passes through a number:
 * singles do change, so they never do; doubles do pass through numbers where that is faster, and this looks, in the
 * interpreter's code and in the compilers', whether they come through.
 */
import { expect, test } from 'vitest';
import { sideAt } from '../../src/datatype/layout.ts';
import { OpCode } from '../../src/datatype/op.ts';
import { copyScalar, placeOf } from '../../src/datatype/scalars.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { accumulateElements, updateDouble } from '../../src/transfer/loads/accumulate.ts';
import { loadF64, RemotePart, storeF64 } from '../../src/transfer/loads/remote-part.ts';
import { STRIPE_WORDS, Stripes } from '../../src/transfer/loads/stripes.ts';

/** Enough for every compiler of the engine. */
const ROUNDS = 60_000;

/** Signalling and quiet NaNs, the ones that V8 uses for holes and for undefined, and numbers. */
const PATTERNS = [
  0x7ff0000000000001n,
  0xfff7fffffff7ffffn,
  0xfff6fffffff6ffffn,
  0xfff4beefdeadbeefn,
  0xfff80000abcdef01n,
  0x7ff8000000000000n,
  0x8000000000000000n,
  0x3ff0000000000000n,
];
const A = PATTERNS;
const B = [...PATTERNS.slice(3), ...PATTERNS.slice(0, 3)];

const stripes = new Stripes(new Int32Array(new SharedArrayBuffer(4 * STRIPE_WORDS)), 0, {
  rank: 0,
  findFailure: () => undefined,
});

/** The same for a part whose bits are `A` before each round: what `move` gives back, and what is left in the part. */
function everyRound(move: (part: RemotePart, origin: Float64Array, result: Float64Array) => void): Set<string> {
  const part = new RemotePart(new SharedArrayBuffer(64), 0, 64);
  const origin = new BigUint64Array(B);
  const result = new BigUint64Array(8);
  const [from, to] = [origin, result].map(({ buffer }) => new Float64Array(buffer));
  const found = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    if (round % 8 === 0) part.u64.set(A);
    move(part, from, to);
    if (round % 8 !== 7) continue;
    if (part.u64.some((bits, i) => bits !== A[i] && bits !== B[i])) found.add(`left: ${part.u64.join()}`);
    if (result.some((bits, i) => bits !== A[i] && bits !== B[i])) found.add(`fetched: ${result.join()}`);
  }
  found.add(`left: ${part.u64.join()}`).add(`fetched: ${result.join()}`);
  return found;
}

test('doubles that are put and got keep their bits', () => {
  const puts = everyRound((part, origin, result) => {
    loadF64(part.f64, 0, result, result.length, undefined);
    storeF64(part.f64, 0, origin, origin.length, undefined);
  });
  expect(puts).toEqual(new Set([`left: ${B.join()}`, `fetched: ${B.join()}`]));
});

test('doubles that are swapped one by one keep their bits', () => {
  const swaps = everyRound((part, origin, result) => {
    for (let i = 0; i < 8; i++) result[i] = updateDouble(part.f64, i, 8 * i, OpCode.REPLACE, origin[i], stripes);
  });
  expect(swaps).toEqual(new Set([`left: ${B.join()}`, `fetched: ${B.join()}`]));
});

test('doubles that are read atomically keep their bits, here and there', () => {
  const reads = everyRound((part, _, result) => {
    for (let i = 0; i < 8; i++) result[i] = updateDouble(part.f64, i, 8 * i, OpCode.NO_OP, 0, stripes);
  });
  expect(reads).toEqual(new Set([`left: ${A.join()}`, `fetched: ${A.join()}`]));
});

test('singles that are swapped, read or fetched keep their bits', () => {
  const there = [0xff98abcd, 0x7f800001, 0xffd8abcd];
  const comes = [0x7fa00000, 0xff800001, 0xffbfffff];
  const side = sideAt(TypeCode.FLOAT32, 3, undefined);
  const part = new RemotePart(new SharedArrayBuffer(16), 0, 12);
  const origin = new Float32Array(Uint32Array.from(comes).buffer);
  const found = new Uint32Array(3);
  const result = new Float32Array(found.buffer);
  for (const op of [OpCode.NO_OP, OpCode.REPLACE, OpCode.SUM]) {
    for (let round = 0; round < 5000; round++) {
      part.u32.set(there);
      accumulateElements(part, 0, side, origin, side, op, result, side, stripes, undefined);
      if (op === OpCode.SUM) expect([...found]).toEqual(there);
      else expect([[...found], [...part.u32]]).toEqual([there, op === OpCode.NO_OP ? there : comes]);
    }
  }
});

test.each([
  [TypeCode.UINT8, 1],
  [TypeCode.INT16, 2],
  [TypeCode.FLOAT32, 4],
  [TypeCode.FLOAT64, 8],
])('a scalar of type %i is copied as %i bytes', (type, bytes) => {
  const from = new Uint8Array(24).fill(7);
  const to = new Uint8Array(24);
  copyScalar(placeOf(to), 3, placeOf(from), 5, type);
  expect([...to]).toEqual(Array.from({ length: 24 }, (_, i) => (i >= 3 && i < 3 + bytes ? 7 : 0)));
});
