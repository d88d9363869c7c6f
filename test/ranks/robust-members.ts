/**
 * A rank dies, and those that share something without it go on with that, and with all that they make on it: rank 2 of
 * three, by SIGKILL (`--how=exit`: with an exit code), while it has left messages of the others waiting. Ranks 0 and 1
 * print `{ CALL: 'none' | 'CODE of RANK: MESSAGE' }`, for each call on a communicator and a window of theirs, and, with
 * `all.` before it, on those of all three. Then rank 1 dies, and rank 0 waits for it: `alone.`.
 *
 * In each call the ranks come at different times, so that one of them sleeps.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, init, Lock, Op, Request, type RmaError, Window } from 'onesided';
import { begin } from 'onesided/bsp';
import { BoundedQueue, Counter, Mutex } from 'onesided/sync';
import { argument } from './support/cases.ts';

interface Subject {
  readonly comm: Communicator;
  readonly window: Window<Float64Array>;
  readonly other: number;
  readonly word: Float64Array;
}

type Call = (subject: Subject) => unknown;

/** Nobody waits longer than for his partner, and who would is told by the launcher. */
const CALLS: Readonly<Record<string, Call>> = {
  barrier: ({ comm }) => comm.barrier(),
  barrierSync: ({ comm }) => comm.barrierSync(),
  allreduce: ({ comm, word }) => comm.allreduce(word, new Float64Array(1), Op.SUM),
  allreduceSync: ({ comm, word }) => comm.allreduceSync(word, new Float64Array(1), Op.SUM),
  longBroadcast: ({ comm }) => comm.broadcast(new Float64Array(50_000), 1),
  message: async ({ comm, word, other }) => {
    comm.send(word, other);
    await comm.receive(word, other);
  },
  messageSync: ({ comm, word, other }) => {
    comm.send(word, other);
    comm.receiveSync(word, other);
  },
  dup: async ({ comm }) => (await comm.dup()).free(),
  split: async ({ comm }) => (await comm.split(0))?.barrier(),
  splitSync: ({ comm }) => comm.splitSync(0)?.freeSync(),
  fence: ({ window }) => window.fence(),
  fenceSync: ({ window }) => window.fenceSync(),
  pscw: async ({ comm, window, other, word }) => {
    const group = comm.group.include([other]);
    window.post(group);
    await window.start(group);
    window.put(word, other, 0);
    await window.complete();
    await window.wait();
  },
  lock: async ({ window, word }) => {
    await window.lock(0, Lock.EXCLUSIVE);
    window.accumulate(word, 0, 0, Op.SUM);
    await sleep(3);
    await window.unlock(0);
  },
  lockSync: ({ window, word }) => {
    window.lockSync(1, Lock.EXCLUSIVE);
    window.accumulate(word, 1, 0, Op.SUM);
    window.unlockSync(1);
  },
  lockAll: async ({ window, other, word }) => {
    await window.lockAll();
    window.put(word, other, 0);
    await window.flush(other);
    const request = window.rget(word, other, 0);
    await Request.waitAll([request]);
    await Request.waitAny([window.rput(word, other, 0)]);
    window.putNotify(word, other, 0);
    await window.waitNotify();
    await window.unlockAll();
  },
  allocate: async ({ comm }) => {
    const window = await Window.allocate(comm, Float64Array, 4);
    await window.fence();
    await window.free();
  },
  create: async ({ comm }) => {
    const window = await Window.create(comm, comm.allocMem(Float64Array, 4));
    await window.fence();
    window.freeSync();
  },
  structures: async ({ comm }) => {
    const counter = await Counter.create(comm);
    await counter.add(1);
    await counter.free();
    const mutex = await Mutex.create(comm);
    const held = await mutex.lock();
    await sleep(3);
    held.release();
    await mutex.free();
  },
  queue: async ({ comm }) => {
    const queue = await BoundedQueue.create(comm, Int32Array, 4);
    if (comm.rank === 0) await queue.push(Int32Array.of(7));
    else await queue.pop();
    await queue.free();
  },
  bsp: async ({ comm, other }) => {
    const b = await begin(comm);
    const x = new Float64Array(8);
    b.pushReg(x);
    await b.sync();
    b.put(other, Float64Array.of(1), x, 0);
    await b.sync();
    b.syncSync();
    await b.end();
  },
  free: ({ window }) => window.free(),
  freeComm: ({ comm }) => comm.free(),
};

const ALL = ['barrier', 'barrierSync', 'allreduce', 'message', 'dup', 'fence', 'fenceSync', 'allocate', 'free'];

const world = await init();
const pair = await world.split(world.rank === 2 ? 1 : 0);
const subjectOf = async (comm: Communicator): Promise<Subject> => {
  const window = await Window.allocate(comm, Float64Array, 4);
  return { comm, window, other: (comm.rank + 1) % comm.size, word: Float64Array.of(1) };
};
const shared = await subjectOf(world);
const own = await subjectOf(pair!);
const parts = own.comm.size === 1 ? own : await subjectOf(await own.comm.dup());
await world.barrier();

async function die(): Promise<void> {
  if (argument('how') === 'exit') process.exit(3);
  process.kill(process.pid, 'SIGKILL');
  await sleep(60_000);
}

if (world.rank === 2) {
  // It computes, while the others send it more than there is room for.
  const until = performance.now() + 300;
  while (performance.now() < until);
  await die();
}

for (let i = 0; i < 200; i++) world.send(new Float64Array(500), 2);
world.send(new Float64Array(100_000), 2);

const outcomes: Record<string, string> = {};
async function outcome(name: string, call: Call, subject: Subject): Promise<void> {
  try {
    await call(subject);
    outcomes[name] = 'none';
  } catch (error) {
    const { code, message, rank } = error as RmaError & { rank?: number };
    outcomes[name] = `${code ?? 'no code'} of ${rank}: ${message}`;
  }
}

for (const name of ALL) await outcome(`all.${name}`, CALLS[name], shared);
for (const [name, call] of Object.entries(CALLS)) {
  await parts.comm.barrier();
  await sleep(world.rank === Object.keys(outcomes).length % 2 ? 5 : 0);
  await outcome(name, call, own);
}
if (world.rank === 0) {
  // Rank 1 dies in the meantime.
  for (const name of ['barrier', 'barrierSync', 'fence', 'fenceSync', 'allreduce', 'message', 'lock']) {
    await outcome(`alone.${name}`, CALLS[name], parts);
  }
}
await new Promise((said) => process.stdout.write(`${JSON.stringify(outcomes)}\n`, said));
if (world.rank === 1) {
  await sleep(50);
  await die();
}
process.exit(0);
