/**
 * Measures figures on all cores: they are computed, so nothing changes for one that another one is measured at the same
 * time.
 */
import { onWorkers } from '../workers.ts';
import type { Figure, Outcome } from './figure.ts';
import type { Measured } from './worker.ts';

/** @param measured told how many are done @returns in the order of the figures */
export async function measureAll(
  figures: readonly Figure[],
  measured: (done: number) => void,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let done = 0;
  await onWorkers<string, Measured>(
    new URL('./worker.js', import.meta.url),
    figures.map(({ id }) => id),
    ({ outcome }, turn) => {
      outcomes[turn] = outcome;
      measured(++done);
    },
    { most: figures.length },
  );
  return outcomes;
}
