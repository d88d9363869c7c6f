/**
 * Process ranks that start worker threads of their own, which load the addon too: two at a time sleep in it, one on the
 * event loop and one in the kernel, and are terminated there, while the ranks go on communicating. `--rounds=N`.
 */

import { once } from 'node:events';
import { closeSync, readdirSync, readFileSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { init, Window } from 'onesided';
import type { Native } from '../../src/native.ts';
import { argument } from './support/cases.ts';

const NATIVE = new URL('../../../../dist/native.js', import.meta.url).href;

async function loadAddon(): Promise<Native> {
  const { loadNative } = (await import(NATIVE)) as typeof import('../../src/native.ts');
  return loadNative()!;
}

async function sleepUntilTerminated(how: string): Promise<void> {
  const native = await loadAddon();
  const fd = native.memoryCreate('robust-worker');
  native.memoryResize(fd, 4096);
  const words = new Int32Array(native.memoryMap(fd, 0, 4096));
  closeSync(fd);
  // A world of one: its rank is this worker, not the process's.
  const alone = await init();
  const window = await Window.allocate(alone, Float64Array, 1000);
  await window.fence();
  parentPort!.postMessage({ size: alone.size, word: window.local[0] });
  if (how === 'event-loop') new native.Parker(() => {}).begin(words, 0, 0, Number.POSITIVE_INFINITY);
  // V8 looks for a termination when a function is entered, in this loop now and then only.
  else for (const sleep = (): number => native.futexWait(words, 0, 0, 50); ; ) sleep();
}

async function rank(): Promise<void> {
  const world = await init();
  const window = await Window.allocate(world, Float64Array, 1000);
  const rounds = Number(argument('rounds'));
  const target = (world.rank + 1) % world.size;
  let first = 0;
  for (let round = 1; round <= rounds; round++) {
    const workers = ['event-loop', 'kernel'].map(
      (how) => new Worker(new URL(import.meta.url), { workerData: { how } }),
    );
    const said = await Promise.all(
      workers.map(async (worker) => (await once(worker, 'message'))[0] as { size: number }),
    );
    if (said.some(({ size }) => size !== 1)) throw new Error(`a worker is in a world of ${said[0].size}`);
    await window.fence();
    window.put(new Float64Array(1000).fill(round), target, 0);
    const ends = workers.map((worker) => worker.terminate());
    await window.fence();
    if (window.local.some((value) => value !== round)) throw new Error(`wrong values in round ${round}`);
    await Promise.all(ends);
    world.barrierSync();
    if (round === 2) first = descriptors();
  }
  console.log(
    JSON.stringify({
      rounds,
      moreDescriptors: descriptors() - first,
      workersMemory: readFileSync('/proc/self/maps', 'utf8').split('robust-worker').length - 1,
    }),
  );
  await window.free();
  await world.finalize();
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

await (isMainThread ? rank() : sleepUntilTerminated((workerData as { how: string }).how));
