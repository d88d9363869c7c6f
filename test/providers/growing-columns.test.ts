/** Columns of rings that grow. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { regrown } from '../../src/providers/core/growing-columns.ts';

test('what a ring holds is at the place of its count in the larger column, whatever the counts are', () => {
  const cases = fc.record({
    bits: fc.nat(5),
    more: fc.integer({ min: 1, max: 3 }),
    // Rings count in 32 bits with a sign, or on beyond them.
    head: fc.oneof(fc.nat(100), fc.integer({ min: 2 ** 31 - 40, max: 2 ** 31 + 40 }), fc.constant(-(2 ** 31))),
    held: fc.nat(32),
    width: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(cases, ({ bits, more, head, held, width }) => {
      const before = 2 ** bits;
      const after = 2 ** (bits + more);
      const n = Math.min(held, before);
      const from = new Float64Array(before * width);
      const at = (count: number, slots: number, i: number): number => (count & (slots - 1)) * width + i;
      for (let k = 0; k < n; k++) for (let i = 0; i < width; i++) from[at(head + k, before, i)] = 10 * k + i + 1;
      const to = regrown(from, new Float64Array(after * width), head, n, width);
      expect(to.length).toBe(after * width);
      for (let k = 0; k < n; k++)
        for (let i = 0; i < width; i++) expect(to[at(head + k, after, i)]).toBe(10 * k + i + 1);
      expect(to.filter((entry) => entry !== 0)).toHaveLength(n * width);
    }),
  );
});
