/**
 * What a message-sequence picture shows of a trace: one fence of a window with the epoch that it ends, one lock with
 * all that stood in line for it, or one round of start, complete, post and wait.
 */
import { RmaError } from '../errors.ts';
import { arrowKind, collapse, type SceneArrow, sceneArrow } from './scene-arrows.ts';
import type { Trace, TraceSpan } from './trace-reader.ts';
import { Waits } from './waits.ts';

export interface Choice {
  /** Its name, or its id; the first window of the trace that has what is asked for, if absent. */
  readonly window?: string | undefined;
  readonly fence?: number | undefined;
  /** By when it was got, over all ranks, from 1. */
  readonly lock?: number | undefined;
  readonly epoch?: number | undefined;
  /** Ranks to be shown; all that take part, if absent. */
  readonly ranks?: readonly number[] | undefined;
}

export interface Box {
  readonly rank: number;
  readonly kind: 'epoch' | 'call' | 'wait';
  readonly label: string;
  /** All that is known of it. */
  readonly detail: string;
  readonly start: number;
  readonly end: number;
  readonly unfinished: boolean;
  /** A wait that is not within a call: it has a label of its own. */
  readonly alone?: boolean;
  /** Of a wait, for whom it is, where that is known; of several in a row for the same rank, only the first says so. */
  readonly awaits?: string | undefined;
}

export interface Scene {
  readonly title: string;
  readonly program: string;
  readonly ranks: readonly number[];
  /** Ranks of the job that are not shown. */
  readonly hidden: number;
  readonly start: number;
  readonly end: number;
  readonly boxes: readonly Box[];
  readonly arrows: readonly SceneArrow[];
  /** Ranks of the window that never came to the fence, and what they did instead. */
  readonly absent: readonly Absent[];
}

export interface Absent {
  readonly rank: number;
  /** What it did last: `in lock of window #2`, or `last call: barrier of world`; empty if it has called nothing. */
  readonly instead: string;
}

/** Lanes that fit beside each other; of more ranks there is an overview (overview.ts). */
export const MOST_RANKS = 16;

/** The windows of a trace, and what can be drawn of each. */
export interface WindowSummary {
  readonly id: string;
  readonly name: string;
  readonly fences: number;
  readonly locks: number;
  readonly epochs: number;
}

export function windowsOf({ spans }: Trace): WindowSummary[] {
  const windows = new Map<string, { name: string; fences: number; locks: number; epochs: number }>();
  for (const span of spans) {
    const { window, windowId, fence, epoch } = span.args;
    if (typeof windowId !== 'string' || typeof window !== 'string') continue;
    let found = windows.get(windowId);
    if (found === undefined) {
      found = { name: window, fences: 0, locks: 0, epochs: 0 };
      windows.set(windowId, found);
    }
    if (isFence(span)) found.fences = Math.max(found.fences, Number(fence));
    if (isLock(span)) found.locks++;
    if (isRound(span)) found.epochs = Math.max(found.epochs, Number(epoch));
  }
  return [...windows].map(([id, counts]) => ({ id, ...counts }));
}

/**
 * The communicator of all ranks has the first id (`WORLD_SPACE` of collective/message-spaces.ts); a window's id is its
 * communicator's, a dot, and a number.
 */
const WORLD = '4';

/**
 * The ranks that have a window, as far as the trace says: those that have called something of it, or of its
 * communicator.
 */
function membersOf({ ranks, spans }: Trace, { id }: WindowSummary): number[] {
  const [communicator] = id.split('.');
  if (communicator === WORLD) return Array.from({ length: ranks }, (_, rank) => rank);
  const own = ({ args }: TraceSpan): boolean => String(args['windowId'] ?? '').split('.')[0] === communicator;
  return [...new Set(spans.filter(own).map(({ rank }) => rank))].sort((a, b) => a - b);
}

/**
 * The ranks of a window that have not come to one of its fences, while others have. Where an older fence is no longer
 * in the trace, a later one says that they came.
 */
export function absentFrom(trace: Trace, window: WindowSummary, fence: number): Absent[] {
  const last = new Map<number, number>();
  for (const span of trace.spans) {
    if (span.args['windowId'] !== window.id || !isFence(span)) continue;
    last.set(span.rank, Math.max(last.get(span.rank) ?? 0, Number(span.args['fence'])));
  }
  const members = membersOf(trace, window).filter((rank) => (last.get(rank) ?? 0) < fence);
  if (members.length === 0) return [];
  const calls = lastCalls(trace);
  return members.map((rank) => ({ rank, instead: insteadOf(calls.get(rank)) }));
}

