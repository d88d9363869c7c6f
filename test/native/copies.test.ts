import { describe, expect, it } from 'vitest';
import { addon } from '../support/addon.ts';

const native = addon();
const numbers = (count: number): Uint8Array => Uint8Array.from({ length: count }, (_, i) => i);

describe('a block that overlaps its origin is copied as if by way of other memory', () => {
  const blocks = [1, 2, 4, 8, 16, 24, 32, 48, 64, 100, 128, 1000];
  it.each(blocks)('%i bytes', (block) => {
    for (const shift of [1, Math.ceil(block / 2)]) {
      for (const [from, to] of [
        [0, shift],
        [shift, 0],
      ] as const) {
        const wanted = numbers(2 * block).copyWithin(to, from, from + block);
        const nested = numbers(2 * block);
        native.copyPlan.set([block, 1, 0, 0, 1, 0, 0, 1, 0, 0, to, from]);
        native.copyNest(nested, nested);
        expect(nested).toEqual(wanted);
        const listed = numbers(2 * block);
        native.copyBlocks(listed, to, listed, from, Int32Array.of(0), 1, block, true);
        expect(listed).toEqual(wanted);
      }
    }
  });
});

describe('pieces of another process', () => {
  const remote = numbers(16);
  const address = native.addressOf(remote);

  it('may be empty, all of them or some', () => {
    const local = new Uint8Array(16);
    native.processReadSegments(process.pid, address, local, Float64Array.of(0, 0, 0), 1);
    native.processReadSegments(process.pid, address, local, Float64Array.of(0, 0, 0, 4, 4, 0), 2);
    expect(local.every((byte) => byte === 0)).toBe(true);
    const segments = Float64Array.of(0, 0, 0, 1, 2, 3, 5, 0, 0, 8, 9, 2, 16, 16, 0);
    native.processReadSegments(process.pid, address, local, segments, 5);
    expect([...local]).toEqual([0, 2, 3, 4, 0, 0, 0, 0, 9, 10, 0, 0, 0, 0, 0, 0]);
    native.processWriteSegments(process.pid, native.addressOf(local), remote, Float64Array.of(0, 0, 0), 1);
    expect([...local]).toEqual([0, 2, 3, 4, 0, 0, 0, 0, 9, 10, 0, 0, 0, 0, 0, 0]);
  });

  it('that are not mapped there are refused', () => {
    const local = new Uint8Array(16);
    for (const segments of [Float64Array.of(0, 0, 8), Float64Array.of(0, 0, 0, 0, 0, 8)]) {
      expect(() => native.processReadSegments(process.pid, 4096, local, segments, segments.length / 3)).toThrow(
        expect.objectContaining({ code: 'EFAULT' }),
      );
    }
  });
});
