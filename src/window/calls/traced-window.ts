/**
 * How a window records itself in a job that is traced: its calls, what they move, the epochs that they open and end,
 * and what its schemes tell other ranks.
 *
 * A window of such a job gets methods of its own (trace/recorded-calls.ts), and its schemes come in recording ones.
 * Nothing of it exists in other jobs.
 */
import { bytesSeen } from '../../intrinsics.ts';
import type { Attempt, TargetLock } from '../../sync/lock/lock-scheme.ts';
import { LockBit } from '../../sync/lock/lock-scheme.ts';
import type { Folds, GeneralActiveTarget } from '../../sync/pscw/pscw-scheme.ts';
import { type CallRecord, override, recordCalls } from '../../trace/recorded-calls.ts';
import type { Flow, Recorder } from '../../trace/recorder.ts';
import type { Operation } from '../../wait/operation.ts';
import { DONE } from '../../wait/progress.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import { Assert } from '../epochs/assertions.ts';
import type { Paths } from '../path/paths.ts';

/** Where the arguments of a communication call say what it moves, to whom, and where to. */
interface Arguments {
  readonly data: number;
  readonly target: number;
  readonly disp: number;
  readonly layout?: number;
}

const OPERATIONS: Readonly<Record<string, Arguments>> = {
  put: { data: 0, target: 1, disp: 2, layout: 3 },
  get: { data: 0, target: 1, disp: 2, layout: 3 },
  accumulate: { data: 0, target: 1, disp: 2, layout: 4 },
  getAccumulate: { data: 1, target: 2, disp: 3, layout: 5 },
  fetchAndOp: { data: 0, target: 2, disp: 3 },
  compareAndSwap: { data: 0, target: 3, disp: 4 },
  putNotify: { data: 0, target: 1, disp: 2, layout: 3 },
  rput: { data: 0, target: 1, disp: 2, layout: 3 },
  rget: { data: 0, target: 1, disp: 2, layout: 3 },
  raccumulate: { data: 0, target: 1, disp: 2, layout: 4 },
  rgetAccumulate: { data: 1, target: 2, disp: 3, layout: 5 },
};

/** The schemes of a window, recording ones if the job is traced. */
export function tracedSchemes(parts: WindowParts): WindowParts {
  const { comm, trace } = parts;
  const { recorder } = comm.job;
  if (recorder === undefined) return parts;
  const ranks = comm.group.worldRanks;
  const scope = recorder.text(`${trace}|${parts.name}`);
  const flow = (name: string): Flow => recorder.flow(name, trace, comm.job.size);
  return {
    ...parts,
    general: new RecordedSync(parts.general, flow('post'), flow('complete'), ranks),
    // Locks are recorded rank by rank.
    allLock: undefined,
    makeLock(rank) {
      const lock = parts.makeLock(rank);
      return lock && new RecordedLock(lock, recorder, scope, ranks[rank]);
    },
  };
}

/**
 * Start/complete/post/wait: a post is told to each origin and seen by its start, a complete to each target and seen by
 * its wait.
 */
class RecordedSync implements GeneralActiveTarget {
  readonly #scheme: GeneralActiveTarget;
  readonly #posts: Flow;
  readonly #completes: Flow;
  readonly #ranks: readonly number[];
  readonly folds: Folds | undefined;
  readonly completing?: (targets: readonly number[]) => Operation;
  /** Targets of which it is recorded that they were told, or are about to be. */
  #completing: readonly number[] | undefined;

  constructor(scheme: GeneralActiveTarget, posts: Flow, completes: Flow, ranks: readonly number[]) {
    this.#scheme = scheme;
    this.#posts = posts;
    this.#completes = completes;
    this.#ranks = ranks;
    const { folds } = scheme;
    if (folds !== undefined) {
      this.folds = {
        takes: folds.takes,
        send: (operations, targets) => {
          this.#told(targets);
          folds.send(operations, targets);
        },
      };
    }
    if (scheme.completing === undefined) return;
    this.completing = (targets) => {
      this.#told(targets);
      return scheme.completing!(targets);
    };
  }

  get seesPostsAtOnce(): boolean {
    return this.#scheme.seesPostsAtOnce;
  }

  post(origins: readonly number[]): void {
    for (const origin of origins) this.#posts.sent(this.#ranks[origin], 0);
    this.#scheme.post(origins);
  }

