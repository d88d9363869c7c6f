/** Ranks that have put to each other tell how much memory each has for itself, in KiB. */
import { readFileSync } from 'node:fs';
import { init, Window } from 'onesided';

const world = await init();
const window = await Window.allocate(world, Float64Array, world.size);
await window.lockAll();
for (let to = 0; to < world.size; to++) {
  window.put(Float64Array.of(1), to, world.rank);
  await window.flush(to);
}
await window.unlockAll();
await world.barrier();
const lines = readFileSync('/proc/self/smaps_rollup', 'utf8').matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB$/gm);
console.log(JSON.stringify({ kibibytes: [...lines].reduce((sum, [, digits]) => sum + Number(digits), 0) }));
await world.barrier();
await window.free();
await world.finalize();
