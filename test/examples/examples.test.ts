/** Every example, as its header says to run it: each checks its own result, so an exit code of 0 is the proof. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { onesided } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const folder = new URL('../../examples/', import.meta.url);
const examples = readdirSync(folder).filter((name) => name.endsWith('.js'));

const JOBS = [
  ['1', 'processes'],
  ['8', 'processes'],
  ['3', 'threads'],
] as const;

describe.each(examples)('examples/%s', (name) => {
  const file = fileURLToPath(new URL(name, folder));

  it.each(JOBS.filter(([, ranks]) => RANK_KINDS.includes(ranks)))(
    'comes to the right result on %s ranks that are %s',
    async (size, ranks) => {
      const { code, stdout, stderr } = await onesided('run', '-n', size, '--ranks', ranks, '--timeout', '150', file);
      expect(stderr).toBe('');
      expect(code).toBe(0);
      expect(stdout).toMatch(/^\[\d\] \S/m);
    },
  );

  it('says how to run it, and is short', () => {
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(new RegExp(`^ \\* +npx onesided run -n \\d examples/${name}`, 'm'));
    expect(text.split('\n').length).toBeLessThanOrEqual(120);
  });
});

it('there are examples', () => {
  expect(examples.length).toBeGreaterThan(5);
});
