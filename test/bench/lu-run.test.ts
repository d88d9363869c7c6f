/**
 * LU as a user runs it, on small matrices. The digest says that the factors are those of three plain loops, to the last
 * bit, whatever the ranks, the blocks and the kernel.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { installed, PEERS, runPeer } from '../../bench/peers.ts';
import type { LuResult } from '../../bench/splash/lu.ts';
import { digestOf, elementOf } from '../../bench/splash/matrix.ts';
import { byRows } from '../../bench/splash/tiles.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/bench/ranks/lu.js', import.meta.url));
const folder = temporaryFolder('test');

let runs = 0;
async function lu(ranks: number, kind: string, ...args: string[]): Promise<LuResult & { readonly stdout: string }> {
  const file = join(folder, `${runs++}.json`);
  const launch = ['run', '-n', String(ranks), '--ranks', kind, '--timeout', '50', PROGRAM, '--', ...args];
  const { code, stdout, stderr } = await onesided(...launch, '--json', file);
  if (code !== 0) throw new Error(`exit code ${code} of onesided ${launch.join(' ')}\n${stderr}${stdout}`);
  return { ...(JSON.parse(readFileSync(file, 'utf8')) as LuResult), stdout };
}

/** Of the factors that three loops make. */
function expectedDigest(n: number, seed: number): string {
  const padded = Math.ceil(n / 4) * 4;
  const a = Array.from({ length: padded }, (_, i) =>
    Float64Array.from({ length: padded }, (_, j) => elementOf(seed, n, i, j)),
  );
  for (let i = 0; i < padded; i++) {
    for (let j = 0; j < padded; j++) {
      for (let k = 0; k < Math.min(i, j); k++) a[i][j] -= a[i][k] * a[k][j];
      if (i > j) a[i][j] *= 1 / a[j][j];
    }
  }
  const memory = new Float64Array(padded * padded);
  for (let i = 0; i < padded; i++) for (let j = 0; j < padded; j++) memory[byRows(i, j, padded)] = a[i][j];
  const digest = digestOf(memory, 0, { i: 0, j: 0, m: padded, n: padded, rows: true });
  return (digest >>> 0).toString(16).padStart(8, '0');
}

describe('LU', () => {
  const [kind] = RANK_KINDS;

  it.each([1, 2, 3, 4, 6])('of 200 rows in blocks of 16 is exact on %i ranks', async (ranks) => {
    const result = await lu(ranks, kind, '--n', '200', '--block', '16', '--seed', '7');
    expect(result).toMatchObject({ n: 200, block: 16, ranks, seed: 7, verified: true, digest: expectedDigest(200, 7) });
    expect(result.residual).toBeGreaterThan(0);
    expect(result.residual).toBeLessThan(0.1);
    expect(result.milliseconds).toHaveLength(1);
    expect(result.stdout).toContain('verified: relative residual');
  });

  it.each([
    [1, 4],
    [5, 64],
    [63, 8],
    [101, 20],
    [130, 32],
  ])('of %i rows in blocks of %i, the last of which is cut off, is exact', async (n, block) => {
    const { digest, verified } = await lu(3, kind, '--n', String(n), '--block', String(block));
    expect({ digest, verified }).toEqual({ digest: expectedDigest(n, 1), verified: true });
  });

  const OTHERS = [
    ['--kernel', 'typescript'],
    ['--lock-type', 'shared'],
    ['--form', 'promise'],
    ['--samples', '3'],
  ];

  it.each(RANK_KINDS.flatMap((kind) => OTHERS.map((more) => [kind, more] as const)))(
    'is the same on ranks that are %s with %j',
    async (kind, more) => {
      const result = await lu(2, kind, '--n', '96', '--block', '12', ...more);
      expect(result).toMatchObject({ verified: true, digest: expectedDigest(96, 1) });
    },
  );

  it('fetches each block of the perimeter once, if it is another rank’s', async () => {
    // Two ranks side by side: columns alternate. In each step the column goes to the other rank, and the diagonal block
    // too.
    const { fetched, bytes, breakdown, milliseconds } = await lu(
      2,
      kind,
      '--n',
      '128',
      '--block',
      '16',
      '--samples',
      '2',
    );
    const [columns, diagonals] = [(8 * 7) / 2, 7];
    expect(fetched).toBe(columns + diagonals);
    expect(bytes).toBe(fetched * 8 * 16 ** 2);
    expect(Object.keys(breakdown)).toEqual(['lock', 'get', 'unlock', 'barrier', 'compute']);
    const sum = Object.values(breakdown).reduce((total, part) => total + part);
    expect(sum).toBeCloseTo((milliseconds[0] + milliseconds[1]) / 2, 6);
  });

  it('charges as many operations as there are, on a clock that nothing else moves', async () => {
    const [n, block, rate] = [64, 8, 1000];
    const ranks = await runRanks<{ charged: number; result: LuResult }>('lu-charged', {
      kind,
      size: 4,
      args: [String(n), String(block)],
    });
    const total = ranks.reduce((sum, { charged }) => sum + charged, 0);
    expect(total).toBeCloseTo((2 / 3) * n ** 3, 6);
    for (const { charged, result } of ranks) {
      expect(result).toMatchObject({ verified: true, digest: expectedDigest(n, 1) });
      expect(result.milliseconds[0]).toBeCloseTo(charged / rate / 1e3, 9);
      expect(result.breakdown).toMatchObject({ lock: 0, get: 0, unlock: 0, barrier: 0 });
    }
  });

  it.each([
    [['--n', '0'], /--n is a whole number from 1 to 1048576, not 0/],
    [['--n', '12.5'], /--n is a whole number, not '12.5'/],
    [['--block', '30'], /--block is a multiple of 4, not 30/],
    [['--block', '2'], /--block is a whole number from 4 to 1024, not 2/],
    [['--samples', '0'], /--samples is a whole number from 1/],
    [['--seed', '-1'], /--seed/],
    [['--kernel', 'fast'], /--kernel is one of wasm, typescript, not 'fast'/],
    [['--kernel', 'constructor'], /--kernel is one of wasm, typescript, not 'constructor'/],
    [['--lock-type', 'none'], /--lock-type is one of exclusive, shared, not 'none'/],
    [['--form', 'callback'], /--form is one of sync, promise, not 'callback'/],
    [['--lock', 'no-such'], /hint lock cannot be "no-such"/],
    [['--size', '8'], /Unknown option '--size'/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await onesided('run', '-n', '1', '--ranks', kind, PROGRAM, '--', ...args);
    expect(stderr).toMatch(message);
    expect(code).not.toBe(0);
  });
});

describe('LU in C', () => {
  for (const peer of PEERS) {
    const there = installed(peer.compiler) && installed(peer.launcher);
    const needs = there ? '' : `: needs ${peer.packages}`;
    it.skipIf(!there)(`on ${peer.name} has the same factors${needs}`, async () => {
      const report = (await runPeer(peer, 'lu', ['130', '32', '1'], 2)) as unknown as { digest: string };
      expect(report.digest).toBe(expectedDigest(130, 1));
    });
  }
});
