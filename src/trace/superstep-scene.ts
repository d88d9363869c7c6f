/**
 * What a picture shows of one superstep of a BSP computation: for each process its computing, its waiting in `sync` and
 * the delivery, and what passed between the ranks meanwhile.
 */
import { RmaError } from '../errors.ts';
import { type Box, microseconds, type Scene } from './scene.ts';
import { arrowKind, collapse, sceneArrow } from './scene-arrows.ts';
import type { Trace, TraceSpan } from './trace-reader.ts';

/** A BSP computation of a trace, and which of its supersteps the trace has. */
export interface StepsSummary {
  readonly id: string;
  readonly processes: number;
  readonly first: number;
  readonly last: number;
}

export interface StepChoice {
  readonly superstep: number;
  /** Its id; the first computation that has the superstep, if absent. */
  readonly computation?: string | undefined;
  /** Ranks to be shown; all, if absent. */
  readonly ranks?: readonly number[] | undefined;
}

const isWhole = ({ category, args }: TraceSpan): boolean =>
  category === 'superstep' && typeof args['processes'] === 'number' && args['messages'] === undefined;

export function stepsOf({ spans }: Trace): StepsSummary[] {
  const found = new Map<string, { processes: number; first: number; last: number }>();
  for (const span of spans) {
    if (!isWhole(span)) continue;
    const { computation, superstep, processes } = span.args;
    const [id, step] = [String(computation), Number(superstep)];
    const known = found.get(id);
    if (known === undefined) found.set(id, { processes: Number(processes), first: step, last: step });
    else {
      known.first = Math.min(known.first, step);
      known.last = Math.max(known.last, step);
    }
  }
  return [...found].map(([id, numbers]) => ({ id, ...numbers }));
}

/** Throws `ERR_ARG` if the trace does not have it. */
export function superstepScene(trace: Trace, { superstep, computation, ranks }: StepChoice): Scene {
  const has = ({ id, first, last }: StepsSummary): boolean =>
    superstep >= first && superstep <= last && (computation === undefined || id === computation);
  const chosen = stepsOf(trace).find(has);
  if (chosen === undefined) {
    const of = computation === undefined ? 'no BSP computation of the trace' : `BSP computation ${computation}`;
    throw new RmaError(
      'ERR_ARG',
      `${of} has superstep ${superstep}; "onesided trace list FILE" shows what the trace has`,
    );
  }
  const own = trace.spans.filter(
    ({ category, args }) =>
      category === 'superstep' && args['computation'] === chosen.id && args['superstep'] === superstep,
  );
  const wholes = new Map(own.filter(isWhole).map((span) => [span.rank, span]));
  const lanes = ranks ?? [...wholes.keys()].sort((a, b) => a - b);
  const isShown = new Set(lanes);
  const shown = own.filter(({ rank }) => isShown.has(rank));
  const start = Math.min(...shown.map((span) => span.start));
  const end = Math.max(...shown.map((span) => span.end));
  const within = ({ rank, start: from, end: to }: TraceSpan): boolean => {
    const whole = wholes.get(rank);
    return isShown.has(rank) && whole !== undefined && whole.start <= from && to <= whole.end;
  };
  const arrows = trace.arrows
    .filter(({ name, from, to }) => {
      const kind = arrowKind(name);
      return (kind === 'message' || kind === 'signal') && from.rank !== to.rank && within(from) && within(to);
    })
    .map(sceneArrow);
  return {
    title: `Superstep ${superstep} of BSP computation ${chosen.id}${slowestOf(shown)}`,
    program: trace.program,
    ranks: lanes,
    hidden: trace.ranks - lanes.length,
    start,
    end,
    boxes: shown.map((span) => boxOf(span, start)).filter((box) => box.end > box.start),
    arrows: collapse(arrows),
    absent: [],
  };
}

/** Computing and delivery are calls in the picture, so that waiting stands out. */
const KINDS: Readonly<Record<string, Box['kind']>> = {
  computing: 'call',
  'waiting for all': 'wait',
  delivery: 'call',
};

function boxOf(span: TraceSpan, origin: number): Box {
  const { rank, name, start, end, args } = span;
  const took = `${microseconds(end - start)} µs`;
  const unfinished = args['unfinished'] === true;
  const words = name === 'delivery' ? `, h ${args['h']}` : '';
  return {
    rank,
    kind: KINDS[name] ?? 'epoch',
    label: `${name}${words}, ${unfinished ? 'unfinished' : took}`,
    detail: `rank ${rank}: ${name}, from ${microseconds(start - origin)} to ${microseconds(end - origin)} µs`,
    start,
    end,
    unfinished,
    alone: true,
  };
}

function slowestOf(spans: readonly TraceSpan[]): string {
  const computing = spans.filter(({ name }) => name === 'computing');
  if (computing.length < 2) return '';
  const longest = computing.reduce((a, b) => (b.end - b.start > a.end - a.start ? b : a));
  return `: rank ${longest.rank} computed longest`;
}
