/** Measures figures in a thread of its own: it is told their ids, and answers with what came out. */
import { parentPort } from 'node:worker_threads';
import { FIGURES } from './all.ts';
import { isChanged, numbersRead } from './fabrics.ts';
import type { Outcome } from './figure.ts';

export interface Measured {
  readonly outcome: Outcome;
  /** Numbers of fabrics that were read for it or for a figure before, where that is recorded (known-fabrics.ts). */
  readonly read: readonly string[];
  /** Of real time. */
  readonly seconds: number;
}

/** Of a worker in which a number is another one. */
export interface Judged {
  readonly holds: boolean;
}

const port = parentPort!;
port.on('message', (id: string) => {
  const figure = FIGURES.find((one) => one.id === id)!;
  void (isChanged ? judged() : measured()).then((answer) => port.postMessage(answer));

  async function measured(): Promise<Measured> {
    const began = performance.now();
    const outcome = await figure.measure();
    return { outcome, read: [...numbersRead], seconds: (performance.now() - began) / 1000 };
  }

  async function judged(): Promise<Judged> {
    return { holds: figure.verdict === undefined ? (await figure.measure()).holds : await figure.verdict() };
  }
});
