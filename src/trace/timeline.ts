/**
 * From what each rank has recorded to what happened between them: spans that nest, and arrows from one rank's span to
 * another's.
 *
 * A span whose beginning is no longer in the ring is left out. One that was never ended (its rank was killed in it, or
 * the trace was written before) lasts to the end of the trace, and says `unfinished`. Spans of one rank can overlap
 * without nesting, where it awaits several promises: then they get lanes of their own.
 *
 * No rank records which rank passed a lock on to which, since a holder need not know which ranks wait. This is found by
 * the times: a rank that waited for the lock got it by the last release before. If a put goes by requests, these say
 * when its bytes have arrived (operation-arrivals.ts). Notifications are anonymous too, and are taken in the order in
 * which they were given.
 */
import { isQueued, OperationArrivals } from './operation-arrivals.ts';
import type { Category, Span } from './span.ts';
import { StepSpans } from './step-spans.ts';
import { FIELDS, Field, Kind, type Recording } from './trace-ring.ts';

/** From one span, at its start or its end, to another one. */
export interface Arrow {
  readonly name: string;
  readonly from: Span;
  readonly to: Span;
}

export interface Timeline {
  /** By rank, each by start, and the outer before the inner. */
  readonly spans: readonly (readonly Span[])[];
  /** What reaches or leaves the memory of each rank by others' doing: spans without length. */
  readonly memory: readonly (readonly Span[])[];
  /** Supersteps of each rank, and their phases, on lanes of their own. */
  readonly supersteps: readonly (readonly Span[])[];
  readonly arrows: readonly Arrow[];
  /** By rank: records that were overwritten by later ones. */
  readonly dropped: readonly number[];
  readonly events: number;
  /** The first event, by the ranks' clock. */
  readonly origin: number;
  /** Arrows that would point back in time, and are left out: more than none means that the ranks' clocks differ. */
  readonly disordered: number;
}

const CATEGORIES: Readonly<Record<number, Category>> = {
  [Kind.EPOCH]: 'epoch',
  [Kind.CALL]: 'call',
  [Kind.WAIT]: 'wait',
};

/** Of calls, what `place` counts. */
const COUNTED: Readonly<Record<string, string>> = {
  fence: 'fence',
  'fence epoch': 'fence',
  'access epoch': 'epoch',
  'exposure epoch': 'epoch',
  'exclusive lock': 'lock',
  'shared lock': 'lock',
  'lockAll epoch': 'lock',
};

export function timelineOf(recordings: readonly Recording[]): Timeline {
  const builder = new Builder(recordings);
  for (const recording of recordings) builder.read(recording);
  return builder.finish();
}

interface LockEvent {
  readonly span: Span;
  readonly exclusive: boolean;
  readonly waited: boolean;
}

/** A record of a rank. */
interface Event {
  readonly rank: number;
  readonly kind: number;
  readonly name: string;
  readonly scope: string;
  /** As recorded; and since the first record of all, rounded. */
  readonly began: number;
  readonly time: number;
  readonly peer: number;
  readonly bytes: number;
  readonly place: number;
  readonly value: number;
}

function endSpan(span: Span, { name, time }: Event): void {
  span.end = time;
  if (name !== '') span.args['error'] = name;
}

/** Of a superstep. */
function isPhase(kind: number): boolean {
  return kind >= Kind.COMPUTED && kind <= Kind.DELIVERED;
}

class Builder {
  readonly #origin: number;
  readonly #last: number;
  readonly #spans: Span[][];
  readonly #memory: Span[][];
  readonly #supersteps: Span[][];
  readonly #arrows: Arrow[] = [];
  readonly #recordings: readonly Recording[];
  readonly #sent = new Map<string, Span>();
  readonly #seen: [string, Span][] = [];
  readonly #operations = new OperationArrivals();
  readonly #releases = new Map<string, LockEvent[]>();
  readonly #acquisitions: [string, LockEvent][] = [];
  readonly #notified = new Map<string, Span[]>();
  readonly #took: [string, number, Span][] = [];
  #disordered = 0;

