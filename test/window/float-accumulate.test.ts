import { describe } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { describeCases } from '../support/cases.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

const addon = loadNative() !== undefined;
const argsOf = (plain: boolean): string[] => [`--seed=${seedOfRun()}`, `--plain=${plain ? 'yes' : 'no'}`];

describe('floating-point numbers and pairs that all ranks accumulate at once', () => {
  for (const { kind, size } of rankRuns([1, 2, 4, 7])) {
    const title = `${size} ranks as ${kind}: nothing is lost`;
    describeCases(title, 'window-float-accumulate', { kind, size, args: argsOf(addon) });
  }

  const env = { ONESIDED_NO_ADDON: '1' };
  const title = 'nothing is lost without the addon';
  describeCases(title, 'window-float-accumulate', { kind: 'threads', size: 4, env, args: argsOf(false) });
});
