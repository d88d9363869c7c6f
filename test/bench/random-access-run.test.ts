/** RandomAccess as a user runs it, on small tables. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Result, resultOf } from '../../bench/hpcc/result.ts';
import { wholeNumber } from '../../bench/options.ts';
import { onesided } from '../launcher/command.ts';
import { casesOf } from '../support/gate.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/bench/hpcc/random-access.js', import.meta.url));

async function randomAccess(
  ranks: number,
  kind: string,
  ...args: string[]
): Promise<{ result: Result; stdout: string; stderr: string; code: number | null }> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-test-'));
  try {
    const file = join(folder, 'result.json');
    const launch = ['run', '-n', String(ranks), '--ranks', kind, '--timeout', '150', PROGRAM, '--', ...args];
    const { code, stdout, stderr } = await onesided(...launch, '--json', file);
    if (!existsSync(file)) throw new Error(`exit code ${code} of onesided ${launch.join(' ')}\n${stderr}${stdout}`);
    return { result: JSON.parse(readFileSync(file, 'utf8')) as Result, stdout, stderr, code };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const ALL_JOBS = [
  [1, 'processes'],
  [2, 'processes'],
  [3, 'processes'],
  [2, 'threads'],
] as const;
const JOBS = casesOf<(typeof ALL_JOBS)[number]>(ALL_JOBS, ([ranks]) => ranks === 2);

const VARIANTS = casesOf(['aggregated', 'accumulate', 'fetch-and-add'], (variant) => variant === 'accumulate');

describe.each(VARIANTS)('RandomAccess, %s', (variant) => {
  it.each(JOBS.filter(([, kind]) => RANK_KINDS.includes(kind)))(
    'loses no update on %i ranks that are %s',
    async (ranks, kind) => {
      const { result, stdout, code, stderr } = await randomAccess(ranks, kind, '--variant', variant, '--words', '2^14');
      expect(stderr).toBe('');
      expect(result).toMatchObject({
        variant,
        ranks,
        words: 16384,
        updates: 65536,
        errors: 0,
        errorFraction: 0,
        verified: true,
      });
      expect(result.gups).toBeCloseTo(result.updates / result.seconds / 1e9, 12);
      expect(stdout).toContain('verified: 0 wrong words of 16384');
      expect(code).toBe(0);
    },
  );
});

describe('RandomAccess, get-modify-put', () => {
  it('loses none where nobody else updates', async () => {
    const { result } = await randomAccess(1, RANK_KINDS[0], '--variant', 'get-modify-put', '--words', '2^14');
    expect(result).toMatchObject({ ranks: 1, errors: 0, verified: true });
  });

  it('exits with 1 if and only if more than 1 % of the words are wrong', async () => {
    // Of 16 words, one that is wrong is too many; whether one gets wrong is chance.
    const { result, code } = await randomAccess(4, RANK_KINDS[0], '--variant', 'get-modify-put', '--words', '16');
    expect(result.verified).toBe(result.errors === 0);
    expect(code).toBe(result.verified ? 0 : 1);
  });
});

describe('the result', () => {
  const run = { ranks: 2, words: 1000, seconds: 2 };

  it('has HPCC’s limit for updates that can get lost, and none for atomic ones', () => {
    expect(resultOf('v', { atomic: false }, { ...run, errors: 10 })).toMatchObject({
      verified: true,
      errorFraction: 0.01,
    });
    expect(resultOf('v', { atomic: false }, { ...run, errors: 11 }).verified).toBe(false);
    expect(resultOf('v', { atomic: true }, { ...run, errors: 0 })).toMatchObject({
      verified: true,
      gups: 2e-6,
      updates: 4000,
    });
    expect(resultOf('v', { atomic: true }, { ...run, errors: 1 }).verified).toBe(false);
  });

  it('takes numbers of words as people write them', () => {
    expect(['2^24', '16777216', '1', '2^0'].map(wholeNumber)).toEqual([16777216, 16777216, 1, 1]);
    for (const text of ['', '2^', '3^4', '-8', '1e3', 'many']) expect(wholeNumber(text)).toBeNaN();
  });
});
