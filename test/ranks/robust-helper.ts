/**
 * The last rank ends while the others put to it and get from it by its helper: `--how=kill`, `exit` or `throw`;
 * the others print the code of the error that they get.
 */
import { Datatype, init, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const how = argument('how')!;
const world = await init();
const { rank, size } = world;
const type = Datatype.vector(500, 4, 8, Datatype.INT32);
const win = await Window.allocate(world, Int32Array, 4000, { info: { noncontiguous: 'host-assisted' } });
await win.lockAll();
await world.barrier();
if (rank === size - 1) {
  while (Atomics.load(win.local, 0) < 20);
  if (how === 'kill') process.kill(process.pid, 'SIGKILL');
  if (how === 'exit') process.exit(7);
  throw new Error('as it was asked to');
}
try {
  const values = new Int32Array(2000);
  const back = new Int32Array(2000);
  for (let i = 1; ; i++) {
    values[0] = i;
    win.put(values, size - 1, 0, { target: { type } });
    win.get(back, size - 1, 0, { target: { type } });
    win.flushSync(size - 1);
  }
} catch (error) {
  console.log(JSON.stringify({ rank, code: (error as RmaError).code }));
  throw error;
}
