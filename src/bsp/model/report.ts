/**
 * Prediction beside measurement: what each superstep of a computation took, and what the model says for its work and
 * its h-relation (`Bsp.report`, `onesided run --bsp-report`).
 */
import { type OpenSuperstep, STEP_FIELDS, StepField } from '../../trace/supersteps.ts';
import { type BspMachine, microseconds, superstepCost } from './machines.ts';

/** A superstep, of all processes. Its work, communication and synchronization are what it took together. */
export interface SuperstepReport {
  readonly superstep: number;
  /** Microseconds of computing of the process that computed longest, and which that was. */
  readonly work: number;
  readonly slowest: number;
  /** Its computing over the mean of all: 1 where all have the same. */
  readonly imbalance: number;
  /** Microseconds of sending, placing and reading after all had come, of the process that took longest. */
  readonly communication: number;
  /** Microseconds of the rest: the barrier, and what waits come to that are not for the slowest one's work. */
  readonly sync: number;
  /** Words of 8 bytes that a process sent or received, whichever is more, of the one that has most. */
  readonly h: number;
  /** Words that the process sent which sent most, and that the one received which received most. */
  readonly out: number;
  readonly in: number;
  /** Puts, gets and messages of a process, or those of others that concern it, of the one that has most. */
  readonly messages: number;
  /** Microseconds from the end of the superstep before, of the process for which it was longest. */
  readonly measured: number;
  /** What the model says: work + h·g + l (+ messages·o), in microseconds; absent without a machine. */
  readonly predicted?: number;
}

export interface BspReport {
  readonly processes: number;
  readonly machine?: BspMachine;
  readonly supersteps: readonly SuperstepReport[];
  /** The superstep that has not ended at all processes, where the computation ended by a failure. */
  readonly open?: OpenSuperstep;
}

/**
 * @param all of each process, `STEP_FIELDS` numbers of each superstep, one after the other
 * @param first the number of the first of these supersteps
 */
export function reportOf(all: readonly Float64Array[], machine: BspMachine | undefined, first = 0): BspReport {
  const steps = all[0].length / STEP_FIELDS;
  const supersteps = Array.from({ length: steps }, (_, i) => superstepOf(all, machine, i, first + i));
  return { processes: all.length, ...(machine !== undefined && { machine }), supersteps };
}

function superstepOf(
  all: readonly Float64Array[],
  machine: BspMachine | undefined,
  i: number,
  superstep: number,
): SuperstepReport {
  const of = (one: Float64Array, field: number): number => one[STEP_FIELDS * i + field];
  let [work, slowest, sum, measured, delivery, out, into, messages] = [-1, 0, 0, 0, 0, 0, 0, 0];
  for (const [pid, one] of all.entries()) {
    const own = of(one, StepField.WORK);
    if (own > work) [work, slowest] = [own, pid];
    sum += own;
    measured = Math.max(measured, own + of(one, StepField.WAIT) + of(one, StepField.DELIVERY));
    delivery = Math.max(delivery, of(one, StepField.DELIVERY));
    out = Math.max(out, of(one, StepField.SENT) / 8);
    into = Math.max(into, of(one, StepField.RECEIVED) / 8);
    messages = Math.max(messages, of(one, StepField.OUT), of(one, StepField.IN));
  }
  const imbalance = sum > 0 ? (work * all.length) / sum : 1;
  // The longest of one process and of another may be more than the superstep took.
  const communication = Math.min(delivery, measured - work);
  const sync = Math.max(0, measured - work - communication);
  const h = Math.max(out, into);
  const row = { superstep, work, slowest, imbalance, communication, sync, h, out, in: into, messages, measured };
  if (machine === undefined) return row;
  const rest = microseconds(machine, superstepCost(machine, { work: 0, h, messages }));
  return { ...row, predicted: work + rest };
}

/** Sums of all supersteps, in microseconds, and how far predictions are from them. */
export interface ReportTotals {
  readonly work: number;
  readonly communication: number;
  readonly sync: number;
  readonly measured: number;
  /** Absent without a machine, as the errors. */
  readonly predicted?: number;
  /** Of the sums: predicted / measured − 1. */
  readonly error?: number;
  /** Half of the supersteps are predicted better than this, as a part of what they took. */
  readonly median?: number;
}

