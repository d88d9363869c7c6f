/**
 * The last rank ends while the others wait for it in barriers of their adapters: `--how=kill`, `exit` or `throw`; the
 * others print the code of the error that they get.
 */
import { init, type RmaError } from 'onesided';
import { argument } from './support/cases.ts';

const how = argument('how')!;
const world = await init({ barrier: 'adapter' });
const { rank, size } = world;
for (let i = 0; i < 20; i++) await world.barrier();
if (rank === size - 1) {
  if (how === 'kill') process.kill(process.pid, 'SIGKILL');
  if (how === 'exit') process.exit(7);
  throw new Error('as it was asked to');
}
try {
  if (rank === 0) await world.barrier();
  else world.barrierSync();
} catch (error) {
  console.log(JSON.stringify({ rank, code: (error as RmaError).code }));
  throw error;
}
