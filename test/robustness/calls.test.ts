/**
 * Every call that needs a rank which is gone says so, whichever is the first that a survivor makes. On a device:
 * test/rdma/robustness.test.ts.
 */

import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';
import { start } from '../launcher/command.ts';
import { expectFailures, type Outcomes } from './calls.ts';
import { linesOf } from './jobs.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-calls.js', import.meta.url));
const slots = new Slots(3);

describe.skipIf(loadNative() === undefined).concurrent('calls after a rank was killed', () => {
  describe.each(['in shared memory', 'by requests'])('%s', (way) => {
    const env = way === 'by requests' ? { ...process.env, ONESIDED_DEBUG: 'requests' } : process.env;
    it.each([...LOCK_SCHEMES])('with the lock %s', async (lock) => {
      await slots.use(async () => {
        const args = ['run', '-n', '2', '--timeout', '60', PROGRAM, '--', '--how=kill', `--lock=${lock}`];
        const { code, stdout, stderr } = await start(args, { env }).finished;
        expect(code, stdout + stderr).toBe(137);
        const told = linesOf<{ outcomes?: Outcomes }>(stdout).find(({ outcomes }) => outcomes !== undefined);
        expectFailures(told?.outcomes ?? {}, /^rank 1 \(process \d+\) was killed by signal 9/);
      });
    });
  });
});
