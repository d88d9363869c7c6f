/**
 * The communication patterns of the dissertation as a user runs them, for a short time: what they transfer is right,
 * and their results are complete.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type EpochsResult, WAYS } from '../../bench/hpcc/epochs.ts';
import type { HaloResult } from '../../bench/patterns/halo.ts';
import { type OriginResult, overlapOf, type Point, type ReceiverResult } from '../../bench/patterns/overlap.ts';
import type { RingResult } from '../../bench/patterns/ring.ts';
import type { TaskSharingResult } from '../../bench/patterns/task-sharing.ts';
import type { SummaResult } from '../../bench/summa/summa.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const PROGRAMS = fileURLToPath(new URL('../../build/programs/bench/ranks/', import.meta.url));
const folder = temporaryFolder('test');

let runs = 0;
async function run<R>(name: string, ranks: number, kind: string, ...args: string[]): Promise<R & { errors: number }> {
  const file = join(folder, `${runs++}.json`);
  const program = join(PROGRAMS, `${name}.js`);
  const launch = ['run', '-n', String(ranks), '--ranks', kind, '--timeout', '50', program, '--', ...args];
  const { code, stdout, stderr } = await onesided(...launch, '--json', file);
  if (code !== 0 || !existsSync(file))
    throw new Error(`exit code ${code} of onesided ${launch.join(' ')}\n${stderr}${stdout}`);
  const result = JSON.parse(readFileSync(file, 'utf8')) as R & { ranks: number; errors: number };
  expect(result.ranks).toBe(ranks);
  return result;
}

const FORMS = RANK_KINDS.flatMap((kind) => ['sync', 'promise'].map((form) => [kind, form] as const));
const [kind] = RANK_KINDS;

describe('RandomAccess with an epoch for each update', () => {
  it.each(FORMS.flatMap(([kind, form]) => WAYS.map((way) => [kind, form, way] as const)))(
    'is verified on %s, %s forms, by %s',
    async (kind, form, way) => {
      // Of a small table, get-modify-put would lose more than may be lost.
      const words = way === 'get-modify-put' ? 8192 : 1024;
      const args = ['--way', way, '--words', `${words}`, '--ahead', '64', '--form', form];
      const hints = way === 'packed' ? ['--lock', 'two-sided', '--lock-defer'] : [];
      const result = await run<EpochsResult>('random-access', 3, kind, ...args, ...hints);
      expect(result).toMatchObject({ way, words, updates: 4 * words, errors: 0 });
      if (way !== 'get-modify-put') expect(result.lost).toBe(0);
    },
  );
});

describe('SUMMA', () => {
  const SIZES = [
    [60, 60, 60],
    [7, 90, 33],
  ] as const;
  it.each(FORMS.flatMap(([kind, form]) => SIZES.map((sizes) => [kind, form, ...sizes] as const)))(
    'is the direct product, on %s, %s forms: %i × %i × %i',
    async (kind, form, m, n, k) => {
      const args = Object.entries({ m, n, k, panel: 8, samples: 1, form }).flatMap(([name, value]) => [
        `--${name}`,
        `${value}`,
      ]);
      const result = await run<SummaResult>('summa', 6, kind, ...args);
      expect(result).toMatchObject({ m, n, k, grid: [2, 3], errors: 0 });
    },
  );
});

describe('halo', () => {
  it.each(FORMS.flatMap(([kind, form]) => [4, 8].map((neighbours) => [kind, form, neighbours] as const)))(
    'brings every border to every neighbour, on %s, %s forms, %i neighbours',
    async (kind, form, neighbours) => {
      const args = ['--neighbours', String(neighbours), '--bytes', '256', '--steps', '20', '--compute', '10'];
      const result = await run<HaloResult>('halo', 6, kind, ...args, '--form', form);
      expect(result).toMatchObject({ neighbours, grid: [2, 3], bytes: 256, steps: 20, errors: 0 });
      expect(result.microseconds).toBeGreaterThan(0);
    },
  );

  it.each([1, 2])('works on a torus so small that neighbours are the same: %i', async (ranks) => {
    const args = ['--neighbours', '8', '--bytes', '4', '--steps', '5', '--compute', '0'];
    expect(await run<HaloResult>('halo', ranks, kind, ...args)).toMatchObject({ errors: 0 });
  });

  it('works with another fence', async () => {
    const args = ['--steps', '5', '--bytes', '1024', '--fence', 'remote-notify'];
    expect(await run<HaloResult>('halo', 4, kind, ...args)).toMatchObject({ errors: 0 });
  });
});

/** Smaller than usual. */
const SMALL = {
  halo: '--steps 2',
  ring: '--rounds 2',
  'task-sharing': '--per-node 2 --tasks 10',
  overlap: '--samples 2',
  lu: '--n 64 --block 16',
};

