/**
 * The words for a deadlock of tasks: what each rank waits in, and which ranks hold each lock that a rank waits for. The
 * second half is put together from what all ranks know of themselves, since no kind of lock tells a waiting rank which
 * rank is in its way.
 */
import { RmaError } from '../errors.ts';

/** A window's locks, as one of its ranks has them. Ranks are those of the world. */
export interface LocksAtRank {
  /** The same at all ranks of the window, and another one for each window. */
  readonly key: string;
  /** The window, in words. */
  what(): string;
  /** Whose locks this rank has exclusively. */
  exclusive(): readonly number[];
  /** Whose locks it shares with others. */
  shared(): readonly number[];
  /** Whose lock it waits for. */
  wanted(): readonly number[];
  /** Whether it waits in a `lockAll`, for any lock that a rank has exclusively. */
  wantsAll(): boolean;
  /** Whether this rank has a lock of the window, or asks for one, one that is deferred included. */
  isOpen(): boolean;
}

/** Ranks, and locks, that are named. */
const NAMED = 20;

/** One lock. */
interface Held {
  readonly what: string;
  readonly exclusive: number[];
  readonly shared: number[];
  readonly waiting: number[];
}

function some(items: readonly (string | number)[], separator: string, kind: string): string {
  const more = items.length - NAMED;
  return `${items.slice(0, NAMED).join(separator)}${more > 0 ? `${separator}and ${more} more ${kind}` : ''}`;
}

function ranks(list: readonly number[]): string {
  return `rank${list.length === 1 ? '' : 's'} ${some(list, ', ', 'ranks')}`;
}

function verb(subjects: readonly number[], plural: string): string {
  return subjects.length === 1 ? `${plural}s` : plural;
}

/** Locks that some rank holds and some rank waits for. */
function contended(locks: readonly (readonly LocksAtRank[])[]): Held[] {
  const windows = new Map<string, Map<number, Held>>();
  const each = (visit: (window: LocksAtRank, rank: number) => void): void => {
    for (const [rank, own] of locks.entries()) for (const window of own) visit(window, rank);
  };
  each(({ key, what, exclusive, shared }, rank) => {
    let parts = windows.get(key);
    if (parts === undefined) windows.set(key, (parts = new Map()));
    const lockOf = (owner: number): Held => {
      const known = parts.get(owner);
      if (known !== undefined) return known;
      const lock = { what: `the lock of rank ${owner} in ${what()}`, exclusive: [], shared: [], waiting: [] };
      parts.set(owner, lock);
      return lock;
    };
    for (const owner of exclusive()) lockOf(owner).exclusive.push(rank);
    for (const owner of shared()) lockOf(owner).shared.push(rank);
  });
  each(({ key, wanted, wantsAll }, rank) => {
    const parts = windows.get(key)!;
    for (const owner of wanted()) parts.get(owner)?.waiting.push(rank);
    if (wantsAll()) for (const lock of parts.values()) if (lock.exclusive.length > 0) lock.waiting.push(rank);
  });
  return [...windows.values()].flatMap((parts) => [...parts.values()]).filter(({ waiting }) => waiting.length > 0);
}

function describe({ what, exclusive, shared, waiting }: Held): string {
  const holders = [
    ...(exclusive.length > 0 ? [`${ranks(exclusive)} ${verb(exclusive, 'hold')}`] : []),
    ...(shared.length > 0 ? [`${ranks(shared)} ${verb(shared, 'share')}`] : []),
  ];
  return `${holders.join(' and ')} ${what}, and ${ranks(waiting)} ${verb(waiting, 'wait')} for it`;
}

/**
 * @param waits what each rank waits in; undefined for one that is done
 * @param locks by rank
 */
export function deadlock(
  microseconds: number,
  waits: readonly (readonly string[] | undefined)[],
  locks: readonly (readonly LocksAtRank[])[],
): RmaError {
  const who = waits.flatMap((own, rank) => (own === undefined ? [] : `rank ${rank} waits in ${own.join(' and in ')}`));
  const held = contended(locks).map(describe);
  const parts = [some(who, '; ', 'ranks'), ...(held.length > 0 ? [some(held, '; ', 'locks')] : [])];
  return new RmaError(
    'ERR_RMA_WOULD_DEADLOCK',
    `deadlock at ${Math.round(1000 * microseconds) / 1000} microseconds; no rank can continue: ${parts.join('; ')}`,
  );
}
