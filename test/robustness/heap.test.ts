/**
 * Memory of windows that were freed is used again: a limit on file sizes is one on what is there at a time, not on all
 * that ever was.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { linesOf } from './jobs.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-heap.js', import.meta.url));

/**
 * Blocks of `ulimit -f`: 1 GiB where they have 512 bytes, 2 GiB where they have 1,024. A hundred windows have 6.25 GiB.
 */
const LIMIT = 2 ** 21;

it.each(['', 'requests'])(
  'a hundred windows of 64 MiB, one after the other, fit in 1 GiB (ONESIDED_DEBUG=%s)',
  async (debug) => {
    const run = [MAIN, 'run', '-n', '3', '--ranks', 'processes', '--timeout', '150', PROGRAM];
    const child = spawn('/bin/sh', ['-c', `ulimit -f ${LIMIT} && exec "$0" "$@"`, process.execPath, ...run], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ONESIDED_DEBUG: debug },
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect([code, stderr]).toEqual([0, '']);
    const lines = linesOf<{ zero: boolean; right: boolean; heapBytes: number }>(stdout);
    expect(lines.map(({ rank, zero, right }) => [rank, zero, right]).sort()).toEqual([
      [0, true, true],
      [1, true, true],
      [2, true, true],
    ]);
    // The window, one more that a peer may still have mapped, and the library's own tables.
    for (const { heapBytes } of lines) expect(heapBytes).toBeLessThan(2 ** 28);
  },
);
