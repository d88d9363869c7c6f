/**
 * What becomes of those who wait, by each scheme, when a rank dies that they wait for (test/ranks/robust-schemes.ts).
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { FENCE_SCHEMES } from '../../src/sync/fence/fence-kinds.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';
import { start } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const DYING = fileURLToPath(new URL('../../build/programs/test/ranks/robust-schemes.js', import.meta.url));
const SIZE = 4;
/** They are told within two seconds on a machine that is not busy. */

type Case = readonly [what: string, info: Record<string, string>, env?: Record<string, string>];

const CASES: readonly Case[] = [
  ...LOCK_SCHEMES.flatMap((lock): Case[] => [
    ['holder', { lock }],
    ['agent', { lock }],
  ]),
  ['holder', { lock: 'hybrid', lock_mode: 'network', lock_migration: 'every-request' }, { ONESIDED_DEBUG: 'requests' }],
  ['agent', { lock: 'hybrid' }, { ONESIDED_DEBUG: 'requests' }],
  ['holder', { lock: 'hybrid', lock_cpu: 'one-word' }],
  ['holder', { lock: 'hybrid', lock_cpu: 'one-word', lock_migration: 'never' }],
  ...FENCE_SCHEMES.map((fence): Case => ['fence', { fence }]),
];

function run(kind: string, what: string, info: Record<string, string>, env: Record<string, string> = {}) {
  const args = ['run', '-n', String(SIZE), '--ranks', kind, '--timeout', '150', DYING, '--', `--what=${what}`];
  return start([...args, `--info=${JSON.stringify(info)}`], { env: { ...process.env, ...env } }).finished;
}

describe('a rank that dies', () => {
  for (const [i, [what, info, env]] of CASES.entries()) {
    // Each on one kind of ranks, in turn: what differs between them is tested elsewhere.
    const kind = RANK_KINDS[i % RANK_KINDS.length];
    const where = env === undefined ? '' : ', by requests';
    test(`ends the wait of the others: ${what}, ${Object.values(info).join(' ')}${where}, as ${kind}`, async () => {
      const { code, stdout, stderr } = await run(kind, what, info, env);
      const report = `${stdout}${stderr}`;
      const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
      expect(told.map(({ rank }) => rank).sort(), report).toEqual(what === 'agent' ? [1, 2, 3] : [0, 1, 2]);
      for (const line of told) {
        expect(line.code, report).toBe('ERR_RMA_RANK_FAILED');
      }
      expect(code, report).toBe(3);
    });
  }
});

describe('an agent that serves in the background', () => {
  for (const kind of RANK_KINDS) {
    test(`does not keep a program from ending, as ${kind}`, async () => {
      const { code, stdout, stderr } = await run(kind, 'leaves', { lock: 'two-sided' });
      // Ended by themselves, not by the launcher's deadline: whoever ends without finalize() fails.
      const report = `${stdout}${stderr}`;
      expect([...stdout.matchAll(/left/g)].length, report).toBe(SIZE);
      expect(report).not.toMatch(/did not end within/);
      expect(code).not.toBe(124);
    });
  }
});
