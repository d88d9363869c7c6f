/** Measures figures on all cores: they are computed, so nothing changes for one that another one is measured at the same time. */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Figure, Outcome } from './figure.ts';

/** @param measured told how many are done @returns in the order of the figures */
export async function measureAll(
  figures: readonly Figure[],
  measured: (done: number) => void,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let [next, done] = [0, 0];
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('./worker.js', import.meta.url));
    try {
      while (next < figures.length) {
        const turn = next++;
        worker.postMessage(figures[turn].id);
        // What goes wrong there rejects this.
        [outcomes[turn]] = (await once(worker, 'message')) as [Outcome];
        measured(++done);
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), figures.length) }, work));
  return outcomes;
}
