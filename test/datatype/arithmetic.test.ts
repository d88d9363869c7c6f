import { describe, expect, test } from 'vitest';
import { reduceInto } from '../../src/datatype/arithmetic.ts';
import { opAllowed, typeCodeOf } from '../../src/datatype/base-types.ts';
import { Op } from '../../src/datatype/op.ts';

describe('operations on values', () => {
  test('integers wrap around at the width of their type, clamped bytes too', () => {
    const cases: readonly [Op, ArrayLike<number> & object, ArrayLike<number> & object, number[]][] = [
      [Op.SUM, Int8Array.of(127, -128), Int8Array.of(1, -1), [-128, 127]],
      [Op.SUM, Uint32Array.of(2 ** 32 - 1), Uint32Array.of(2), [1]],
      [Op.PROD, Int32Array.of(2 ** 31 - 1), Int32Array.of(2 ** 31 - 1), [1]],
      [Op.PROD, Uint32Array.of(0xffffffff), Uint32Array.of(0xffffffff), [1]],
      [Op.SUM, Uint8ClampedArray.of(200), Uint8ClampedArray.of(100), [44]],
      [Op.BAND, Uint32Array.of(0xf0000000), Uint32Array.of(0xffffffff), [0xf0000000]],
    ];
    for (const [op, target, origin, expected] of cases) {
      reduceInto(op.code, target as Int8Array, origin as Int8Array);
      expect([...(target as Int8Array)]).toEqual(expected);
    }
    const wide = BigInt64Array.of(2n ** 62n);
    reduceInto(Op.PROD.code, wide, BigInt64Array.of(2n));
    expect(wide[0]).toBe(-(2n ** 63n));
  });

  test('MIN and MAX are NaN if either side is, and tell the zeros apart', () => {
    const min = Float64Array.of(Number.NaN, 1, 0, -0);
    reduceInto(Op.MIN.code, min, Float64Array.of(1, Number.NaN, -0, 0));
    expect([...min]).toEqual([Number.NaN, Number.NaN, -0, -0]);
    const max = Float32Array.of(Number.NaN, 1, 0, -0);
    reduceInto(Op.MAX.code, max, Float32Array.of(1, Number.NaN, -0, 0));
    expect([...max]).toEqual([Number.NaN, Number.NaN, 0, 0]);
  });

  test('bits and truth values are not for floats', () => {
    for (const op of [Op.BAND, Op.BOR, Op.BXOR, Op.LAND, Op.LOR, Op.LXOR]) {
      expect(opAllowed(op.code, typeCodeOf(new Float64Array(1)))).toBe(false);
      expect(opAllowed(op.code, typeCodeOf(new Float32Array(1)))).toBe(false);
      expect(opAllowed(op.code, typeCodeOf(new Uint8Array(1)))).toBe(true);
    }
  });

  test('operations cannot be changed', () => {
    expect(() => Object.assign(Op.SUM, { code: 5 })).toThrow(TypeError);
    expect(() => Object.assign(Op, { SUM: Op.PROD })).toThrow(TypeError);
    expect(String(Op.SUM)).toBe('Op.SUM');
  });
});
