/**
 * `npm run figures -- --sensitivity [--resume] [--only D6.4,D7.5]`: which verdicts depend on a number that no source
 * gives. Each figure is measured again with each such number of its fabrics at −30 % and at +30 %, one at a time, and
 * the verdicts that change are written to docs/sensitivity.json, from which docs/results.md tells them. Figures that
 * are not measured keep what the file says of them.
 *
 * A number that a figure does not read cannot change it, and is left out: its first run records what it reads
 * (`observeFabric`). Of a figure that has a shorter way to its verdict, that way alone is measured (a claim that does
 * not hold needs one part that fails), and its drawn values are those that the folder has, if they are of the same
 * verdict. Each change has a thread of its own, since
 * programs keep what they have measured; it measures some figures that take little, or one. Those that take least come
 * first; the file has each as soon as it is complete. `--resume` goes on where a run of the same code was stopped
 * (build/sensitivity.jsonl, beside docs).
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
import type { Judged, Measured } from './worker.ts';

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

/** One of two things, which are no more and no less. */
const CHOICES = new Set(['bus.shared']);

/** The numbers of a fabric that no source gives, by their labels (docs/guide/fabrics.md). What is 0 stays 0. */
export function unsourced(fabric: string): string[] {
  const description = JSON.parse(readFileSync(join(ROOT, `fabrics/${fabric}.json`), 'utf8')) as Record<string, unknown>;
  return Object.entries(description).flatMap(([group, numbers]) =>
    typeof numbers !== 'object' || numbers === null
      ? []
      : Object.entries(numbers as Record<string, Described>)
          .filter(([, { value, source }]) => value !== 0 && /^(fitted|free):/.test(source))
          .map(([field]) => `${group}.${field}`)
          .filter((number) => !CHOICES.has(number)),
  );
}

const fileIn = (docs: string): string => join(docs, 'sensitivity.json');

const digest = (...texts: readonly string[]): string => {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(text);
  return hash.digest('hex').slice(0, 16);
};

/** Of so many digits: when a program begins changes the last ones of how long it takes. */
const DIGITS = 9;

/** Of the values of a figure. */
const valuesOf = ({ chart }: Outcome): string =>
  digest(JSON.stringify(chart.series.map(({ values }) => values.map((value) => value?.toPrecision(DIGITS)))));

/** What is known; nothing where nothing was measured. */
export function readSensitivities(docs: string): Sensitivities {
  return existsSync(fileIn(docs)) ? (JSON.parse(readFileSync(fileIn(docs), 'utf8')) as Sensitivities) : {};
}

