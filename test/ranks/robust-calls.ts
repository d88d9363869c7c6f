/**
 * Each call of the library by which a rank waits for others or asks something of them, when rank 1 is gone. Rank 0 is
 * not in the library when that happens, so it learns of it in these calls, whose outcomes it prints as
 * `{ CALL: 'CODE: MESSAGE' | 'none' }`. `--lock=HINT` of the windows. `--how=kill`: rank 1 kills itself.
 * `--until=FILE`: when all have said that they are working, whoever started them cuts them off from each other, and
 * then makes that file; all print what they get, and end when the file is removed: a rank that ended before would be
 * gone for the others. Each call has a communicator and a window of its own: what one leaves behind is not for another.
 */
import { existsSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Aggregate,
  Assert,
  type Communicator,
  type Group,
  init,
  Lock,
  Op,
  type RmaError,
  Window,
  type WindowInfo,
} from 'onesided';
import { argument } from './support/cases.ts';

interface Subject {
  readonly world: Communicator;
  readonly window: Window<Float64Array>;
  readonly other: Group;
  readonly word: Float64Array;
  /** The rank that is gone, and this one. */
  readonly gone: number;
  readonly own: number;
}

interface Call {
  /** Brings both ranks where the call is allowed. */
  readonly before?: (subject: Subject) => void;
  readonly call: (subject: Subject) => unknown;
}

const fenced = ({ window }: Subject): void => window.fenceSync(Assert.NO_PRECEDE);
const lockedAll = ({ window }: Subject): void => window.lockAllSync(Assert.NO_CHECK);
const locked = ({ window, gone }: Subject): void => window.lockSync(gone, Lock.SHARED);
const exposed = ({ window, other }: Subject): void => window.postSync(other);
const started = ({ window, other }: Subject): void => {
  window.postSync(other);
  window.startSync(other);
};

const CALLS: Readonly<Record<string, Call>> = {
  barrier: { call: ({ world }) => world.barrier() },
  barrierSync: { call: ({ world }) => world.barrierSync() },
  allreduce: { call: ({ world, word }) => world.allreduce(word, new Float64Array(1), Op.SUM) },
  allreduceSync: { call: ({ world, word }) => world.allreduceSync(word, new Float64Array(1), Op.SUM) },
  send: { call: ({ world, word, gone }) => world.send(word, gone) },
  receive: { call: ({ world, word, gone }) => world.receive(word, gone) },
  receiveSync: { call: ({ world, word, gone }) => world.receiveSync(word, gone) },
  split: { call: ({ world }) => world.split(0) },
  allocate: { call: ({ world }) => Window.allocate(world, Float64Array, 1) },
  finalize: { call: ({ world }) => world.finalize() },
  free: { call: ({ window }) => window.free() },
  fence: { before: fenced, call: ({ window }) => window.fence() },
  fenceSync: { before: fenced, call: ({ window }) => window.fenceSync() },
  put: { before: fenced, call: ({ window, word, gone }) => window.put(word, gone, 0) },
  get: { before: fenced, call: ({ window, word, gone }) => window.get(word, gone, 0) },
  accumulate: { before: lockedAll, call: ({ window, word, gone }) => window.accumulate(word, gone, 0, Op.SUM) },
  fetchAndOp: {
    before: lockedAll,
    call: ({ window, word, gone }) => window.fetchAndOp(word, new Float64Array(1), gone, 0, Op.SUM),
  },
  putNotify: { before: lockedAll, call: ({ window, word, gone }) => window.putNotify(word, gone, 0) },
  waitNotify: { before: lockedAll, call: ({ window }) => window.waitNotify() },
  waitNotifySync: { before: lockedAll, call: ({ window }) => window.waitNotifySync() },
  testNotify: { before: lockedAll, call: ({ window }) => window.testNotify() },
  rput: { before: lockedAll, call: ({ window, word, gone }) => window.rput(word, gone, 0).wait() },
  rputSync: { before: lockedAll, call: ({ window, word, gone }) => window.rput(word, gone, 0).waitSync() },
  aggregate: { before: lockedAll, call: (subject) => aggregated(subject).wait() },
  aggregateSync: { before: lockedAll, call: (subject) => aggregated(subject).waitSync() },
  flush: { before: lockedAll, call: ({ window, gone }) => window.flush(gone) },
  flushSync: { before: lockedAll, call: ({ window, gone }) => window.flushSync(gone) },
  flushAllSync: { before: lockedAll, call: ({ window }) => window.flushAllSync() },
  unlockAll: { before: lockedAll, call: ({ window }) => window.unlockAll() },
  lock: { call: ({ window, gone }) => window.lock(gone, Lock.EXCLUSIVE) },
  lockSync: { call: ({ window, gone }) => window.lockSync(gone, Lock.EXCLUSIVE) },
  lockSharedSync: { call: ({ window, gone }) => window.lockSync(gone, Lock.SHARED) },
  lockOwnSync: { call: ({ window, own }) => window.lockSync(own, Lock.EXCLUSIVE) },
  lockAll: { call: ({ window }) => window.lockAll() },
  lockAllSync: { call: ({ window }) => window.lockAllSync() },
  unlock: { before: locked, call: ({ window, gone }) => window.unlock(gone) },
  unlockSync: { before: locked, call: ({ window, gone }) => window.unlockSync(gone) },
  post: { call: ({ window, other }) => window.postSync(other) },
  start: { call: ({ window, other }) => window.start(other) },
  startSync: { call: ({ window, other }) => window.startSync(other) },
  complete: { before: started, call: ({ window }) => window.complete() },
  completeSync: { before: started, call: ({ window }) => window.completeSync() },
  wait: { before: exposed, call: ({ window }) => window.wait() },
  waitSync: { before: exposed, call: ({ window }) => window.waitSync() },
  test: { before: exposed, call: ({ window }) => window.test() },
};

/** A handle that holds an operation. */
function aggregated({ window, word, gone }: Subject): Aggregate {
  const batch = window.aggregate(gone);
  batch.put(word, 0);
  return batch;
}

const world = await init();
const info = { lock: argument('lock') ?? 'queue' } as WindowInfo;
const word = new Float64Array(1);
const subjects = new Map<string, Subject>();
for (const [name, { before }] of Object.entries(CALLS)) {
  const own = await world.dup();
  const subject = {
    world: own,
    window: await Window.allocate(own, Float64Array, 4, { info }),
    other: own.group.exclude([own.rank]),
    word,
    gone: 1 - world.rank,
    own: world.rank,
  };
  before?.(subject);
  await own.barrier();
  subjects.set(name, subject);
}
const pids = new Float64Array(2);
await world.allgather(Float64Array.of(process.pid), pids);
writeSync(1, `${JSON.stringify({ working: true })}\n`);

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const until = argument('until');
if (until !== undefined) while (!existsSync(until));
else {
  if (world.rank === 1) process.kill(process.pid, 'SIGKILL');
  while (lives(pids[1]));
}

const outcomes: Record<string, string> = {};
for (const [name, { call }] of Object.entries(CALLS)) {
  try {
    await call(subjects.get(name)!);
    outcomes[name] = 'none';
  } catch (error) {
    const { code, message } = error as RmaError;
    outcomes[name] = `${code}: ${message}`;
  }
}
writeSync(1, `${JSON.stringify({ outcomes })}\n`);
while (until !== undefined && existsSync(until)) await sleep(50);
process.exit(0);
