/**
 * The schedules of this version. Their order gives the numbers by which ranks compare their hints, and the order in
 * which several of them are applied: turns begin with a get where gets come first.
 */
import { aggregate } from './aggregate.ts';
import { aggregateGets } from './aggregate-gets.ts';
import { getsFirst } from './gets-first.ts';
import { interleave } from './interleave.ts';
import { issueOrder } from './issue-order.ts';
import type { Schedulable, ScheduleKind } from './schedule-kind.ts';

const SCHEDULES = [issueOrder, getsFirst, interleave, aggregate, aggregateGets] as const;

export type ScheduleName = (typeof SCHEDULES)[number]['name'];
type Combined = Exclude<ScheduleName, 'issue-order'>;
/** `issue-order`, or any of the others, separated by commas. */
export type ScheduleHint =
  | ScheduleName
  | `${Combined},${Combined}`
  | `${Combined},${Combined},${Combined}`
  | `${Combined},${Combined},${Combined},${Combined}`;

export const SCHEDULE_NAMES: readonly ScheduleName[] = SCHEDULES.map(({ name }) => name);

/** The schedule of windows whose hints name none. */
export const DEFAULT_SCHEDULE: ScheduleName = issueOrder.name;

/** What a window does with the puts and gets of an epoch. */
export interface Schedule {
  /** Whether `order` changes anything. */
  readonly orders: boolean;
  order<T extends Schedulable>(held: readonly T[]): readonly T[];
  /** Which small operations travel with the message that completes their epoch; absent if none do. */
  readonly folds: { readonly puts: boolean; readonly gets: boolean } | undefined;
}

/** What a hint names, in the order of the list; `undefined` if it names anything else. */
function kindsOf(hint: unknown): readonly ScheduleKind[] | undefined {
  const names = typeof hint === 'string' ? hint.split(',') : [];
  const kinds = SCHEDULES.filter(({ name }) => names.includes(name));
  const alone = !names.includes(issueOrder.name) || names.length === 1;
  return alone && kinds.length > 0 && kinds.length === names.length ? kinds : undefined;
}

/** A hint as `getInfo` returns it; `undefined` if it is none. */
export function readSchedule(hint: unknown): ScheduleHint | undefined {
  return kindsOf(hint)
    ?.map(({ name }) => name)
    .join(',') as ScheduleHint | undefined;
}

/** How many numbers `numberOfSchedule` gives. */
export const SCHEDULE_NUMBERS = 2 ** (SCHEDULES.length - 1);

export function numberOfSchedule(hint: ScheduleHint): number {
  // `issue-order` is never one of several.
  const all: readonly ScheduleKind[] = SCHEDULES;
  const bitOf = (kind: ScheduleKind): number => (kind === issueOrder ? 0 : 2 ** (all.indexOf(kind) - 1));
  return kindsOf(hint)!.reduce((number, kind) => number + bitOf(kind), 0);
}

export function scheduleOf(hint: ScheduleHint): Schedule {
  const kinds: readonly ScheduleKind[] = kindsOf(hint)!;
  const [puts, gets] = (['puts', 'gets'] as const).map((which) => kinds.some(({ folds }) => folds === which));
  return {
    orders: kinds.some(({ order }) => order !== undefined),
    order: <T extends Schedulable>(held: readonly T[]) =>
      kinds.reduce<readonly T[]>((ordered, { order }) => order?.(ordered) ?? ordered, held),
    folds: puts || gets ? { puts, gets } : undefined,
  };
}