export function reportTotals({ supersteps, machine }: BspReport): ReportTotals {
  const sum = (of: (row: SuperstepReport) => number): number => supersteps.reduce((total, row) => total + of(row), 0);
  const measured = sum((row) => row.measured);
  const totals = {
    work: sum((row) => row.work),
    communication: sum((row) => row.communication),
    sync: sum((row) => row.sync),
    measured,
  };
  if (machine === undefined || supersteps.length === 0) return totals;
  const predicted = sum((row) => row.predicted ?? 0);
  const errors = supersteps.map((row) => Math.abs((row.predicted ?? 0) / row.measured - 1)).sort((a, b) => a - b);
  return { ...totals, predicted, error: predicted / measured - 1, median: errors[errors.length >> 1] };
}

const COLUMNS = ['superstep', 'work µs', 'h words', 'measured µs', 'predicted µs', 'error', 'slowest', 'imbalance'];

/** Three digits. */
const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const percent = (part: number): string => `${(100 * part).toFixed(0)} %`;

/** The report as a table of text, all supersteps of it, and a line with the sums. */
export function reportTable(report: BspReport): string {
  const { supersteps, processes } = report;
  const rows = supersteps.map(({ superstep, work, h, measured, predicted, slowest, imbalance }) => [
    ...[String(superstep), number(work), String(Math.ceil(h)), number(measured)],
    ...(predicted === undefined ? ['', ''] : [number(predicted), percent(predicted / measured - 1)]),
    ...[String(slowest), imbalance.toFixed(2)],
  ]);
  const { measured, predicted, error } = reportTotals(report);
  const end =
    `${supersteps.length} supersteps of ${processes} processes: ${number(measured)} µs ` +
    `measured${predicted === undefined ? '' : `, ${number(predicted)} predicted (${percent(error!)})`}`;
  return [...aligned([COLUMNS, ...rows]), end].join('\n');
}

const SUMMARY = ['superstep', 'work', 'comm', 'sync', 'measured', 'predicted', 'error', 'h', 'messages', 'slowest'];
/** Supersteps that a summary has. */
const DEAREST = 8;

/**
 * The report in a few lines: sums, the machine, the supersteps that took longest, and the one that did not end. Times
 * are microseconds.
 */
export function reportSummary(report: BspReport): string {
  const { supersteps, machine, open } = report;
  const lines: string[] = [];
  if (supersteps.length > 0) {
    const { work, communication, sync, measured, predicted, error, median } = reportTotals(report);
    const part = (of: number): string => percent(of / measured);
    lines.push(
      `${number(measured)} µs: work ${part(work)}, communication ${part(communication)}, synchronization ${part(sync)}`,
    );
    if (machine !== undefined) {
      const { s, g, l, o } = machine;
      const each = o === undefined ? '' : `, o ${number(o / s)} µs a put, get or message`;
      lines.push(
        `${number(predicted!)} µs predicted (${percent(error!)}; half of the supersteps within ` +
          `${percent(median!)}), by g ${number(g / s)} µs a word${each}, l ${number(l / s)} µs`,
      );
    }
    const dearest = [...supersteps].sort((a, b) => b.measured - a.measured).slice(0, DEAREST);
    const most =
      dearest.length < supersteps.length ? `the ${DEAREST} longest of ${supersteps.length}, in µs:` : 'in µs:';
    const rows = dearest.map((row) => [
      ...[String(row.superstep), ...[row.work, row.communication, row.sync, row.measured].map(number)],
      ...(row.predicted === undefined ? ['', ''] : [number(row.predicted), percent(row.predicted / row.measured - 1)]),
      ...[String(Math.ceil(row.h)), String(row.messages), `process ${row.slowest}`],
    ]);
    lines.push(most, ...aligned([SUMMARY, ...rows]));
  }
  if (open !== undefined) lines.push(openSentence(open));
  return lines.join('\n');
}

/** Where each process was when a superstep did not end. */
function openSentence({ superstep, inSync, computing }: OpenSuperstep): string {
  const list = (pids: readonly number[]): string =>
    `${pids.length === 1 ? 'process' : 'processes'} ${pids.slice(0, 16).join(', ')}${pids.length > 16 ? ', …' : ''}`;
  const parts = [
    ...(inSync.length > 0 ? [`${list(inSync)} had called sync`] : []),
    ...(computing.length > 0 ? [`${list(computing)} had not`] : []),
  ];
  return `superstep ${superstep} did not end: ${parts.join(', ')}`;
}

/** Lines of cells that stand below each other. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows.map((cells) => cells.map((cell, i) => cell.padStart(widths[i])).join('  '));
}