  constructor(recordings: readonly Recording[]) {
    this.#recordings = recordings;
    let first = Number.POSITIVE_INFINITY;
    let last = 0;
    for (const { records, count } of recordings) {
      for (let i = 0; i < count; i++) {
        const time = records[FIELDS * i + Field.TIME];
        const kind = records[FIELDS * i + Field.KIND];
        const operation = kind === Kind.OPERATION || kind === Kind.OPERATION_DONE || isPhase(kind);
        first = Math.min(first, time);
        last = Math.max(last, operation ? time + records[FIELDS * i + Field.VALUE] : time);
      }
    }
    this.#origin = Number.isFinite(first) ? first : 0;
    this.#last = Math.round(last - this.#origin);
    const size = recordings.reduce((most, { rank }) => Math.max(most, rank + 1), 0);
    this.#spans = Array.from({ length: size }, () => []);
    this.#memory = Array.from({ length: size }, () => []);
    this.#supersteps = Array.from({ length: size }, () => []);
  }

  read({ rank, records, count, texts }: Recording): void {
    const open = new Map<number, Span>();
    const steps = new StepSpans(rank, this.#origin, this.#last);
    for (let i = 0; i < count; i++) {
      const at = FIELDS * i;
      const kind = records[at + Field.KIND];
      const scope = texts[records[at + Field.SCOPE]] ?? '…';
      if (isPhase(kind)) {
        steps.add(scope, records.subarray(at, at + FIELDS));
        continue;
      }
      const [peer, bytes, place, value] = records.subarray(at + Field.PEER, at + FIELDS);
      const began = records[at + Field.TIME];
      this.#take(
        {
          rank,
          kind,
          name: texts[records[at + Field.NAME]] ?? '…',
          scope,
          began,
          time: Math.round(began - this.#origin),
          peer,
          bytes,
          place,
          value,
        },
        open,
      );
    }
    for (const span of open.values()) span.args['unfinished'] = true;
    this.#supersteps[rank] = steps.finish();
  }

  /** @param open calls, waits and epochs of the rank that have not ended, by their numbers */
  #take(event: Event, open: Map<number, Span>): void {
    switch (event.kind) {
      case Kind.EPOCH:
      case Kind.CALL:
      case Kind.WAIT:
        if (event.kind === Kind.CALL) this.#operations.forget(event.rank);
        open.set(event.value, this.#began(event, CATEGORIES[event.kind]));
        break;
      case Kind.END: {
        const span = open.get(event.value);
        open.delete(event.value);
        if (span !== undefined) endSpan(span, event);
        break;
      }
      case Kind.OPERATION:
      case Kind.OPERATION_DONE:
        this.#operation(event);
        break;
      case Kind.SENT:
        this.#hasSent(event);
        break;
      case Kind.SEEN:
        this.#hasSeen(event);
        break;
      case Kind.COMPLETED:
        this.#completed(event);
        break;
      case Kind.TOOK_EFFECT:
        this.#operations.tookEffect(keyOf(event.name, event.scope, event.rank, event.peer, event.value), event.time);
        break;
      case Kind.ISSUED:
        this.#operations.issued(event.rank, event.value);
        break;
      case Kind.RELEASED:
      case Kind.ACQUIRED:
        this.#lock(event);
        break;
      case Kind.NOTIFIED:
        this.#notifies(event);
        break;
      case Kind.TOOK:
        this.#took.push([`${idOf(event.scope)}|${event.rank}`, event.bytes, this.#takes(event)]);
        break;
    }
  }

  #began({ rank, name, scope, time, peer, place }: Event, category: Category): Span {
    return this.#span(rank, category, name, time, this.#last, this.#callArgs(name, scope, peer, place));
  }

  #operation({ rank, kind, name, scope, began, time, peer, bytes, place, value }: Event): void {
    const args = { ...scopeArgs(scope), target: peer, bytes, disp: place };
    const span = this.#span(rank, 'operation', name, time, Math.round(began + value - this.#origin), args);
    const isDone = kind === Kind.OPERATION_DONE;
    if (this.#operations.began(span, idOf(scope), peer) || !isDone || peer < 0) return;
    this.#moved(span, peer, isGet(name) ? time : span.end, span);
  }

