/** Measures figures in a thread of its own: it is told their ids, and answers with what came out. */
import { parentPort } from 'node:worker_threads';
import { FIGURES } from './all.ts';
import { isJudged, numbersRead } from './fabrics.ts';
import type { Outcome } from './figure.ts';

export interface Measured {
  readonly outcome: Outcome;
  /** Numbers of fabrics that were read for it or for a figure before, where that is recorded (known-fabrics.ts). */
  readonly read: readonly string[];
  /** Of real time. */
  readonly seconds: number;
}

/** Of a worker that is asked for the verdict alone. */
export interface Judged extends Omit<Measured, 'outcome'> {
  readonly holds: boolean;
}

const port = parentPort!;
port.on('message', (id: string) => {
  const figure = FIGURES.find((one) => one.id === id)!;
  const began = performance.now();
  void (isJudged ? judged() : measured()).then((answer) =>
    port.postMessage({ ...answer, read: [...numbersRead], seconds: (performance.now() - began) / 1000 }),
  );

  async function measured(): Promise<Pick<Measured, 'outcome'>> {
    return { outcome: await figure.measure() };
  }

  async function judged(): Promise<Pick<Judged, 'holds'>> {
    if (figure.necessary !== undefined && !(await figure.necessary())) return { holds: false };
    return { holds: figure.verdict === undefined ? (await figure.measure()).holds : await figure.verdict() };
  }
});
