/**
 * Copies whose sink is close behind the source within its page: whichever way they take, the same bytes arrive, and no
 * others change.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { copiedAliased, copyInBlocks } from '../../src/datatype/aliased-copy.ts';
import { copyLong } from '../../src/datatype/copy.ts';
import { loadNative } from '../../src/native.ts';

const kernels = loadNative();
const TYPES = [Uint8Array, Int16Array, Int32Array, Float64Array] as const;
const BYTES = 72 << 10;

/** Random bytes from a seed. */
function filled(seed: number): Uint8Array<ArrayBuffer> {
  const words = new Int32Array(BYTES / 4);
  for (let i = 0, x = seed | 1; i < words.length; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) | 0;
    words[i] = x ^ (x >>> 15);
  }
  return new Uint8Array(words.buffer);
}

const copies = fc.record({
  type: fc.constantFrom(...TYPES),
  /** Elements. */
  from: fc.nat(600),
  to: fc.nat(600),
  n: fc.oneof(fc.nat(64), fc.integer({ min: 500, max: 2048 }), fc.integer({ min: 2000, max: 8192 })),
  seed: fc.integer(),
});

describe.skipIf(kernels === undefined)('a long copy', () => {
  test.each([
    ['by copyLong', copyLong],
    [
      'in blocks',
      (to: Uint8Array, toAt: number, from: Uint8Array, fromAt: number, n: number, size: number) => {
        copyInBlocks(to, toAt * size, from, fromAt * size, n * size, kernels!);
      },
    ],
  ])('%s brings all bytes to their places and touches no other', (_, copy) => {
    fc.assert(
      fc.property(copies, ({ type, from, to, n, seed }) => {
        const source = filled(seed);
        const sink = filled(~seed);
        const expected = sink.slice();
        const size = type.BYTES_PER_ELEMENT;
        expected.set(source.subarray(from * size, (from + n) * size), to * size);
        copy(new type(sink.buffer) as never, to, new type(source.buffer) as never, from, n, size, kernels);
        expect(Buffer.compare(sink, expected)).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test('is left to others where it is short, or its sides are not close to each other', () => {
    const source = filled(1);
    const sink = filled(2);
    const before = sink.slice();
    const begin = (array: Uint8Array): number => kernels!.addressOf(array) % 4096;
    const apart = (behind: number): number => (8192 + behind + begin(source) - begin(sink)) % 4096;
    expect(copiedAliased(sink, apart(16), source, 0, 4095, kernels!)).toBe(false);
    for (const behind of [0, 32, 64, 1024, 4080])
      expect(copiedAliased(sink, apart(behind), source, 0, 8192, kernels!)).toBe(false);
    expect(Buffer.compare(sink, before)).toBe(0);
  });
});
