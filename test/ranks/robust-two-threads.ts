/**
 * The main thread and a worker of each process rank both call `init()`, one after the other (`--first=main|worker`) or
 * at once: one of them is the rank.
 */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { init, type RmaError } from 'onesided';
import { argument } from './support/cases.ts';

const first = isMainThread ? argument('first') : (workerData as { first: string }).first;
const me = isMainThread ? 'main' : 'worker';
// Copies the environment, in which the launcher's words are until init() has read them.
if (isMainThread) new Worker(new URL(import.meta.url), { workerData: { first } });
if (first !== 'any' && first !== me) await sleep(250);
try {
  const world = await init();
  await world.barrier();
  await sleep(300);
  await world.finalize();
  writeSync(1, `${JSON.stringify({ me, size: world.size })}\n`);
} catch (error) {
  const { code, message } = error as RmaError;
  writeSync(1, `${JSON.stringify({ me, code, message })}\n`);
}
