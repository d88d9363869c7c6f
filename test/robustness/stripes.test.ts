/**
 * A rank that is killed or stopped while all add to one part by requests: it has a stripe then, or waits for one.
 * `ONESIDED_TEST_KILLS=N` repeats each so often.
 */
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { start } from '../launcher/command.ts';
import { linesOf, said } from './jobs.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-stripes.js', import.meta.url));
const TIMES = Number(process.env['ONESIDED_TEST_KILLS'] ?? 6);
const RANKS = 3;
const env = { ONESIDED_DEBUG: 'requests' };
const cases = Array.from({ length: TIMES }, (_, i) => ({ victim: i % RANKS, after: 37 * i }));

interface Line {
  readonly pid?: number;
  readonly caught?: string;
  readonly message?: string;
  readonly later?: boolean;
  readonly done?: boolean;
}

function begin(victim: number, ending: string, until: string) {
  const args = ['--', `--victim=${victim}`, `--ending=${ending}`, `--until=${until}`];
  return start(['run', '-n', String(RANKS), '--timeout', '100', '--grace', '60', PROGRAM, ...args], {
    env: { ...process.env, ...env },
  });
}

describe.skipIf(loadNative() === undefined).concurrent('stripes by requests', () => {
  const slots = new Slots(2);

  it.each(cases)('a rank is killed: %o', { timeout: 120_000 }, async ({ victim, after }) => {
    await slots.use(async () => {
      const job = begin(victim, 'kill', '/nonexistent');
      const pid = Number((await said(job, /\{"pid":(\d+)\}/))[1]);
      await sleep(after);
      process.kill(pid, 'SIGKILL');
      const { code, stdout, stderr } = await job.finished;
      const lines = linesOf<Line>(stdout);
      const report = `${stdout}${stderr}`;
      const caught = lines.filter((line) => line.caught !== undefined);
      expect(caught.length, report).toBe(RANKS - 1);
      for (const line of caught) {
        expect(line.caught, report).toBe('ERR_RMA_RANK_FAILED');
        expect(line.message, report).toContain(`rank ${victim} (process `);
      }
      expect(lines.filter(({ later }) => later === true).length, report).toBe(RANKS - 1);
      expect(code, report).toBe(128 + 9);
    });
  });

  it.each(cases)('a rank is stopped, and goes on: %o', { timeout: 120_000 }, async ({ victim, after }) => {
    await slots.use(async () => {
      const until = join(tmpdir(), `onesided-stripes-${randomUUID()}`);
      const job = begin(victim, 'stop', until);
      const pid = Number((await said(job, /\{"pid":(\d+)\}/))[1]);
      await sleep(after);
      process.kill(pid, 'SIGSTOP');
      // Each of the others says three times that it goes on: the first two may have been on their way.
      const others = Array.from({ length: RANKS }, (_, rank) => rank).filter((rank) => rank !== victim);
      await Promise.all(others.map((rank) => said(job, new RegExp(`(?:\\[ *${rank}\\] \\{"goesOn":[^]*){3}`))));
      process.kill(pid, 'SIGCONT');
      writeFileSync(until, '');
      const { code, stdout, stderr } = await job.finished;
      const report = `${stdout}${stderr}`;
      expect(code, report).toBe(0);
      expect(linesOf<Line>(stdout).filter(({ done }) => done === true).length, report).toBe(RANKS);
      rmSync(until);
    });
  });
});
