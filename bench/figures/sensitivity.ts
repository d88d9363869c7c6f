/**
 * `npm run figures -- --sensitivity [--resume] [--only D6.4,D7.5]`: which verdicts depend on a number that no source
 * gives. Each figure is measured again with each such number of its fabrics at −30 % and at +30 %, one at a time, and
 * the verdicts that change are written to docs/sensitivity.json, from which docs/results.md tells them. Figures that are
 * not measured keep what the file says of them.
 *
 * A number that a figure does not read cannot change it, and is left out: its first run records what it reads
 * (`observeFabric`). Each other run has a thread of its own, since programs keep what they have measured. Figures that
 * take least come first; the file has each as soon as it is complete. `--resume` goes on where a run of the same code
 * was stopped (build/sensitivity.jsonl).
 *
 * A claim that changes its verdict is about the fabric as much as about the schemes.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../programs.ts';
import type { Progress } from '../progress.ts';
import { onWorkers } from '../workers.ts';
import { CHAPTERS } from './all.ts';
import type { Change, Changes } from './fabrics.ts';
import type { Figure, Outcome } from './figure.ts';
import type { Measured } from './worker.ts';

const FACTORS = [0.7, 1.3];

/** The verdicts of a figure that are others with other numbers. */
export interface Sensitivity {
  /** How many numbers were changed, each both ways. */
  readonly numbers: number;
  readonly holds: boolean;
  /** Of the values that were drawn: with others, this is of another figure. */
  readonly of: string;
  readonly flips: readonly Change[];
  /** Changes with which the figure cannot be measured. */
  readonly failed: readonly Change[];
}

export type Sensitivities = Readonly<Record<string, Sensitivity>>;

interface Described {
  readonly value: number;
  readonly source: string;
}

/** The numbers of a fabric that no source gives, by their labels (docs/guide/fabrics.md). What is 0 stays 0. */
export function unsourced(fabric: string): string[] {
  const description = JSON.parse(readFileSync(join(ROOT, `fabrics/${fabric}.json`), 'utf8')) as Record<string, unknown>;
  return Object.entries(description).flatMap(([group, numbers]) =>
    typeof numbers !== 'object' || numbers === null
      ? []
      : Object.entries(numbers as Record<string, Described>)
          .filter(([, { value, source }]) => value !== 0 && /^(fitted|free):/.test(source))
          .map(([field]) => `${group}.${field}`),
  );
}

const fileIn = (docs: string): string => join(docs, 'sensitivity.json');

const digest = (...texts: readonly string[]): string => {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(text);
  return hash.digest('hex').slice(0, 16);
};

/** Of the values of a figure. */
const valuesOf = ({ chart }: Outcome): string => digest(JSON.stringify(chart.series.map(({ values }) => values)));

/** What is known; nothing where nothing was measured. */
export function readSensitivities(docs: string): Sensitivities {
  return existsSync(fileIn(docs)) ? (JSON.parse(readFileSync(fileIn(docs), 'utf8')) as Sensitivities) : {};
}

/** What is known of a figure as it is now; undefined if its values or its verdict were others then. */
export function sensitivityOf(all: Sensitivities, id: string, outcome: Outcome): Sensitivity | undefined {
  const known = all[id];
  return known?.of === valuesOf(outcome) && known.holds === outcome.holds ? known : undefined;
}

/** A line of the file that a run can go on from. */
type Step =
  | { readonly code: string }
  | ({ readonly id: string } & Measured)
  | { readonly id: string; readonly change: Change; readonly holds: boolean | null };

/** What has been measured, written as it comes. */
class Steps {
  readonly first = new Map<string, Measured>();
  readonly #changed = new Map<string, boolean | null>();
  readonly #file = join(ROOT, 'build/sensitivity.jsonl');