describe('a program on a fabric', () => {
  it.each(Object.entries(SMALL))('can be recorded: %s', (name, small) => {
    const trace = join(folder, `${name}.trace.json`);
    const args = ['--fabric', 'infinihost-64', '--ranks', '4', '--trace', trace, '--quiet', ...small.split(' ')];
    execFileSync(process.execPath, [join(PROGRAMS, `${name}.js`), ...args], { timeout: 60_000 });
    const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { traceEvents: { pid: number; tid: number }[] };
    // One lane a rank, and what is on them.
    expect(new Set(traceEvents.map(({ pid, tid }) => `${pid} ${tid}`)).size).toBeGreaterThanOrEqual(4);
    expect(traceEvents.length).toBeGreaterThan(40);
  });
});

describe('ring', () => {
  it.each(FORMS)('brings the message round, every time, on %s, %s forms', async (kind, form) => {
    const args = ['--bytes', '100', '--rounds', '3', '--compute', '20', '--form', form];
    const result = await run<RingResult>('ring', 3, kind, ...args);
    expect(result).toMatchObject({ bytes: 100, compute: 20, rounds: 3, errors: 0 });
    expect(result.samples).toHaveLength(3);
    for (const sample of result.samples) expect(sample).toBeGreaterThan(0);
    expect(result.hop).toBeCloseTo([...result.samples].sort((a, b) => a - b)[1] / 3, 6);
  });
});

describe('hints of locks', () => {
  it('are options', async () => {
    const args = ['--tasks', '5', '--bytes', '4', '--lock', 'two-sided', '--lock-defer'];
    expect(await run<TaskSharingResult>('task-sharing', 4, kind, ...args)).toMatchObject({ errors: 0 });
    const hybrid = ['--lock', 'hybrid', '--lock-mode', 'network', '--lock-migration', 'threshold:2'];
    expect(await run<RingResult>('ring', 3, kind, '--rounds', '2', ...hybrid)).toMatchObject({ errors: 0 });
  });
});

describe('task sharing', () => {
  it.each(FORMS)('hands each rank its tasks, on %s, %s forms', async (kind, form) => {
    const args = ['--tasks', '30', '--bytes', '64', '--form', form];
    const result = await run<TaskSharingResult>('task-sharing', 6, kind, '--per-node', '3', ...args);
    expect(result).toMatchObject({ nodes: 2, perNode: 3, tasks: 30, bytes: 64, errors: 0 });
    expect(result.microseconds).toBeCloseTo(result.phases[0] + result.phases[1] + result.phases[2], 6);
    // Two workers twice, and one other leader.
    expect(result.task).toBeCloseTo(result.microseconds / (30 * 5), 6);
  });

  it.each([
    [2, '1'],
    [2, '2'],
  ])('works where there are no workers, and where there is one node: %i ranks, %s a node', async (ranks, perNode) => {
    const args = ['--per-node', perNode, '--tasks', '5', '--bytes', '4'];
    expect(await run<TaskSharingResult>('task-sharing', ranks, kind, ...args)).toMatchObject({ errors: 0 });
  });
});

