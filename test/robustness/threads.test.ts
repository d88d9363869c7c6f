/**
 * Threads: ranks that are workers and are terminated anywhere, and process ranks whose own workers load the addon as
 * well.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { start, verdicts } from '../launcher/command.ts';
import { runRanks, seedOfRun } from '../support/ranks.ts';
import { linesOf, said } from './jobs.ts';

function program(name: string): string {
  return fileURLToPath(new URL(`../../build/programs/test/ranks/${name}.js`, import.meta.url));
}

describe('thread ranks', () => {
  const seed = seedOfRun();

  it(`are terminated twenty times in the midst of anything (ONESIDED_SEED=${seed})`, async () => {
    const child = spawn(process.execPath, [program('robust-terminations'), `--seed=${seed}`, '--times=20'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.stderr.on('data', (chunk) => (text += chunk));
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    expect([code, signal], text).toEqual([0, null]);
    expect(JSON.parse(text)).toEqual({ 'timeout 124': 20 });
  });

  it.each(['barrier', 'barrier-sync', 'fence', 'fence-sync', 'lock', 'lock-sync', 'receive'])(
    'that wait (%s) for one that never comes end when the launcher is interrupted',
    async (others) => {
      const how = others.startsWith('lock') ? 'spin-in-lock' : 'spin';
      const job = start([
        'run',
        '-n',
        '3',
        '--ranks',
        'threads',
        program('robust-endings'),
        '--who=1',
        `--how=${how}`,
        `--others=${others}`,
      ]);
      await said(job, /spinning/);
      await sleep(250);
      job.child.kill('SIGINT');
      const { code, stderr } = await job.finished;
      expect(code, stderr).toBe(130);
      expect(verdicts(stderr)).toEqual(['onesided: interrupted by SIGINT while 3 ranks were running:']);
    },
  );

  it('that need more memory than they may have fail as ranks, and the others are told', async () => {
    const args = [
      'run',
      '-n',
      '2',
      '--ranks',
      'threads',
      program('robust-endings'),
      '--who=1',
      '--how=memory',
      '--others=fence',
    ];
    const { code, stdout, stderr } = await start(args, {
      // A large young generation that becomes old at once can go past the limit by more than Node lets a thread do to
      // end.
      env: { ...process.env, NODE_OPTIONS: '--max-old-space-size=60 --max-semi-space-size=1' },
    }).finished;
    expect(linesOf(stdout), stderr).toMatchObject([{ rank: 0, code: 'ERR_RMA_RANK_FAILED' }]);
    expect(code, stderr).toBe(1);
    expect(verdicts(stderr)[0]).toMatch(/^onesided: rank 1 exited with code 1 \(/);
  });
});

describe.skipIf(loadNative() === undefined)('process ranks with workers', () => {
  it.each(['main', 'worker', 'any'])('of which both threads call init (first: %s): one is the rank', async (first) => {
    const args = ['run', '-n', '2', '--timeout', '120', program('robust-two-threads'), '--', `--first=${first}`];
    const { code, stdout, stderr } = await start(args).finished;
    const report = `${stdout}${stderr}`;
    expect(code, report).toBe(0);
    const lines = linesOf<{ size?: number; code?: string; message?: string }>(stdout);
    for (const rank of [0, 1]) {
      const both = lines.filter((line) => line.rank === rank);
      const [joined] = both.filter(({ size }) => size === 2);
      expect(both.length, report).toBe(2);
      expect(joined, report).toBeDefined();
      const [other] = both.filter((line) => line !== joined);
      expect(other, report).toMatchObject({
        code: 'ERR_COMM',
        message: expect.stringMatching(/^init: (file descriptor|rank) \d/),
      });
    }
  });

  it('whose workers sleep in the addon and are terminated there, twenty times', async () => {
    const results = await runRanks<object>('robust-workers', { kind: 'processes', size: 2, args: ['--rounds=20'] });
    for (const result of results) expect(result).toEqual({ rounds: 20, moreDescriptors: 0, workersMemory: 0 });
  });
});
