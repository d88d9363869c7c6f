import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Halves, startOf, step } from '../../bench/hpcc/random-stream.ts';

const PERIOD = 1317624576693539401n;
const MASK = (1n << 64n) - 1n;

/** The definition, in BigInt: multiply by x, and reduce. */
function next(value: bigint): bigint {
  return ((value << 1n) & MASK) ^ (value >> 63n === 1n ? 7n : 0n);
}

/** Multiplication of polynomials over GF(2) modulo x^64 + x^2 + x + 1, one bit at a time. */
function multiply(a: bigint, b: bigint): bigint {
  let product = 0n;
  for (let shifted = a, rest = b; rest !== 0n; rest >>= 1n, shifted = next(shifted)) {
    if (rest & 1n) product ^= shifted;
  }
  return product;
}

function power(exponent: bigint): bigint {
  let result = 1n;
  for (let base = 2n, rest = exponent; rest !== 0n; rest >>= 1n, base = multiply(base, base)) {
    if (rest & 1n) result = multiply(result, base);
  }
  return result;
}

function joined(value: Halves): bigint {
  return (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
}

describe('the random stream', () => {
  it('begins with the powers of two, and folds x^64 into 7', () => {
    const value = startOf(0);
    for (let i = 0n; i < 64n; i++) {
      expect(joined(value)).toBe(1n << i);
      step(value);
    }
    expect(joined(value)).toBe(7n);
  });

  it('steps as the definition in BigInt does', () => {
    const value = startOf(12345);
    let expected = joined(value);
    for (let i = 0; i < 10_000; i++) {
      step(value);
      expected = next(expected);
      if (joined(value) !== expected) expect(joined(value)).toBe(expected);
    }
    expect(joined(value)).toBe(expected);
  });

  it('begins anywhere where stepping from the beginning would arrive', () => {
    const value = startOf(0);
    for (let position = 0; position < 5000; position++) {
      if (joined(startOf(position)) !== joined(value)) expect([position, startOf(position)]).toEqual([position, value]);
      step(value);
    }
    expect(startOf(5000)).toEqual(value);
  });

  it('agrees with powers computed in BigInt', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (position) => {
        expect(joined(startOf(position))).toBe(power(BigInt(position)));
      }),
    );
  });

  it('continues where one piece ends and the next begins', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 2 ** 52, noNaN: true }).map(Math.floor),
        fc.integer({ min: 0, max: 100 }),
        (position, steps) => {
          const value = startOf(position);
          for (let i = 0; i < steps; i++) step(value);
          expect(value).toEqual(startOf(position + steps));
        },
      ),
    );
  });

  it('repeats after its period', () => {
    expect(power(PERIOD)).toBe(1n);
    const value = startOf(-1);
    step(value);
    expect(joined(value)).toBe(1n);
    expect(joined(startOf(-(2 ** 40)))).toBe(power(PERIOD - (1n << 40n)));
  });

  it('refuses positions that are no safe integers', () => {
    for (const position of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(() => startOf(position)).toThrow(RangeError);
    }
  });
});
