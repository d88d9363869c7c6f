import { describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { REMAPS } from '../support/addon.ts';
import { RANK_KINDS, rankRuns, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

async function run(
  kind: 'processes' | 'threads',
  size: number,
  env: Record<string, string> = {},
  args: readonly string[] = [],
): Promise<void> {
  const ranks = await runRanks<Done>('window-user-memory', { kind, size, env, args: [`--seed=${seed}`, ...args] });
  for (const { cases } of ranks) {
    expect(cases).toContain('refusals: immediate');
    expect(cases).toContain('refusals: remote-notify');
  }
}

describe('windows over memory that is not from the library', () => {
  const plain = loadNative() === undefined ? ['--plain=no'] : [];
  for (const { kind, size } of rankRuns([1, 2, 3, 4]))
    test(`on ${size} ranks as ${kind}`, () => run(kind, size, {}, plain));

  /** Pieces of 128 KiB and more get pages of their own, whatever was freed before. */
  const allocator = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
  for (const size of [2, 3, 4]) {
    test.skipIf(loadNative() === undefined || !REMAPS)(
      `on ${size} processes whose memory has pages of its own, which are remapped`,
      () => run('processes', size, allocator, ['--large=yes']),
    );
  }

  test.skipIf(loadNative() === undefined)('where these are not remapped, the kernel copies', () =>
    run('processes', 3, { ...allocator, ONESIDED_NO_REMAPPING: '1' }, ['--large=yes', '--remapped=no']),
  );

  for (const size of [2, 4]) {
    test(`shared buffers of ${size} threads without the addon`, () =>
      run('threads', size, { ONESIDED_NO_ADDON: '1' }, ['--plain=no']));
  }

  for (const kind of RANK_KINDS) {
    test.skipIf(loadNative() === undefined)(
      `where ${kind} may not be attached to, the owner's thread does it all`,
      () => run(kind, 3, { ONESIDED_NO_ATTACH: '1' }),
    );
  }
});
