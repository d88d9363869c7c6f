/**
 * `onesided run --bsp-report`: what the supersteps of a job were, and what the model predicts for them. A table goes to
 * standard error when the job has ended, however it ends; with a file, all numbers (JSON) and a picture (SVG) too.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { BspMachine } from '../bsp/model/machines.ts';
import { type BspReport, reportOf, reportSummary } from '../bsp/model/report.ts';
import { reportPicture } from '../bsp/model/report-picture.ts';
import { show } from '../errors.ts';
import type { SuperstepRequest } from '../launcher/job.ts';
import { defaultEvents, type Recording } from '../trace/ring.ts';
import { type Computation, computationsOf } from '../trace/supersteps.ts';
import { UsageError } from './command.ts';

/** A superstep is three records. */
const EVENTS_PER_SUPERSTEP = 3;
/** Computations of a job whose summary is shown, and that have a picture: those that took longest. */
const MOST_SHOWN = 4;

/** What the command line says of it. */
export interface BspReportOptions {
  /** Empty: no files. */
  readonly file: string;
  readonly machine: string | undefined;
  readonly events: number | undefined;
  readonly size: number;
  readonly script: string;
}

/** Throws `UsageError` for a machine that cannot be read, now and not when the job has run. */
export function bspReport({ file, machine = 'probe', events, size, script }: BspReportOptions): SuperstepRequest {
  const given = machine === 'probe' || machine === 'none' ? undefined : readMachine(machine);
  const base = file === '' ? undefined : resolve(file.replace(/\.(json|svg)$/, ''));
  return {
    events: events ?? EVENTS_PER_SUPERSTEP * defaultEvents(size),
    probes: machine === 'probe',
    show: (recordings) => shown(recordings, given, base, script),
  };
}

function readMachine(file: string): BspMachine {
  let parsed: Partial<BspMachine> & { machine?: Partial<BspMachine> };
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--bsp-machine: cannot read ${show(file)}: ${(error as Error).message}`);
  }
  const { s, p = 1, l, g, o } = parsed?.machine ?? parsed ?? {};
  const isNumber = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < 1e300;
  if (!isNumber(s) || s === 0 || !isNumber(l) || !isNumber(g) || !isNumber(p) || (o !== undefined && !isNumber(o))) {
    throw new UsageError(
      `--bsp-machine: ${show(file)} must have numbers s, l and g (and o), as probe() of onesided/bsp/model gives them`,
    );
  }
  return { s, p, l, g, ...(o !== undefined && { o }) };
}

/** A computation of the job, with what is to be said of it. */
interface Reported extends BspReport {
  readonly id: string;
  readonly delivery: string;
  /** Supersteps that are no longer known. */
  readonly dropped: number;
}

function reported(computation: Computation, given: BspMachine | undefined): Reported {
  const { id, delivery, processes, numbers, first, open, machine } = computation;
  // Measured in microseconds: one operation takes one.
  const measured = machine === undefined ? undefined : { s: 1, p: processes, ...machine };
  const report = reportOf(numbers, given ?? measured, first);
  return { id, delivery, dropped: first, ...report, ...(open !== undefined && { open }) };
}

function shown(
  recordings: readonly Recording[],
  given: BspMachine | undefined,
  base: string | undefined,
  script: string,
): string {
  const all = computationsOf(recordings).map((computation) => reported(computation, given));
  if (all.length === 0) return 'no supersteps: the program began no BSP computation';
  const tookOf = ({ supersteps }: BspReport): number => supersteps.reduce((sum, { measured }) => sum + measured, 0);
  const longest = [...all].sort((a, b) => tookOf(b) - tookOf(a)).slice(0, MOST_SHOWN);
  const texts = longest.map((report) => `${headline(report)}\n${indented(reportSummary(report))}`);
  if (all.length > longest.length) texts.push(`the ${longest.length} longest of ${all.length} BSP computations`);
  if (base === undefined) return texts.join('\nonesided: ');
  const write = (name: string, text: string): string => {
    writeFileSync(name, text);
    return name;
  };
  const written = [
    write(`${base}.json`, `${JSON.stringify({ program: script, ranks: recordings.length, computations: all })}\n`),
    ...longest.map((report, i) => write(`${base}${i === 0 ? '' : `-${i + 1}`}.svg`, reportPicture(report))),
  ];
  return [...texts, `numbers and picture: ${written.join(', ')}`].join('\nonesided: ');
}

function headline({ processes, supersteps, delivery, dropped }: Reported): string {
  const count = (n: number): string => n.toLocaleString('en-US');
  const lost =
    dropped > 0 ? ` (the ${count(dropped)} before them are no longer known; --trace-events N keeps more)` : '';
  return (
    `BSP computation of ${processes} ${processes === 1 ? 'process' : 'processes'}, ${delivery} delivery: ` +
    `${count(supersteps.length)} supersteps${lost}`
  );
}

function indented(text: string): string {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `  ${line}`)
    .join('\n');
}