/** The last call of each rank. */
function lastCalls({ spans }: Trace): Map<number, TraceSpan> {
  const last = new Map<number, TraceSpan>();
  for (const span of spans) {
    if (span.category !== 'call') continue;
    const latest = last.get(span.rank);
    if (latest === undefined || span.start >= latest.start) last.set(span.rank, span);
  }
  return last;
}

/** What a rank did last. */
function insteadOf(last: TraceSpan | undefined): string {
  if (last === undefined) return '';
  const { name, args } = last;
  // A window's id has a dot; a communicator's name says what it is.
  const kind = String(args['windowId'] ?? '').includes('.') ? 'window ' : '';
  const where = args['window'] === undefined ? name : `${name} of ${kind}${args['window']}`;
  return args['unfinished'] === true ? `in ${where}` : `last call: ${where}`;
}

/** `rank 1`, `ranks 1, 2`. */
export function ranksInWords(absent: readonly Absent[]): string {
  return `rank${absent.length === 1 ? '' : 's'} ${absent.map(({ rank }) => rank).join(', ')}`;
}

function isFence({ category, name }: TraceSpan): boolean {
  return category === 'call' && name === 'fence';
}

function isLock({ category, name }: TraceSpan): boolean {
  return category === 'epoch' && (name === 'exclusive lock' || name === 'shared lock');
}

function isRound({ category, name }: TraceSpan): boolean {
  return category === 'epoch' && (name === 'access epoch' || name === 'exposure epoch');
}

/** What a picture shows. */
export interface Selection {
  readonly window: WindowSummary;
  readonly title: string;
  /** By rank: the part of its time. */
  readonly shown: ReadonlyMap<number, { readonly start: number; readonly end: number }>;
  /** Of the window's spans, which ones. */
  concerns(span: TraceSpan): boolean;
  /** Ranks of the window that never came to the fence. */
  readonly absent: readonly Absent[];
  /** Which rank was the last to come to the fence, and when. */
  readonly last?: { readonly rank: number; readonly time: number } | undefined;
  /** The lock that was asked for, from when its rank had it. */
  readonly held?: { readonly rank: number; readonly start: number; readonly end: number } | undefined;
}

/** Throws `ERR_ARG` if the trace does not have it. */
export function selectionOf(trace: Trace, choice: Choice): Selection {
  const window = chooseWindow(trace, choice);
  const { fence, lock, epoch } = numbersOf(window, choice);
  const own = trace.spans.filter(({ args }) => args['windowId'] === window.id);
  if (fence !== undefined) return fenceSelection(trace, window, own, fence);
  return lock !== undefined ? lockSelection(window, own, lock) : roundSelection(window, own, epoch!);
}

/** Lanes beside each other of what is chosen. Throws `ERR_ARG` if the trace does not have it. */
export function sceneOf(trace: Trace, choice: Choice): Scene {
  return assemble(trace, selectionOf(trace, choice), choice);
}

function chooseWindow(trace: Trace, { window, fence, lock, epoch }: Choice): WindowSummary {
  const windows = windowsOf(trace);
  const has = (found: WindowSummary): boolean => {
    if (fence !== undefined) return found.fences > 0;
    if (lock !== undefined) return found.locks > 0;
    if (epoch !== undefined) return found.epochs > 0;
    return found.fences + found.locks + found.epochs > 0;
  };
  const found =
    windows.find(({ id, name }) => id === window || name === window) ??
    (window === undefined ? windows.find(has) : undefined);
  if (found !== undefined) return found;
  const names = windows.map(({ name }) => name).join(', ');
  throw new RmaError(
    'ERR_ARG',
    window === undefined
      ? 'no window of the trace has what you ask for; "onesided trace list FILE" shows what the trace has'
      : `no window of the trace is named ${JSON.stringify(window)}; its windows are ${names || 'none'}`,
  );
}

/** Which one: if none is named, the first fence that ends an epoch, else the first lock, else the first round. */
function numbersOf(window: WindowSummary, { fence, lock, epoch }: Choice): Pick<Choice, 'fence' | 'lock' | 'epoch'> {
  for (const [what, number, most] of [
    ['fences', fence, window.fences],
    ['locks', lock, window.locks],
    ['epochs of start and post', epoch, window.epochs],
  ] as const) {
    if (number === undefined || (number >= 1 && number <= most)) continue;
    const kept = most === 0 ? `no ${what}` : `${what} 1 to ${most}`;
    throw new RmaError('ERR_ARG', `window ${window.name} has ${kept} in this trace, not ${number}`);
  }
  if (fence !== undefined || lock !== undefined || epoch !== undefined) return { fence, lock, epoch };
  if (window.fences > 0) return { fence: Math.min(2, window.fences) };
  return window.locks > 0 ? { lock: 1 } : { epoch: 1 };
}

