/**
 * Who makes a call's progress (MPI 4.1, 12.7.3): what has to act, besides the caller, so that the call is carried out, and the one that completes it returns. It is read off what the window was
 * made of, as long-way.ts and the schemes of synchronization read it.
 *
 * It does not speak of what the program itself makes a call wait for: a lock that another rank holds is free when that rank gives it up.
 */
import { Rank } from '../comm/group.ts';
import { argumentRangeError, show } from '../errors.ts';
import { lockNamed } from '../sync/lock/kinds.ts';
import type { Attached } from './attachments.ts';
import type { WindowParts } from './creation/parts.ts';
import { MIXED_WAYS } from './target.ts';

/**
 * What makes progress on a call: the result of `win.progress`.
 *
 * - `origin`: the caller's processor, by loads, stores and atomic instructions
 * - `device`: the devices of the network, without a processor of the target
 * - `kernel`: the operating system, which copies between the processes
 * - `agent`: a thread of the library in the target's process, whatever the target's program does
 * - `target`: the target, which must call the library, too
 */
export type ProgressBy = 'origin' | 'device' | 'kernel' | 'agent' | 'target';

/** Each needs more than those before it. */
const ORDER: readonly ProgressBy[] = ['origin', 'device', 'kernel', 'agent', 'target'];

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
 * @param target absent: the one that needs most
 * @param attached in a dynamic window, the region it is about; absent: any that may be attached there
 * Errors: `RangeError` (call). The caller has checked the target.
 */
export function progressOf(
  parts: WindowParts,
  call: WindowCall,
  target: number | undefined,
  attached: Attached | undefined,
): ProgressBy {
  const kind = typeof call === 'string' && Object.hasOwn(KINDS, call) ? KINDS[call] : undefined;
  if (kind === undefined) {
    throw argumentRangeError(`progress: the call must be one of ${Object.keys(KINDS).join(', ')}, not ${show(call)}`);
  }
  if (kind === 'together') return 'target';
  if (kind === 'alone' || target === Rank.NULL) return 'origin';
  const { hints, passive, deferred } = parts;
  // An agent serves when its rank is in the library, or its event loop turns: it is no thread. In other epochs than those of the scheme less may do.
  if (kind === 'lock') return lockNamed(hints.lock).agent ? 'target' : ofLock(parts);
  if (passive !== undefined || (deferred !== undefined && kind !== 'requests')) return 'target';
  if (kind === 'requests') return byRequests(parts);
  const ranks = target === undefined ? Array.from({ length: parts.comm.size }, (_, rank) => rank) : [target];
  const needs = ranks.map((rank) => ORDER.indexOf(ofAccess(parts, kind, rank, attached)));
  return ORDER[Math.max(...needs)];
}

/** Locks without agent: by the device, also on windows whose parts are loaded and stored. */
function ofLock({ wire, comm }: WindowParts): ProgressBy {
  return wire === undefined || comm.job.context.capabilities.immediateCompletion ? 'origin' : 'device';
}

/** Requests of the emulator are carried out by who posts them, if it does not pose as a device. */
function byRequests({ requests, comm }: WindowParts): ProgressBy {
  return requests === undefined || comm.job.context.capabilities.immediateCompletion ? 'origin' : 'device';
}

function ofAccess(
  parts: WindowParts,
  kind: 'transfer' | 'update' | 'notify',
  rank: number,
  attached: Attached | undefined,
): ProgressBy {
  const { requests, updates, userMemory } = parts;
  // A notification takes a receive of the target, which posts it again when it calls the library (transfer/requests.ts).
  if (kind === 'notify' && requests !== undefined) return 'target';
  const unmapped = attached === undefined ? userMemory?.reaches(rank) === true : isUnmapped(attached);
  if (unmapped) return kind !== 'update' && userMemory?.copies(rank) ? 'kernel' : 'agent';
  if (kind === 'transfer' && parts.targets.of(rank)!.way === MIXED_WAYS) return 'origin';
  return kind === 'update' && updates === undefined ? 'origin' : byRequests(parts);
}

/** Whether it is memory of its owner's that others reach as `UserMemory`. */
function isUnmapped({ part, region }: Attached): boolean {
  return part === undefined && region === undefined;
}
