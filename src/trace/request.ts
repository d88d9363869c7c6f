/**
 * Whether a run is to be traced: `onesided run --trace`, or `ONESIDED_TRACE` and `ONESIDED_TRACE_EVENTS` in the
 * environment.
 */
import { resolve } from 'node:path';
import { argumentRangeError, show } from '../errors.ts';
import { defaultEvents, MAX_EVENTS, MIN_EVENTS } from './ring.ts';

export interface TraceRequest {
  /** Where the trace goes: an absolute path. */
  readonly file: string;
  /** Records that each rank keeps. */
  readonly events: number;
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
export function traceFromEnvironment(env: NodeJS.ProcessEnv, size: number): TraceRequest | undefined {
  const file = env['ONESIDED_TRACE'];
  // Set to nothing counts as not set.
  if (!file) return undefined;
  const events = env['ONESIDED_TRACE_EVENTS'];
  return { file: resolve(file), events: events ? readEvents('ONESIDED_TRACE_EVENTS', events) : defaultEvents(size) };
}
