/** A job that hangs: who waits for whom. More ranks than cores, and as many. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { RANK_KINDS } from '../support/ranks.ts';
import { onesided } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/launcher-hang.js', import.meta.url));

/** More ranks than cores, so that the barrier is another one. */
const MANY = Math.max(4, availableParallelism() + 1);

const folder = mkdtempSync(join(tmpdir(), 'onesided-hang-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(RANK_KINDS)('%s', (kind) => {
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