  #hasSent({ rank, name, scope, time, peer, bytes, place, value }: Event): void {
    if (isQueued(name)) {
      this.#operations.queued(rank, scope, place, keyOf(name, scope, rank, peer, value));
      return;
    }
    const args = { ...scopeArgs(scope), to: peer, ...(name === 'gather' ? { bytes } : sizeArgs(name, bytes)) };
    const span = this.#instant(rank, name, `→ rank ${peer}`, time, args);
    if (name === 'request') this.#operations.posted(span, scope, place, keyOf(name, scope, rank, peer, value));
    else this.#sent.set(keyOf(name, scope, place === 1 ? -1 : rank, peer, value), span);
  }

  #hasSeen({ rank, name, scope, time, peer, bytes, value }: Event): void {
    if (isQueued(name)) {
      this.#operations.completed(keyOf(name, scope, peer, rank, value), time);
      return;
    }
    const args = { ...scopeArgs(scope), ...(peer >= 0 && { from: peer }), ...sizeArgs(name, bytes) };
    const span = this.#instant(rank, name, peer < 0 ? 'seen' : `← rank ${peer}`, time, args);
    this.#seen.push([keyOf(name, scope, peer, rank, value), span]);
  }

  #completed({ rank, scope, time, peer, value }: Event): void {
    const posted = this.#operations.completed(keyOf('request', scope, rank, peer, value), time);
    const args = { ...scopeArgs(scope), from: rank };
    const there = this.#inMemory(peer, `request of rank ${rank} complete`, time, args);
    if (posted !== undefined) this.#arrow('request', posted, there);
  }

  #lock({ rank, kind, scope, time, peer, place, value }: Event): void {
    const released = kind === Kind.RELEASED;
    const args = { ...scopeArgs(scope), target: peer, exclusive: place === 1 };
    const span = this.#instant(rank, 'lock', released ? 'released' : 'acquired', time, args);
    const event = { span, exclusive: place === 1, waited: value === 1 };
    const key = `${idOf(scope)}|${peer}`;
    if (released) listOf(this.#releases, key).push(event);
    else this.#acquisitions.push([key, event]);
  }

  #notifies({ rank, scope, time, peer }: Event): void {
    const span = this.#instant(rank, 'notification', `→ rank ${peer}`, time, { ...scopeArgs(scope), to: peer });
    listOf(this.#notified, `${idOf(scope)}|${peer}`).push(span);
  }

  #takes({ rank, scope, time, bytes }: Event): Span {
    return this.#instant(rank, 'notification', 'taken', time, { ...scopeArgs(scope), count: bytes });
  }

  finish(): Timeline {
    for (const [key, to] of this.#seen) {
      const from = this.#sent.get(key);
      if (from !== undefined) this.#arrow(from.name.split(' ')[0], from, to);
    }
    this.#operations.arrive((span, peer, time) => this.#arrives(span, peer, time));
    this.#passLocksOn();
    this.#takeNotifications();
    for (const spans of this.#spans) giveLanes(spans);
    for (const spans of this.#supersteps) giveLanes(spans);
    for (const spans of this.#memory) spans.sort((a, b) => a.start - b.start);
    return {
      spans: this.#spans,
      memory: this.#memory,
      supersteps: this.#supersteps,
      arrows: this.#arrows,
      dropped: this.#recordings.map(({ dropped }) => dropped),
      events: this.#recordings.reduce((sum, { count }) => sum + count, 0),
      origin: this.#origin,
      disordered: this.#disordered,
    };
  }

  /**
   * The bytes of an operation are in the target's memory, or leave it.
   * @param here where those of a get arrive
   */
  #moved(span: Span, peer: number, time: number, here: Span): void {
    const { name, args, rank } = span;
    const there = this.#inMemory(peer, `${name} of rank ${rank}`, time, { ...args, from: rank });
    if (isGet(name)) this.#arrow(name, there, here);
    else this.#arrow(name, span, there);
  }

  /** The bytes of an operation have arrived after its call. */
  #arrives(span: Span, peer: number, time: number): void {
    const { name, args, rank, start } = span;
    if (isGet(name)) this.#moved(span, peer, start, this.#instant(rank, name, `← rank ${peer}`, time, args));
    else this.#moved(span, peer, time, span);
  }

  #passLocksOn(): void {
    for (const events of this.#releases.values()) events.sort((a, b) => a.span.start - b.span.start);
    for (const [key, { span, exclusive, waited }] of this.#acquisitions) {
      if (!waited) continue;
      // Others that share it may have let go of it since; what let this one in is an exclusive holder's release.
      const from = lastBefore(
        this.#releases.get(key) ?? [],
        span.start,
        (event) => event.span.rank !== span.rank && (exclusive || event.exclusive),
      );
      if (from !== undefined) this.#arrow('lock', from.span, span);
    }
  }

  #takeNotifications(): void {
    for (const spans of this.#notified.values()) spans.sort((a, b) => a.start - b.start);
    const taken = new Map<string, number>();
    for (const [key, count, span] of this.#took) {
      const first = taken.get(key) ?? 0;
      taken.set(key, first + count);
      for (const from of (this.#notified.get(key) ?? []).slice(first, first + count)) {
        if (from.start <= span.start) this.#arrow('notification', from, span);
      }
    }
  }

  #arrow(name: string, from: Span, to: Span): void {
    if (from.start > to.end) this.#disordered++;
    else this.#arrows.push({ name, from, to });
  }

  #callArgs(name: string, scope: string, peer: number, place: number): Span['args'] {
    const counted = COUNTED[name];
    return {
      ...scopeArgs(scope),
      ...(peer >= 0 && { target: peer }),
      ...(counted !== undefined && { [counted]: place }),
      ...(name === 'lock' && { exclusive: place === 1 }),
    };
  }

  #span(rank: number, category: Category, name: string, start: number, end: number, args: Span['args']): Span {
    const span: Span = { rank, category, name, start, end, args, lane: 0 };
    this.#spans[rank].push(span);
    return span;
  }

  #instant(rank: number, kind: string, what: string, time: number, args: Span['args']): Span {
    return this.#span(rank, 'message', `${kind} ${what}`, time, time, args);
  }

  #inMemory(rank: number, name: string, time: number, args: Span['args']): Span {
    const span: Span = { rank, category: 'memory', name, start: time, end: time, args, lane: 0 };
    this.#memory[rank].push(span);
    return span;
  }
}

