/** Info hints: which schemes a window uses, and MPI's own keys (MPI 4.1, 12.2.1). */
import { BARRIER_ALGORITHMS, DEFAULT_ALGORITHM, numberOfAlgorithm } from '../../collective/barrier-algorithms.ts';
import { BARRIER_KINDS, type BarrierKind } from '../../collective/barrier-kinds.ts';
import { argumentTypeError, RmaError, reading, show } from '../../errors.ts';
import type { FencePlace } from '../../sync/fence/fence-kind.ts';
import { defaultFence, FENCE_SCHEMES, type FenceSchemeName, fenceNamed } from '../../sync/fence/fence-kinds.ts';
import {
  CPU_LOCKS,
  type CpuLockName,
  LOCK_DEFERS,
  LOCK_MODES,
  type LockDefer,
  type LockMode,
} from '../../sync/lock/lock-kind.ts';
import { DEFAULT_LOCK, LOCK_SCHEMES, type LockSchemeName } from '../../sync/lock/lock-kinds.ts';
import { isMigration, MIGRATIONS } from '../../sync/lock/lock-migration.ts';
import { defaultLockOrder, LOCK_ORDERS, type LockOrder } from '../../sync/lock/lock-overtaking.ts';
import {
  DEFAULT_NONCONTIGUOUS,
  NONCONTIGUOUS_NAMES,
  type NoncontiguousName,
} from '../../transfer/layouts/layout-kinds.ts';
import {
  DEFAULT_SCHEDULE,
  numberOfSchedule,
  readSchedule,
  SCHEDULE_NAMES,
  SCHEDULE_NUMBERS,
  type ScheduleHint,
} from '../../transfer/schedule/schedule-kinds.ts';
import {
  DEFAULT_UPDATE,
  UPDATE_SCHEMES,
  type UpdateSchemeName,
  updateNamed,
} from '../../transfer/served/update-kinds.ts';

/**
 * Hints for a window. All ranks must pass the same hints. Unknown keys are ignored (MPI 4.1, 10); `getInfo` returns the
 * hints in force.
 */
export interface WindowInfo {
  /** The fence scheme; see {@link FenceSchemeName}. The default depends on the memory and the number of ranks. */
  readonly fence?: FenceSchemeName;
  /**
   * How the barrier goes that closes fences of the schemes `immediate`, `remote-notify` and `immediate-optimized`; the
   * others have none. `auto`, the default: through words where memory is loaded and stored, and elsewhere as the
   * communicator's barriers. `words`, `messages`, `waits` and `adapter` are those of `BarrierOptions`; what the device
   * does not offer is refused.
   */
  readonly barrier?: BarrierKind;
  /**
   * Who tells whom in barriers that the hint `barrier` calls `waits` or `adapter`: `dissemination`, the default,
   * `pairwise`, or `gather-broadcast:d`, a tree whose ranks have 2 to 32 children.
   */
  readonly barrier_algorithm?: string;
  /** The lock scheme; see {@link LockSchemeName}. The default is `queue`. */
  readonly lock?: LockSchemeName;
  /** The mode in which locks of the scheme `hybrid` begin. */
  readonly lock_mode?: LockMode;
  /**
   * The lock that ranks of a node take in CPU mode, with the scheme `hybrid`. `queue`: in the order that `lock_order`
   * says. `one-word`: all spin on one word, as in the dissertation; no order, and each that waits slows a hand-over
   * down.
   */
  readonly lock_cpu?: CpuLockName;
  /** When locks of the scheme `hybrid` change the mode: `every-request`, `threshold:N`, `history`, `never`. */
  readonly lock_migration?: 'every-request' | 'history' | 'never' | `threshold:${number}`;
  /**
   * Which rank gets a free lock that other ranks wait for, with the schemes `queue`, `remote`, and `hybrid` in CPU
   * mode. `running-first`, the default: any rank that runs, until the next in line has waited for a millisecond; so no
   * rank waits for a rank that sleeps or has no core. `arrival`, the default in virtual time: always the next in line.
   * By requests, the same for the locks of elements that accumulates take.
   */
  readonly lock_order?: LockOrder;
  /**
   * `true`: with the scheme `two-sided`, `lock` does not wait for the lock; `unlock` and the flushes wait instead. With
   * `hybrid`, that is so of exclusive locks of ranks of other nodes, in CPU mode; with `queue` and `remote`, of locks
   * of ranks of other hosts that are reached by libfabric. With all of them only while the rank has no other lock in
   * any window; before it asks for another one, it waits for the one that was deferred. `auto`, the default: with
   * `queue` and `remote`, after an epoch of that lock with one small operation only; with the others never.
   */
  readonly lock_defer?: boolean | LockDefer;
  /**
   * What carries out accumulates (`accumulate`, `getAccumulate`, `fetchAndOp`, `compareAndSwap`) where memory is
   * reached by requests: on devices and modelled fabrics. `by-requests`: the device, without the target's processor.
   * `by-target`: the target's processor, when the target is in the library; one message and its answer, however many
   * elements. `by-type`: the device for 64-bit integers, the target for all other types. No effect in dynamic windows,
   * and where memory is loaded and stored.
   */
  readonly update?: UpdateSchemeName;
  /**
   * When and in which order puts and gets become requests. `issue-order`: each when it is called. With the others they
   * wait until something completes them, or 128 of them or 64 MiB wait: `gets-first`: then gets go before puts.
   * `interleave`: puts and gets take turns, so that both directions of a link are busy. `aggregate`: in an epoch of
   * `start`, the only operation to a target travels with the message of `complete`, if it is a put of at most 1,024
   * bytes. `aggregate-gets`: the same with a get, which the target's processor answers. Several are separated by
   * commas; `interleave,gets-first` means turns that begin with a get. Where puts and gets are complete when they are
   * issued, as in shared memory, the hint has no effect.
   */
  readonly schedule?: ScheduleHint;
  /**
   * How puts and gets of layouts with several pieces move where memory is reached by requests. `multi-write`: a request
   * for each piece, without the target's processor. `pack`: packed into messages, which the target's processor unpacks
   * (or packs, for a get) when the target is in the library. `sgrs`: messages that the devices gather and scatter, for
   * which the target posts receives or sends when it is in the library. `host-assisted`: the same, which a helper at
   * the target serves while its program computes (on devices a thread of the addon); without one, as `multi-write`.
   * `auto`: for each call one of the first three, by its bytes and pieces and by what each takes, which is measured
   * when the communicator's first window with `auto` is made; `sgrs` where there is no memory to measure with. No
   * effect in dynamic windows, and where memory is loaded and stored.
   */
  readonly noncontiguous?: NoncontiguousName;
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
   * The number of bytes that accumulates should update under one lock; 0 (the default) leaves the choice to the
   * library. On devices, more than 8 has accumulates of 64-bit integers take the locks of all other types, which is
   * faster from some dozen elements in a call, and slower for single ones. Elsewhere each element is updated
   * separately.
   */
  readonly mpi_accumulate_granularity?: number | string;
}

