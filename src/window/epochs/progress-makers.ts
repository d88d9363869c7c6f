/**
 * What makes a call's progress (MPI 4.1, 12.7.3): what has to act, besides the caller, so that the call is carried out,
 * and the call that completes it returns. The paths say it of what they move, the schemes of how they synchronize.
 *
 * It does not speak of what the program itself makes a call wait for: a lock that another rank holds is free when that
 * rank gives it up.
 */
import { argumentRangeError, show } from '../../errors.ts';
import { lockNamed } from '../../sync/lock/lock-kinds.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import type { ProgressBy } from '../path/path.ts';
import type { Paths } from '../path/paths.ts';
import type { Target } from '../path/target.ts';

export type { ProgressBy } from '../path/path.ts';

/** The names of the window calls that communicate or synchronize. */
export type WindowCall =
  | 'put'
  | 'get'
  | 'rput'
  | 'rget'
  | 'putNotify'
  | 'accumulate'
  | 'getAccumulate'
  | 'fetchAndOp'
  | 'compareAndSwap'
  | 'raccumulate'
  | 'rgetAccumulate'
  | 'lock'
  | 'unlock'
  | 'lockAll'
  | 'unlockAll'
  | 'flush'
  | 'flushLocal'
  | 'flushAll'
  | 'flushLocalAll'
  | 'complete'
  | 'post'
  | 'sync'
  | 'fence'
  | 'start'
  | 'wait'
  | 'waitNotify'
  | 'free';

/** What a call is made of. */
type Kind = 'transfer' | 'notify' | 'update' | 'lock' | 'requests' | 'alone' | 'together';

const KINDS: Readonly<Record<WindowCall, Kind>> = {
  put: 'transfer',
  get: 'transfer',
  rput: 'transfer',
  rget: 'transfer',
  putNotify: 'notify',
  accumulate: 'update',
  getAccumulate: 'update',
  fetchAndOp: 'update',
  compareAndSwap: 'update',
  raccumulate: 'update',
  rgetAccumulate: 'update',
  lock: 'lock',
  unlock: 'lock',
  lockAll: 'lock',
  unlockAll: 'lock',
  flush: 'requests',
  flushLocal: 'requests',
  flushAll: 'requests',
  flushLocalAll: 'requests',
  complete: 'requests',
  post: 'alone',
  sync: 'alone',
  fence: 'together',
  start: 'together',
  wait: 'together',
  waitNotify: 'together',
  free: 'together',
};

/**
 * @param target `all`: the one that needs most
 * @param disp in a dynamic window, the memory that it is about; absent: any that may be attached there
 * Errors: `RangeError` (call), `ERR_RMA_RANGE` (nothing is attached there). The caller has checked the target.
 */
export function progressOf(
  parts: WindowParts,
  paths: Paths,
  call: WindowCall,
  target: Target | 'all' | 'nobody',
  disp: number | undefined,
): ProgressBy {
  const kind = typeof call === 'string' && Object.hasOwn(KINDS, call) ? KINDS[call] : undefined;
  if (kind === undefined) {
    throw argumentRangeError(`progress: the call must be one of ${Object.keys(KINDS).join(', ')}, not ${show(call)}`);
  }
  if (kind === 'together') return 'target';
  if (target === 'nobody') return 'origin';
  const whom = target === 'all' ? undefined : target;
  switch (kind) {
    case 'alone':
      return 'origin';
    case 'lock':
      return ofLock(parts);
    case 'requests':
      return paths.completedBy;
    case 'notify':
      return parts.signals.needTarget ? 'target' : paths.progressBy('transfer', whom, disp);
    default:
      return paths.progressBy(kind, whom, disp);
  }
}

/**
 * An agent serves when its rank is in the library, or its event loop turns: it is no thread. Without one, locks are
 * taken by the device, also on windows whose parts are loaded and stored.
 */
function ofLock({ hints, wire, comm }: WindowParts): ProgressBy {
  if (lockNamed(hints.lock).agent) return 'target';
  return wire === undefined || comm.job.context.capabilities.immediateCompletion ? 'origin' : 'device';
}