  tryStart(targets: readonly number[]): boolean {
    return this.#scheme.tryStart(targets) && this.#saw(this.#posts, targets);
  }

  start(targets: readonly number[]): Operation {
    return this.#recorded(this.#scheme.start(targets), this.#posts, targets);
  }

  complete(targets: readonly number[]): void {
    this.#told(targets);
    this.#completing = undefined;
    this.#scheme.complete(targets);
  }

  #told(targets: readonly number[]): void {
    if (this.#completing === targets) return;
    this.#completing = targets;
    for (const target of targets) this.#completes.sent(this.#ranks[target], 0);
  }

  tryWait(origins: readonly number[]): boolean {
    return this.#scheme.tryWait(origins) && this.#saw(this.#completes, origins);
  }

  wait(origins: readonly number[]): Operation {
    return this.#recorded(this.#scheme.wait(origins), this.#completes, origins);
  }

  #recorded(operation: Operation, flow: Flow, peers: readonly number[]): Operation {
    return {
      advance: () => operation.advance() && this.#saw(flow, peers),
      describe: () => operation.describe(),
      abandon: () => operation.abandon?.(),
      isPolling: () => operation.isPolling?.() ?? false,
    };
  }

  #saw(flow: Flow, peers: readonly number[]): true {
    for (const peer of peers) flow.seen(this.#ranks[peer], 0);
    return true;
  }
}

/**
 * A lock tells no rank in particular that it is free. Which rank got it from which is found out when the records of all
 * ranks are there.
 */
class RecordedLock implements TargetLock {
  readonly #lock: TargetLock;
  readonly #recorder: Recorder;
  readonly #scope: number;
  /** Whose part it locks: a rank of the world. */
  readonly #owner: number;
  readonly attempt?: (exclusive: boolean, joins?: boolean) => Attempt;

  constructor(lock: TargetLock, recorder: Recorder, scope: number, owner: number) {
    this.#lock = lock;
    this.#recorder = recorder;
    this.#scope = scope;
    this.#owner = owner;
    if (lock.attempt !== undefined) this.attempt = (exclusive, joins) => lock.attempt!(exclusive, joins);
  }

