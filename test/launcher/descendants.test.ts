/** What ranks have started in sessions of their own ends with the job, however the job ends. */
import { describe, expect, it } from 'vitest';
import { RANK_KINDS } from '../support/ranks.ts';
import { leftWith, marker, PROBE, processesWith, start } from './command.ts';

const KEPT = 'NO_VARIABLE';

describe.concurrent.each(RANK_KINDS)('processes that ranks (%s) have started detached', (kind) => {
  const run = (...steps: string[]) => start(['run', '-n', '2', '--ranks', kind, '--grace', '0.1', PROBE, ...steps]);

  it.each([
    ['well', '*:print=done', 0],
    ['badly', '1:exit=3', 3],
  ])('end with a job that ends %s', async (_, last, code) => {
    const mark = marker();
    const finished = await run(`*:leave-detached=${KEPT}`, '*:sleep=200', last, mark).finished;
    expect(finished.code, finished.stderr).toBe(code);
    expect(await leftWith(mark)).toEqual([]);
  });

  it('stay if they were started without the job’s mark', async () => {
    const mark = marker();
    const { code, stderr } = await run('1:leave-detached=ONESIDED_JOB', '*:sleep=200', mark).finished;
    expect(code, stderr).toBe(0);
    const left = processesWith(mark);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    expect(left).toHaveLength(1);
    expect(await leftWith(mark)).toEqual([]);
  });

  it.skipIf(kind === 'threads')('end with a launcher that is killed', async () => {
    const mark = marker();
    const job = run(`*:leave-detached=${KEPT}`, '*:print=started', '*:spin', mark);
    await Promise.all([job.printed('[0] started'), job.printed('[1] started')]);
    expect(processesWith(mark)).toHaveLength(4);
    job.child.kill('SIGKILL');
    expect((await job.finished).signal).toBe('SIGKILL');
    expect(await leftWith(mark)).toEqual([]);
  });
});
