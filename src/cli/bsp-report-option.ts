/**
 * `onesided run --bsp-report`: what the supersteps of a job were, and what the model predicts for them. A table goes to
 * standard error when the job has ended, however it ends; with a file, all numbers (JSON) and a picture (SVG) too.
 */
import type { BspMachine } from '../bsp/model/machines.ts';
import { reportMachine, showSupersteps } from '../bsp/model/report-files.ts';
import type { SuperstepRequest } from '../launcher/job-start.ts';
import { reportBase, reportEvents } from '../trace/trace-request.ts';
import { UsageError } from './command.ts';

/** What the command line says of it. */
export interface BspReportOptions {
  /** Empty: no files. */
  readonly file: string;
  readonly machine: string;
  /** Of the option or variable that says the machine. */
  readonly machineName: string;
  readonly events: number | undefined;
  readonly size: number;
  readonly script: string;
}

/** Throws `UsageError` for a machine that cannot be read, now and not when the job has run. */
export function bspReport({ file, machine, machineName, events, size, script }: BspReportOptions): SuperstepRequest {
  let given: BspMachine | undefined;
  try {
    given = reportMachine(machineName, machine);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const base = file === '' ? undefined : reportBase(file);
  return {
    events: events ?? reportEvents(size),
    probes: machine === 'probe',
    show: (recordings) => showSupersteps(recordings, given, base, script),
  };
}