  tryAcquire(exclusive: boolean): boolean {
    if (!this.#lock.tryAcquire(exclusive)) return false;
    this.#recorder.acquired(this.#scope, this.#owner, exclusive, false);
    return true;
  }

  tryJoin(): boolean {
    if (!this.#lock.tryJoin!()) return false;
    this.#recorder.acquired(this.#scope, this.#owner, false, false);
    return true;
  }

  acquire(exclusive: boolean): Operation {
    const operation = this.#lock.acquire(exclusive);
    return {
      advance: () => {
        if (!operation.advance()) return false;
        this.#recorder.acquired(this.#scope, this.#owner, exclusive, true);
        return true;
      },
      describe: () => operation.describe().replace(/^lock(?! of)/, `lock of rank ${this.#owner}`),
      abandon: () => operation.abandon?.(),
      isPolling: () => operation.isPolling?.() ?? false,
    };
  }

  release(exclusive: boolean): void {
    this.#recorder.released(this.#scope, this.#owner, exclusive);
    this.#lock.release(exclusive);
  }
}

/** Gives a window methods that record, if the job is traced. */
export function traceWindow(window: object, parts: WindowParts, paths: Paths): void {
  const { comm, trace } = parts;
  const { recorder } = comm.job;
  if (recorder === undefined) return;
  const scope = recorder.text(`${trace}|${parts.name}`);
  const ranks = comm.group.worldRanks;
  const worldRank = (rank: unknown): number => ranks[rank as number] ?? -1;
  recordOperations(window, parts, paths, recorder, scope, worldRank);
  recordCalls(window, recorder, scope, callsOf(recorder, scope, worldRank), DONE);
}

/**
 * The calls that synchronize, and the epochs that they open and end. An epoch begins when the call that opens it has
 * succeeded, and ends after the one that ends it.
 */
function callsOf(
  recorder: Recorder,
  scope: number,
  worldRank: (rank: unknown) => number,
): Readonly<Record<string, CallRecord>> {
  const epochs = new Map<string, number>();
  const counts = new Map<string, number>();
  const next = (kind: string): number => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count;
  };
  const end = (epoch: string): void => {
    const span = epochs.get(epoch);
    if (span !== undefined) recorder.end(span);
    epochs.delete(epoch);
  };
  /** Whatever is opened ends the epoch of a fence, in which nothing was issued. */
  const open = (epoch: string, name: string, place: number, peer = -1): void => {
    if (epoch !== 'exposure') end('fence');
    epochs.set(epoch, recorder.begin('epoch', name, { scope, place, peer }));
  };
  const toTarget: CallRecord = { details: ([target]) => ({ peer: worldRank(target) }) };
  let fences = 0;
  let waits = 0;
  return {
    fence: {
      details: () => ({ place: fences + 1 }),
      after: ([assert = 0]) => {
        fences++;
        end('fence');
        if (((assert as number) & Assert.NO_SUCCEED) === 0) open('fence', 'fence epoch', fences);
      },
    },
    start: { after: () => open('access', 'access epoch', next('access')) },
    complete: { after: () => end('access') },
    post: {
      after: () => {
        end('fence');
        open('exposure', 'exposure epoch', next('exposure'));
      },
    },
    wait: { after: () => end('exposure') },
    test: { polls: true, after: () => end('exposure') },
    lock: {
      details: ([target, type]) => ({ peer: worldRank(target), place: type === LockBit.EXCLUSIVE ? 1 : 0 }),
      after: ([target, type]) => {
        const peer = worldRank(target);
        if (peer >= 0)
          open(`lock ${peer}`, type === LockBit.EXCLUSIVE ? 'exclusive lock' : 'shared lock', next('lock'), peer);
      },
    },
    unlock: { ...toTarget, after: ([target]) => end(`lock ${worldRank(target)}`) },
    lockAll: { after: () => open('lockAll', 'lockAll epoch', next('lock')) },
    unlockAll: { after: () => end('lockAll') },
    flush: toTarget,
    flushLocal: toTarget,
    flushAll: {},
    flushLocalAll: {},
    waitNotify: { details: () => ({ place: ++waits }), after: ([count = 1]) => recorder.took(scope, count as number) },
    testNotify: { polls: true, after: ([count = 1]) => recorder.took(scope, count as number) },
    free: { before: () => end('fence') },
  };
}

function recordOperations(
  window: object,
  { targets, requests }: WindowParts,
  paths: Paths,
  recorder: Recorder,
  scope: number,
  worldRank: (rank: unknown) => number,
): void {
  /** Some calls are made of others, which are not recorded again. */
  let inside = false;
  for (const [name, at] of Object.entries(OPERATIONS)) {
    const original = (window as Record<string, (...args: unknown[]) => unknown>)[name];
    const number = recorder.text(name);
    const moves = /(^r?(put|get)$|Notify)/.test(name) ? 'transfer' : 'update';
    override(window, name, (...args) => {
      if (inside) return original.apply(window, args);
      const peer = worldRank(args[at.target]);
      const bytes = bytesOf(args, at);
      const disp = args[at.disp];
      const t = targets.of(args[at.target] as number);
      const done = t !== undefined && !paths.becomesRequests(t, moves);
      const turn = done ? undefined : requests?.nextTurn();
      inside = true;
      const since = recorder.now();
      try {
        const result = original.apply(window, args);
        if (name === 'putNotify' && peer >= 0) recorder.notified(scope, peer, since);
        if (turn !== undefined) recorder.issued(turn);
        recorder.operation(number, scope, peer, bytes, typeof disp === 'number' ? disp : 0, since, done);
        return result;
      } catch (error) {
        recorder.end(recorder.begin('call', name, { scope, peer, since }), error);
        throw error;
      } finally {
        // What the library posts later is not the call's.
        if (turn !== undefined) requests!.nextTurn();
        inside = false;
      }
    });
  }
}

/** Bytes of data that a call moves, as far as its arguments say so: they have not been checked yet. */
function bytesOf(args: readonly unknown[], at: Arguments): number {
  const layout = at.layout === undefined ? undefined : (args[at.layout] as SomeLayout);
  const side = layout?.target ?? layout?.result ?? layout?.origin;
  if (typeof side?.type?.size === 'number') return side.type.size * (side.count ?? 1);
  const data = args[at.data];
  return ArrayBuffer.isView(data) ? bytesSeen(data) : 0;
}

type SomeSide = { readonly type?: { readonly size?: unknown }; readonly count?: number } | undefined;
type SomeLayout = { readonly origin?: SomeSide; readonly target?: SomeSide; readonly result?: SomeSide } | undefined;