/** What is known of a figure as it is now; undefined if its values or its verdict were others then, or none was tried. */
export function sensitivityOf(all: Sensitivities, id: string, outcome: Outcome): Sensitivity | undefined {
  const known = all[id];
  const isOfIt = known?.of === valuesOf(outcome) && known.holds === outcome.holds;
  return isOfIt && known.numbers > 0 ? known : undefined;
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
  readonly #file: string;

  /** @throws RangeError if there is nothing to go on from, or it is of other code */
  constructor(docs: string, resume: boolean) {
    const code = codeOf();
    const folder = join(docs, '../build');
    this.#file = join(folder, 'sensitivity.jsonl');
    if (resume) {
      if (!existsSync(this.#file)) throw new RangeError(`--resume: there is no ${this.#file}`);
      const steps = readFileSync(this.#file, 'utf8').trim().split('\n');
      for (const step of steps.map((line) => JSON.parse(line) as Step)) this.#take(step, code);
    } else {
      mkdirSync(folder, { recursive: true });
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

/** Figures in a thread of their own, one after the other. @throws what a figure throws; those after it are missing */
async function measureIn<R extends Measured | Judged>(
  ids: readonly string[],
  data: Changes,
  measured: (id: string, found: R) => void,
): Promise<void> {
  const take = (found: R, turn: number): void => measured(ids[turn], found);
  await onWorkers<string, R>(new URL('./worker.js', import.meta.url), ids, take, { data, most: 1 });
}

/** Calls `run` for each, `width` at a time. */
async function forEachOf<T>(all: readonly T[], width: number, run: (one: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const work = async (): Promise<void> => {
    for (const one of left) await run(one);
  };
  await Promise.all(Array.from({ length: width }, work));
}

/** What a figure reads, and no source gives: each number both ways. */
function changesOf(id: string, read: readonly string[]): Change[] {
  const { fabrics } = CHAPTERS.find(({ figures }) => figures.some((figure) => figure.id === id))!;
  return fabrics.flatMap((fabric) =>
    unsourced(fabric)
      .filter((number) => read.includes(`${fabric} ${number}`))
      .flatMap((number) => FACTORS.map((factor) => ({ fabric, number, factor }))),
  );
}

/** A change, and figures that are measured with it in one thread. */
interface Batch {
  readonly change: Change;
  readonly ids: readonly string[];
}

/**
 * Starting a thread takes as long as measuring a cheap figure: so many seconds of figures share one. They are seconds
 * of first runs, which are observed, and take several times as long.
 */
const SHARED = 20;

/** @param figures those that take least first */
function batchesOf(figures: readonly Planned[]): Batch[] {
  const groups: { figures: Planned[]; seconds: number }[] = [];
  for (const figure of figures) {
    const last = groups.at(-1);
    if (last === undefined || last.seconds + figure.seconds > SHARED) {
      groups.push({ figures: [figure], seconds: figure.seconds });
    } else {
      last.figures.push(figure);
      last.seconds += figure.seconds;
    }
  }
  return groups.flatMap((group) => {
    const batches = new Map<string, { change: Change; ids: string[] }>();
    for (const { id, changes } of group.figures) {
      for (const change of changes) {
        const key = keyOf('', change);
        const batch = batches.get(key) ?? { change, ids: [] };
        batches.set(key, batch);
        batch.ids.push(id);
      }
    }
    return [...batches.values()];
  });
}

interface Planned {
  readonly id: string;
  readonly seconds: number;
  readonly changes: readonly Change[];
}

/** Measures what is not known of a batch. A figure that cannot be measured does not end it. */
async function measureBatch({ change, ids }: Batch, steps: Steps, done: () => void): Promise<void> {
  const left = ids.filter((id) => steps.verdict(id, change) === undefined);
  for (let known = left.length; known < ids.length; known++) done();
  const add = (id: string, holds: boolean | null): void => {
    steps.add({ id, change, holds });
    left.shift();
    done();
  };
  const held = ids.every((id) => steps.first.get(id)!.outcome.holds);
  while (left.length > 0) {
    try {
      await measureIn<Judged>([...left], { change, held }, (id, { holds }) => add(id, holds));
    } catch {
      add(left[0], null);
    }
  }
}

/** What came out of a figure, once all its changes are measured; undefined before. */
function sensitivityFrom(steps: Steps, { id, changes }: Planned): Sensitivity | undefined {
  const verdicts = changes.map((change) => steps.verdict(id, change));
  if (verdicts.includes(undefined)) return undefined;
  const { outcome } = steps.first.get(id)!;
  return {
    numbers: changes.length / FACTORS.length,
    holds: outcome.holds,
    of: valuesOf(outcome),
    flips: changes.filter((_, k) => verdicts[k] === !outcome.holds),
    failed: changes.filter((_, k) => verdicts[k] === null),
  };
}

interface Run {
  readonly resume: boolean;
  /** Threads. */
  readonly width: number;
  /** What was measured before, and is drawn. */
  readonly kept: (id: string) => Outcome | undefined;
}

/**
 * Measures them all, which takes long, and writes what is found.
 * @param progress counts measurements
 * @returns the outcomes, in the order of the figures
 */
export async function measureSensitivities(
  figures: readonly Figure[],
  docs: string,
  { resume, width, kept }: Run,
  progress: (all: number) => Progress,
): Promise<readonly Outcome[]> {
  const steps = new Steps(docs, resume);
  await forEachOf(figures, width, async ({ id, verdict, necessary }) => {
    if (steps.first.has(id)) return;
    const outcome = (verdict ?? necessary) && kept(id);
    if (outcome !== undefined) {
      await measureIn<Judged>([id], { observed: 'verdict' }, (_, { holds, read, seconds }) => {
        if (holds === outcome.holds) steps.add({ id, outcome, read, seconds });
      });
    }
    if (steps.first.has(id)) return;
    await measureIn<Measured>([id], { observed: 'measure' }, (_, found) => steps.add({ id, ...found }));
  });
  const planned = figures
    .map(({ id }) => {
      const { seconds, read } = steps.first.get(id)!;
      return { id, seconds, changes: changesOf(id, read) };
    })
    .sort((a, b) => a.seconds * a.changes.length - b.seconds * b.changes.length);
  const open = new Set(planned);
  const finish = (): void => {
    for (const figure of open) {
      const found = sensitivityFrom(steps, figure);
      if (found === undefined) continue;
      open.delete(figure);
      writeFileSync(fileIn(docs), `${JSON.stringify({ ...readSensitivities(docs), [figure.id]: found }, null, 1)}\n`);
      console.log(`${figure.id}: ${describeSensitivity(found)}`);
    }
  };
  const shown = progress(planned.reduce((sum, { changes }) => sum + changes.length, 0));
  let done = 0;
  await forEachOf(batchesOf(planned), width, async (batch) => {
    await measureBatch(batch, steps, () => shown.update(++done));
    finish();
  });
  finish();
  shown.stop();
  return figures.map(({ id }) => steps.first.get(id)!.outcome);
}

const which = (changes: readonly Change[]): string =>
  changes
    .map(
      ({ fabric, number, factor }) =>
        `\`${number}\` of ${fabric} at ${factor < 1 ? '−' : '+'}${Math.round(100 * Math.abs(factor - 1))} %`,
    )
    .join(', ');

/** More than these are counted. */
const NAMED = 8;

/** In words. */
export function describeSensitivity({ numbers, holds, flips, failed }: Sensitivity): string {
  const other = holds ? 'does not hold' : 'holds';
  const same = `the same with ${numbers === 1 ? 'the one number' : `each of ${numbers} numbers`} at −30 % and +30 %`;
  const few =
    flips.length <= NAMED ? which(flips) : `${flips.length} of ${2 * numbers} changes ([all](sensitivity.json))`;
  const said = flips.length === 0 ? `the verdict is ${same}` : `it ${other} with ${few}; else ${same}`;
  return failed.length === 0 ? said : `${said}; it cannot be measured with ${which(failed)}`;
}

/** In few words: the numbers that change the verdict. */
export function shortSensitivity(sensitivity: Sensitivity | undefined): string {
  if (sensitivity === undefined) return 'not tried';
  const { numbers, flips, failed } = sensitivity;
  if (flips.length === 0) return `unchanged (${numbers})${failed.length === 0 ? '' : `, ${failed.length} failed`}`;
  const labels = [...new Set(flips.map(({ number }) => `\`${number}\``))];
  return `changes with ${labels.length > NAMED ? `${labels.length} of ${numbers}` : labels.join(', ')}`;
}
