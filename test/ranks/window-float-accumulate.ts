/**
 * Accumulates of floating-point numbers and pairs by all ranks at once: integers stored as floats, so that sums are
 * exact whatever the order. One element and many, in native code and in JavaScript, overlapping each other, in every
 * kind of window.
 */
import assert from 'node:assert/strict';
import { type Communicator, Datatype, Op, Window } from 'onesided';
import { argument, caseOf, runCases } from './support/cases.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const rounds = Number(argument('rounds') ?? 60);
const CELLS = 3000;

interface Made<T extends Float64Array | Float32Array> {
  readonly win: Window;
  readonly mine: T;
  /** The displacement of the first cell of each rank. */
  readonly first: readonly number[];
  readonly end: () => Promise<void>;
}

type Make = <T extends Float64Array | Float32Array>(
  world: Communicator,
  type: (new (length: number) => T) & { BYTES_PER_ELEMENT: number },
) => Promise<Made<T>>;

const allocated: Make = async (world, type) => {
  const win = await Window.allocate(world, type as never, CELLS);
  return { win, mine: win.local as never, first: new Array<number>(world.size).fill(0), end: () => win.free() };
};

const shared: Make = async (world, type) => {
  const win = await Window.allocateShared(world, type as never, CELLS);
  return { win, mine: win.local as never, first: new Array<number>(world.size).fill(0), end: () => win.free() };
};

const overPlainMemory: Make = async (world, type) => {
  const mine = new type(CELLS);
  const win = await Window.create(world, mine);
  return { win, mine, first: new Array<number>(world.size).fill(0), end: () => win.free() };
};

const dynamic: Make = async (world, type) => {
  const win = await Window.createDynamic(world);
  // Of the library at even ranks, plain at odd ones if they are processes.
  const mine =
    world.rank % 2 === 1 && argument('plain') === 'yes' ? new type(CELLS) : world.allocMem(type as never, CELLS);
  const addresses = new Float64Array(world.size);
  await world.allgather(Float64Array.of(win.attach(mine as never)), addresses);
  return { win, mine: mine as never, first: [...addresses], end: () => win.free() };
};

/** Every rank adds 1 to runs, to scattered cells and to single cells of all; the numbers of all come from the seed. */
async function sums<T extends Float64Array | Float32Array>(
  world: Communicator,
  make: Make,
  type: (new (length: number) => T) & { BYTES_PER_ELEMENT: number },
): Promise<void> {
  const { win, mine, first, end } = await make(world, type);
  const base = type.BYTES_PER_ELEMENT === 8 ? Datatype.FLOAT64 : Datatype.FLOAT32;
  const unit = first[0] === 0 ? 1 : type.BYTES_PER_ELEMENT;
  const expected = new Float64Array(CELLS);
  const ones = new type(CELLS).fill(1);
  await world.barrier();
  await win.lockAll();
  for (let who = 0; who < world.size; who++) {
    const random = new Random(seed, who);
    for (let round = 0; round < rounds; round++) {
      const target = random.below(world.size);
      const start = random.below(CELLS);
      const length = random.pick([1, 2, 7, 8, 9, 600, 2000]);
      const kind = random.pick(['run', 'run fetched', 'scattered', 'single', 'fetchAndOp'] as const);
      const step = 1 + random.below(7);
      const cells: number[] = [];
      for (let i = 0; i < (kind === 'single' || kind === 'fetchAndOp' ? 1 : length); i++) {
        const cell = start + (kind === 'scattered' ? i * step : i);
        if (cell < CELLS) cells.push(cell);
      }
      if (target === world.rank) for (const cell of cells) expected[cell]++;
      if (who !== world.rank) continue;
      const at = first[target] + cells[0] * unit;
      const origin = ones.subarray(0, cells.length) as T;
      if (kind === 'run' || kind === 'single') win.accumulate(origin, target, at, Op.SUM);
      else if (kind === 'fetchAndOp') win.fetchAndOp(origin, new type(1), target, at, Op.SUM);
      else if (kind === 'run fetched') win.getAccumulate(origin, new type(cells.length), target, at, Op.SUM);
      else {
        const places = Int32Array.from(cells, (cell) => cell - cells[0]);
        win.accumulate(origin, target, at, Op.SUM, { target: { type: Datatype.indexedBlock(1, places, base) } });
      }
    }
  }
  await win.unlockAll();
  await world.barrier();
  assert.deepEqual([...mine], [...expected]);
  await world.barrier();
  await end();
}

