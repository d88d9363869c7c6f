/** Two ranks that have put and got; then each starts a program, and tells which sockets it has got from its rank. */
import { execFileSync } from 'node:child_process';
import { init, Window } from 'onesided';

const world = await init();
const window = await Window.allocate(world, Float64Array, world.size);
await window.fence();
window.put(Float64Array.of(1), (world.rank + 1) % world.size, world.rank);
await window.fence();
await world.barrier();
const listing = execFileSync('ls', ['-l', '/proc/self/fd'], { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });
console.log(JSON.stringify({ sockets: listing.split('\n').filter((line) => line.includes('socket:')).length }));
await world.barrier();
await window.free();
await world.finalize();
