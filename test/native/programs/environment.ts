/**
 * A worker that uses the addon: maps, wakes, parks; then tells its parent, and goes on sleeping until it is terminated
 * if told so.
 */
import { closeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { addon } from '../../support/addon.ts';

const native = addon();
const fd = native.memoryCreate('onesided-environment');
native.memoryResize(fd, 1 << 20);
const kept = new Int32Array(native.memoryMap(fd, 0, 1 << 20));
closeSync(fd);
Atomics.add(kept, 0, 1);
const parker = new native.Parker((result) => {
  parentPort?.postMessage({ result, shared: Atomics.add(workerData.shared, 0, 1) });
  // Whatever is still mapped, and the parker, are left to the end of the environment.
  if (workerData.stay) parker.begin(kept, 0, 1, Number.POSITIVE_INFINITY);
});
parker.begin(kept, 0, 1, 20);
