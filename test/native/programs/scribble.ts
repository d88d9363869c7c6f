/** A worker that makes displacements wild and tame again, until it is told to stop. */
import { parentPort, workerData } from 'node:worker_threads';

const { displacements, stop } = workerData as { displacements: Int32Array; stop: Int32Array };
parentPort?.postMessage('scribbling');
for (let i = 0; Atomics.load(stop, 0) === 0; i = (i + 7919) % displacements.length) {
  displacements[i] = 2 ** 30;
  displacements[i] = 3;
}
