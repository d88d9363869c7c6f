/**
 * A rank that calls `init` only when the process that started it is gone, and writes what came of it to `--folder=…`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { init } from 'onesided';
import { argument } from './support/cases.ts';

const rank = process.env['ONESIDED_RANK'];
const launcher = process.ppid;
console.log('started');
while (process.ppid === launcher) await sleep(5);
const outcome = await init({ timeout: 60_000 }).then(
  () => 'joined',
  (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
);
writeFileSync(join(argument('folder')!, `rank-${rank}`), outcome);
// By a signal: nothing that this process has begun may end it in another way.
process.kill(process.pid, 'SIGKILL');
