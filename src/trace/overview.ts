/**
 * What a picture of many ranks shows of a trace: for each rank what it does in the course of time. The picture does not
 * show what passes between ranks: with so many, arrows would cover everything.
 */

import { microseconds, ranksOf, type Scene, type Selection } from './scene.ts';
import { arrowKind } from './scene-arrows.ts';
import type { Trace, TraceSpan } from './trace-reader.ts';

export type RunKind = 'epoch' | 'call' | 'wait' | 'put' | 'get' | 'update' | 'absent';

export interface Run {
  readonly kind: RunKind;
  /** Nanoseconds. */
  readonly start: number;
  readonly end: number;
}

export interface Row {
  readonly rank: number;
  readonly runs: readonly Run[];
  /** What is said of it besides. */
  readonly about: string;
}

export interface Overview {
  readonly title: string;
  readonly program: string;
  readonly start: number;
  readonly end: number;
  /** By rank. */
  readonly rows: readonly Row[];
  /** What was asked for, if it is one rank's alone: a lock, while that rank has it. */
  readonly chosen?: { readonly rank: number; readonly start: number; readonly end: number } | undefined;
  /** What its kinds of runs are. */
  readonly words: Readonly<Partial<Record<RunKind, string>>>;
  /** What is worth saying of all; may be empty. */
  readonly note: string;
}

const WORDS: Overview['words'] = {
  epoch: 'in an epoch, in no call',
  call: 'in a call',
  wait: 'waits',
  put: 'put',
  get: 'get',
  update: 'accumulate and other atomic calls',
  absent: 'never came',
};

/** @param ranks to be shown; all that take part, if absent */
export function overviewOf(trace: Trace, selection: Selection, ranks?: readonly number[]): Overview {
  const { title, shown, absent, last, held } = selection;
  const times = [...shown.values()];
  const start = times.reduce((least, time) => Math.min(least, time.start), Number.POSITIVE_INFINITY);
  const end = times.reduce((most, time) => Math.max(most, time.end), 0);
  const lanes = [...(ranks ?? ranksOf(selection))].sort((a, b) => a - b);
  const runs = runsOf(trace, selection, new Set(lanes));
  const never = new Map(absent.map(({ rank, instead }) => [rank, instead]));
  const rows = lanes.map((rank): Row => {
    const instead = never.get(rank);
    const own = runs.get(rank) ?? [];
    const holds = rank === held?.rank ? `; has the lock for ${microseconds(held.end - held.start)} µs` : '';
    if (instead === undefined) return { rank, runs: own, about: `${waitedOf(own)}${holds}` };
    return { rank, runs: [{ kind: 'absent', start, end }], about: `never came${instead && `; ${instead}`}` };
  });
  const note = last && `rank ${last.rank} came last, at ${microseconds(last.time - start)} µs`;
  const chosen = held && lanes.includes(held.rank) ? held : undefined;
  return { title, program: trace.program, start, end, rows, chosen, words: WORDS, note: note ?? '' };
}

function runsOf(trace: Trace, { window, shown, concerns }: Selection, lanes: ReadonlySet<number>): Map<number, Run[]> {
  const runs = new Map<number, Run[]>();
  const calls = new Map<number, TraceSpan[]>();
  const waits: TraceSpan[] = [];
  const add = (span: TraceSpan, kind: RunKind): void => {
    const { start, end } = shown.get(span.rank)!;
    // The next epoch begins where the picture ends.
    const run = { kind, start: Math.max(start, span.start), end: Math.min(end, span.end) };
    if (run.end < run.start || (run.end === run.start && kind !== 'put' && kind !== 'get' && kind !== 'update')) return;
    push(runs, span.rank, run);
  };
  for (const span of trace.spans) {
    const { rank, category, name, args } = span;
    if (!lanes.has(rank) || !shown.has(rank)) continue;
    if (category === 'wait') waits.push(span);
    else if (args['windowId'] === window.id && concerns(span)) {
      if (category === 'epoch') add(span, 'epoch');
      else if (category === 'call') {
        push(calls, rank, span);
        add(span, 'call');
      } else if (category === 'operation') add(span, arrowKind(name) as RunKind);
    }
  }
  // A wait bears no window: it belongs to the call that it is made in.
  for (const wait of waits) {
    const within = ({ start, end }: TraceSpan): boolean => start <= wait.start && wait.end <= end;
    if (calls.get(wait.rank)?.some(within)) add(wait, 'wait');
  }
  return runs;
}

/** The same of a superstep, from its boxes. */
export function stepOverview({ title, program, start, end, ranks, boxes }: Scene): Overview {
  const runs = new Map<number, Run[]>();
  for (const box of boxes) {
    const kind = box.label.startsWith('delivery') ? 'put' : box.kind;
    push(runs, box.rank, { kind, start: box.start, end: box.end });
    // As elsewhere, a wait is within a call.
    if (kind === 'wait') push(runs, box.rank, { kind: 'call', start: box.start, end: box.end });
  }
  const rows = [...ranks]
    .sort((a, b) => a - b)
    .map((rank): Row => ({ rank, runs: runs.get(rank) ?? [], about: waitedOf(runs.get(rank) ?? []) }));
  const words = { epoch: 'in the superstep', call: 'computes', wait: 'waits for all', put: 'delivery' };
  return { title, program, start, end, rows, words, note: '' };
}

function waitedOf(runs: readonly Run[]): string {
  const waited = runs.reduce((sum, { kind, start, end }) => (kind === 'wait' ? sum + end - start : sum), 0);
  return `waited ${microseconds(waited)} µs`;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
