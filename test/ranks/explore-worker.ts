/** Tries schedules in a thread of its own: it is told their seeds, and answers with what was found (explore.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import { type Choice, Exploration, type Seeds } from './support/exploration.ts';

const port = parentPort!;
const exploration = new Exploration(workerData as Choice);
port.on('message', (seeds: Seeds) => {
  void exploration.explore(seeds).then((found) => port.postMessage(found));
});
