/** The table of operations, and that of the addon, agree. */
import { expect, test } from 'vitest';
import { opAllowed, TYPE_NAMES } from '../../src/datatype/base-types.ts';
import { Op } from '../../src/datatype/op.ts';
import { STRIPE_WORDS } from '../../src/transfer/loads/stripes.ts';
import { addon } from '../support/addon.ts';

const codes = Object.values(Op).map(({ code }) => code);

test('each operation has its name and a code of its own, without gaps, that fits into the signature of a call', () => {
  expect(Object.entries(Op).filter(([key, { name }]) => key !== name)).toEqual([]);
  expect(codes).toEqual(codes.map((_, i) => i));
  expect(codes.length).toBeLessThan(16);
});

test('the addon knows the same operations, on the same types', () => {
  const memory = new Float64Array(2);
  const stripes = new Int32Array(STRIPE_WORDS);
  const takes = (op: number, type: number): boolean => {
    try {
      addon().accumulateAt(op, type, memory, 0, undefined, memory, undefined, undefined, undefined, 0, stripes, 0, 1);
      return true;
    } catch (error) {
      expect(String(error)).toMatch(/is not defined on type|the operation must be/);
      return false;
    }
  };
  for (const [type, name] of TYPE_NAMES.entries()) {
    const here = codes.filter((code) => opAllowed(code, type));
    const native = Array.from({ length: 32 }, (_, code) => code).filter((code) => takes(code, type));
    expect(native, name).toEqual(here);
  }
});
