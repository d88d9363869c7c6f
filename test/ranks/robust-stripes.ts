/**
 * Ranks that all add to rank 0's part by requests, over and over, until one is killed, or a file is there: run with
 * ONESIDED_DEBUG=requests.
 *
 * `--victim=RANK --ending=kill|stop --until=FILE`. The victim says its process; what becomes of it is decided outside.
 * Each of the others says now and then that it goes on, whether its flushes are complete or end at their deadlines. If
 * the victim is killed, they say what they get, and that later calls do not hang either.
 */
import { existsSync, writeSync } from 'node:fs';
import { init, Op, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const ELEMENTS = 200_000;
/** Milliseconds after which a flush ends, if a rank is stopped, and after which a rank says again that it goes on. */
const DEADLINE_MS = 200;
const SAYS_MS = 100;
const victim = Number(argument('victim'));
const ending = argument('ending');
const until = argument('until')!;

function tell(what: object): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

const world = await init();
const { rank } = world;
const win = await Window.allocate(world, Float64Array, rank === 0 ? ELEMENTS : 0);
const ones = new Float64Array(ELEMENTS).fill(1);
await win.lockAll();
await world.barrier();
if (rank === victim) tell({ pid: process.pid });
const wait = ending === 'stop' ? { timeout: DEADLINE_MS } : undefined;
let added = 0;
let late = 0;
let said = 0;
try {
  while (!existsSync(until)) {
    win.accumulate(ones, 0, 0, Op.SUM);
    added++;
    try {
      if (added % 2 === 0) await win.flush(0, wait);
      else win.flushSync(0, wait);
    } catch (error) {
      if ((error as RmaError).code !== 'ERR_RMA_TIMEOUT') throw error;
      late++;
    }
    if (performance.now() - said > SAYS_MS) {
      said = performance.now();
      tell({ goesOn: added, late });
    }
    // Timers, and what the launcher says.
    await new Promise((resolve) => setImmediate(resolve));
  }
} catch (error) {
  const { code, message } = error as RmaError;
  tell({ caught: code, message, late });
  // Each later wait fails too, or is complete at once.
  for (let i = 0; i < 20; i++) {
    win.accumulate(ones, 0, 0, Op.SUM);
    await win.flush(0).catch((again: RmaError) => {
      if (again.code !== 'ERR_RMA_RANK_FAILED') throw again;
    });
  }
  tell({ later: true });
  throw error;
}
await win.flush(0);
await win.unlockAll();
const all = new Float64Array(1);
await world.allreduce(Float64Array.of(added), all, Op.SUM);
await world.barrier();
if (rank === 0 && !win.local.every((value) => value === all[0])) throw new Error(`${win.local[0]} is not ${all[0]}`);
tell({ late, done: true });
await win.free();
await world.finalize();
