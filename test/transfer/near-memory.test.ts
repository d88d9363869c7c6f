/** What a processor does in memory that others reach by requests. */
import { describe, expect, it } from 'vitest';
import { RemotePart } from '../../src/transfer/loads/remote-part.ts';
import { NearMemory } from '../../src/transfer/requests/near-memory.ts';

const RKEY = 77;
/** As a device counts: nothing to do with places in the part. */
const ADDRESS = 2 ** 40 + 8;

/** 64 bytes, of which the first `skew` are before the part. */
function makeNear(skew = 0) {
  const buffer = new ArrayBuffer(64);
  const part = new RemotePart(buffer, skew, 64 - skew);
  const asked: number[] = [];
  const near = new NearMemory((rank) => {
    asked.push(rank);
    if (rank === 3) throw new Error('rank 3 has died');
    return rank === 1 ? [{ rkey: RKEY, address: ADDRESS, part }] : [];
  });
  const answers: [number, number][] = [];
  const answer = (lo: number, hi: number): void => void answers.push([lo, hi]);
  return { buffer, near, asked, answers, answer, words: new BigInt64Array(buffer) };
}

describe('near memory', () => {
  it('adds to both halves of a word, and answers what was there', () => {
    const { near, words, answers, answer } = makeNear();
    words[2] = -1n;
    expect(near.fetchAdd(1, RKEY, ADDRESS + 16, 2, 0, answer)).toBe(true);
    expect(words[2]).toBe(1n);
    expect(near.fetchAdd(1, RKEY, ADDRESS + 16, -1 >>> 0, 5, answer)).toBe(true);
    expect(words[2]).toBe(0x6_0000_0000n);
    expect(answers).toEqual([
      [0xffff_ffff, 0xffff_ffff],
      [1, 0],
    ]);
  });

  it('swaps a word that is as expected, and answers nothing if it is not', () => {
    const { near, words, answers, answer } = makeNear();
    words[0] = 0x1_0000_0002n;
    expect(near.swapped(1, RKEY, ADDRESS, 2, 0, 9, 9, answer)).toBe(false);
    expect(answers).toEqual([]);
    expect(near.swapped(1, RKEY, ADDRESS, 2, 1, 0xffff_fffe, 0xffff_ffff, answer)).toBe(true);
    expect(words[0]).toBe(-2n);
    expect(answers).toEqual([[2, 1]]);
  });

  it.each([0, 3])('reads and writes the bytes of a part that begins %i bytes behind a multiple of 8', (skew) => {
    const { near, buffer } = makeNear(skew);
    const here = Uint8Array.of(0, 1, 2, 3, 4);
    expect(near.write(1, RKEY, ADDRESS + 10, 3, here.buffer, 2)).toBe(true);
    expect([...new Uint8Array(buffer, skew + 9, 5)]).toEqual([0, 2, 3, 4, 0]);
    const back = new Uint8Array(6);
    expect(near.read(1, RKEY, ADDRESS + 9, 5, back.buffer, 1)).toBe(true);
    expect([...back]).toEqual([0, 0, 2, 3, 4, 0]);
  });

  it('leaves to requests what it does not reach', () => {
    const { near, buffer, asked, answers, answer } = makeNear();
    const bytes = new ArrayBuffer(16);
    // Another key, a rank of another host, one that is gone, and places around the part.
    expect(near.fetchAdd(1, RKEY + 1, ADDRESS, 1, 0, answer)).toBe(false);
    expect(near.fetchAdd(2, RKEY, ADDRESS, 1, 0, answer)).toBe(false);
    expect(near.fetchAdd(3, RKEY, ADDRESS, 1, 0, answer)).toBe(false);
    expect(near.fetchAdd(1, RKEY, ADDRESS + 64, 1, 0, answer)).toBe(false);
    expect(near.swapped(1, RKEY, ADDRESS - 8, 0, 0, 1, 0, answer)).toBe(false);
    expect(near.read(1, RKEY, ADDRESS + 56, 16, bytes, 0)).toBe(false);
    expect(near.write(1, RKEY, ADDRESS + 56, 16, bytes, 0)).toBe(false);
    expect(near.partOf(1, { rkey: RKEY + 1, address: ADDRESS })).toBeUndefined();
    expect([...new Uint8Array(buffer)].every((byte) => byte === 0)).toBe(true);
    expect(answers).toEqual([]);
    near.fetchAdd(3, RKEY, ADDRESS, 1, 0, answer);
    expect(asked.sort()).toEqual([1, 2, 3]);
  });

  it('leaves to requests what was transferred', () => {
    const { near, buffer, answer } = makeNear();
    expect(near.partOf(1, { rkey: RKEY, address: ADDRESS })).toBeDefined();
    structuredClone(buffer, { transfer: [buffer] });
    expect(near.partOf(1, { rkey: RKEY, address: ADDRESS })).toBeUndefined();
    expect(near.fetchAdd(1, RKEY, ADDRESS, 1, 0, answer)).toBe(false);
  });
});
