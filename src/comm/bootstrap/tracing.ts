/**
 * Where ranks record, and who writes the trace.
 *
 * Processes record into rings behind the control memory, in the same file: a memory file of the launcher, or of the
 * first rank where there is no launcher. A rank maps its own ring; whoever writes the trace reads all of them. What a
 * rank has recorded is there as long as somebody has the file open, so it is not lost when the rank is killed, and
 * nothing is left when all are gone.
 *
 * Under `onesided run` the launcher writes the trace when the last rank has ended. Elsewhere (`mpiexec`, a named job, a
 * world of one) ranks do, as they exit: rank 0, if all have come to the end of the job together. A rank that leaves
 * otherwise writes what there is by then; the last one to do so has the last word, since each writes a file of its own
 * first and then gives it the name.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { RmaError } from '../../errors.ts';
import type { Native } from '../../native.ts';
import { writeTrace } from '../../trace/chrome.ts';
import { monotonicClock } from '../../trace/clock.ts';
import { Recorder, recordInMemory } from '../../trace/recorder.ts';
import { type TraceRequest, traceFromEnvironment } from '../../trace/request.ts';
import { type Recording, readRing, ringBytes } from '../../trace/ring.ts';
import type { Membership } from '../job.ts';
import { type Control, Header, RankState, Records, ringPlace, Slot } from './control.ts';

/** Read once: programs that this one starts are not to overwrite its trace. */
let asked: TraceRequest | undefined;

function requested(size: number): TraceRequest | undefined {
  asked ??= traceFromEnvironment(process.env, size);
  for (const name of ['ONESIDED_TRACE', 'ONESIDED_TRACE_EVENTS']) delete process.env[name];
  return asked;
}

/** Records a rank, as this process's environment asks for them; 0: no trace. */
export function requestedEvents(size: number): number {
  return requested(size)?.events ?? 0;
}

/** What every rank has recorded. @param fd the file of the control memory */
export function readRings(fd: number, size: number, events: number): Recording[] {
  return Array.from({ length: size }, (_, rank) =>
    readRing(rank, ringBytes(events), (bytes) => {
      const copy = new Uint8Array(bytes);
      for (let at = 0; at < bytes; ) {
        const n = readSync(fd, copy, at, bytes - at, ringPlace(rank, size, events) + at);
        if (n === 0) throw new RmaError('ERR_COMM', "the job's control memory is shorter than its header says");
        at += n;
      }
      return copy;
    }),
  );
}

/** Ranks of several hosts share neither memory nor a clock: says so, if this process was asked for a trace. */
export function refuseTrace(size: number): void {
  if (requested(size) === undefined) return;
  process.stderr.write('onesided: no trace was written: this version cannot trace ranks on several hosts\n');
}

/** What a rank records, and where: what a membership says of it. */
export type Recorded = Pick<Membership, 'recorder' | 'supersteps'>;

/** @param records bits of `Records` */
export function recordedBy(recorder: Recorder, records: number): Recorded {
  const supersteps = { recorder, probes: (records & Records.PROBES) !== 0 };
  return (records & Records.CALLS) === 0 ? { supersteps } : { recorder, supersteps };
}

/** The recorder of a rank that is a process, in a job that is traced. @param watched the launcher writes the trace */
export function recordProcess(native: Native, control: Control, fd: number, rank: number, watched: boolean): Recorded {
  const events = Atomics.load(control.header, Header.TRACE_EVENTS);
  if (events === 0) return {};
  const { size } = control;
  const ring = native.memoryMap(fd, ringPlace(rank, size, events), ringBytes(events));
  const file = watched ? undefined : requested(size)?.file;
  if (file !== undefined) {
    const own = openSync(`/proc/self/fd/${fd}`, 'r');
    process.once('exit', () => {
      const agreed = Atomics.load(control.slots, rank * control.slotWords + Slot.STATE) === RankState.FINALIZED;
      if (!agreed || rank === 0) write(file, readRings(own, size, events));
      closeSync(own);
    });
  }
  const recorder = new Recorder(rank, monotonicClock(), ring, 0, events);
  return recordedBy(recorder, Atomics.load(control.header, Header.RECORDS));
}

/** The recorder of a world of one, which writes its trace as it exits. */
export function recordAlone(): Recorded {
  const request = requested(1);
  if (request === undefined) return {};
  const { file, events } = request;
  const { recorder, recording } = recordInMemory(0, monotonicClock(), events);
  process.once('exit', () => write(file, [recording()]));
  return recordedBy(recorder, Records.CALLS);
}

function write(file: string, recordings: readonly Recording[]): void {
  try {
    const said = writeTrace(file, recordings, { title: process.argv[1] ?? 'onesided' });
    process.stderr.write(`onesided: ${said}\n`);
  } catch (error) {
    process.stderr.write(`onesided: cannot write the trace: ${(error as Error).message}\n`);
    process.exitCode ||= 1;
  }
}
