/** What `win.progress` says of each call is what happens while the target computes. */
import { describe } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, type RankKind } from '../support/ranks.ts';

const native = loadNative() !== undefined;

function run(
  title: string,
  [kind, size]: readonly [kind: RankKind, size: number],
  env: Readonly<Record<string, string>>,
  memory: string,
): void {
  describeCases(title, 'window-progress', { kind, size, env, args: [`--memory=${memory}`] });
}

describe('who makes the progress of a call', () => {
  for (const kind of RANK_KINDS) {
    for (const size of [2, 3]) {
      run(`on ${size} ranks as ${kind}`, [kind, size], {}, native ? 'any' : 'library');
    }
    run(`by requests, on 2 ranks as ${kind}`, [kind, 2], { ONESIDED_DEBUG: 'requests' }, 'library');
  }

  run('on threads without the addon', ['threads', 2], { ONESIDED_NO_ADDON: '1' }, 'library');

  if (native) run('on processes that may not be attached to', ['processes', 2], { ONESIDED_NO_ATTACH: '1' }, 'any');
});
