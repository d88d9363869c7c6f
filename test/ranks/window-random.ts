/**
 * Random programs of all kinds of epochs against a sequential model.
 *
 * A program is drawn from a seed, the same at every rank, and every rank runs its own part of it and the whole of the
 * model. Within an epoch each cell of each part has one use: written once by one rank, combined with one operation by
 * any number of ranks, or only read. So MPI defines what every cell holds after the epoch and what every read finds,
 * whatever the order. What those fetch that combine depends on the order: all that they have fetched is brought
 * together, and there must be one order, for each cell, in which it comes out.
 *
 * With `--by-requests` windows have only what they can have where memory is not shared, and `--noncontiguous=NAME` says
 * how all of their layouts move.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Assert,
  type Communicator,
  Datatype,
  Lock,
  Op,
  type Request,
  type TransferLayout,
  Window,
  type WindowInfo,
} from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { FENCES_BY_HINT, LOCKS_BY_HINT, NONCONTIGUOUS_NAMES, SCHEDULES, UPDATE_SCHEMES } from './support/kinds.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const programs = Number(argument('programs') ?? 6);
const byRequests = process.argv.includes('--by-requests');
const noncontiguous = argument('noncontiguous') as WindowInfo['noncontiguous'] | undefined;
const CELLS = 48;

type Use = 'put' | 'sum' | 'max' | 'xor' | 'replace' | 'read';
const USES: readonly Use[] = ['put', 'sum', 'max', 'xor', 'replace', 'read', 'read'];
/** What cells are: the values are such that sums are exact in all of them. */
const TYPES = [Int32Array, Int32Array, Float64Array, Int16Array, Uint8Array, Uint32Array] as const;
type Cells = Int32Array | Float64Array | Int16Array | Uint8Array | Uint32Array;
type CellType = (typeof TYPES)[number];
const DATATYPES = new Map<CellType, Datatype>([
  [Int32Array, Datatype.INT32],
  [Float64Array, Datatype.FLOAT64],
  [Int16Array, Datatype.INT16],
  [Uint8Array, Datatype.UINT8],
  [Uint32Array, Datatype.UINT32],
]);
const OP_OF = { sum: Op.SUM, max: Op.MAX, xor: Op.BXOR, replace: Op.REPLACE } as const;

/** One call of one rank: cells of one target that have one use. `at[i]` are ascending cells. */
interface Action {
  readonly rank: number;
  readonly target: number;
  readonly use: Use;
  readonly cells: readonly number[];
  readonly values: Cells;
  /** A put that the target is notified of. */
  readonly notify: boolean;
  /**
   * Something is combined, and what was there before is wanted: it is so far on in the list of all that is fetched in
   * the epoch.
   */
  readonly fetched: number | undefined;
}

interface Epoch {
  readonly kind: 'fence' | 'locks' | 'lockAll' | 'exclusive' | 'general';
  readonly actions: readonly Action[];
  /** Numbers that are fetched by those that combine. */
  readonly fetches: number;
}

/** What all ranks do between two synchronizations. */
function drawEpoch(random: Random, size: number, type: CellType): Epoch {
  const kind = random.pick(['fence', 'fence', 'fence', 'locks', 'lockAll', 'exclusive', 'general', 'general'] as const);
  const actions: Action[] = [];
  let fetches = 0;
  for (let target = 0; target < size; target++) {
    for (let cell = 0; cell < CELLS; ) {
      const length = Math.min(random.pick([1, 1, 2, 3, 9, 16]), CELLS - cell);
      const drawn = random.pick(USES);
      const use = drawn === 'xor' && type === Float64Array ? 'sum' : drawn;
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
        const values: Cells = (type as Float64ArrayConstructor).from(cells, () => random.bits() | 0);
        const combines = use === 'sum' || use === 'max' || use === 'xor';
        const fetched = combines && random.chance(0.5) ? fetches : undefined;
        if (fetched !== undefined) fetches += cells.length;
        actions.push({ rank, target, use, cells, values, notify: use === 'put' && random.chance(0.3), fetched });
      }
      cell += length + random.below(3);
    }
  }
  for (let i = actions.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [actions[i], actions[j]] = [actions[j], actions[i]];
  }
  return { kind, actions, fetches };
}

