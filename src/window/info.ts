/** Info hints: which schemes a window uses, and MPI's own keys (MPI 4.1, 12.2.1). */
import { argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { FENCE_SCHEMES, type FenceSchemeName, fenceNamed } from '../sync/fence/kinds.ts';
import { FEW } from '../sync/fence/notify-all.ts';
import { LOCK_MODES, type LockMode } from '../sync/lock/kind.ts';
import { LOCK_SCHEMES, type LockSchemeName } from '../sync/lock/kinds.ts';
import { isMigration, MIGRATIONS } from '../sync/lock/migration.ts';

/**
 * Hints for a window. All ranks must pass the same hints. Unknown keys are ignored (MPI 4.1, 10); `getInfo` returns the
 * hints in force.
 */
export interface WindowInfo {
  /**
   * The fence scheme. `immediate`: operations are complete when issued, so a barrier suffices. `remote-notify`: writes
   * with immediate, counted at the target. `immediate-optimized`: writes, and a finish message to each target.
   * `immediate-naive`: the same, with flags to every rank instead of a barrier. `deferred`: operations are queued, then
   * sent and executed in the closing fence. `notify-all`: one notification to each rank, after the puts.
   */
  readonly fence?: FenceSchemeName;
  /**
   * The lock scheme. `queue`: granted in the order of the requests, without an agent, in the target's memory; by
   * requests if memory cannot be shared. `remote`: the same, always by requests. `two-sided`: an agent at the target
   * grants locks and executes the operations issued under them. `direct`: compare-and-swap by the network, shared locks
   * by an agent. `hybrid`: the processor's atomics for ranks on the target's node, the network's for the others.
   */
  readonly lock?: LockSchemeName;
  /** The mode in which locks of the scheme `hybrid` begin. */
  readonly lock_mode?: LockMode;
  /** When locks of the scheme `hybrid` change the mode: `every-request`, `threshold:N`, `history`, `never`. */
  readonly lock_migration?: 'every-request' | 'history' | 'never' | `threshold:${number}`;
  /** With the scheme `two-sided`, `lock` does not wait for the lock; `unlock` and the flushes wait instead. */
  readonly lock_defer?: boolean | 'true' | 'false';
  /** Promises that no rank locks the window: it has no locks, and `lock` fails. */
  readonly no_locks?: boolean | 'true' | 'false';
  /** Promises that all parts have the same size. Verified when the window is created. */
  readonly same_size?: boolean | 'true' | 'false';
  /** Promises that all ranks use the same displacement unit. Verified when the window is created. */
  readonly same_disp_unit?: boolean | 'true' | 'false';
  /**
   * For shared windows: allows the library to place each rank's part separately instead of directly after the previous
   * rank's part.
   */
  readonly alloc_shared_noncontig?: boolean | 'true' | 'false';
  /**
   * The accumulates that must stay in order: `none`, or a list of `rar`, `raw`, `war`, `waw`. This library keeps all of
   * them in order.
   */
  readonly accumulate_ordering?: string;
  /** The operations that may be used on one element concurrently. This library allows any. */
  readonly accumulate_ops?: 'same_op' | 'same_op_no_op';
  /**
   * The number of bytes that accumulates should update under one lock; 0 (the default) leaves the choice to the library.
   * On devices, more than 8 has accumulates of 64-bit integers take the locks of all other types, which is faster from
   * some dozen elements in a call, and slower for single ones. Elsewhere each element is updated separately.
   */
  readonly mpi_accumulate_granularity?: number | string;
}

/** The hints of a window in force, as strings: the result of `win.getInfo` (`MPI_Win_get_info`). */
export type WindowInfoInForce = { readonly [K in keyof Required<WindowInfo>]: string };

export interface Hints {
  fence: FenceSchemeName;
  lock: LockSchemeName;
  lockMode: LockMode;
  lockMigration: string;
  lockDefer: boolean;
  noLocks: boolean;
  sameSize: boolean;
  sameDispUnit: boolean;
  nonContiguous: boolean;
  ordering: string;
  ops: string;
  granularity: string;
}

/** Keys with two values, and where they stand in {@link Hints}. */
const BOOLEANS = {
  lock_defer: 'lockDefer',
  no_locks: 'noLocks',
  same_size: 'sameSize',
  same_disp_unit: 'sameDispUnit',
  alloc_shared_noncontig: 'nonContiguous',
} as const;
const ORDERINGS = ['none', 'rar', 'raw', 'war', 'waw'];
/** `MPI_MAX_INFO_KEY`. */
const LONGEST_KEY = 255;
const OPS = ['same_op', 'same_op_no_op'];

/** Checks the hints for a window that is made, and fills in what was not said. */
export function readInfo(
  call: string,
  info: WindowInfo | undefined,
  immediateCompletion: boolean,
  size: number,
): Hints {
  const byRequests = size <= FEW ? 'notify-all' : 'remote-notify';
  const hints: Hints = {
    fence: immediateCompletion ? 'immediate' : byRequests,
    lock: 'queue',
    lockMode: 'cpu',
    lockMigration: 'history',
    lockDefer: false,
    noLocks: false,
    sameSize: false,
    sameDispUnit: false,
    nonContiguous: false,
    ordering: 'rar,raw,war,waw',
    ops: 'same_op_no_op',
    granularity: '0',
  };
  apply(call, hints, info, immediateCompletion);
  return hints;
}

/**
 * Changes hints of a window that exists. Those by which its schemes were chosen are in force for good: they are checked, and ignored (MPI 4.1, 12.2.7).
 */
export function changeInfo(call: string, hints: Hints, info: WindowInfo): void {
  const changed = { ...hints };
  apply(call, changed, info, true);
  const { ordering, ops } = changed;
  Object.assign(hints, { ordering, ops });
}

export function showInfo(hints: Hints): WindowInfoInForce {
  return {
    fence: hints.fence,
    lock: hints.lock,
    lock_mode: hints.lockMode,
    lock_migration: hints.lockMigration,
    lock_defer: String(hints.lockDefer),
    no_locks: String(hints.noLocks),
    same_size: String(hints.sameSize),
    same_disp_unit: String(hints.sameDispUnit),
    alloc_shared_noncontig: String(hints.nonContiguous),
    accumulate_ordering: hints.ordering,
    accumulate_ops: hints.ops,
    mpi_accumulate_granularity: hints.granularity,
  };
}

/** Whether accumulates should update more than one element of any type under one lock. */
export function inBulk({ granularity }: Hints): boolean {
  return Number(granularity) > 8;
}

/** Hints that all ranks must give alike, as one number. */
export function numberOf(hints: Hints): number {
  const bits = [hints.noLocks, hints.sameSize, hints.sameDispUnit, hints.nonContiguous, hints.lockDefer, inBulk(hints)];
  const [kind, limit = 0] = hints.lockMigration.split(':');
  let number = MIGRATIONS.findIndex((name) => name.startsWith(kind)) + MIGRATIONS.length * Number(limit);
  number = LOCK_MODES.length * number + LOCK_MODES.indexOf(hints.lockMode);
  number = LOCK_SCHEMES.length * number + LOCK_SCHEMES.indexOf(hints.lock);
  number = FENCE_SCHEMES.length * number + FENCE_SCHEMES.indexOf(hints.fence);
  return bits.reduce((sum, bit) => 2 * sum + (bit ? 1 : 0), number);
}

function apply(call: string, hints: Hints, info: WindowInfo | undefined, immediateCompletion: boolean): void {
  if (info === undefined) return;
  if (typeof info !== 'object' || info === null)
    throw argumentTypeError(`${call}: info must be an object, not ${show(info)}`);
  for (const [key, value] of reading(call, 'info', () => Object.entries(info))) {
    if (value === undefined) continue;
    if (key === 'fence') {
      if (!FENCE_SCHEMES.includes(value as FenceSchemeName)) refuse(call, key, value, FENCE_SCHEMES);
      if (fenceNamed(value as FenceSchemeName).moves === 'immediately' && !immediateCompletion) {
        throw new RmaError(
          'ERR_INFO_VALUE',
          `${call}: fence ${show(value)} needs a provider whose requests are complete when issued`,
        );
      }
      hints.fence = value as FenceSchemeName;
    } else if (key === 'lock') {
      if (!LOCK_SCHEMES.includes(value as LockSchemeName)) refuse(call, key, value, LOCK_SCHEMES);
      hints.lock = value as LockSchemeName;
    } else if (key === 'lock_mode') {
      if (!LOCK_MODES.includes(value as 'cpu')) refuse(call, key, value, LOCK_MODES);
      hints.lockMode = value as 'cpu';
    } else if (key === 'lock_migration') {
      if (!isMigration(value)) refuse(call, key, value, [...MIGRATIONS.slice(0, -1), 'never (N is 1 … 999999999)']);
      hints.lockMigration = value;
    } else if (Object.hasOwn(BOOLEANS, key)) {
      if (![true, false, 'true', 'false'].includes(value as boolean)) refuse(call, key, value, ['true', 'false']);
      hints[BOOLEANS[key as keyof typeof BOOLEANS]] = value === true || value === 'true';
    } else if (key === 'accumulate_ordering') {
      const parts = typeof value === 'string' ? value.split(',') : [''];
      const alone = parts.includes('none') && parts.length > 1;
      if (alone || !parts.every((part) => ORDERINGS.includes(part))) refuse(call, key, value, ORDERINGS);
      hints.ordering = value as string;
    } else if (key === 'accumulate_ops') {
      if (!OPS.includes(value as string)) refuse(call, key, value, OPS);
      hints.ops = value as string;
    } else if (key === 'mpi_accumulate_granularity') {
      const text = typeof value === 'number' || typeof value === 'string';
      if (!text || !(Number(value) >= 0)) refuse(call, key, value, ['a number of bytes']);
      hints.granularity = String(value);
    } else if (key === '' || key.length > LONGEST_KEY) {
      throw new RmaError(
        'ERR_INFO_KEY',
        `${call}: the key of a hint must have 1 to ${LONGEST_KEY} characters; ${show(key)} has ${key.length}`,
      );
    }
  }
}

function refuse(call: string, key: string, value: unknown, allowed: readonly string[]): never {
  throw new RmaError(
    'ERR_INFO_VALUE',
    `${call}: the hint ${key} cannot be ${show(value)}; allowed: ${allowed.join(', ')}`,
  );
}
