import { describe } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { REMAPS } from '../support/addon.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, type RankKind, rankRuns, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();

function run(
  title: string,
  [kind, size]: readonly [kind: RankKind, size: number],
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): void {
  describeCases(title, 'window-user-memory', { kind, size, env, args: [`--seed=${seed}`, ...args] });
}

describe('windows over memory that is not from the library', () => {
  const native = loadNative() !== undefined;
  const plain = native ? [] : ['--plain=no'];
  for (const { kind, size } of rankRuns([1, 2, 3, 4])) run(`on ${size} ranks as ${kind}`, [kind, size], {}, plain);

  /** Pieces of 128 KiB and more get pages of their own, whatever was freed before. */
  const allocator = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
  for (const size of [2, 3, 4]) {
    if (!native || !REMAPS) continue;
    const title = `on ${size} processes whose memory has pages of its own, which are remapped`;
    run(title, ['processes', size], allocator, ['--large=yes']);
    run(`${title}, by requests`, ['processes', size], { ...allocator, ONESIDED_DEBUG: 'requests' }, ['--large=yes']);
  }

  if (native) {
    const args = ['--large=yes', '--remapped=no'];
    const env = { ...allocator, ONESIDED_NO_REMAPPING: '1' };
    run('where these are not remapped, the kernel copies', ['processes', 3], env, args);
  }

  for (const size of [2, 4]) {
    const title = `shared buffers of ${size} threads without the addon`;
    run(title, ['threads', size], { ONESIDED_NO_ADDON: '1' }, ['--plain=no']);
  }

  for (const kind of RANK_KINDS) {
    if (!native) continue;
    for (const debug of ['requests', 'requests,neighbours', 'requests,poison,conflicts'])
      run(`on ${kind}, where all else goes by requests (${debug})`, [kind, 4], { ONESIDED_DEBUG: debug });
    run(`where ${kind} may not be attached to, the owner's thread does it all`, [kind, 3], { ONESIDED_NO_ATTACH: '1' });
  }
});
