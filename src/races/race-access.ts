/**
 * Accesses, and when one is ordered before another.
 *
 * Time is logical: each rank counts, and a vector clock of a rank says up to which count of each other one it has
 * learned. A rank's own count goes on whenever it gives its clock away, so what it does afterwards is later than
 * whatever the receiver learns.
 *
 * A load or store happens at its time. An operation (put, get, update) is a strand of its own: it begins at its call,
 * and ends where something completes it. Who has learned of that end is ordered behind it, nobody else. The end may be
 * known by two ways: by the clock of its origin (a flush, a fence), or by that of its target (a wait, a notification).
 */

export interface RaceAccess {
  /** Of the world. */
  readonly rank: number;
  /** Of several operations that have this record, the last one's. */
  time: number;
  /** The line, as the rank's text. */
  readonly site: string;
  /** `put`, `load`, … */
  readonly call: string;
  /** Of which side of an operation it is: `target`, or the name of the argument; `undefined`: a load or store. */
  readonly side: string | undefined;
  readonly writes: boolean;
  /** `TypeCode` of the elements of an update, and where they begin within their size; −1: it is none. */
  readonly atomic: number;
  /** The operation (`OpCode`) that may meet this update on an element, if only one may; −1: all. */
  readonly op: number;
  readonly size: number;
  readonly phase: number;
  /** Its own request or aggregate completes it, not with what was called before. */
  readonly isAlone: boolean;
  /** By `Atomics`: the program says that others access it meanwhile. */
  readonly isMarked: boolean;
  readonly window: string;
  /** Of the world; −1: none. */
  readonly target: number;
  /** The same as its window counts. */
  readonly place: number;
  readonly epoch: RaceEpoch | undefined;
  /** The key of its window, and how many fences of it the rank had called; 0: it is in no epoch of a fence. */
  readonly fenced: string;
  readonly fences: number;
  /** Complete, as the origin knows. */
  done: boolean;
  /** The count of the origin by which it was complete; 0: not yet. */
  completed: number;
  /** The count of the target by which the target knew; 0: it does not. */
  known: number;
  /** Of an operation, until it is complete. */
  pending: Pending | undefined;
}

/** What the accesses of one call have in common. */
export type CommonAccess = Pick<
  RaceAccess,
  | 'rank'
  | 'site'
  | 'call'
  | 'op'
  | 'size'
  | 'isAlone'
  | 'isMarked'
  | 'window'
  | 'target'
  | 'place'
  | 'epoch'
  | 'fenced'
  | 'fences'
  | 'done'
>;

/** Something of an operation that is not complete. */
export interface Pending {
  readonly access: RaceAccess;
  readonly number: number;
  /** Place in the window; what it is for. */
  readonly target: number;
  /** What is complete once its origin is: arguments, and targets that were read. */
  readonly endsHere: boolean;
  /** Words whose clocks its result brings. */
  words: number[] | undefined;
  /** Of an argument: the only memory that it reaches; −1: there are others, or it is none. */
  memory: number;
}

/**
 * A record of an access. All of them are made here: with the same fields in the same order, V8 keeps no description of
 * each.
 */
export function accessOf(
  of: CommonAccess,
  time: number,
  side: string | undefined,
  writes: boolean,
  atomic: number,
  phase: number,
): RaceAccess {
  return {
    rank: of.rank,
    time,
    site: of.site,
    call: of.call,
    side,
    writes,
    atomic,
    op: of.op,
    size: of.size,
    phase,
    isAlone: of.isAlone,
    isMarked: of.isMarked,
    window: of.window,
    target: of.target,
    place: of.place,
    epoch: of.epoch,
    fenced: of.fenced,
    fences: of.fences,
    done: of.done,
    completed: 0,
    known: 0,
    pending: undefined,
  };
}

export interface RaceEpoch {
  readonly kind: string;
  readonly site: string;
}

/** A rank's view of time: by rank, up to which count. */
export type Clock = Int32Array;

