/** Ranks whose launcher and guardian were both killed before they joined: nobody is left who could end them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { temporaryFolder } from '../support/folders.ts';
import { leftWith, start } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/launcher-orphan.js', import.meta.url));
const folder = temporaryFolder('orphans');

/** The guardian of a launcher: its child with that name. */
function guardianOf(launcher: number): number {
  const found = readdirSync('/proc').filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
      return parent === launcher && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('onesided-guardian');
    } catch {
      return false;
    }
  });
  expect(found).toHaveLength(1);
  return Number(found[0]);
}

it.skipIf(loadNative() === undefined)('end in init, with an error that says that the launcher is gone', async () => {
  const size = 3;
  const job = start(['run', '-n', String(size), PROGRAM, '--', `--folder=${folder}`]);
  for (let rank = 0; rank < size; rank++) await job.printed(`[${rank}] started`);
  const launcher = job.child.pid!;
  process.kill(guardianOf(launcher), 'SIGKILL');
  job.child.kill('SIGKILL');
  await job.finished;
  expect(await leftWith(folder)).toEqual([]);
  for (let rank = 0; rank < size; rank++) {
    const outcome = readFileSync(join(folder, `rank-${rank}`), 'utf8');
    expect(outcome).toMatch(
      new RegExp(`^ERR_COMM: init: the launcher of this job \\(process ${launcher}\\) is gone, .*rank ${rank} `),
    );
  }
});