function isGet(name: string): boolean {
  return name === 'get' || name === 'rget';
}

function keyOf(name: string, scope: string, from: number, to: number, count: number): string {
  return `${name}|${scope}|${from}|${to}|${count}`;
}

/**
 * A scope is the id of a window or communicator, which is the same at all ranks, and its name there. Those of flows
 * are ids alone.
 */
function scopeArgs(scope: string): Record<string, string> {
  if (scope === '') return {};
  const bar = scope.indexOf('|');
  const id = bar < 0 ? scope : scope.slice(0, bar);
  const name = bar < 0 ? undefined : scope.slice(bar + 1);
  // Windows are numbered on their communicator.
  if (!id.includes('.')) return { communicatorId: id, ...(name && { communicator: name }) };
  return { windowId: id, ...(name && { window: name }) };
}

/** The rest are words in shared memory, of no size worth saying. */
function sizeArgs(name: string, bytes: number): Record<string, number> {
  return name === 'message' ? { bytes } : {};
}

function idOf(scope: string): string {
  return scope.split('|', 1)[0];
}

function listOf<T>(map: Map<string, T[]>, key: string): T[] {
  let list = map.get(key);
  if (list === undefined) {
    list = [];
    map.set(key, list);
  }
  return list;
}

/** The last of the events, which are in order, that was no later than `time` and fits. */
function lastBefore(
  events: readonly LockEvent[],
  time: number,
  fits: (event: LockEvent) => boolean,
): LockEvent | undefined {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].span.start <= time) low = middle + 1;
    else high = middle;
  }
  for (let i = low - 1; i >= 0; i--) if (fits(events[i])) return events[i];
  return undefined;
}

/** Sorts the spans, and puts each on the first lane on which it nests. */
function giveLanes(spans: Span[]): void {
  const order = new Map(spans.map((span, i) => [span, i]));
  spans.sort((a, b) => a.start - b.start || b.end - a.end || order.get(a)! - order.get(b)!);
  const lanes: Span[][] = [];
  for (const span of spans) {
    for (let lane = 0; ; lane++) {
      const stack = (lanes[lane] ??= []);
      while (stack.length > 0 && stack[stack.length - 1].end <= span.start && !holds(stack[stack.length - 1], span))
        stack.pop();
      const top = stack[stack.length - 1];
      if (top !== undefined && top.end < span.end) continue;
      stack.push(span);
      span.lane = lane;
      break;
    }
  }
}

/** A message at the very end of a span is within it. */
function holds(outer: Span, inner: Span): boolean {
  return inner.start === inner.end && outer.start < outer.end && outer.end === inner.start;
}
