/**
 * The report of a job that was recorded: what its supersteps were, and what the model predicts for them, as a table for
 * people, and with all numbers (JSON) and as pictures (SVG) in files. Written by `onesided run --bsp-report`, and where
 * another launcher has started the ranks, by rank 0 (ONESIDED_BSP_REPORT).
 */
import { readFileSync } from 'node:fs';
import { RmaError, show } from '../../errors.ts';
import { type Computation, computationsOf, NO_SUPERSTEPS } from '../../trace/supersteps.ts';
import type { Recording } from '../../trace/trace-ring.ts';
import { writeWhole } from '../../trace/whole-file.ts';
import { oneLevel } from './machine-files.ts';
import type { BspMachine } from './machines.ts';
import { type BspReport, reportOf, reportSummary } from './report.ts';
import { reportPicture } from './report-picture.ts';

/** Computations of a job whose summary is shown, and that have a picture: those that took longest. */
const MOST_SHOWN = 4;

/**
 * The machine for the predictions; `undefined` for `probe` and `none`.
 * @param name of the option or variable, for messages
 * Errors: `ERR_ARG` for a file that cannot be read, or has no machine.
 */
export function reportMachine(name: string, machine: string): BspMachine | undefined {
  if (machine === 'probe' || machine === 'none') return undefined;
  let parsed: { readonly machine?: unknown } | null;
  try {
    parsed = JSON.parse(readFileSync(machine, 'utf8'));
  } catch (cause) {
    throw new RmaError('ERR_ARG', `${name}: cannot read ${show(machine)}: ${(cause as Error).message}`, { cause });
  }
  return oneLevel(`${name}: ${show(machine)}`, parsed?.machine ?? parsed);
}

/** A computation of the job, with what the report says of it. */
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

/**
 * Says what the supersteps of a job were, and writes all of them to files.
 * @param given predicts by this machine; absent: by what the ranks have measured, if they have
 * @param base path of the files without what it ends with; absent: none
 * @param script for the files
 * Errors: those of writing.
 */
export function showSupersteps(
  recordings: readonly Recording[],
  given: BspMachine | undefined,
  base: string | undefined,
  script: string,
): string {
  const all = computationsOf(recordings).map((computation) => reported(computation, given));
  if (all.length === 0) return NO_SUPERSTEPS;
  const tookOf = ({ supersteps }: BspReport): number => supersteps.reduce((sum, { measured }) => sum + measured, 0);
  const longest = [...all].sort((a, b) => tookOf(b) - tookOf(a)).slice(0, MOST_SHOWN);
  const texts = longest.map((report) => `${headline(report)}\n${indented(reportSummary(report))}`);
  if (all.length > longest.length) texts.push(`the ${longest.length} longest of ${all.length} BSP computations`);
  if (base === undefined) return texts.join('\nonesided: ');
  const write = (name: string, text: string): string => {
    writeWhole(name, [text]);
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