function fenceSelection(trace: Trace, window: WindowSummary, own: readonly TraceSpan[], fence: number): Selection {
  const shown = new Map<number, { start: number; end: number }>();
  let last: Selection['last'];
  for (const span of own) {
    if (!isFence(span) || span.args['fence'] !== fence) continue;
    shown.set(span.rank, { start: span.start, end: span.end });
    if (last === undefined || span.start > last.time) last = { rank: span.rank, time: span.start };
  }
  if (shown.size === 0)
    throw new RmaError(
      'ERR_ARG',
      `fence ${fence} of window ${window.name} is no longer in the trace; record more events with --trace-events N`,
    );
  for (const span of own) {
    const time = shown.get(span.rank);
    if (span.name === 'fence epoch' && span.args['fence'] === fence - 1 && time !== undefined) time.start = span.start;
  }
  const absent = absentFrom(trace, window, fence);
  const never = absent.length === 0 ? '' : `: ${ranksInWords(absent)} never came`;
  const title = `Fence ${fence} of window ${window.name}${never}`;
  return { window, title, shown, concerns: () => true, absent, last };
}

function lockSelection(window: WindowSummary, own: readonly TraceSpan[], lock: number): Selection {
  const epoch = own.filter(isLock).sort((a, b) => a.start - b.start)[lock - 1];
  const target = epoch.args['target'];
  const opening = openerOf(own, epoch, 'lock');
  const start = opening?.start ?? epoch.start;
  const title = `Lock ${lock} of window ${window.name}: rank ${epoch.rank} holds rank ${target}'s part`;
  const concerns = ({ name, args }: TraceSpan): boolean => args['target'] === target || /lockAll/i.test(name);
  const shown = new Map<number, { start: number; end: number }>();
  for (const span of own) {
    const overlaps = span.start < epoch.end && span.end > start && concerns(span);
    if (overlaps || span.rank === target) shown.set(span.rank, { start, end: epoch.end });
  }
  return { window, title, shown, concerns, absent: [], held: epoch };
}

function roundSelection(window: WindowSummary, own: readonly TraceSpan[], epoch: number): Selection {
  const byRank = new Map<number, TraceSpan[]>();
  for (const span of own) {
    const spans = byRank.get(span.rank);
    if (spans === undefined) byRank.set(span.rank, [span]);
    else spans.push(span);
  }
  const shown = new Map<number, { start: number; end: number }>();
  for (const span of own) {
    if (!isRound(span) || span.args['epoch'] !== epoch) continue;
    const opening = openerOf(byRank.get(span.rank)!, span, span.name === 'access epoch' ? 'start' : 'post');
    const start = opening?.start ?? span.start;
    const before = shown.get(span.rank);
    shown.set(span.rank, {
      start: Math.min(start, before?.start ?? start),
      end: Math.max(span.end, before?.end ?? span.end),
    });
  }
  const title = `Epoch ${epoch} of window ${window.name} (start, complete, post, wait)`;
  return { window, title, shown, concerns: () => true, absent: [] };
}

/** The call that opened an epoch: the last of that name before it, at the same rank. */
function openerOf(own: readonly TraceSpan[], epoch: TraceSpan, name: string): TraceSpan | undefined {
  const before = own.filter(
    ({ rank, category, name: other, end, args }) =>
      rank === epoch.rank &&
      category === 'call' &&
      other === name &&
      end <= epoch.start &&
      args['target'] === epoch.args['target'],
  );
  return before.at(-1);
}

/** The ranks that take part in what is shown, or should. */
export function ranksOf({ shown, absent }: Selection): number[] {
  return [...absent.map(({ rank }) => rank), ...shown.keys()].sort((a, b) => a - b);
}

