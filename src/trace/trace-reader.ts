/** Reads a trace that chrome-trace.ts has written: spans of ranks, and the arrows between them. */
import { readFileSync } from 'node:fs';
import { RmaError, show } from '../errors.ts';
import { LANE, MEMORY, RANKS, SUPERSTEPS } from './chrome-trace.ts';
import type { Category } from './span.ts';

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
  if (typeof otherData?.onesided !== 'string' || !Array.isArray(traceEvents)) throw wrong('is not a trace of onesided');
  const { ranks } = otherData;
  if (typeof ranks !== 'number' || !Number.isInteger(ranks) || ranks < 1 || ranks >= LANE)
    throw wrong(`is not a trace of onesided: its number of ranks is ${show(ranks)}, not 1 … ${LANE - 1}`);
  const bad = traceEvents.findIndex((event) => !isEvent(event, ranks));
  if (bad >= 0) throw wrong(`is not a trace of onesided: event ${bad} is not one of this library`);
  const { spans, arrows } = readEvents(traceEvents as TraceEvent[]);
  return { program: String(otherData.program), ranks, spans, arrows };
}

/** Whether a process of the file is one of chrome-trace.ts. */
function isOurs(pid: number | undefined): boolean {
  return pid === RANKS || pid === MEMORY || pid === SUPERSTEPS;
}

/** What is read of an event is as chrome-trace.ts writes it. */
function isEvent(event: Partial<TraceEvent> | null, ranks: number): boolean {
  if (typeof event !== 'object' || event === null) return false;
  const { ph, cat, name, pid, tid, ts, dur, id, args } = event;
  if (ph === 's' || ph === 'f') return typeof id === 'number' && typeof name === 'string';
  if (ph !== 'X' || !isOurs(pid)) return true;
  const isTime = (time: unknown): boolean => typeof time === 'number' && time >= 0 && time * 1000 <= 2 ** 53;
  const isRank = Number.isSafeInteger(tid) && tid! >= 1 && (tid! - 1) % LANE < ranks;
  const words = typeof cat === 'string' && typeof name === 'string';
  if (!isRank || !words || !isTime(ts) || !isTime(dur) || typeof args !== 'object' || args === null) return false;
  return Object.values(args).every((value) => typeof value !== 'object');
}

/** The ends of a flow follow the span that they belong to. */
function readEvents(events: readonly TraceEvent[]): { spans: TraceSpan[]; arrows: TraceArrow[] } {
  const spans: TraceSpan[] = [];
  const begun = new Map<number, { name: string; span: TraceSpan }>();
  const ended = new Map<number, TraceSpan>();
  let last: TraceSpan | undefined;
  for (const { ph, cat, name, pid, tid, ts, dur, id, args } of events) {
    if (ph === 'X' && isOurs(pid)) {
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
