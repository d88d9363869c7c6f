/**
 * Whether a run is traced: `onesided run --trace`, or `ONESIDED_TRACE` and `ONESIDED_TRACE_EVENTS` in the environment;
 * and whether its supersteps are reported: `--bsp-report`, or `ONESIDED_BSP_REPORT` and `ONESIDED_BSP_MACHINE`.
 */
import { resolve } from 'node:path';
import { argumentRangeError, show } from '../errors.ts';
import { defaultEvents, MAX_EVENTS, MIN_EVENTS } from './trace-ring.ts';

export interface TraceRequest {
  /** Where the trace goes: an absolute path. */
  readonly file: string;
  /** Records that each rank keeps. */
  readonly events: number;
}

export interface ReportRequest {
  /** Where the report goes, an absolute path without `.json` and `.svg`. */
  readonly base: string;
  /** As `--bsp-machine`: `probe`, `none`, or a file. */
  readonly machine: string;
  /** Records that each rank keeps. */
  readonly events: number;
}

/**
 * Variables that only the process they are given to may read: what that process starts must not write over its files.
 */
export const RECORDING_VARIABLES = [
  'ONESIDED_TRACE',
  'ONESIDED_TRACE_EVENTS',
  'ONESIDED_BSP_REPORT',
  'ONESIDED_BSP_MACHINE',
] as const;

/** A superstep is three records. */
const EVENTS_PER_SUPERSTEP = 3;

/** Records of a rank whose supersteps are reported, unless the user says how many. */
export function reportEvents(size: number): number {
  return EVENTS_PER_SUPERSTEP * defaultEvents(size);
}

/** The path of a report without what its files end with. */
export function reportBase(file: string): string {
  return resolve(file.replace(/\.(json|svg)$/, ''));
}

/** @param name of the option, for messages. Throws a `RangeError` with code `ERR_ARG` */
export function readEvents(name: string, text: string): number {
  const events = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (events >= MIN_EVENTS && events <= MAX_EVENTS) return events;
  throw argumentRangeError(
    `${name} must be a number of events per rank from ${MIN_EVENTS} to ${MAX_EVENTS}, not ${show(text)}`,
  );
}

/** What the environment asks for. */
export function traceFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  size: number,
): TraceRequest | undefined {
  const file = env['ONESIDED_TRACE'];
  // Set to nothing counts as not set.
  if (!file) return undefined;
  const events = env['ONESIDED_TRACE_EVENTS'];
  return { file: resolve(file), events: events ? readEvents('ONESIDED_TRACE_EVENTS', events) : defaultEvents(size) };
}

/** What the environment asks for. */
export function reportFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  size: number,
): ReportRequest | undefined {
  const file = env['ONESIDED_BSP_REPORT'];
  if (!file) return undefined;
  const events = env['ONESIDED_TRACE_EVENTS'];
  return {
    base: reportBase(file),
    machine: env['ONESIDED_BSP_MACHINE'] || 'probe',
    events: events ? readEvents('ONESIDED_TRACE_EVENTS', events) : reportEvents(size),
  };
}
