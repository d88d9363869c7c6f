/**
 * How a computation records itself in a job whose supersteps are recorded (`onesided run --bsp-report`, `--trace`), how
 * the machine is measured before it, if the report should predict, and what writes the report where ranks do.
 *
 * Two lines are measured, of puts of one word and of many: the first one's slope is a word and a call, the second one's
 * a word and a part of a call. So g is what a word takes in long puts, and o what each call adds; in a model without o,
 * both are in g, which then depends on how long puts are.
 */
import type { Communicator } from '../collective/communicator.ts';
import type { Job } from '../job/job.ts';
import { type MeasuredMachine, scopeOf } from '../trace/supersteps.ts';
import { Kind } from '../trace/trace-ring.ts';
import type { Bsp } from './bsp.ts';
import { Ledger, type StepTrace } from './ledger.ts';
import { probe } from './model/probe.ts';
import { reportMachine, showSupersteps } from './model/report-files.ts';

/** Words of a long put. */
const GRAIN = 64;
/** A short probe: fewer supersteps than that of a program which wants to know. */
const SHORT = { mflops: 1, steps: 5, repetitions: 8 } as const;

/** What ranks of a job have measured, by how supersteps were delivered. */
const machines = new WeakMap<Job, Map<string, MeasuredMachine>>();

/** The machine as this rank knows it. @param how the number of processes and the options of delivery */
export function knownMachine(job: Job, how: string): MeasuredMachine | undefined {
  return machines.get(job)?.get(how);
}

/**
 * Where ranks write the report themselves, since no launcher of ours does: has it ready before the first computation.
 * Errors: `ERR_ARG` for a machine that cannot be read.
 */
export function prepareReport({ supersteps }: Job): void {
  const own = supersteps?.report;
  if (own === undefined || own.write !== undefined) return;
  const { base, machine } = own.request;
  const given = reportMachine('ONESIDED_BSP_MACHINE', machine);
  own.write = (recordings) => showSupersteps(recordings, given, base, process.argv[1] ?? 'onesided');
}

/** Whether this rank wants the machine to be measured before a computation. */
export function wantsProbe({ job }: Communicator, how: string): boolean {
  return job.supersteps?.probes === true && knownMachine(job, how) === undefined;
}

/**
 * The trace of a computation, if there is one. Parts of a communicator that were split from it have the same ids: their
 * first rank tells them apart.
 * @param id the same at all its processes
 */
export function stepTrace(comm: Communicator, id: string, delivery: string): StepTrace | undefined {
  const { job, size, rank, group } = comm;
  const recorder = job.supersteps?.recorder;
  const own = `${id}@${group.worldRanks[0]}`;
  return recorder && { recorder, scope: recorder.text(scopeOf(own, size, rank, delivery)) };
}

/** @param keeps whether the program wants a report */
export function makeLedger(comm: Communicator, keeps: boolean, trace: StepTrace | undefined): Ledger | undefined {
  return keeps || trace !== undefined ? new Ledger(() => comm.now(), keeps, trace) : undefined;
}

/** Collective. @param bsp a computation that has only begun, and which is ended by this */
export async function measureMachine(bsp: Bsp, job: Job, how: string): Promise<void> {
  const { l, g: short } = (await probe(bsp, SHORT)).microseconds;
  const { g: long } = (await probe(bsp, { ...SHORT, grain: GRAIN })).microseconds;
  await bsp.end();
  const o = Math.max(0, (short - long) / (1 - 1 / GRAIN));
  const known = machines.get(job) ?? new Map<string, MeasuredMachine>();
  machines.set(job, known);
  known.set(how, { l, g: Math.max(0, short - o), o });
}

/** Says in the trace what was measured. */
export function recordMachine({ recorder, scope }: StepTrace, { l, g, o }: MeasuredMachine): void {
  recorder.phase(Kind.MEASURED, scope, -1, 1000 * g, 1000 * o, recorder.now(), 1000 * l);
}
