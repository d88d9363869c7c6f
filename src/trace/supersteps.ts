/**
 * Supersteps of BSP computations, as the ranks have recorded them (trace-ring.ts: COMPUTED, GATHERED, DELIVERED,
 * MEASURED).
 *
 * A process writes COMPUTED when it calls `sync`, and the other two when the superstep has ended. So the last superstep
 * that a rank ended is known even if the rank has died, and it is known of a rank that waited for it that it was in
 * `sync`.
 *
 * The scope of the records names the computation, which is the same at all its processes, and the process.
 */
import { FIELDS, Field, Kind, type Recording } from './trace-ring.ts';

/** What there is to say where no computation has begun. */
export const NO_SUPERSTEPS = 'no supersteps: the program began no BSP computation';

/** What is known of one superstep of one process: places in an array. Times are microseconds. */
export const StepField = Object.freeze({
  /** Computing, before `sync` was called. */
  WORK: 0,
  /** Waiting in `sync` until all had come. */
  WAIT: 1,
  /** Sending, placing, reading, until `sync` was complete. */
  DELIVERY: 2,
  /** Bytes of data to and from other processes, without headers. */
  SENT: 3,
  RECEIVED: 4,
  /** Calls of `put`, `get` and `send` that concern others, and those of others that concern this one. */
  OUT: 5,
  IN: 6,
});
export const STEP_FIELDS = 7;

/** What was measured of the machine before the computation began, in microseconds: a superstep, a word, a call. */
export interface MeasuredMachine {
  readonly l: number;
  readonly g: number;
  readonly o: number;
}

/** One BSP computation of a job. */
export interface Computation {
  /** The same at all its processes, and different from that of any other one. */
  readonly id: string;
  readonly processes: number;
  /** How supersteps were delivered. */
  readonly delivery: string;
  readonly machine?: MeasuredMachine;
  /** The first superstep that is known of all processes; earlier ones are no longer in the rings. */
  readonly first: number;
  /** By process, {@link STEP_FIELDS} numbers of each superstep that has ended at all processes. */
  readonly numbers: readonly Float64Array[];
  /** The superstep that did not end at all processes, if there is one. */
  readonly open?: OpenSuperstep;
}

/** A superstep that has not ended everywhere: where each process is. */
export interface OpenSuperstep {
  readonly superstep: number;
  readonly inSync: readonly number[];
  readonly computing: readonly number[];
}

const PREFIX = 'bsp';

/** The text of a scope. @param id of the computation; without `|` */
export function scopeOf(id: string, processes: number, pid: number, delivery: string): string {
  return `${PREFIX}|${id}|${processes}|${pid}|${delivery}`;
}

/** What a scope says; `undefined` if it is none of a computation. */
export function readScope(text: string):
  | {
      readonly id: string;
      readonly processes: number;
      readonly pid: number;
      readonly delivery: string;
    }
  | undefined {
  const [prefix, id, processes, pid, delivery = ''] = text.split('|');
  return prefix === PREFIX ? { id, processes: Number(processes), pid: Number(pid), delivery } : undefined;
}

/** Of one process: its supersteps by number. */
interface Known {
  readonly steps: Map<number, Float64Array>;
  /** The last superstep that it has ended; −1: none. */
  ended: number;
  /** The last superstep whose `sync` it has called. */
  called: number;
}

interface Found {
  readonly id: string;
  readonly processes: number;
  readonly delivery: string;
  machine?: MeasuredMachine;
  readonly known: Map<number, Known>;
}

/** The computations of a job, in the order in which they began. */
export function computationsOf(recordings: readonly Recording[]): Computation[] {
  const found = new Map<string, Found>();
  for (const recording of recordings) readInto(found, recording);
  const isCut = recordings.some(({ dropped }) => dropped > 0);
  return [...found.values()].map((one) => computationOf(one, isCut));
}

function readInto(found: Map<string, Found>, { records, count, texts }: Recording): void {
  for (let i = 0; i < count; i++) {
    const record = records.subarray(FIELDS * i, FIELDS * (i + 1));
    const kind = record[Field.KIND];
    if (kind < Kind.COMPUTED || kind > Kind.MEASURED) continue;
    const scope = readScope(texts[record[Field.SCOPE]] ?? '');
    if (scope === undefined) continue;
    const { id, processes, pid, delivery } = scope;
    let computation = found.get(id);
    if (computation === undefined) found.set(id, (computation = { id, processes, delivery, known: new Map() }));
    if (kind === Kind.MEASURED) {
      const [l, g, o] = [record[Field.VALUE], record[Field.BYTES], record[Field.PLACE]].map((ns) => ns / 1000);
      computation.machine = { l, g, o };
      continue;
    }
    let known = computation.known.get(pid);
    if (known === undefined) {
      computation.known.set(pid, (known = { steps: new Map(), ended: -1, called: -1 }));
    }
    note(known, kind, record);
  }
}

function note(known: Known, kind: number, record: Float64Array): void {
  const superstep = record[Field.PLACE];
  const took = record[Field.VALUE] / 1000;
  if (kind === Kind.COMPUTED) {
    const numbers = new Float64Array(STEP_FIELDS);
    numbers[StepField.WORK] = took;
    numbers[StepField.OUT] = record[Field.BYTES];
    known.steps.set(superstep, numbers);
    known.called = superstep;
    return;
  }
  // Without its beginning, a superstep is no longer known.
  const numbers = known.steps.get(superstep);
  if (kind === Kind.DELIVERED) known.ended = superstep;
  if (numbers === undefined) return;
  if (kind === Kind.GATHERED) {
    numbers[StepField.WAIT] = took;
    numbers[StepField.IN] = record[Field.BYTES];
    return;
  }
  numbers[StepField.DELIVERY] = took;
  numbers[StepField.SENT] = record[Field.PEER];
  numbers[StepField.RECEIVED] = record[Field.BYTES];
}

/** @param isCut the earliest records of some rank are lost */
function computationOf({ id, processes, delivery, machine, known }: Found, isCut: boolean): Computation {
  const pids = Array.from({ length: processes }, (_, pid) => pid);
  const all = pids.map((pid) => known.get(pid));
  // Of what is behind the last one that is known, nothing was recorded yet.
  const firstOf = (one: Known | undefined): number => one?.steps.keys().next().value ?? (one?.ended ?? -1) + 1;
  const first = Math.max(...all.map(firstOf));
  const ended = Math.min(...all.map((one) => one?.ended ?? -1));
  const furthest = Math.max(...all.map((one) => Math.max(one?.ended ?? -1, one?.called ?? -1)));
  const steps = Math.max(0, ended - first + 1);
  const numbers = all.map((one) => {
    const own = new Float64Array(STEP_FIELDS * steps);
    for (let i = 0; i < steps; i++) own.set(one!.steps.get(first + i)!, STEP_FIELDS * i);
    return own;
  });
  const open = ended + 1;
  // If nothing is left of a process, it is not known how far it is.
  const isKnown = !isCut || all.every((one) => one !== undefined);
  const isIn = (pid: number): boolean => (all[pid]?.called ?? -1) >= open;
  return {
    id,
    processes,
    delivery,
    first,
    numbers,
    ...(machine !== undefined && { machine }),
    ...(furthest > ended &&
      isKnown && {
        open: { superstep: open, inSync: pids.filter(isIn), computing: pids.filter((pid) => !isIn(pid)) },
      }),
  };
}
