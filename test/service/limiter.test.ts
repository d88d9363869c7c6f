/** The sliding window of a rate limiter, keys that are too long, and options that are none. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { now } from '../../src/service/map/index.ts';
import type { RateLimiter } from '../../src/service/rate-limiter.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

endMembersAfterEach();

const SLIDING = 'sliding-window';

describe.skipIf(loadNative() === undefined)('a rate limiter with a sliding window', () => {
  it('allows as many calls as it says, over all members, and each key its own', async () => {
    const name = fresh();
    const services = [await join(name), await join(name)];
    const options = { rate: 5, per: 1e6, algorithm: SLIDING } as const;
    const [one, two] = [await services[0]!.limiter('l', options), await services[1]!.limiter('l', options)];
    expect([one.rate, one.per, one.algorithm]).toEqual([5, 1e6, SLIDING]);
    expect(one.take('a')).toEqual({ allowed: true, remaining: 4, retryAfter: 0 });
    expect(two.take('a', 3)).toEqual({ allowed: true, remaining: 1, retryAfter: 0 });
    // What is refused takes nothing.
    for (let i = 0; i < 3; i++) expect(two.take('a', 2)).toMatchObject({ allowed: false, remaining: 1 });
    expect(one.take('a')).toMatchObject({ allowed: true, remaining: 0 });
    const { allowed, retryAfter } = two.take('a');
    expect(allowed).toBe(false);
    // Until the first one is out of the window, not a fifth of it as with a bucket.
    expect(retryAfter).toBeLessThanOrEqual(1e6);
    expect(retryAfter).toBeGreaterThan(800_000);
    expect(two.take('b').remaining).toBe(4);
    one.reset('a');
    expect(two.take('a').remaining).toBe(4);
    await services[0]!.leave();
    expect(() => one.take('a')).toThrow(/^RateLimiter\.take: this member/);
  });

  it('has no window with more calls than the rate, wherever it begins', async () => {
    const name = fresh();
    const [rate, per] = [20, 100];
    const limiters: RateLimiter[] = [];
    for (let i = 0; i < 3; i++) limiters.push(await (await join(name)).limiter('l', { rate, per, algorithm: SLIDING }));
    const taken: { readonly before: number; readonly after: number }[] = [];
    for (let i = 0; taken.length < 6 * rate; i++) {
      const before = now();
      const { allowed } = limiters[i % 3]!.take('k');
      if (allowed) taken.push({ before, after: now() });
      // Calls of bursts, and calls between them.
      if (i % 50 === 49) await sleep(i % 7);
    }
    for (let i = rate; i < taken.length; i++)
      expect(taken[i]!.after - taken[i - rate]!.before).toBeGreaterThanOrEqual(per);
  });

  it('says when a call of its cost is allowed', async () => {
    const limiter = await (await join(fresh())).limiter('l', { rate: 4, per: 60, algorithm: SLIDING });
    limiter.take('k', 3);
    const refused = limiter.take('k', 3);
    expect(refused).toMatchObject({ allowed: false, remaining: 1 });
    await sleep(Math.ceil(refused.retryAfter) + 1);
    expect(limiter.take('k', 3).allowed).toBe(true);
  });

  it('is another one than a token bucket, and refuses rates that its memory has no room for', async () => {
    const service = await join(fresh());
    await service.limiter('l', { rate: 5, per: 1000 });
    await expect(service.limiter('l', { rate: 5, per: 1000, algorithm: SLIDING })).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(/a limiter with token-bucket.*asks for sliding-window/),
    });
    const most = { rate: 10_000, per: 1000, algorithm: SLIDING } as const;
    const full = await service.limiter('most', most);
    expect(full.take('k', 10_000)).toEqual({ allowed: true, remaining: 0, retryAfter: 0 });
    expect(full.take('k').allowed).toBe(false);
    await expect(service.limiter('x', { ...most, rate: 10_001 })).rejects.toThrow(/at most 10000, not 10001/);
    await expect(service.limiter('x', { ...most, bytes: 1 << 20 })).rejects.toThrow(
      /at most \d+, not 10000, with 1048576 bytes; give more `bytes`/,
    );
    for (const algorithm of ['sliding', 5, null])
      await expect(service.limiter('x', { ...most, algorithm: algorithm as never })).rejects.toThrow(
        /algorithm must be "token-bucket" or "sliding-window", not/,
      );
  });
});

describe.skipIf(loadNative() === undefined)('a key of a rate limiter', () => {
  it.each(['token-bucket', SLIDING] as const)('that is too long is refused by its limit (%s)', async (algorithm) => {
    const limiter = await (await join(fresh())).limiter('l', { rate: 5, per: 1000, algorithm });
    let message = '';
    for (const call of ['take', 'reset'] as const) {
      expect(() => limiter[call]('k'.repeat(100_000))).toThrow(
        expect.objectContaining({ name: 'RangeError', code: 'ERR_SIZE' }),
      );
      try {
        limiter[call]('k'.repeat(100_000));
      } catch (error) {
        ({ message } = error as Error);
      }
      expect(message).toMatch(
        new RegExp(`^RateLimiter\\.${call}: the key .* has 100000 bytes, keys of the limiter "l"`),
      );
      expect(message).not.toContain('longest');
    }
    const most = Number(/ have (\d+) at most; give a shorter one/.exec(message)![1]);
    expect(most).toBeGreaterThanOrEqual(1024);
    // The limit is that of calls of all kinds.
    for (const key of ['k'.repeat(most), 'κ'.repeat(most / 2)])
      for (let i = 0; i < 6; i++) expect(limiter.take(key).allowed).toBe(i < 5);
    for (const key of ['k'.repeat(most + 1), `${'k'.repeat(most / 2)}κ`])
      expect(() => limiter.take(key)).toThrow(/^RateLimiter\.take/);
  });
});
