import { describe } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { describeCases } from '../support/cases.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

const addon = loadNative() !== undefined;
const argsOf = (plain: boolean): string[] => [`--seed=${seedOfRun()}`, `--plain=${plain ? 'yes' : 'no'}`];

describe('layouts drawn as nested datatypes, at both ends', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7])) {
    const title = `${size} ranks as ${kind} find every byte where the constructors say`;
    describeCases(title, 'window-datatypes', { kind, size, args: argsOf(addon) });
  }

  const env = { ONESIDED_NO_ADDON: '1' };
  const title = 'without the addon they are copied in JavaScript, and mean the same';
  describeCases(title, 'window-datatypes', { kind: 'threads', size: 2, env, args: argsOf(false) });
});
