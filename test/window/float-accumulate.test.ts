import { describe, expect, test } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { rankRuns, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();
const addon = loadNative() !== undefined;

async function run(kind: 'processes' | 'threads', size: number, plain: boolean, env: Record<string, string> = {}) {
  const args = [`--seed=${seed}`, `--plain=${plain ? 'yes' : 'no'}`];
  const ranks = await runRanks<Done>('window-float-accumulate', { kind, size, env, args });
  for (const { cases } of ranks) expect(cases.length).toBe(plain ? 9 : 7);
}

describe('floating-point numbers and pairs that all ranks accumulate at once', () => {
  for (const { kind, size } of rankRuns([1, 2, 4, 7]))
    test(`${size} ranks as ${kind}: nothing is lost`, () => run(kind, size, addon));

  test('nothing is lost without the addon', () => run('threads', 4, false, { ONESIDED_NO_ADDON: '1' }));
});