/** Nobody gets a number twice, whether it is fetched alone or with others. */
async function tickets(world: Communicator, make: Make): Promise<void> {
  const { win, mine, first, end } = await make(world, Float64Array);
  const drawn = new Float64Array(2 * rounds);
  const one = Float64Array.of(1);
  const two = new Float64Array(2);
  await win.lockAll();
  for (let i = 0; i < 2 * rounds; i++) {
    if (i % 2 === 0) win.fetchAndOp(one, two.subarray(0, 1), 0, first[0], Op.SUM);
    else win.getAccumulate(Float64Array.of(1, 0), two, 0, first[0], Op.SUM);
    await win.flush(0);
    drawn[i] = two[0];
    if (i > 0) assert.ok(drawn[i] > drawn[i - 1], 'tickets of one rank ascend');
  }
  await win.unlockAll();
  const all = new Float64Array(world.size * drawn.length);
  await world.allgather(drawn, all);
  assert.deepEqual(
    [...all].sort((a, b) => a - b),
    [...all.keys()],
  );
  if (world.rank === 0) assert.equal(mine[0], all.length);
  await world.barrier();
  await end();
}

/** The least of all values, and the lowest rank that has it. */
async function leastOfAll(world: Communicator): Promise<void> {
  const { DOUBLE_INT } = Datatype;
  const win = await Window.allocate(world, Uint8Array, 100 * DOUBLE_INT.extent);
  for (let i = 0; i < 100; i++) DOUBLE_INT.view(win.local, i).value = 1e9;
  await win.fence();
  const mine = new Uint8Array(100 * DOUBLE_INT.extent);
  const drawn = (rank: number, i: number): number => new Random(seed, rank, i).below(5);
  for (let i = 0; i < 100; i++)
    Object.assign(DOUBLE_INT.view(mine, i), { value: drawn(world.rank, i), index: world.rank });
  const layout = { origin: { type: DOUBLE_INT, count: 100 }, target: { type: DOUBLE_INT, count: 100 } };
  for (let target = 0; target < world.size; target++) win.accumulate(mine, target, 0, Op.MINLOC, layout);
  await win.fence();
  for (let i = 0; i < 100; i++) {
    const values = Array.from({ length: world.size }, (_, rank) => drawn(rank, i));
    const { value, index } = DOUBLE_INT.view(win.local, i);
    assert.deepEqual([value, index], [Math.min(...values), values.indexOf(Math.min(...values))]);
  }
  await win.free();
}

await runCases([
  caseOf('sums of doubles are exact in an allocated window', (world) => sums(world, allocated, Float64Array), [
    'allocated',
  ]),
  caseOf('sums of singles are exact in an allocated window', (world) => sums(world, allocated, Float32Array), [
    'allocated',
  ]),
  caseOf('sums of doubles are exact in a shared window', (world) => sums(world, shared, Float64Array), ['shared']),
  caseOf('sums of doubles are exact in a dynamic window', (world) => sums(world, dynamic, Float64Array), ['dynamic']),
  caseOf('each ticket is had once in an allocated window', (world) => tickets(world, allocated), ['allocated']),
  caseOf('each ticket is had once in a dynamic window', (world) => tickets(world, dynamic), ['dynamic']),
  caseOf('MINLOC finds the least of all and who has it', leastOfAll, ['allocated']),
  ...(argument('plain') === 'yes'
    ? [
        caseOf('sums of doubles are exact over plain memory', (world) => sums(world, overPlainMemory, Float64Array), [
          'plain',
        ]),
        caseOf('each ticket is had once over plain memory', (world) => tickets(world, overPlainMemory), ['plain']),
      ]
    : []),
]);
