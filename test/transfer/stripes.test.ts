import { describe, expect, test } from 'vitest';
import { checkSides } from '../../src/datatype/layout.ts';
import { Op } from '../../src/datatype/op.ts';
import { RankFailedError } from '../../src/errors.ts';
import { loadNative } from '../../src/native.ts';
import { accumulateElements } from '../../src/transfer/loads/accumulate.ts';
import { RemotePart } from '../../src/transfer/loads/remote-part.ts';
import { STRIPE_WORDS, STRIPES, Stripes } from '../../src/transfer/loads/stripes.ts';

const STRIPE_OF_RANK_3 = 4;

/** A job in which rank 3 is found to have failed when it has been asked for so many times. */
function jobWhereRank3Fails(after: number) {
  let asked = 0;
  return {
    rank: 0,
    schedYield: undefined,
    findFailure: () => (++asked < after ? undefined : new RankFailedError(3, 'rank 3 was killed')),
    asked: () => asked,
  };
}

describe('a stripe that a killed rank has kept', () => {
  test('ends the wait for it with that failure, and is left as it is', () => {
    const words = new Int32Array(STRIPE_WORDS);
    words[16] = STRIPE_OF_RANK_3;
    const job = jobWhereRank3Fails(2);
    const stripes = new Stripes(words, 0, job);
    expect(() => stripes.acquire(5000)).toThrow(expect.objectContaining({ code: 'ERR_RMA_RANK_FAILED', rank: 3 }));
    expect([job.asked(), words[16]]).toEqual([2, STRIPE_OF_RANK_3]);
    // The others can be had.
    const other = stripes.acquire(0);
    expect(words[other]).toBe(1);
    stripes.release(other);
    expect(words[other]).toBe(0);
  });

  test.each([['in JavaScript', undefined] as const, ['in native code', loadNative()] as const])(
    'ends an accumulate of many elements, %s',
    (_, kernels) => {
      const words = new Int32Array(STRIPE_WORDS);
      words[16] = STRIPE_OF_RANK_3;
      const part = new RemotePart(new SharedArrayBuffer(16_384), 0, 16_384);
      const origin = new Float64Array(1024).fill(1);
      const { from, to } = checkSides('accumulate', origin, undefined);
      const stripes = new Stripes(words, 0, jobWhereRank3Fails(1));
      expect(() =>
        accumulateElements(part, 0, to, origin, from, Op.SUM.code, undefined, undefined, stripes, kernels),
      ).toThrow(expect.objectContaining({ code: 'ERR_RMA_RANK_FAILED' }));
      // What came before is done, what belongs to the stripe is not begun, and no other stripe is kept.
      expect([part.f64[511], part.f64[512]]).toEqual([1, 0]);
      expect([...words].filter((word) => word !== 0)).toEqual([STRIPE_OF_RANK_3]);
    },
  );
});

test('an element has one stripe, by whatever address its memory is reached', () => {
  const words = new Int32Array(STRIPE_WORDS);
  const job = jobWhereRank3Fails(1);
  const address = 140_000_000_004_096;
  const byOffset = new Stripes(words, address, job);
  const byAddress = new Stripes(words, 0, job);
  for (const offset of [0, 4095, 4096, 4096 * STRIPES + 8, 2 ** 31, 2 ** 33 + 8192]) {
    const stripe = byOffset.acquire(offset);
    byOffset.release(stripe);
    expect(byAddress.acquire(address + offset)).toBe(stripe);
    byAddress.release(stripe);
  }
});
