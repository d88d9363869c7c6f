/** Measures figures in a thread of its own: it is told their ids, and answers with what came out. */
import { parentPort } from 'node:worker_threads';
import { FIGURES } from './all.ts';
import { numbersRead } from './fabrics.ts';
import type { Outcome } from './figure.ts';

export interface Measured {
  readonly outcome: Outcome;
  /** Numbers of fabrics that were read for it or for a figure before, where that is recorded (fabrics.ts). */
  readonly read: readonly string[];
  /** Of real time. */
  readonly seconds: number;
}

const port = parentPort!;
port.on('message', (id: string) => {
  const began = performance.now();
  void FIGURES.find((figure) => figure.id === id)!
    .measure()
    .then((outcome) => {
      const seconds = (performance.now() - began) / 1000;
      port.postMessage({ outcome, read: [...numbersRead], seconds } satisfies Measured);
    });
});
