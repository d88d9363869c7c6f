/** What ranks have in their environment. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { RANK_KINDS } from '../support/ranks.ts';
import { start } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/init-environment.js', import.meta.url));

test.each(RANK_KINDS)(
  'as %s: the provider of the command line; nothing that makes ranks of what they start',
  async (kind) => {
    const env = { ...process.env, ONESIDED_PROVIDER: 'rdma-core' };
    const args = ['run', '-n', '2', '--no-prefix', '--ranks', kind, '--provider', 'emulator', PROGRAM];
    const { code, stdout, stderr } = await start(args, { env }).finished;
    expect(code, stderr).toBe(0);
    const lines = stdout.trim().split('\n').sort();
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      [0, 1].map((rank) => ({ rank, provider: 'emulator', left: [] })),
    );
  },
);