describe('overlap', () => {
  const short = ['--bytes', '4096', '--samples', '3'];

  describe.each([
    ['sender', 'put'],
    ['sender', 'get'],
    ['fence', 'put'],
  ])('at the %s, of a %s', (side, operation) => {
    it.each(FORMS)('is measured, on %s, %s forms', async (kind, form) => {
      const more = ['--side', side, '--operation', operation, '--operations', '4', '--form', form];
      const result = await run<OriginResult>('overlap', 3, kind, ...short, ...more);
      expect(result).toMatchObject({ side, operation, bytes: 4096, operations: 4, errors: 0 });
      expect(result.points).toHaveLength(15);
      for (const [i, { base, compute }] of result.points.entries())
        expect(compute).toBeCloseTo((base * (i + 1)) / 10, 6);
      expect(result.overlap).toBe(overlapOf(result.points));
    });
  });

  it.each(FORMS)('at the receiver is measured, on %s, %s forms', async (kind, form) => {
    const more = ['--side', 'receiver', '--compute', '5000', '--form', form];
    const result = await run<ReceiverResult>('overlap', 3, kind, ...short, ...more);
    expect(result).toMatchObject({ side: 'receiver', origins: 2, errors: 0 });
    expect(result.slowdown).toBeCloseTo(result.accessed / result.alone, 6);
    expect(result.accesses).toBeGreaterThanOrEqual(2);
  });

  it('is what was computed and not paid for', () => {
    const pointsOf = (totalOf: (compute: number) => number): Point[] =>
      [2, 5, 10, 12, 15].map((compute) => ({ base: 10, compute, total: totalOf(compute) }));
    expect(overlapOf(pointsOf((compute) => Math.max(10, compute)))).toBe(100);
    expect(overlapOf(pointsOf((compute) => 10 + compute))).toBe(0);
    expect(overlapOf(pointsOf((compute) => 4 + Math.max(6, compute)))).toBe(60);
    expect(overlapOf(pointsOf(() => 100))).toBe(0);
    expect(overlapOf(pointsOf(() => 1))).toBe(100);
    expect(overlapOf([{ base: 0, compute: 0, total: 0 }])).toBe(0);
    expect(overlapOf([{ base: 10, compute: 5, total: 10 }])).toBe(0);
  });
});

describe('what makes no sense', () => {
  it.each([
    ['halo', 1, ['--neighbours', '6'], /--neighbours is one of 4, 8, not '6'/],
    ['halo', 1, ['--bytes', '6'], /--bytes is a multiple of 4, not 6/],
    ['halo', 1, ['--steps', 'many'], /--steps is a whole number, not 'many'/],
    ['halo', 1, ['--fence', 'no-such'], /hint fence cannot be "no-such"/],
    ['ring', 1, [], /a ring has at least 2 ranks/],
    ['ring', 1, ['--compute', '0'], /--compute is a whole number from 1 to 1000000000, not 0/],
    ['ring', 2, ['--lock', 'no-such'], /hint lock cannot be "no-such"/],
    ['ring', 2, ['--lock-mode', 'no-such'], /hint lock_mode/],
    ['ring', 2, ['--lock-migration', 'no-such'], /hint lock_migration/],
    ['halo', 1, ['--lock-defer'], /Unknown option '--lock-defer'/],
    ['task-sharing', 3, [], /3 ranks do not fill nodes of 2/],
    ['overlap', 1, [], /overlap needs at least 2 ranks/],
    ['overlap', 1, ['--side', 'back'], /--side is one of sender, receiver, fence, not 'back'/],
    ['overlap', 1, ['--sides', 'fence'], /Unknown option '--sides'/],
  ] as const)('is refused: %s on %i, %j', async (name, ranks, args, message) => {
    const launch = ['run', '-n', String(ranks), '--ranks', kind, join(PROGRAMS, `${name}.js`), '--', ...args];
    const { code, stdout, stderr } = await onesided(...launch);
    expect(stderr + stdout).toMatch(message);
    // Hints are refused by the library, with an error of its own.
    if (message.source.startsWith('hint')) return expect(code).toBe(1);
    expect(stderr + stdout).not.toContain('RankFailedError');
    expect(code).toBe(2);
  });
});
