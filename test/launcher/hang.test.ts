/** A job that hangs: who waits for whom. More ranks than cores, and as many. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { onesided, start } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/launcher-hang.js', import.meta.url));

/** More ranks than cores, so that the barrier is another one. */
const MANY = Math.max(4, availableParallelism() + 1);

const folder = temporaryFolder('hang');

describe.each(RANK_KINDS)('%s', (kind) => {
  it.each(['', 'requests'])('of a job that is interrupted say what they wait for, by %o', async (debug) => {
    const env = { ...process.env, ONESIDED_DEBUG: debug };
    const job = start(['run', '-n', '4', '--ranks', kind, '--timeout', '60', PROGRAM, '--', '--tell'], { env });
    for (const rank of [0, 1, 2, 3]) await job.printed(`[${rank}] hangs`);
    // What stands behind the last words of a rank, it is in soon.
    await sleep(1500);
    job.child.kill('SIGINT');
    const { code, stderr } = await job.finished;
    expect(code).toBe(130);
    const [first, ...lines] = stderr.trimEnd().split('\n');
    expect(first).toBe('onesided: interrupted by SIGINT while 4 ranks were running:');
    expect(lines).toHaveLength(4);
    const fence = /waits in fence of window #1 \(waiting .*\), for \d+\.\d s$/;
    const lock =
      /waits in lock of rank 1 in window #2 \(rank 1 (holds|held) it exclusively( at the last look)?\), for /;
    const expected = [fence, /is not waiting in a call of this library$/, fence, lock];
    for (const [rank, what] of expected.entries()) expect(lines[rank]).toMatch(what);
  });

  it.each([2, MANY])('of a job of %i whose time is up are named, with the call that each waits in', async (size) => {
    const file = join(folder, `${kind}-${size}.json`);
    const args = ['-n', String(size), '--ranks', kind, '--timeout', '4', '--trace', file, PROGRAM];
    const { code, stderr } = await onesided('run', ...args);
    expect(code).toBe(124);
    const [note, first, ...lines] = stderr.trimEnd().split('\n');
    expect(note).toContain(file);
    expect((await onesided('trace', 'list', file)).stdout).toMatch(
      /\nranks? 1(, 3)?(, \d+)* never came to fence 1 of window #1\n$/,
    );
    expect(first).toBe('onesided: the job did not end within 4 s (--timeout); still running:');
    expect(lines.length).toBe(size);
    const fence = /waits in fence of window #1 \(waiting for ranks? 1\b.*\), for [0-4]\.\d s$/;
    const lock =
      /waits in lock of rank 1 in window #2 \(rank 1 holds it exclusively\), for [0-4]\.\d s; and shares the lock of rank 3 in window #2$/;
    const expected = [fence, /is not waiting in a call of this library$/, fence, lock].slice(0, size);
    for (const [rank, what] of expected.entries()) {
      expect(lines[rank]).toMatch(new RegExp(`^  rank ${rank} +\\((pid|thread) \\d+\\) `));
      expect(lines[rank]).toMatch(what);
    }
  });
});
