/**
 * Rank 1 aborts the job while rank 0 waits for it in a call and rank 2 computes without end. `--code=N`; `--job=NAME`
 * joins a job by name; `--form=sync` waits in a blocking call.
 */
import { init, Op } from 'onesided';
import { argument } from './support/cases.ts';

const job = argument('job');
const world = await init(job === undefined ? {} : { job, size: 3 });
// Afterwards ranks 1 and 2 are connected: a message leaves at once.
await world.allreduce(new Int32Array(1), new Int32Array(1), Op.SUM);
console.log(`rank ${world.rank} is there`);
if (world.rank === 1) {
  await world.receive(new Int32Array(1), 2);
  world.abort(Number(argument('code')));
}
if (world.size === 1) world.abort(Number(argument('code')));
if (world.rank === 2) {
  world.send(Int32Array.of(1), 1);
  for (;;);
}
if (argument('form') === 'sync') world.barrierSync();
else await world.barrier();
console.log('nobody comes here');