function combine(use: Use, part: Cells, cell: number, value: number): void {
  if (use === 'put' || use === 'replace') part[cell] = value;
  else if (use === 'sum') part[cell] += value;
  else if (use === 'max') part[cell] = Math.max(part[cell], value);
  else if (use === 'xor') part[cell] ^= value;
}

function apply(action: Action, parts: Cells[]): void {
  for (const [i, cell] of action.cells.entries()) combine(action.use, parts[action.target], cell, action.values[i]);
}

/**
 * Whether what was fetched from each cell can have been there. All operations on a cell are one and the same, which
 * does not mind the order: so what is there after some of them depends on which these are. A set of them can have been
 * the first ones if that holds for all of it but one, which found what those leave.
 */
function checkFetched(epoch: Epoch, fetched: Float64Array, before: readonly Cells[]): void {
  const onCell = new Map<
    string,
    { readonly action: Action; readonly value: number; readonly found: number | undefined }[]
  >();
  for (const action of epoch.actions) {
    if (action.use !== 'sum' && action.use !== 'max' && action.use !== 'xor') continue;
    for (const [i, cell] of action.cells.entries()) {
      const key = `${action.target}:${cell}`;
      const found = action.fetched === undefined ? undefined : fetched[action.fetched + i];
      onCell.set(key, [...(onCell.get(key) ?? []), { action, value: action.values[i], found }]);
    }
  }
  for (const [key, operations] of onCell) {
    const [target, cell] = key.split(':').map(Number);
    const afterwards = (set: number): number => {
      const part = before[target].slice(cell, cell + 1);
      for (const [i, { action, value }] of operations.entries())
        if ((set & (1 << i)) !== 0) combine(action.use, part, 0, value);
      return part[0];
    };
    const possible = [true];
    for (let set = 1; set < 1 << operations.length; set++) {
      possible[set] = operations.some(({ found }, i) => {
        const rest = set & ~(1 << i);
        return rest !== set && possible[rest] && (found === undefined || found === afterwards(rest));
      });
    }
    assert.ok(
      possible.at(-1),
      `cell ${cell} of rank ${target} was ${before[target][cell]}; no order gives ` +
        operations
          .map(
            ({ action, value, found }) => `${action.use} ${value}${found === undefined ? '' : ` (fetched ${found})`}`,
          )
          .join(', '),
    );
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
  win: Window<Cells>,
  action: Action,
  random: Random,
  unit: number,
  before: Cells,
  passive: boolean,
  fetched: Float64Array,
): () => void {
  const { target, use, cells, values } = action;
  const make = values.constructor as CellType;
  const size = make.BYTES_PER_ELEMENT;
  const dense = cells.every((cell, i) => cell === cells[0] + i);
  const [first] = cells;
  // Cells at a displacement: the first cell's, or the part's beginning with offsets from there.
  const way = dense ? random.below(3) : 1 + random.below(2);
  const displacements = Int32Array.from(cells, (cell) => (way === 1 ? cell - first : cell));
  const type = Datatype.indexedBlock(1, displacements, DATATYPES.get(make)!);
  const layout: TransferLayout | undefined = way === 0 ? undefined : { target: { type } };
  const disp = ((way === 2 ? 0 : first) * size) / unit;
  const requested = passive && random.chance(0.4);
  if (use === 'put') {
    if (action.notify) win.putNotify(values.slice(), target, disp, layout);
    else if (requested) settle(win.rput(values.slice(), target, disp, layout), random);
    else win.put(values.slice(), target, disp, layout);
    return () => {};
  }
  if (use === 'read') {
    const into = new make(cells.length);
    if (cells.length === 1 && random.chance(0.5))
      win.fetchAndOp(make.of(5), into, target, (first * size) / unit, Op.NO_OP);
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
    const result = new make(cells.length);
    if (cells.length === 1 && make !== Float64Array) {
      win.compareAndSwap(values.slice(), before.slice(first, first + 1), result, target, (first * size) / unit);
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
  if (action.fetched !== undefined) {
    const result = new make(cells.length);
    if (cells.length === 1) win.fetchAndOp(values.slice(), result, target, (first * size) / unit, OP_OF[use]);
    else if (requested) settle(win.rgetAccumulate(values.slice(), result, target, disp, OP_OF[use], layout), random);
    else win.getAccumulate(values.slice(), result, target, disp, OP_OF[use], layout);
    return () => fetched.set(result, action.fetched);
  }
  if (requested) settle(win.raccumulate(values.slice(), target, disp, OP_OF[use], layout), random);
  else win.accumulate(values.slice(), target, disp, OP_OF[use], layout);
  return () => {};
}

async function program(world: Communicator, number: number): Promise<void> {
  const { rank, size } = world;
  const shared = new Random(seed, number);
  const mine = new Random(seed, number, rank, 1);
  const label = `program ${number} of seed ${seed}`;
  const types: CellType[] = [];
  const units: number[][] = [];
  const windows: Window<Cells>[] = [];
  for (const fence of shared.pick([
    ['immediate', 'remote-notify'],
    ['remote-notify', 'immediate'],
    ['immediate'],
  ] as const)) {
    const type = shared.pick(TYPES);
    types.push(type);
    const divisors = [1, 2, 4, 8].filter((unit) => unit <= type.BYTES_PER_ELEMENT);
    units.push(Array.from({ length: size }, () => shared.pick(divisors)));
    const info: WindowInfo = {
      fence,
      schedule: shared.pick(SCHEDULES),
      update: shared.pick(UPDATE_SCHEMES),
      noncontiguous: noncontiguous ?? shared.pick(NONCONTIGUOUS_NAMES),
      ...(byRequests && {
        fence: shared.pick(FENCES_BY_HINT),
        lock: shared.pick(LOCKS_BY_HINT),
        lock_defer: shared.pick(['auto', 'false', 'true'] as const),
      }),
    };
    const options = { info, dispUnit: units.at(-1)![rank] };
    if (!byRequests && fence === 'immediate' && shared.chance(0.4)) {
      windows.push(await Window.allocateShared<Cells>(world, type, CELLS, options));
    } else windows.push(await Window.allocate<Cells>(world, type, CELLS, options));
  }
  const models = types.map((type) => Array.from({ length: size }, (): Cells => new type(CELLS)));
  const open = windows.map(() => false);
  for (let step = 0; step < 14; step++) {
    const epochs = types.map((type) => drawEpoch(shared, size, type));
    const fetched = epochs.map(({ fetches }) => new Float64Array(fetches));
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
        const before = models[w][target].slice();
        checks.push(issue(windows[w], action, mine, units[w][target], before, passive, fetched[w]));
        if (locked) windows[w].unlockSync(target);
      }
    };
    const synchronize = async (w: number, assertion: number): Promise<void> => {
      if (mine.chance(0.5)) windows[w].fenceSync(assertion);
      else await windows[w].fence(assertion);
    };
    // The fence `deferred` sends what is put in its epoch, and so its notifications, at its end.
    const isLate = (kind: Epoch['kind']): boolean => byRequests && kind === 'fence';
    const takeNotices = async (w: number): Promise<void> => {
      const notices = epochs[w].actions.filter(({ notify, target }) => notify && target === rank).length;
      if (notices > 0) await windows[w].waitNotify(notices);
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
      if (!isLate(kind)) await takeNotices(w);
    }
    const last = step === 13;
    const fences: Promise<void>[] = [];
    for (const [w, { kind }] of epochs.entries()) {
      const assertion = last || shared.chance(0.4) ? Assert.NO_SUCCEED : 0;
      open[w] = kind === 'fence' && assertion === 0;
      if (kind === 'fence') fences.push(windows[w].fence(assertion));
    }
    await Promise.all(fences);
    for (const [w, { kind }] of epochs.entries()) if (isLate(kind)) await takeNotices(w);
    if (epochs.some(({ kind }) => kind !== 'fence')) await world.barrier();
    const befores: Cells[][] = [];
    for (const [w, { actions }] of epochs.entries()) {
      befores.push(models[w].map((part) => part.slice()));
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
    for (const [w, epoch] of epochs.entries()) {
      const all = new Float64Array(epoch.fetches);
      if (all.length > 0) await world.allreduce(fetched[w], all, Op.SUM);
      try {
        checkFetched(epoch, all, befores[w]);
      } catch (cause) {
        throw new Error(`${label}, step ${step}, window ${w} (${epoch.kind})`, { cause });
      }
    }
    // So that nobody's next locks come while somebody still looks.
    await world.barrier();
  }
  for (const win of windows) await win.free();
}

await runCases(
  Object.fromEntries(
    Array.from({ length: programs }, (_, i) => [
      `random program ${i} ends as the model does`,
      (world: Communicator) => program(world, i),
    ]),
  ),
);
