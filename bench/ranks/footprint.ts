/**
 * What a rank costs while nothing happens: bench/peers/footprint.c on our windows.
 *
 *   onesided run -n 2 build/programs/bench/ranks/footprint.js -- idle|idle-async [SECONDS]
 *   onesided run -n N build/programs/bench/ranks/footprint.js -- memory
 *
 * prints one line of JSON from rank 0: { row, unit, samples: [...] }.
 */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { type Communicator, init, Op, Window } from 'onesided';

/** Processor time of rank 1 while rank 0 comes late to the barrier, in % of a core. */
async function idle(world: Communicator, seconds: number, awaited: boolean): Promise<number> {
  world.barrierSync();
  const wall = performance.now();
  const before = process.cpuUsage();
  if (world.rank === 0) await setTimeout(1e3 * seconds);
  if (awaited) await world.barrier();
  else world.barrierSync();
  const { user, system } = process.cpuUsage(before);
  const share = (100 * (user + system)) / 1e3 / (performance.now() - wall);
  const shares = new Float64Array(world.size);
  await world.allgather(Float64Array.of(share), shares);
  return shares[1];
}

/** Proportional set size of a rank with a window of 1 MiB after a put to every rank, in MiB; the mean of all ranks. */
async function memory(world: Communicator): Promise<number> {
  const window = await Window.allocate(world, Uint8Array, 1 << 20);
  const origin = new Uint8Array(4096);
  (window.local as Uint8Array).fill(1);
  await window.fence();
  for (let target = 0; target < world.size; target++) window.put(origin, target, 0);
  await window.fence();
  const kib = /^Pss:\s*(\d+) kB/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))?.[1];
  await world.barrier();
  const sum = new Float64Array(1);
  await world.allreduce(Float64Array.of(Number(kib) / 1024), sum, Op.SUM);
  await window.free();
  return sum[0] / world.size;
}

const [row, seconds = '2'] = process.argv.slice(2);
const world = await init();
const value = row === 'memory' ? await memory(world) : await idle(world, Number(seconds), row === 'idle-async');
if (world.rank === 0) console.log(JSON.stringify({ row, unit: row === 'memory' ? 'MiB' : '%', samples: [value] }));
await world.finalize();
