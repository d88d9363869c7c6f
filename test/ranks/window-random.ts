/**
 * Random programs of all kinds of epochs against a sequential model.
 *
 * A program is drawn from a seed, the same at every rank, and every rank runs its own part of it and the whole of the model. Within an
 * epoch each cell of each part has one use: written once by one rank, combined with one operation by any number of ranks, or only read. So MPI
 * defines what every cell holds after the epoch and what every read finds, whatever the order.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Datatype, Lock, Op, type Request, type TransferLayout, Window } from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const programs = Number(argument('programs') ?? 6);
const CELLS = 48;

type Use = 'put' | 'sum' | 'max' | 'xor' | 'replace' | 'read';
const USES: readonly Use[] = ['put', 'sum', 'max', 'xor', 'replace', 'read', 'read'];
const OP_OF = { sum: Op.SUM, max: Op.MAX, xor: Op.BXOR, replace: Op.REPLACE } as const;

/** One call of one rank: cells of one target that have one use. `at[i]` are ascending cells. */
interface Action {
  readonly rank: number;
  readonly target: number;
  readonly use: Use;
  readonly cells: readonly number[];
  readonly values: Int32Array;
  /** A put that the target is notified of. */
  readonly notify: boolean;
}

interface Epoch {
  readonly kind: 'fence' | 'locks' | 'lockAll' | 'exclusive' | 'general';
  readonly actions: readonly Action[];
}

/** What all ranks do between two synchronizations. */
function drawEpoch(random: Random, size: number): Epoch {
  const kind = random.pick(['fence', 'fence', 'fence', 'locks', 'lockAll', 'exclusive', 'general', 'general'] as const);
  const actions: Action[] = [];
  for (let target = 0; target < size; target++) {
    for (let cell = 0; cell < CELLS; ) {
      const length = Math.min(random.pick([1, 1, 2, 3, 9, 16]), CELLS - cell);
      const use = random.pick(USES);
      const all = Array.from({ length }, (_, i) => cell + i);
      const once = use === 'put' || use === 'replace';
      const callers = once
        ? [random.below(size)]
        : Array.from({ length: size }, (_, rank) => rank).filter(() => random.chance(0.5));
      for (const rank of callers) {
        if (random.chance(0.3)) continue;
        // All of them, every other one, or some in the middle.
        const cells = random.pick([all, all.filter((_, i) => i % 2 === 0), all.slice(Math.floor(length / 2))]);
        if (cells.length === 0) continue;
        const values = Int32Array.from(cells, () => random.bits() | 0);
        actions.push({ rank, target, use, cells, values, notify: use === 'put' && random.chance(0.3) });
      }
      cell += length + random.below(3);
    }
  }
  for (let i = actions.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [actions[i], actions[j]] = [actions[j], actions[i]];
  }
  return { kind, actions };
}

function apply(action: Action, parts: Int32Array[]): void {
  const part = parts[action.target];
  for (const [i, cell] of action.cells.entries()) {
    const value = action.values[i];
    if (action.use === 'put' || action.use === 'replace') part[cell] = value;
    else if (action.use === 'sum') part[cell] += value;
    else if (action.use === 'max') part[cell] = Math.max(part[cell], value);
    else if (action.use === 'xor') part[cell] ^= value;
  }
}

/** Waits for a request in one of the ways in which it can be waited for. */
function settle(request: Request, random: Random): void {
  if (random.chance(0.3)) while (!request.test());
  else if (random.chance(0.5)) request.waitSync();
}

/**
 * Issues an action in one of the ways in which it can be said. Gives what has to hold after the epoch.
 * @param passive the epoch is one in which there are requests
 */
function issue(
  win: Window<Int32Array>,
  action: Action,
  random: Random,
  unit: number,
  before: Int32Array,
  passive: boolean,
): () => void {
  const { target, use, cells, values } = action;
  const dense = cells.every((cell, i) => cell === cells[0] + i);
  const [first] = cells;
  // Cells at a displacement: the first cell's, or the part's beginning with offsets from there.
  const way = dense ? random.below(3) : 1 + random.below(2);
  const displacements = Int32Array.from(cells, (cell) => (way === 1 ? cell - first : cell));
  const type = Datatype.indexedBlock(1, displacements, Datatype.INT32);
  const layout: TransferLayout | undefined = way === 0 ? undefined : { target: { type } };
  const disp = ((way === 2 ? 0 : first) * 4) / unit;
  const requested = passive && random.chance(0.4);
  if (use === 'put') {
    if (action.notify) win.putNotify(values.slice(), target, disp, layout);
    else if (requested) settle(win.rput(values.slice(), target, disp, layout), random);
    else win.put(values.slice(), target, disp, layout);
    return () => {};
  }
  if (use === 'read') {
    const into = new Int32Array(cells.length);
    if (cells.length === 1 && random.chance(0.5))
      win.fetchAndOp(Int32Array.of(5), into, target, (first * 4) / unit, Op.NO_OP);
    else if (random.chance(0.3)) win.getAccumulate(null, into, target, disp, Op.NO_OP, layout);
    else if (requested) settle(win.rget(into, target, disp, layout), random);
    else win.get(into, target, disp, layout);
    return () =>
      assert.deepEqual(
        [...into],
        cells.map((cell) => before[cell]),
        `a read of cells ${cells} of rank ${target}`,
      );
  }
  if (use === 'replace' && random.chance(0.5)) {
    const result = new Int32Array(cells.length);
    if (cells.length === 1) {
      win.compareAndSwap(values.slice(), before.slice(first, first + 1), result, target, (first * 4) / unit);
    } else if (requested) {
      settle(win.rgetAccumulate(values.slice(), result, target, disp, Op.REPLACE, layout), random);
    } else win.getAccumulate(values.slice(), result, target, disp, Op.REPLACE, layout);
    return () =>
      assert.deepEqual(
        [...result],
        cells.map((cell) => before[cell]),
        `what stood in cells ${cells} of rank ${target}`,
      );
  }
  if (use !== 'replace' && random.chance(0.3)) {
    const result = new Int32Array(cells.length);
    if (cells.length === 1) win.fetchAndOp(values.slice(), result, target, (first * 4) / unit, OP_OF[use]);
    else win.getAccumulate(values.slice(), result, target, disp, OP_OF[use], layout);
  } else if (requested) settle(win.raccumulate(values.slice(), target, disp, OP_OF[use], layout), random);
  else win.accumulate(values.slice(), target, disp, OP_OF[use], layout);
  return () => {};
}

