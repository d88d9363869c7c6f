/** Rank 0 calls `init` before the others, with a deadline, and then again. Each prints what comes of its calls. */
import { setTimeout as sleep } from 'node:timers/promises';
import { init } from 'onesided';

const outcomeOf = (call: Promise<{ size: number }>): Promise<string> =>
  call.then(
    ({ size }) => `joined ${size}`,
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );

// Started by the launcher, a process is told its rank in the environment.
const first = process.env['ONESIDED_RANK'] === '0';
if (first) {
  console.log(await outcomeOf(init({ timeout: 50 })));
  console.log(await outcomeOf(init()));
} else await sleep(60_000);
process.exit(7);