function assemble(trace: Trace, selection: Selection, { ranks }: Choice): Scene {
  const { window, title, shown, concerns, absent } = selection;
  const start = Math.min(...[...shown.values()].map((time) => time.start));
  const end = Math.max(...[...shown.values()].map((time) => time.end));
  const lanes = ranks ?? ranksOf(selection);
  const within = ({ rank, start, end }: TraceSpan): boolean => {
    const time = shown.get(rank);
    return (
      time !== undefined &&
      lanes.includes(rank) &&
      start <= time.end &&
      end >= time.start &&
      (start < time.end || start === end)
    );
  };
  const calls = trace.spans.filter(
    (span) => span.category === 'call' && span.args['windowId'] === window.id && within(span) && concerns(span),
  );
  /** Puts and gets send messages, too. */
  const operations = trace.spans.filter(
    (span) => span.category === 'operation' && span.args['windowId'] === window.id && within(span) && concerns(span),
  );
  /** Waits and messages bear no window: they belong to the call that they are made in. */
  const inCall = ({ rank, start, end }: TraceSpan): boolean =>
    [...calls, ...operations].some((call) => call.rank === rank && call.start <= start && end <= call.end);
  const epochs = trace.spans.filter((span) => span.category === 'epoch' && span.args['windowId'] === window.id);
  /** A rank that computes in its epoch takes messages, too, where it has a helper. */
  const inEpoch = ({ rank, category, start, end }: TraceSpan): boolean =>
    category === 'message' && epochs.some((epoch) => epoch.rank === rank && epoch.start <= start && end <= epoch.end);
  const boxes: Box[] = [];
  const waits = new Waits(trace, lanes, window.id.split('.')[0] === WORLD);
  const said = new Set<string>();
  const awaitsOf = (span: TraceSpan): string | undefined => {
    if (span.category !== 'wait') return undefined;
    const { rank, start, end } = span;
    const call = calls.find((other) => other.rank === rank && other.start <= start && end <= other.end);
    const awaited = waits.awaited(span, call);
    const key = `${rank} ${call?.start} ${awaited}`;
    if (awaited === undefined || said.has(key)) return undefined;
    said.add(key);
    return awaited;
  };
  for (const span of trace.spans) {
    const { rank, category, args } = span;
    if (category !== 'epoch' && category !== 'call' && category !== 'wait') continue;
    const mine = category === 'wait' ? inCall(span) : args['windowId'] === window.id && concerns(span);
    if (!mine || !within(span) || span.end === span.start) continue;
    // The next epoch begins where the picture ends.
    const cut = { start: Math.max(start, span.start), end: Math.min(end, span.end) };
    if (cut.end <= cut.start) continue;
    const unfinished = args['unfinished'] === true;
    const [label, detail, awaits] = [labelOf(span), detailOf(span, start), awaitsOf(span)];
    boxes.push({ rank, kind: category, label, detail, ...cut, unfinished, ...(awaits !== undefined && { awaits }) });
  }
  const arrows: SceneArrow[] = [];
  for (const { name, from, to } of trace.arrows) {
    if (!lanes.includes(from.rank) || !lanes.includes(to.rank)) continue;
    const kind = arrowKind(name);
    // The call that has made it is in the picture.
    if (name === 'request' && from.args['of'] !== undefined) continue;
    const ends = [from, to].filter(({ category }) => category !== 'memory');
    const mine = ends.every(
      (span) =>
        (span.args['windowId'] === window.id || inCall(span) || inEpoch(span)) && within(span) && concerns(span),
    );
    if (!mine || (kind === 'message' && !ends.some(inCall))) continue;
    arrows.push(sceneArrow({ name, from, to }));
  }
  const hidden = trace.ranks - lanes.length;
  return {
    title,
    program: trace.program,
    ranks: lanes,
    hidden,
    start,
    end,
    boxes,
    arrows: collapse(arrows),
    absent: absent.filter(({ rank }) => lanes.includes(rank)),
  };
}

function labelOf({ category, name, args, start, end }: TraceSpan): string {
  const took = `${microseconds(end - start)} µs`;
  if (category === 'wait') return took;
  if (args['error'] !== undefined) return `${name}: ${args['error']}`;
  if (args['unfinished'] === true) return `${name}, unfinished`;
  const target = args['target'] === undefined ? '' : `(${args['target']})`;
  return category === 'epoch' ? name : `${name}${target}, ${took}`;
}

function detailOf({ rank, name, args, start, end }: TraceSpan, origin: number): string {
  const times = `from ${microseconds(start - origin)} to ${microseconds(end - origin)} µs`;
  const more = ['error', 'unfinished'].filter((key) => args[key] !== undefined).map((key) => `, ${key} ${args[key]}`);
  return `rank ${rank}: ${name}, ${times}${more.join('')}`;
}

export function microseconds(ns: number): string {
  const us = ns / 1000;
  return us >= 100 ? us.toFixed(0) : us >= 10 ? us.toFixed(1) : us.toFixed(2);
}
