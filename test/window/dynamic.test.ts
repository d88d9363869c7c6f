import { describe } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { describeCases } from '../support/cases.ts';
import { type RankKind, rankRuns, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const native = loadNative() !== undefined;

function run(
  title: string,
  [kind, size]: readonly [kind: RankKind, size: number],
  env: Readonly<Record<string, string>> = {},
  memory = native ? 'any' : 'shared',
): void {
  describeCases(title, 'window-dynamic', { kind, size, env, args: [`--seed=${seed}`, `--memory=${memory}`] });
}

describe('dynamic windows', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4])) run(`on ${size} ranks as ${kind}`, [kind, size]);

  run('on 3 threads without the addon', ['threads', 3], { ONESIDED_NO_ADDON: '1' }, 'shared');

  if (native) run('on 3 processes that may not be attached to', ['processes', 3], { ONESIDED_NO_ATTACH: '1' });

  // The ways that they take on a device across a network. Where all memory is registered, nothing else is behind them.
  for (const { kind, size } of rankRuns([1, 2, 4])) {
    const registered = kind === 'processes' ? 'library' : 'shared';
    for (const memory of native ? ['any', registered] : [registered])
      run(`by requests, ${memory} memory, ${size} ${kind}`, [kind, size], { ONESIDED_DEBUG: 'requests' }, memory);
  }
});
