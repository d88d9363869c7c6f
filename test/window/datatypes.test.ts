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
  const ranks = await runRanks<Done>('window-datatypes', { kind, size, env, args });
  for (const { cases } of ranks) expect(cases.length).toBe(plain ? 7 : 5);
}

describe('layouts drawn as nested datatypes, at both ends', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7])) {
    test(`${size} ranks as ${kind} find every byte where the constructors say`, () => run(kind, size, addon));
  }

  test('without the addon they are copied in JavaScript, and mean the same', () =>
    run('threads', 2, false, { ONESIDED_NO_ADDON: '1' }));
});