/** What is known when an access is made. */
export interface Moment {
  /** Of the rank that makes it. */
  readonly clock: Clock;
  /** The count of a rank when it called a fence of a window; infinity if it has not yet. */
  fenceOf(window: string, rank: number, number: number): number;
}

/** How an access stands to one that is made now. */
export const Order = Object.freeze({ NONE: 0, BEFORE: 1, BEHIND: 2 } as const);

/** How `a` stands to `b`, which is made now: an `Order`. */
export function orderOf(a: RaceAccess, b: RaceAccess, moment: Moment): number {
  return isBefore(a, b.rank, moment.clock) ? Order.BEFORE : orderByFence(a, b, moment);
}

/**
 * Operations of an epoch access a part only after its owner has called the fence that opens it (MPI 4.1, 12.5.1), also
 * where their rank has come out of that fence before.
 */
function orderByFence(a: RaceAccess, b: RaceAccess, moment: Moment): number {
  if (a.fences > 0 && b.fences > 0) {
    if (a.fenced !== b.fenced || a.fences === b.fences || !isAtTarget(a) || !isAtTarget(b)) return Order.NONE;
    return a.fences < b.fences ? Order.BEFORE : Order.BEHIND;
  }
  if (isBeforeFence(a, b, moment)) return Order.BEFORE;
  return isBeforeFence(b, a, moment) ? Order.BEHIND : Order.NONE;
}

/** Whether `a` is a load or store of an owner before it has called the fence that opens the epoch of `b`. */
function isBeforeFence(a: RaceAccess, b: RaceAccess, moment: Moment): boolean {
  if (b.fences === 0 || a.side !== undefined || a.rank !== b.target || !isAtTarget(b)) return false;
  return a.time <= moment.fenceOf(b.fenced, a.rank, b.fences);
}

function isAtTarget(access: RaceAccess): boolean {
  return access.side === 'target';
}

/** Whether `a` is over for a rank with this clock. */
function isBefore(a: RaceAccess, rank: number, clock: Clock): boolean {
  if (a.side === undefined) return a.rank === rank || a.time <= clock[a.rank];
  if (a.known > 0 && a.known <= clock[a.target]) return true;
  if (a.rank === rank) return a.done;
  return a.completed > 0 && a.completed <= clock[a.rank];
}

/** Whether two accesses to common bytes may not meet (MPI 4.1, 12.7). */
export function isConflict(a: RaceAccess, b: RaceAccess): boolean {
  if (!a.writes && !b.writes) return false;
  if ((a.isMarked && b.side === 'target') || (b.isMarked && a.side === 'target')) return false;
  return a.atomic < 0 || b.atomic < 0 || !areAlike(a, b) || !mayMeet(a, b);
}

/**
 * Whether an update that is under way is complete wherever `b`, a later one of its rank at the same target, is: what
 * completes one completes all before it. So if `b` covers it, it need not be kept, although it is not over.
 */
export function endsWith(a: RaceAccess, b: RaceAccess): boolean {
  const isOne = a.rank === b.rank && a.target === b.target && a.fenced === b.fenced && a.fences === b.fences;
  return isOne && isAtTarget(a) && isAtTarget(b) && a.atomic >= 0 && b.atomic >= 0 && !a.isAlone && !b.isAlone;
}

/** Updates of the same elements, of one type: each is atomic for the other. */
function areAlike(a: RaceAccess, b: RaceAccess): boolean {
  return a.atomic === b.atomic && a.phase === b.phase;
}

/** Whether the window's hint `accumulate_ops` lets these operations meet. Those of one origin come one by one. */
export function mayMeet(a: RaceAccess, b: RaceAccess): boolean {
  return a.op < 0 || b.op < 0 || a.op === b.op || a.rank === b.rank;
}

/** Whether whatever conflicts with `a` conflicts with `b`, which comes behind it: then `a` need not be kept. */
export function covers(b: RaceAccess, a: RaceAccess): boolean {
  if (b.isMarked && !a.isMarked) return false;
  if (b.atomic < 0) return b.writes || !a.writes;
  return a.atomic >= 0 && areAlike(a, b) && a.op === b.op && (b.writes || !a.writes);
}
