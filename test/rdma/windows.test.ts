/**
 * Windows on a real device: the conformance suite, RandomAccess, contended locks, and ranks that fail. Run by
 * `npm run test:rdma`, and on libfabric by `npm run test:tcp`.
 */
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { testChapter } from '../conformance/chapter.ts';
import { onesided } from '../launcher/command.ts';
import { chapters } from '../ranks/conformance/chapters.ts';
import { NONCONTIGUOUS_NAMES } from '../ranks/support/kinds.ts';
import { runRanks, seedOfRun } from '../support/ranks.ts';
import { ON_DEVICE, PROVIDER } from './device.ts';
import { LARGE, ON_A_DEVICE } from './selections.ts';

const program = (name: string): string => fileURLToPath(new URL(`../../build/programs/${name}.js`, import.meta.url));

for (const chapter of Object.keys(chapters)) {
  describe(chapter, () => testChapter(chapter, [{ name: 'device', kind: 'processes', sizes: [2], env: ON_DEVICE }]));
}

// `auto` takes one of the others, and measures them for each window: too long for a chapter here.
for (const noncontiguous of NONCONTIGUOUS_NAMES.filter((name) => name !== 'auto')) {
  const ranks = { name: `device-${noncontiguous}`, kind: 'processes', sizes: [2], env: ON_DEVICE } as const;
  describe(`layouts by ${noncontiguous}`, () => testChapter('communication', [{ ...ranks, info: { noncontiguous } }]));
}

/** Of a job. The guest's processor is emulated, perhaps beside other work: this ends a hang. */
const SECONDS = 400;
const LONG = { timeout: 1000 * (SECONDS + 20) };

describe('windows on a device', () => {
  test.each(ON_A_DEVICE)('$program $cases', LONG, async ({ program, ...given }) => {
    await runRanks(program, { ...given, kind: 'processes', env: ON_DEVICE, timeout: SECONDS });
  });

  test.each(NONCONTIGUOUS_NAMES)('random programs, layouts by %s', LONG, async (name) => {
    const args = [`--seed=${seedOfRun()}`, '--programs=2', '--by-requests', `--noncontiguous=${name}`];
    await runRanks('window-random', { kind: 'processes', size: 2, env: ON_DEVICE, args, timeout: SECONDS });
  });

  // On fewer words, ranks that get, modify and put meet too often: more than the 1 % of lost updates that HPCC allows.
  test.each([
    ['get-modify-put', '2^12'],
    ['accumulate', '2^10'],
    ['aggregated', '2^10'],
    ['fetch-and-add', '2^10'],
  ])('RandomAccess, %s', LONG, async (variant, words) => {
    const file = `${tmpdir()}/gups-${variant}.json`;
    const args = ['--variant', variant, '--words', words, '--json', file];
    const job = ['run', '-n', '2', '--provider', PROVIDER, '--timeout', `${SECONDS}`];
    const { code, stdout, stderr } = await onesided(...job, program('bench/hpcc/random-access'), '--', ...args);
    expect(code, stdout + stderr).toBe(0);
    const { verified, errors } = JSON.parse(readFileSync(file, 'utf8'));
    expect(verified).toBe(true);
    if (variant !== 'get-modify-put') expect(errors).toBe(0);
  });

  test.each([
    ['get-modify-put', ''],
    ['accumulate', ''],
    ['accumulate', '--update by-target'],
    ['accumulate', '--lock two-sided --lock-defer'],
    ['packed', '--update by-type'],
    ['packed', '--update by-target'],
    ['direct', '--epochs unchecked'],
  ])('RandomAccess with an epoch for each update, %s %s', LONG, async (way, hints) => {
    const file = `${tmpdir()}/epochs.json`;
    // Of a small table, get-modify-put would lose more than may be lost.
    const words = way === 'get-modify-put' ? 2048 : 128;
    const args = ['--way', way, '--words', `${words}`, '--json', file, ...hints.split(' ').filter(Boolean)];
    const job = ['run', '-n', '2', '--provider', PROVIDER, '--timeout', `${SECONDS}`];
    const { code, stdout, stderr } = await onesided(...job, program('bench/ranks/random-access'), '--', ...args);
    expect(code, stdout + stderr).toBe(0);
    const { errors, lost, updates } = JSON.parse(readFileSync(file, 'utf8'));
    expect(errors).toBe(0);
    expect(updates).toBe(4 * words);
    if (way !== 'get-modify-put') expect(lost).toBe(0);
  });

  test('more bytes than a message carries', LONG, async () => {
    const { program, cases } = LARGE;
    await runRanks(program, { kind: 'processes', size: 2, env: ON_DEVICE, cases, timeout: SECONDS });
  });

  test('a rank that exits in an epoch is an error of all that wait for it', LONG, async () => {
    const args = ['--who=1', '--how=exit-in-fence-epoch', '--others=two-fences'];
    const job = ['run', '-n', '3', '--provider', PROVIDER, '--timeout', '60'];
    const { code, stdout, stderr } = await onesided(...job, program('test/ranks/robust-endings'), '--', ...args);
    expect(code, stdout + stderr).toBe(3);
    expect(stdout.match(/ERR_RMA_RANK_FAILED/g), stdout + stderr).toHaveLength(2);
  });

  test('a device that is not there is named', LONG, async () => {
    const before = process.env['ONESIDED_DEVICE'];
    process.env['ONESIDED_DEVICE'] = 'mlx5_7';
    const { code, stderr } = await onesided(
      'run',
      '-n',
      '2',
      '--provider',
      PROVIDER,
      program('test/ranks/window-pscw'),
    );
    if (before === undefined) delete process.env['ONESIDED_DEVICE'];
    else process.env['ONESIDED_DEVICE'] = before;
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      PROVIDER === 'libfabric'
        ? /ONESIDED_DEVICE="?mlx5_7"? is neither an address nor an interface/
        : /no device is named mlx5_7; this machine has rxe0/,
    );
  });
});
