/**
 * Jobs whose processes may have few descriptors or small files: they work, or end with a message that says what is
 * missing. None hangs.
 */
import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { COMMAND } from '../launcher/command.ts';
import { PROGRAM } from '../robustness/members.ts';

/** Runs two ranks of a job under a limit of the shell's `ulimit`. */
function limited(limit: string): Promise<{ code: number | null; printed: string }> {
  const run = [process.execPath, COMMAND, 'run', '-n', '2', '--timeout', '60', PROGRAM];
  const child = spawn('/bin/sh', ['-c', `ulimit ${limit}; exec "$0" "$@"`, ...run], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += String(text)));
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, printed }));
  });
}

describe.skipIf(loadNative() === undefined)('a job under limits', () => {
  it.each([20, 21, 22, 23, 24, 28, 32, 36, 40, 48, 64, 256])(
    'with %i descriptors works, or says that it needs more',
    { timeout: 120_000 },
    async (descriptors) => {
      const { code, printed } = await limited(`-n ${descriptors}`);
      if (descriptors >= 64) expect(code, printed).toBe(0);
      if (code !== 0) expect(printed).toMatch(/EMFILE|too many open files|Cannot open|descriptors/i);
      expect(printed).not.toContain('ERR_RMA_TIMEOUT');
    },
  );

  // Blocks of 512 bytes.
  it.each([0, 1, 64, 1024, 4096, 65_536, 1_048_576])(
    'with files of %i blocks works, or says that it needs more',
    { timeout: 120_000 },
    async (blocks) => {
      const { code, printed } = await limited(`-f ${blocks}`);
      if (blocks >= 65_536) expect(code, printed).toBe(0);
      if (code !== 0) expect(printed).toMatch(/EFBIG|ulimit -f|limit on file sizes/);
      expect(printed).not.toContain('ERR_RMA_TIMEOUT');
    },
  );
});