/** The hints of a window in force, as strings: the result of `win.getInfo` (`MPI_Win_get_info`). */
export type WindowInfoInForce = { readonly [K in keyof Required<WindowInfo>]: string };

/** What the defaults and the refusals of hints depend on. */
interface Where extends FencePlace {
  readonly virtualTime: boolean;
  /** The barriers that the device offers; all if absent. */
  readonly barriers?: readonly BarrierKind[];
}

interface Hint<T> {
  /** What it may be, for the message of a refusal. */
  readonly allowed: readonly string[];
  /** What a program's value means; `undefined` if it is none. */
  read(value: unknown): T | undefined;
  /** If it is not given. */
  initial(where: Where): T;
  /** Why a value is refused that is allowed elsewhere. */
  refusal?(value: T, where: Where): string | undefined;
  /**
   * How many values the ranks tell apart, and the number of one: of a hint that all give alike, in force for good.
   * Without it, `setInfo` changes the hint, and ranks may differ.
   */
  readonly compared: readonly [values: number, number: (value: T) => number] | undefined;
  /**
   * The ranks compare it by an exchange of its own, if one of them gives another value than that of number 0, which is
   * the default: one number has no room for all hints.
   */
  readonly seldom?: true;
}

function oneOf<const T extends string>(names: readonly T[], initial: (where: Where) => T): Hint<T> {
  return {
    allowed: names,
    read: (value) => names.find((name) => name === value),
    initial,
    compared: [names.length, (value) => names.indexOf(value)],
  };
}

function flag(): Hint<boolean> {
  return {
    allowed: ['true', 'false'],
    read: (value) =>
      typeof value === 'boolean' || value === 'true' || value === 'false' ? `${value}` === 'true' : undefined,
    initial: () => false,
    compared: [2, Number],
  };
}

/** More than the largest limit of `threshold:N`. */
const LIMITS = 10 ** 9;

const MIGRATION_NAMES: readonly string[] = MIGRATIONS;
const ORDERINGS = ['none', 'rar', 'raw', 'war', 'waw'];

const FENCES_ANYWHERE = FENCE_SCHEMES.filter((name) => fenceNamed(name).moves !== 'immediately');

