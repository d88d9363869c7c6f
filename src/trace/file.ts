/** Reads a trace that chrome.ts has written: spans of ranks, and the arrows between them. */
import { readFileSync } from 'node:fs';
import { RmaError } from '../errors.ts';
import { LANE, MEMORY, RANKS } from './chrome.ts';
import type { Category } from './timeline.ts';

export interface TraceSpan {
  readonly rank: number;
  readonly category: Category;
  readonly name: string;
  /** Nanoseconds. */
  readonly start: number;
  readonly end: number;
  readonly args: Readonly<Record<string, string | number | boolean>>;
}

export interface TraceArrow {
  readonly name: string;
  readonly from: TraceSpan;
  readonly to: TraceSpan;
}

export interface Trace {
  readonly program: string;
  readonly ranks: number;
  readonly spans: readonly TraceSpan[];
  readonly arrows: readonly TraceArrow[];
}

interface TraceEvent {
  readonly ph: string;
  readonly cat: Category;
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly id: number;
  readonly args: TraceSpan['args'];
}

/** Throws `ERR_ARG` with what is wrong with the file. */
export function readTrace(file: string): Trace {
  const wrong = (why: string, cause?: unknown): RmaError =>
    new RmaError('ERR_ARG', `${file} ${why}; "onesided run --trace FILE" writes one`, { cause });
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw wrong(`cannot be read (${(error as NodeJS.ErrnoException).code})`, error);
  }
  let parsed: { otherData?: { program?: unknown; ranks?: unknown; onesided?: unknown }; traceEvents?: unknown };
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw wrong('is not a trace: it is not JSON', error);
  }
  const { otherData, traceEvents } = parsed ?? {};
  if (typeof otherData?.onesided !== 'string' || typeof otherData.ranks !== 'number' || !Array.isArray(traceEvents))
    throw wrong('is not a trace of onesided');
  const { spans, arrows } = readEvents(traceEvents as TraceEvent[]);
  return { program: String(otherData.program), ranks: otherData.ranks, spans, arrows };
}

/** The ends of a flow follow the span that they belong to. */
function readEvents(events: readonly TraceEvent[]): { spans: TraceSpan[]; arrows: TraceArrow[] } {
  const spans: TraceSpan[] = [];
  const begun = new Map<number, { name: string; span: TraceSpan }>();
  const ended = new Map<number, TraceSpan>();
  let last: TraceSpan | undefined;
  for (const { ph, cat, name, pid, tid, ts, dur, id, args } of events) {
    if (ph === 'X' && (pid === RANKS || pid === MEMORY)) {
      const start = Math.round(ts * 1000);
      last = { rank: (tid - 1) % LANE, category: cat, name, start, end: start + Math.round(dur * 1000), args };
      spans.push(last);
    } else if (last !== undefined && ph === 's') begun.set(id, { name, span: last });
    else if (last !== undefined && ph === 'f') ended.set(id, last);
  }
  const arrows: TraceArrow[] = [];
  for (const [id, { name, span }] of begun) {
    const to = ended.get(id);
    if (to !== undefined) arrows.push({ name, from: span, to });
  }
  return { spans, arrows };
}