  /** @throws RangeError if there is nothing to go on from, or it is of other code */
  constructor(resume: boolean) {
    const code = codeOf();
    if (resume) {
      if (!existsSync(this.#file)) throw new RangeError(`--resume: there is no ${this.#file}`);
      const steps = readFileSync(this.#file, 'utf8').trim().split('\n');
      for (const step of steps.map((line) => JSON.parse(line) as Step)) this.#take(step, code);
    } else {
      mkdirSync(join(ROOT, 'build'), { recursive: true });
      writeFileSync(this.#file, `${JSON.stringify({ code } satisfies Step)}\n`);
    }
  }

  /** The verdict with a change; null if it cannot be measured, undefined if it was not. */
  verdict(id: string, change: Change): boolean | null | undefined {
    return this.#changed.get(keyOf(id, change));
  }

  add(step: Step): void {
    this.#take(step, '');
    appendFileSync(this.#file, `${JSON.stringify(step)}\n`);
  }

  #take(step: Step, code: string): void {
    if ('code' in step) {
      if (step.code !== code) throw new RangeError(`--resume: ${this.#file} is of other code; start again without it`);
    } else if ('change' in step) this.#changed.set(keyOf(step.id, step.change), step.holds);
    else this.first.set(step.id, step);
  }
}

const keyOf = (id: string, { fabric, number, factor }: Change): string => `${id} ${fabric} ${number} ${factor}`;

/** Of all that a measurement depends on. */
function codeOf(): string {
  const files = ['fabrics', 'dist', 'build/programs/bench'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.js(on)?$/.test(file))
      .map((file) => join(folder, file)),
  );
  return digest(...files.sort().flatMap((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
}

/** One figure in a thread of its own. */
async function measureIn(id: string, data: Changes): Promise<Measured> {
  let found: Measured | undefined;
  const take = (measured: Measured): void => {
    found = measured;
  };
  await onWorkers<string, Measured>(new URL('./worker.js', import.meta.url), [id], take, { data, most: 1 });
  return found!;
}

/** Calls `run` for each, `width` at a time. */
async function forEachOf<T>(all: readonly T[], width: number, run: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const work = async (): Promise<void> => {
    for (const one of left) await run(one);
  };
  await Promise.all(Array.from({ length: width }, work));
}

interface Job {
  readonly id: string;
  readonly change: Change;
}

/** What a figure reads, and no source gives: each number both ways. */
function jobsOf(id: string, read: readonly string[]): Job[] {
  const { fabrics } = CHAPTERS.find(({ figures }) => figures.some((figure) => figure.id === id))!;
  return fabrics.flatMap((fabric) =>
    unsourced(fabric)
      .filter((number) => read.includes(`${fabric} ${number}`))
      .flatMap((number) => FACTORS.map((factor) => ({ id, change: { fabric, number, factor } }))),
  );
}

/**
 * Measures them all, which takes long, and writes what is found.
 * @param width threads
 * @param progress counts measurements
 * @returns the outcomes, in the order of the figures
 */
export async function measureSensitivities(
  figures: readonly Figure[],
  docs: string,
  { resume, width }: { readonly resume: boolean; readonly width: number },
  progress: (all: number) => Progress,
): Promise<readonly Outcome[]> {
  const steps = new Steps(resume);
  await forEachOf(figures, width, async ({ id }) => {
    if (!steps.first.has(id)) steps.add({ id, ...(await measureIn(id, { observed: true })) });
  });
  const first = (id: string): Measured => steps.first.get(id)!;
  const jobs = new Map(figures.map(({ id }) => [id, jobsOf(id, first(id).read)]));
  const cost = (id: string): number => first(id).seconds * jobs.get(id)!.length;
  const order = [...jobs.keys()].sort((a, b) => cost(a) - cost(b));
  const all = order.flatMap((id) => jobs.get(id)!);
  const shown = progress(all.length);
  let done = 0;
  const finished = new Set<string>();
  const finish = (id: string): void => {
    if (finished.has(id) || jobs.get(id)!.some(({ change }) => steps.verdict(id, change) === undefined)) return;
    finished.add(id);
    const { outcome } = first(id);
    const changes = jobs.get(id)!.map(({ change }) => change);
    const sensitivity: Sensitivity = {
      numbers: changes.length / FACTORS.length,
      holds: outcome.holds,
      of: valuesOf(outcome),
      flips: changes.filter((change) => steps.verdict(id, change) === !outcome.holds),
      failed: changes.filter((change) => steps.verdict(id, change) === null),
    };
    writeFileSync(fileIn(docs), `${JSON.stringify({ ...readSensitivities(docs), [id]: sensitivity }, null, 1)}\n`);
    console.log(`${id}: ${describeSensitivity(sensitivity)}`);
  };
  for (const id of order) if (jobs.get(id)!.length === 0) finish(id);
  await forEachOf(all, width, async ({ id, change }) => {
    if (steps.verdict(id, change) === undefined) {
      const found = await measureIn(id, { change }).catch(() => undefined);
      steps.add({ id, change, holds: found === undefined ? null : found.outcome.holds });
    }
    shown.update(++done);
    finish(id);
  });
  shown.stop();
  return figures.map(({ id }) => first(id).outcome);
}

const which = (changes: readonly Change[]): string =>
  changes
    .map(
      ({ fabric, number, factor }) =>
        `\`${number}\` of ${fabric} at ${factor < 1 ? '−' : '+'}${Math.round(100 * Math.abs(factor - 1))} %`,
    )
    .join(', ');

/** In words. */
export function describeSensitivity({ numbers, holds, flips, failed }: Sensitivity): string {
  const other = holds ? 'does not hold' : 'holds';
  const same = `the same with each of ${numbers} numbers at −30 % and +30 %`;
  const said = flips.length === 0 ? `the verdict is ${same}` : `it ${other} with ${which(flips)}; else ${same}`;
  return failed.length === 0 ? said : `${said}; it cannot be measured with ${which(failed)}`;
}

/** In few words: the numbers that change the verdict. */
export function shortSensitivity(sensitivity: Sensitivity | undefined): string {
  if (sensitivity === undefined) return 'not tried';
  const { numbers, flips } = sensitivity;
  if (flips.length === 0) return `the same with ${numbers} others`;
  return `changes with ${[...new Set(flips.map(({ number }) => `\`${number}\``))].join(', ')}`;
}