/** The hints there are: reading, defaults, `getInfo`, `setInfo` and the comparison of the ranks follow from this. */
const HINTS = {
  fence: {
    ...oneOf(FENCE_SCHEMES, defaultFence),
    refusal: (value, { immediateCompletion }) =>
      fenceNamed(value).moves === 'immediately' && !immediateCompletion
        ? `fence ${show(value)} needs a provider whose requests are complete when issued; ` +
          `leave it out, or choose one of ${FENCES_ANYWHERE.join(', ')}`
        : undefined,
  } satisfies Hint<FenceSchemeName>,
  barrier: {
    ...oneOf(BARRIER_KINDS, () => 'auto'),
    refusal: (value, { barriers = BARRIER_KINDS }) =>
      barriers.includes(value)
        ? undefined
        : `barrier ${show(value)} needs a device that offers it; leave it out, or choose one of ${barriers.join(', ')}`,
    seldom: true,
  } satisfies Hint<BarrierKind>,
  barrier_algorithm: {
    allowed: ['dissemination', 'pairwise', 'gather-broadcast:2 to gather-broadcast:32'],
    read: (value) => (typeof value === 'string' && numberOfAlgorithm(value) !== undefined ? value : undefined),
    initial: () => DEFAULT_ALGORITHM,
    compared: [BARRIER_ALGORITHMS, (value) => numberOfAlgorithm(value)!],
    seldom: true,
  } satisfies Hint<string>,
  lock: oneOf(LOCK_SCHEMES, () => DEFAULT_LOCK),
  lock_mode: oneOf(LOCK_MODES, () => 'cpu'),
  lock_cpu: oneOf(CPU_LOCKS, () => 'queue'),
  lock_migration: {
    allowed: [...MIGRATIONS.slice(0, -1), 'never (N is 1 … 999999999)'],
    read: (value) => (isMigration(value) ? value : undefined),
    initial: () => 'history',
    compared: [LIMITS + MIGRATIONS.length, numberOfMigration],
  } satisfies Hint<string>,
  lock_order: oneOf(LOCK_ORDERS, defaultLockOrder),
  lock_defer: {
    ...oneOf(LOCK_DEFERS, () => 'auto'),
    read: (value) => LOCK_DEFERS.find((name) => name === String(value)),
  } satisfies Hint<LockDefer>,
  update: oneOf(UPDATE_SCHEMES, () => DEFAULT_UPDATE),
  schedule: {
    allowed: [...SCHEDULE_NAMES, 'or several of the last four, separated by commas without spaces'],
    read: readSchedule,
    initial: () => DEFAULT_SCHEDULE,
    compared: [SCHEDULE_NUMBERS, numberOfSchedule],
  } satisfies Hint<ScheduleHint>,
  noncontiguous: oneOf(NONCONTIGUOUS_NAMES, () => DEFAULT_NONCONTIGUOUS),
  no_locks: flag(),
  same_size: flag(),
  same_disp_unit: flag(),
  alloc_shared_noncontig: flag(),
  accumulate_ordering: {
    allowed: ORDERINGS,
    read(value) {
      const parts = typeof value === 'string' ? value.split(',') : [''];
      const alone = parts.includes('none') && parts.length > 1;
      return !alone && parts.every((part) => ORDERINGS.includes(part)) ? (value as string) : undefined;
    },
    initial: () => 'rar,raw,war,waw',
    compared: undefined,
  } satisfies Hint<string>,
  accumulate_ops: { ...oneOf(['same_op', 'same_op_no_op'], () => 'same_op_no_op'), compared: undefined },
  mpi_accumulate_granularity: {
    allowed: ['a number of bytes'],
    read: (value) =>
      (typeof value === 'number' || typeof value === 'string') && Number(value) >= 0 ? String(value) : undefined,
    initial: () => '0',
    compared: [2, (value) => Number(isBulk(value))],
  } satisfies Hint<string>,
} satisfies Record<keyof WindowInfo, object>;

/** Hints in force. */
export type Hints = { [K in keyof typeof HINTS]: ReturnType<(typeof HINTS)[K]['initial']> };

/** As the table has them, for code that asks all in the same way. */
const ALL = Object.entries(HINTS) as [keyof Hints, Hint<unknown>][];
/** `MPI_MAX_INFO_KEY`. */
const LONGEST_KEY = 255;

/** For each hint, what `make` gives. */
function each<T>(make: (hint: Hint<unknown>, name: keyof Hints) => T): Record<keyof Hints, T> {
  return Object.fromEntries(ALL.map(([name, hint]) => [name, make(hint, name)])) as Record<keyof Hints, T>;
}

/** Checks the hints for a window that is made, and fills in what was not said. */
export function readInfo(call: string, info: WindowInfo | undefined, where: Where): Hints {
  return { ...(each((hint) => hint.initial(where)) as Hints), ...given(call, info, where) };
}

