/**
 * Rank 0 owns memory that the others access in all ways, and ends in the middle of it. What the others get is printed,
 * with the time.
 *
 * `--how=kill|exit`, `--calls=put|accumulate|dynamic`, `--after=MS`. `kill` is for processes.
 */
import { writeSync } from 'node:fs';
import { init, Op, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const world = await init();
const how = argument('how');
const calls = argument('calls');
const after = Number(argument('after'));

/** At once, from a thread too, which then does not have its rank written before the line. */
function tell(what: object): void {
  writeSync(1, `${JSON.stringify({ rank: world.rank, ...what })}\n`);
}

/** From here on each rank says that it has begun. */
const BEGUN = 10_000;
const memory = new Float64Array(world.rank === 0 ? BEGUN + world.size : 1);
const win: Window = calls === 'dynamic' ? await Window.createDynamic(world) : await Window.create(world, memory);
const address = new Float64Array(world.size);
const mine = calls === 'dynamic' ? win.attach(memory) : 0;
await world.allgather(Float64Array.of(mine), address);
await win.lockAll();
await world.barrier();
if (world.rank === 0) {
  // Computes until all others have begun, and a while longer, and ends.
  const begun = () => memory.subarray(BEGUN + 1, BEGUN + world.size).every((flag) => flag === 1);
  const limit = performance.now() + 60_000;
  while (!begun() && performance.now() < limit);
  const until = performance.now() + after;
  while (performance.now() < until);
  tell({ died: Date.now(), sum: memory[0] });
  if (how === 'kill') process.kill(process.pid, 'SIGKILL');
  else process.exit(3);
}
let done = 0;
const began = performance.now();
try {
  const block = new Float64Array(5000).fill(1);
  for (;;) {
    if (calls === 'put') {
      win.put(block, 0, 0);
      win.get(block, 0, 5000);
      // The memory of a thread outlives it: who only puts learns of the end from the next call that waits.
      if (performance.now() - began > after + 500) world.barrierSync();
    } else if (calls === 'dynamic') {
      win.accumulate(block, 0, address[0], Op.SUM);
      win.get(block, 0, address[0]);
    } else win.accumulate(block, 0, 0, Op.SUM);
    if (done++ === 0) {
      const disp = BEGUN + world.rank;
      win.put(Float64Array.of(1), 0, calls === 'dynamic' ? address[0] + 8 * disp : disp);
    }
  }
} catch (error) {
  const { code, message } = error as RmaError;
  tell({ caught: Date.now(), code, message, done });
  throw error;
}
