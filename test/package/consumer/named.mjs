// Two processes that nobody has started together: `node named.mjs NAME`, twice.
import { init, Lock, Op, Window } from 'onesided';

const world = await init({ job: process.argv[2], size: 2, timeout: 120_000 });
const win = await Window.allocate(world, Float64Array, 4);
const sum = Float64Array.of(1, 2, 3, 4);
for (let round = 0; round < 100; round++) {
  await win.lock(0, Lock.EXCLUSIVE);
  win.accumulate(sum, 0, 0, Op.SUM);
  await win.unlock(0);
}
await world.barrier();
await win.fence();
const found = new Float64Array(4);
win.get(found, 0, 0);
await win.fence();
console.log(`rank ${world.rank} on ${process.arch}: ${found.join(' ')}`);
await win.free();
await world.finalize();