/**
 * Changes hints of a window that exists. Those by which its schemes were chosen are in force for good: they are
 * checked, and ignored (MPI 4.1, 12.2.7).
 */
export function changeInfo(call: string, hints: Hints, info: WindowInfo): void {
  const changed = given(call, info, { immediateCompletion: true, size: 1, virtualTime: false });
  for (const [name, { compared }] of ALL) if (compared !== undefined) delete changed[name];
  Object.assign(hints, changed);
}

export function showInfo(hints: Hints): WindowInfoInForce {
  return each((_, name) => String(hints[name]));
}

/** Whether the target's processor updates elements of a type; `undefined` if it updates none. */
export function servedTypes(hints: Hints): ((base: number) => boolean) | undefined {
  const { byTarget } = updateNamed(hints.update);
  return byTarget && ((base) => byTarget(base, inBulk(hints)));
}

/** Whether accumulates should update more than one element of any type under one lock. */
export function inBulk(hints: Hints): boolean {
  return isBulk(hints.mpi_accumulate_granularity);
}

function isBulk(granularity: string): boolean {
  return Number(granularity) > 8;
}

/** Those that one number has room for, and the others. */
const [USUAL, SELDOM] = [false, true].map((seldom) =>
  ALL.flatMap(([name, hint]) =>
    hint.compared === undefined || (hint.seldom ?? false) !== seldom
      ? []
      : [{ name, values: hint.compared[0], number: hint.compared[1] }],
  ),
);
const USUAL_NUMBERS = USUAL.reduce((product, { values }) => product * values, 1);

/** Hints that all ranks must give alike, as one number: exact, below 2^53 (test/window/hints.test.ts). */
export function numberOf(hints: Hints): number {
  return combined(hints, USUAL, seldomNumberOf(hints) > 0 ? 1 : 0);
}

/** Whether the hints of such a number are not all in it: then `seldomNumberOf` has the others. */
export function givesSeldom(number: number): boolean {
  return number >= USUAL_NUMBERS;
}

export function seldomNumberOf(hints: Hints): number {
  return combined(hints, SELDOM, 0);
}

function combined(hints: Hints, these: typeof USUAL, first: number): number {
  return these.reduce((sum, { name, values, number }) => values * sum + number(hints[name]), first);
}

/** The first hint that two numbers of `numberOf` have different values of; `undefined` if that is in the others. */
export function hintThatDiffers(one: number, other: number): keyof Hints | undefined {
  return firstThatDiffers(USUAL, one, other);
}

/** The same of two numbers of `seldomNumberOf`. */
export function seldomThatDiffers(one: number, other: number): keyof Hints | undefined {
  return firstThatDiffers(SELDOM, one, other);
}

function firstThatDiffers(these: typeof USUAL, one: number, other: number): keyof Hints | undefined {
  let differs: keyof Hints | undefined;
  for (const { name, values } of these.toReversed()) {
    if (one % values !== other % values) differs = name;
    one = Math.floor(one / values);
    other = Math.floor(other / values);
  }
  return differs;
}

function numberOfMigration(value: string): number {
  const [kind, limit] = value.split(':');
  return limit === undefined ? LIMITS + MIGRATION_NAMES.indexOf(kind) : Number(limit);
}

/** The hints that a program gives. */
function given(call: string, info: WindowInfo | undefined, where: Where): Partial<Hints> {
  if (info === undefined) return {};
  if (typeof info !== 'object' || info === null)
    throw argumentTypeError(`${call}: info must be an object, not ${show(info)}`);
  const hints: Partial<Record<string, unknown>> = {};
  for (const [key, value] of reading(call, 'info', () => Object.entries(info))) {
    if (value === undefined) continue;
    if (key === '' || key.length > LONGEST_KEY) {
      throw new RmaError(
        'ERR_INFO_KEY',
        `${call}: the key of a hint must have 1 to ${LONGEST_KEY} characters; ${show(key)} has ${key.length}`,
      );
    }
    if (!Object.hasOwn(HINTS, key)) continue;
    const hint = HINTS[key as keyof Hints] as Hint<unknown>;
    const read = hint.read(value);
    if (read === undefined)
      refuse(call, `the hint ${key} cannot be ${show(value)}; allowed: ${hint.allowed.join(', ')}`);
    const refusal = hint.refusal?.(read, where);
    if (refusal !== undefined) refuse(call, refusal);
    hints[key] = read;
  }
  return hints as Partial<Hints>;
}

function refuse(call: string, why: string): never {
  throw new RmaError('ERR_INFO_VALUE', `${call}: ${why}`);
}
