/**
 * A rank ends while the others wait for what only it could give them. `--info=JSON`: hints of the window;
 * `--what=holder`: it holds the lock of rank 0 that they want; `agent`: it is rank 0; `fence`: it does not come to the
 * fence; `leaves`: all ranks come to the end of their program without `finalize`, and nothing holds them.
 */
import { writeSync } from 'node:fs';
import { init, Lock, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const what = argument('what');
const world = await init();
const { rank, size } = world;
const info = JSON.parse(argument('info') ?? '{}');
const win = await Window.allocate(world, Float64Array, 2, { info });
const victim = what === 'agent' ? 0 : size - 1;
// Everybody has talked to everybody.
await win.lockAll();
await win.unlockAll();
await world.barrier();
if (what === 'fence') await win.fence();
if (rank === size - 1 && what !== 'fence') await win.lock(0, Lock.EXCLUSIVE);
await world.barrier();
if (what === 'leaves') console.log(JSON.stringify({ left: rank }));
else {
  if (rank === victim) {
    const until = performance.now() + 100;
    while (performance.now() < until);
    process.exit(3);
  }
  // One that holds the lock of a rank that is gone learns so at its next wait.
  const began = performance.now();
  try {
    if (what === 'fence') await win.fence();
    else if (rank === size - 1) await world.barrier();
    else await win.lock(0, rank % 2 === 0 ? Lock.EXCLUSIVE : Lock.SHARED);
    writeSync(1, `${JSON.stringify({ rank, code: 'none' })}\n`);
  } catch (error) {
    const milliseconds = performance.now() - began;
    // At once: the job is about to be ended.
    writeSync(1, `${JSON.stringify({ rank, code: (error as RmaError).code, milliseconds })}\n`);
    throw error;
  }
}
