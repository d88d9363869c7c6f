/** What `win.progress` says of each call is what happens while the target computes. */
import { describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { RANK_KINDS, type RankKind, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const native = loadNative() !== undefined;

async function run(kind: RankKind, size: number, env: Record<string, string>, memory: string): Promise<void> {
  const ranks = await runRanks<Done>('window-progress', { kind, size, env, args: [`--memory=${memory}`] });
  for (const { cases } of ranks) expect(cases).toEqual(['library', 'remoteNotify', 'ordinary', 'ofWhom']);
}

describe('who makes the progress of a call', () => {
  for (const kind of RANK_KINDS) {
    for (const size of [2, 3]) {
      test(`on ${size} ranks as ${kind}`, () => run(kind, size, {}, native ? 'any' : 'library'));
    }
    test(`by requests, on 2 ranks as ${kind}`, () => run(kind, 2, { ONESIDED_DEBUG: 'requests' }, 'library'));
  }

  test('on threads without the addon', () => run('threads', 2, { ONESIDED_NO_ADDON: '1' }, 'library'));

  test.skipIf(!native)('on processes that may not be attached to', () =>
    run('processes', 2, { ONESIDED_NO_ATTACH: '1' }, 'any'),
  );
});