async function program(world: Communicator, number: number): Promise<void> {
  const { rank, size } = world;
  const shared = new Random(seed, number);
  const mine = new Random(seed, number, rank, 1);
  const label = `program ${number} of seed ${seed}`;
  const units = Array.from({ length: size }, () => shared.pick([1, 2, 4]));
  const windows: Window<Int32Array>[] = [];
  for (const fence of shared.pick([
    ['immediate', 'remote-notify'],
    ['remote-notify', 'immediate'],
    ['immediate'],
  ] as const)) {
    const options = { info: { fence }, dispUnit: units[rank] };
    if (fence === 'immediate' && shared.chance(0.4)) {
      windows.push(await Window.allocateShared(world, Int32Array, CELLS, options));
    } else windows.push(await Window.allocate(world, Int32Array, CELLS, options));
  }
  const models = windows.map(() => Array.from({ length: size }, () => new Int32Array(CELLS)));
  const open = windows.map(() => false);
  for (let step = 0; step < 14; step++) {
    const epochs = windows.map(() => drawEpoch(shared, size));
    const checks: (() => void)[] = [];
    const act = (w: number): void => {
      for (const action of epochs[w].actions) {
        if (action.rank !== rank) continue;
        const { target } = action;
        const { kind } = epochs[w];
        const locked = kind === 'locks' || kind === 'exclusive';
        if (locked)
          windows[w].lockSync(target, kind === 'locks' && action.use !== 'put' ? Lock.SHARED : Lock.EXCLUSIVE);
        const passive = locked || kind === 'lockAll';
        checks.push(issue(windows[w], action, mine, units[target], models[w][target].slice(), passive));
        if (locked) windows[w].unlockSync(target);
      }
    };
    const synchronize = async (w: number, assertion: number): Promise<void> => {
      if (mine.chance(0.5)) windows[w].fenceSync(assertion);
      else await windows[w].fence(assertion);
    };
    // Opens the fence epochs that are not open, and closes those of windows that lock.
    for (const [w, { kind }] of epochs.entries()) {
      if (kind === 'fence' && !open[w]) await synchronize(w, Assert.NO_PRECEDE);
      if (kind !== 'fence' && open[w]) await synchronize(w, Assert.NO_SUCCEED);
    }
    for (const [w, { kind }] of epochs.entries()) {
      const win = windows[w];
      if (kind === 'lockAll') await win.lockAll();
      if (kind === 'general') {
        win.postSync(world.group);
        if (mine.chance(0.5)) win.startSync(world.group);
        else await win.start(world.group);
      }
      act(w);
      if (mine.chance(0.1)) await sleep(1);
      if (kind === 'lockAll') await win.unlockAll();
      if (kind === 'general') {
        await win.complete();
        if (mine.chance(0.3)) while (!win.test()) await sleep(0);
        else if (mine.chance(0.5)) win.waitSync();
        else await win.wait();
      }
      const notices = epochs[w].actions.filter(({ notify, target }) => notify && target === rank).length;
      if (notices > 0) await win.waitNotify(notices);
    }
    const last = step === 13;
    const fences: Promise<void>[] = [];
    for (const [w, { kind }] of epochs.entries()) {
      const assertion = last || shared.chance(0.4) ? Assert.NO_SUCCEED : 0;
      open[w] = kind === 'fence' && assertion === 0;
      if (kind === 'fence') fences.push(windows[w].fence(assertion));
    }
    await Promise.all(fences);
    if (epochs.some(({ kind }) => kind !== 'fence')) await world.barrier();
    for (const [w, { actions }] of epochs.entries()) {
      for (const action of actions) apply(action, models[w]);
      const found = windows[w].local;
      assert.equal(windows[w].testNotify(), false, `${label}, step ${step}, window ${w}: more notifications than puts`);
      for (let cell = 0; cell < CELLS; cell++) {
        assert.equal(
          found[cell],
          models[w][rank][cell],
          `${label}, step ${step}, window ${w} (${epochs[w].kind}), cell ${cell} of rank ${rank}`,
        );
      }
    }
    for (const check of checks) {
      try {
        check();
      } catch (cause) {
        throw new Error(`${label}, step ${step}`, { cause });
      }
    }
    // So that nobody's next locks come while somebody still looks.
    await world.barrier();
  }
  for (const win of windows) await win.free();
}

await runCases(
  Object.fromEntries(
    Array.from({ length: programs }, (_, i) => [`program ${i}`, (world: Communicator) => program(world, i)]),
  ),
);
