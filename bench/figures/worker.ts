/** Measures figures in a thread of its own: it is told their ids, and answers with their outcomes. */
import { parentPort } from 'node:worker_threads';
import { FIGURES } from './all.ts';

const port = parentPort!;
port.on('message', (id: string) => {
  void FIGURES.find((figure) => figure.id === id)!
    .measure()
    .then((outcome) => port.postMessage(outcome));
});
