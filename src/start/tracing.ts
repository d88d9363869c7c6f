/**
 * Where ranks record, and which process writes the trace.
 *
 * Processes record into rings behind the control memory, in the same file: a memory file of the launcher, or of the
 * first rank where there is no launcher. A rank maps its own ring; the process that writes the trace reads all of them.
 * What a rank has recorded is there as long as any process has the file open, so it is not lost when the rank is
 * killed, and nothing is left when all are gone.
 *
 * Under `onesided run` the launcher writes the trace, and the report of supersteps, when the last rank has ended.
 * Elsewhere (`mpiexec`, a named job, a world of one) the ranks write both as they exit: rank 0 does, if all have come
 * to the end of the job together. A rank that leaves otherwise writes what there is by then; the last one to do so has
 * the last word, since each writes a file of its own first and then gives it the name.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { RmaError } from '../errors.ts';
import { type Control, Header, RankState, Records, ringPlace, Slot } from '../job/control-region.ts';
import type { Membership, OwnReport } from '../job/membership.ts';
import type { Native } from '../native.ts';
import { writeTrace } from '../trace/chrome-trace.ts';
import { monotonicClock } from '../trace/clock.ts';
import { Recorder, recordInMemory } from '../trace/recorder.ts';
import { NO_SUPERSTEPS } from '../trace/supersteps.ts';
import {
  RECORDING_VARIABLES,
  type ReportRequest,
  reportFromEnvironment,
  type TraceRequest,
  traceFromEnvironment,
} from '../trace/trace-request.ts';
import { type Recording, readRing, ringBytes } from '../trace/trace-ring.ts';

/** What this process was asked for. */
interface Asked {
  readonly trace: TraceRequest | undefined;
  readonly report: ReportRequest | undefined;
}

/** Read once: programs that this one starts must not overwrite its trace. */
let asked: Asked | undefined;

function requested(size: number): Asked {
  const { env } = process;
  asked ??= { trace: traceFromEnvironment(env, size), report: reportFromEnvironment(env, size) };
  for (const name of RECORDING_VARIABLES) delete env[name];
  return asked;
}

/** Records a rank, as this process's environment asks for them (0: none), and bits of `Records`. */
export function requestedRecords(size: number): { readonly events: number; readonly records: number } {
  const { trace, report } = requested(size);
  const supersteps = report && Records.SUPERSTEPS | (report.machine === 'probe' ? Records.PROBES : 0);
  return {
    events: Math.max(trace?.events ?? 0, report?.events ?? 0),
    records: (trace === undefined ? 0 : Records.CALLS) | (supersteps ?? 0),
  };
}

/** What every rank has recorded. @param fd the file of the control memory */
export function readRings(fd: number, size: number, events: number): Recording[] {
  return Array.from({ length: size }, (_, rank) =>
    readRing(rank, ringBytes(events), (bytes) => readRingFile(fd, bytes, ringPlace(rank, size, events))),
  );
}

/** The bytes of a rank's ring as they are now. @param fd the file of the control memory */
export function ringOf(fd: number, rank: number, size: number, events: number): Uint8Array {
  return readRingFile(fd, ringBytes(events), ringPlace(rank, size, events));
}

function readRingFile(fd: number, bytes: number, place: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  for (let at = 0; at < bytes; ) {
    const n = readSync(fd, copy, at, bytes - at, place + at);
    if (n === 0) throw new RmaError('ERR_COMM', "the job's control memory is shorter than its header says");
    at += n;
  }
  return copy;
}

/** Says that ranks of several hosts share neither memory nor a clock, if this process was asked for what needs them. */
export function refuseTrace(size: number): void {
  const { trace, report } = requested(size);
  const say = (what: string): void =>
    void process.stderr.write(`onesided: ${what}: this version cannot record ranks on several hosts\n`);
  if (trace !== undefined) say('no trace was written');
  if (report !== undefined) say('no report of supersteps was written, but bsp.report() works');
}

/** What a rank records, and where: what a membership says of it. */
export type Recorded = Pick<Membership, 'recorder' | 'supersteps'>;

/** @param records bits of `Records` */
export function recordedBy(recorder: Recorder, records: number, report?: OwnReport): Recorded {
  const supersteps = { recorder, probes: (records & Records.PROBES) !== 0, report };
  return (records & Records.CALLS) === 0 ? { supersteps } : { recorder, supersteps };
}

/** The recorder of a rank that is a process, in a job that is traced. @param watched the launcher writes the trace */
export function recordProcess(native: Native, control: Control, fd: number, rank: number, watched: boolean): Recorded {
  const events = Atomics.load(control.header, Header.TRACE_EVENTS);
  if (events === 0) return {};
  const { size } = control;
  const ring = native.memoryMap(fd, ringPlace(rank, size, events), ringBytes(events));
  const records = Atomics.load(control.header, Header.RECORDS);
  const own = watched ? undefined : requested(size);
  const report = own?.report && { request: own.report, write: undefined };
  if (own?.trace !== undefined || report !== undefined) {
    const file = openSync(`/proc/self/fd/${fd}`, 'r');
    process.once('exit', () => {
      const agreed = Atomics.load(control.slots, rank * control.slotWords + Slot.STATE) === RankState.FINALIZED;
      if (!agreed || rank === 0) write(own!.trace, report, readRings(file, size, events), rank === 0);
      closeSync(file);
    });
  }
  return recordedBy(new Recorder(rank, monotonicClock(), ring, 0, events), records, report);
}

/** The recorder of a world of one, which writes its trace as it exits. */
export function recordAlone(): Recorded {
  const { trace, report: request } = requested(1);
  const { events, records } = requestedRecords(1);
  if (events === 0) return {};
  const { recorder, recording } = recordInMemory(0, monotonicClock(), events);
  const report = request && { request, write: undefined };
  process.once('exit', () => write(trace, report, [recording()], true));
  return recordedBy(recorder, records, report);
}

/** @param speaks this is the rank that says what the supersteps were, if all write: once is enough */
function write(
  trace: TraceRequest | undefined,
  report: OwnReport | undefined,
  recordings: readonly Recording[],
  speaks: boolean,
): void {
  if (report !== undefined) {
    attempt('report of supersteps', speaks, () =>
      report.write === undefined ? NO_SUPERSTEPS : report.write(recordings),
    );
  }
  if (trace === undefined) return;
  attempt('trace', true, () => writeTrace(trace.file, recordings, { title: process.argv[1] ?? 'onesided' }));
}

function attempt(what: string, speaks: boolean, make: () => string): void {
  try {
    const said = make();
    if (speaks) process.stderr.write(`onesided: ${said}\n`);
  } catch (error) {
    process.stderr.write(`onesided: cannot write the ${what}: ${(error as Error).message}\n`);
    process.exitCode ||= 1;
  }
}
