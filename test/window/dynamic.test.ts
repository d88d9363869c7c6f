import { describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { type RankKind, rankRuns, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();
const native = loadNative() !== undefined;

async function run(
  kind: RankKind,
  size: number,
  env: Record<string, string> = {},
  memory = native ? 'any' : 'shared',
): Promise<void> {
  const args = [`--seed=${seed}`, `--memory=${memory}`];
  const ranks = await runRanks<Done>('window-dynamic', { kind, size, env, args });
  for (const { cases } of ranks) {
    expect(cases).toEqual(['everyCall', 'storm', 'changingTable', 'again', 'thousands', 'linkedList', 'refusals']);
  }
}

describe('dynamic windows', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4])) test(`on ${size} ranks as ${kind}`, () => run(kind, size));

  test('on 3 threads without the addon', () => run('threads', 3, { ONESIDED_NO_ADDON: '1' }, 'shared'));

  test.skipIf(!native)('on 3 processes that may not be attached to', () =>
    run('processes', 3, { ONESIDED_NO_ATTACH: '1' }),
  );

  // The ways that they take on a device across a network. The emulator reaches no other memory then.
  for (const { kind, size } of rankRuns([1, 2, 4])) {
    const memory = kind === 'processes' ? 'library' : 'shared';
    test(`by requests, on ${size} ranks as ${kind}`, () => run(kind, size, { ONESIDED_DEBUG: 'requests' }, memory));
  }
});
