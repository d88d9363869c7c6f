/**
 * What Donaldson, Hill and Skillicorn measured on ten megabits a second comes out without fitting: the slots from which
 * on times scatter no more, and times above them. A minute where other work is done; not in the gate.
 */
import { describe, expect, test } from 'vitest';
import { tcpVariants } from '../../src/providers/modelled/ethernet/tcp-variants.ts';
import { calmSlot, meanShift } from '../support/paced-shift.ts';

/** 25,000 words of 4 bytes. */
const BYTES = 100_000;
const SLOTS = Array.from({ length: 19 }, (_, i) => 1000 + 50 * i);
const SEEDS = 10;

test('the smallest slots without scatter are those of the paper, within 150 microseconds, and grow with p', () => {
  const found = [2, 4, 6, 8].map((processors) => calmSlot({ processors, bytes: BYTES }, SLOTS, SEEDS, 0.02)!);
  for (const [i, paper] of [1200, 1450, 1650, 1700].entries())
    expect(Math.abs(found[i] - paper), `${found}`).toBeLessThanOrEqual(150);
  expect(found).toEqual(found.toSorted((a, b) => a - b));
});

test.each([
  ['bsd', tcpVariants.bsd],
  ['the paper’s words', tcpVariants.timer],
])('other kinds of acknowledgements hardly move them: %s', (_, tcp) => {
  const found = [2, 4, 8].map((processors) => calmSlot({ processors, bytes: BYTES, tcp }, SLOTS, SEEDS, 0.05)!);
  for (const [i, paper] of [1200, 1450, 1700].entries()) {
    expect(found[i], `${found}`).toBeGreaterThanOrEqual(1000);
    expect(found[i], `${found}`).toBeLessThanOrEqual(paper + 150);
  }
});

describe('beyond those slots all takes as long as its slots do', () => {
  test.each([
    [2, 1250, 178],
    [2, 1500, 213],
    [4, 1500, 425],
    [4, 1700, 481],
    [8, 1700, 966],
  ])('p = %i, %i µs', (processors, slot, expected) => {
    const { mean, deviation } = meanShift({ processors, bytes: BYTES, slot }, SEEDS);
    expect(Math.abs(mean - expected)).toBeLessThan(0.01 * expected);
    expect(deviation).toBeLessThan(0.01 * mean);
  });
});

describe('below them the means and their hump are those of an independent simulation', () => {
  test.each([
    [4, 0, 530],
    [4, 1000, 632],
    [6, 1000, 993],
    [8, 0, 1022],
    [8, 1000, 1169],
  ])('p = %i, %i µs', (processors, slot, expected) => {
    const { mean, deviation } = meanShift({ processors, bytes: BYTES, slot }, 2 * SEEDS);
    expect(Math.abs(mean - expected)).toBeLessThan(0.2 * expected);
    expect(deviation).toBeGreaterThan(0.05 * mean);
  });

  test('which is that of acknowledgements on the bus, and there is none where data carry them', () => {
    const high = (processors: number, tcp = {}): number =>
      Math.max(...[800, 1000, 1200].map((slot) => meanShift({ processors, bytes: BYTES, slot, tcp }, 2 * SEEDS).mean));
    for (const processors of [4, 8]) expect(high(processors)).toBeGreaterThan(1.1 * high(processors, { silent: 1 }));
    expect(high(2)).toBeLessThan(1.25 * 178);
  });
});
