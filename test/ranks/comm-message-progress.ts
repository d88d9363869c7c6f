/**
 * Messages leave while their sender makes one-sided calls only, all of them complete at once (MPI 4.1, 2.9 and 12.7.3):
 * rank 0 sends more than finds room, and then repeats one call until the last rank, which receives them, says that it
 * has them all.
 */
import { type Communicator, Lock, Op, Rank, Window } from 'onesided';
import { runCases } from './support/cases.ts';

/** More than there are receives and sends. */
const MESSAGES = 300;
const WITHIN_MS = 30_000;

const one = Int32Array.of(1);

type Call = (win: Window<Int32Array>, target: number) => unknown;

/** Each between `lockAll` and `unlockAll`. */
const calls: Record<string, Call> = {
  flushSync: (win, target) => {
    win.accumulate(one, target, 1, Op.SUM);
    win.flushSync(target);
  },
  flush: async (win, target) => {
    win.fetchAndOp(one, new Int32Array(1), target, 1, Op.SUM);
    await win.flush(target);
  },
  flushAllSync: (win, target) => {
    win.put(one, target, 1);
    win.flushAllSync();
  },
  flushLocalSync: (win, target) => {
    win.put(one, target, 1);
    win.flushLocalSync(target);
  },
  requestTest: (win, target) => {
    const request = win.rget(new Int32Array(1), target, 1);
    while (!request.test());
  },
  requestWait: (win, target) => win.rput(one, target, 1).wait(),
};

/** Each outside of an epoch. */
const epochs: Record<string, Call> = {
  unlockSync: (win, target) => {
    win.lockSync(target, Lock.SHARED);
    win.put(one, target, 1);
    win.unlockSync(target);
  },
  unlock: async (win, target) => {
    await win.lock(target, Lock.EXCLUSIVE);
    win.put(one, target, 1);
    await win.unlock(target);
  },
  unlockAllSync: (win) => {
    win.lockAllSync();
    win.put(one, 1, 1);
    win.unlockAllSync();
  },
};

/** Rank 0 sends, and repeats `call`; the last rank receives, and tells. */
async function exchange(world: Communicator, told: Window<Int32Array>, call: () => unknown): Promise<void> {
  const { rank, size } = world;
  told.local.fill(0);
  await world.barrier();
  if (rank === 0) {
    for (let i = 0; i < MESSAGES; i++) await world.send(Int32Array.of(i), size - 1);
    const deadline = performance.now() + WITHIN_MS;
    while (Atomics.load(told.local, 0) === 0) {
      await call();
      if (performance.now() > deadline) throw new Error('the messages have not arrived');
    }
  } else if (rank === size - 1) {
    const got = new Int32Array(1);
    for (let i = 0; i < MESSAGES; i++) {
      await world.receive(got, 0);
      if (got[0] !== i) throw new Error(`message ${i} is ${got[0]}`);
    }
    told.put(one, 0, 0);
    await told.flush(0);
  }
}

function inEpoch(call: Call): (world: Communicator) => Promise<void> {
  return async (world) => {
    const win = await Window.allocate(world, Int32Array, 2);
    const told = await Window.allocate(world, Int32Array, 1);
    await told.lockAll();
    await win.lockAll();
    await exchange(world, told, () => call(win, 1));
    await win.unlockAll();
    await told.unlockAll();
    await win.free();
    await told.free();
  };
}

function withEpochs(call: Call): (world: Communicator) => Promise<void> {
  return async (world) => {
    const win = await Window.allocate(world, Int32Array, 2);
    const told = await Window.allocate(world, Int32Array, 1);
    await told.lockAll();
    await exchange(world, told, () => call(win, 1));
    await told.unlockAll();
    await win.free();
    await told.free();
  };
}

/** Ranks 0 and 1 meet in fences, again and again, until rank 0 says that it was told. */
async function fences(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const told = await Window.allocate(world, Int32Array, 1);
  const pair = await world.split(rank === size - 1 ? Rank.UNDEFINED : 0);
  await told.lockAll();
  if (pair === undefined) {
    await exchange(world, told, () => {});
  } else {
    const win = await Window.allocate(pair, Int32Array, 1);
    let said = false;
    const step = async (): Promise<void> => {
      await win.fence();
      if (rank === 0 && Atomics.load(told.local, 0) !== 0) {
        win.put(one, 1, 0);
        said = true;
      }
      await win.fence();
    };
    await win.fence();
    await exchange(world, told, step);
    if (rank === 0 && !said) await step();
    while (rank === 1 && win.local[0] === 0) await step();
    await win.free();
  }
  await told.unlockAll();
  await told.free();
}

await runCases({
  ...Object.fromEntries(Object.entries(calls).map(([name, call]) => [`messages leave in ${name}`, inEpoch(call)])),
  ...Object.fromEntries(
    Object.entries(epochs).map(([name, call]) => [`messages leave in ${name} of epochs`, withEpochs(call)]),
  ),
  'messages leave in fences': fences,
});
