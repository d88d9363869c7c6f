/**
 * `npm run figures -- --sensitivity [--only D6.4,D7.5]`: which verdicts depend on a number that no source gives. Each
 * figure is measured again with each such number of its fabrics at −30 % and at +30 %, one at a time, and the verdicts
 * that change are written to docs/sensitivity.json, from which docs/results.md tells them. Figures that are not
 * measured keep what the file says of them.
 *
 * A claim that changes its verdict is about the fabric as much as about the schemes.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../programs.ts';
import type { Progress } from '../progress.ts';
import { onWorkers } from '../workers.ts';
import { CHAPTERS } from './all.ts';
import type { Change } from './fabrics.ts';
import type { Figure, Outcome } from './figure.ts';

const FACTORS = [0.7, 1.3];

/** What a number's source names where somebody else gives it: a paper, a manual, a standard, a data sheet. */
const GIVEN = /dissertation|MVAPICH2 1\.0|MVAPICH2 user guide|InfiniBand 1\.2|ibv_query_device|Liu et al\.|the adapter/;

/** The verdicts of a figure that are others with other numbers. */
export interface Sensitivity {
  /** How many numbers were changed, each both ways. */
  readonly numbers: number;
  readonly holds: boolean;
  readonly flips: readonly Change[];
}

export type Sensitivities = Readonly<Record<string, Sensitivity>>;

/** The numbers of a fabric that no source gives: fitted, free, or estimated. 0 and 1 are switches. */
export function unsourced(fabric: string): string[] {
  const description = JSON.parse(readFileSync(join(ROOT, `fabrics/${fabric}.json`), 'utf8')) as Record<string, unknown>;
  return Object.entries(description).flatMap(([group, numbers]) =>
    typeof numbers !== 'object' || numbers === null
      ? []
      : Object.entries(numbers as Record<string, { readonly value: number; readonly source: string }>)
          .filter(
            ([, { value, source }]) =>
              value !== 0 && value !== 1 && (/^(fitted|free)/.test(source) || !GIVEN.test(source)),
          )
          .map(([field]) => `${group}.${field}`),
  );
}

const fileIn = (docs: string): string => join(docs, 'sensitivity.json');

/** What is known; nothing where nothing was measured. */
export function readSensitivities(docs: string): Sensitivities {
  return existsSync(fileIn(docs)) ? (JSON.parse(readFileSync(fileIn(docs), 'utf8')) as Sensitivities) : {};
}

/** Measures them all, which takes long, and writes what was found. @param progress counts measurements */
export async function measureSensitivities(
  figures: readonly Figure[],
  outcomes: readonly Outcome[],
  docs: string,
  progress: (all: number) => Progress,
): Promise<Sensitivities> {
  const found: Record<string, { numbers: number; holds: boolean; flips: Change[] }> = {};
  for (const [i, { id }] of figures.entries()) found[id] = { numbers: 0, holds: outcomes[i].holds, flips: [] };
  const runs = CHAPTERS.flatMap((chapter) => {
    const ids = figures.filter((figure) => chapter.figures.includes(figure)).map(({ id }) => id);
    if (ids.length === 0) return [];
    return chapter.fabrics.flatMap((fabric) => {
      const numbers = unsourced(fabric);
      for (const id of ids) found[id].numbers += numbers.length;
      return numbers.flatMap((number) => FACTORS.map((factor) => ({ ids, change: { fabric, number, factor } })));
    });
  });
  const shown = progress(runs.reduce((sum, { ids }) => sum + ids.length, 0));
  let done = 0;
  const known = readSensitivities(docs);
  for (const { ids, change } of runs) {
    const take = (outcome: Outcome, turn: number): void => {
      const one = found[ids[turn]];
      if (outcome.holds !== one.holds) one.flips.push(change);
      shown.update(++done);
    };
    await onWorkers<string, Outcome>(new URL('./worker.js', import.meta.url), ids, take, {
      data: change,
      most: ids.length,
    });
  }
  shown.stop();
  const all = { ...known, ...found };
  writeFileSync(fileIn(docs), `${JSON.stringify(all, null, 1)}\n`);
  return all;
}

/** In words. */
export function describeSensitivity({ numbers, holds, flips }: Sensitivity): string {
  const other = holds ? 'does not hold' : 'holds';
  if (flips.length === 0) return `the verdict is the same with each of ${numbers} numbers at −30 % and +30 %`;
  const which = flips.map(
    ({ fabric, number, factor }) =>
      `\`${number}\` of ${fabric} at ${factor < 1 ? '−' : '+'}${Math.round(100 * Math.abs(factor - 1))} %`,
  );
  return `it ${other} with ${which.join(', ')}; else the same with each of ${numbers} numbers at −30 % and +30 %`;
}
