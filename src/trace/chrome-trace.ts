/**
 * Writes a trace in Chrome's Trace Event Format, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open.
 *
 * Process 1 has a thread for each rank: its lane; with spans that do not nest, more. Process 2 has one for the memory
 * of each rank, where what others put and get arrives. Process 3 has one for the supersteps of each rank that is a
 * process of a BSP computation. Spans are complete events (`X`), messages and moved bytes flows (`s`, `f`). Times are
 * microseconds with three decimals, since the first event.
 *
 * A flow belongs to the span before it in the file that is open at its time. So each flow's end follows its span.
 */
import { VERSION } from '../version.ts';
import type { Span } from './span.ts';
import { type Arrow, type Timeline, timelineOf } from './timeline.ts';
import type { Recording } from './trace-ring.ts';
import { writeWhole } from './whole-file.ts';

/** Process numbers. */
export const RANKS = 1;
export const MEMORY = 2;
export const SUPERSTEPS = 3;
/** From one lane of a rank to the next: more than there are ranks. */
export const LANE = 10_000;

export interface TraceOptions {
  /** For the viewer: what was run. */
  readonly title: string;
  /** What the times are; the default is the clock of real ranks. */
  readonly clock?: string;
}

/**
 * Writes the trace of a job. A file that exists is replaced when the new one is complete.
 * @returns what there is to say about it, for people
 */
export function writeTrace(file: string, recordings: readonly Recording[], options: TraceOptions): string {
  const timeline = timelineOf(recordings);
  writeWhole(file, linesOf(timeline, options));
  return summary(file, timeline);
}

function summary(file: string, { spans, events, dropped, disordered }: Timeline): string {
  const count = (n: number): string => n.toLocaleString('en-US');
  const ranks = spans.length === 1 ? '1 rank' : `${spans.length} ranks`;
  const lost = dropped.reduce((sum, n) => sum + n, 0);
  const parts = [`trace of ${ranks}, ${count(events)} events, in ${file}: open it in https://ui.perfetto.dev`];
  if (lost > 0) parts.push(`the ${count(lost)} earliest events were dropped (--trace-events N keeps more)`);
  if (disordered > 0)
    parts.push(`${count(disordered)} messages seem to arrive before they were sent: the ranks' clocks differ`);
  return parts.join('; ');
}

function* linesOf(
  timeline: Timeline,
  { title, clock = 'CLOCK_MONOTONIC of the host' }: TraceOptions,
): Generator<string> {
  const { spans, memory, supersteps, arrows, dropped, origin, disordered } = timeline;
  const other = {
    program: title,
    onesided: VERSION,
    ranks: spans.length,
    clock,
    startNs: origin,
    dropped,
    disordered,
  };
  yield `{"displayTimeUnit":"ns","otherData":${JSON.stringify(other)},"traceEvents":[\n`;
  yield metadata('process_name', RANKS, 0, { name: `${spans.length} ranks of ${title}` }, '');
  yield metadata('process_sort_index', RANKS, 0, { sort_index: 0 });
  yield metadata('process_name', MEMORY, 0, { name: 'memory of the ranks' });
  yield metadata('process_sort_index', MEMORY, 0, { sort_index: 1 });
  if (supersteps.some((own) => own.length > 0)) {
    yield metadata('process_name', SUPERSTEPS, 0, { name: 'supersteps of the ranks' });
    yield metadata('process_sort_index', SUPERSTEPS, 0, { sort_index: -1 });
  }
  for (const [rank, own] of supersteps.entries()) {
    const lanes = own.reduce((most, { lane }) => Math.max(most, lane), -1);
    for (let lane = 0; lane <= lanes; lane++) {
      const name = `rank ${rank}${lane === 0 ? '' : `, meanwhile ${lane}`}`;
      yield metadata('thread_name', SUPERSTEPS, threadOf(rank, lane), { name });
      yield metadata('thread_sort_index', SUPERSTEPS, threadOf(rank, lane), { sort_index: rank * LANE + lane });
    }
  }
  for (const [rank, own] of spans.entries()) {
    const lanes = own.reduce((most, { lane }) => Math.max(most, lane), 0);
    for (let lane = 0; lane <= lanes; lane++) {
      const name = lane === 0 ? `rank ${rank}` : `rank ${rank}, meanwhile${lane === 1 ? '' : ` ${lane}`}`;
      yield metadata('thread_name', RANKS, threadOf(rank, lane), { name });
      yield metadata('thread_sort_index', RANKS, threadOf(rank, lane), { sort_index: rank * LANE + lane });
    }
    if (memory[rank].length > 0) {
      yield metadata('thread_name', MEMORY, threadOf(rank, 0), { name: `memory of rank ${rank}` });
      yield metadata('thread_sort_index', MEMORY, threadOf(rank, 0), { sort_index: rank * LANE });
    }
  }
  const ends = endsOf(arrows);
  for (const all of [spans, memory, supersteps]) {
    for (const own of all) {
      for (const span of own) {
        yield complete(span);
        for (const end of ends.get(span) ?? []) yield end;
      }
    }
  }
  yield '\n]}\n';
}

function metadata(name: string, pid: number, tid: number, args: object, separator = ',\n'): string {
  return `${separator}${JSON.stringify({ ph: 'M', name, pid, tid, args })}`;
}

function complete({ rank, category, name, start, end, args, lane }: Span): string {
  const process = category === 'memory' ? MEMORY : category === 'superstep' ? SUPERSTEPS : RANKS;
  const place = `"pid":${process},"tid":${threadOf(rank, lane)}`;
  const times = `"ts":${microseconds(start)},"dur":${microseconds(end - start)}`;
  const what = `"cat":"${category}","name":${JSON.stringify(name)}`;
  return `,\n{"ph":"X",${what},${place},${times},"args":${JSON.stringify(args)}}`;
}

/** Both ends of each arrow, by the span that they belong to. */
function endsOf(arrows: readonly Arrow[]): Map<Span, string[]> {
  const ends = new Map<Span, string[]>();
  const add = (span: Span, text: string): void => {
    const list = ends.get(span);
    if (list === undefined) ends.set(span, [text]);
    else list.push(text);
  };
  for (const [id, { name, from, to }] of arrows.entries()) {
    // A moment before its end: at the end itself the next span may have begun. Never before the arrow's beginning.
    const arrival = Math.max(to.start, from.start, to.end - 1);
    const flow = (ph: string, { rank, lane, category }: Span, time: number, more: string): string => {
      const place = `"pid":${category === 'memory' ? MEMORY : RANKS},"tid":${threadOf(rank, lane)}`;
      const what = `"ph":"${ph}","cat":"flow","name":"${name}","id":${id + 1}`;
      return `,\n{${what},${place},"ts":${microseconds(time)}${more}}`;
    };
    add(from, flow('s', from, from.start, ''));
    add(to, flow('f', to, arrival, ',"bp":"e"'));
  }
  return ends;
}

function threadOf(rank: number, lane: number): number {
  return lane * LANE + rank + 1;
}

function microseconds(ns: number): string {
  return (ns / 1000).toFixed(3);
}
