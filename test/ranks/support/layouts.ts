/**
 * What puts, gets and accumulates of layouts promise whatever the way they move, as a requirement for the explorer
 * (`npm run explore -- --chapter=layouts`): random layouts on both sides in epochs of all kinds, each held against what
 * must come out.
 */
import assert from 'node:assert/strict';
import { Assert, Datatype, type Layout, Lock, Op, type TransferLayout, type Window, type WindowInfo } from 'onesided';
import type { Trial } from '../conformance/requirement.ts';
import type { Random } from './random.ts';

/** Places that a part has for each rank that accesses it; in an epoch each has one use. */
const SLOTS = 3;
/** Elements of the place that all add to. */
const COMMON = 256;
/** Elements of a transfer that is short. */
const SHORT = [2, 12, 60];

interface Program {
  readonly rounds: number;
  /** Of operations of one rank to another one in a round. */
  readonly numbers: readonly number[];
  /** Of elements of a transfer. */
  readonly lengths: readonly number[];
  /** Elements of a place of a part. */
  readonly room: number;
}

/** A long transfer has more pieces than a list has entries. */
const USUAL: Program = { rounds: 4, numbers: [0, 0, 1, 2, SLOTS], lengths: [...SHORT, 240, 600], room: 2048 };
const PROGRAMS: readonly Program[] = [
  ...new Array<Program>(8).fill(USUAL),
  // Of more bytes than a packed message.
  { rounds: 4, numbers: [0, 0, 0, 1, 2], lengths: [...SHORT, 9000], room: 14000 },
  // Of more layouts than a target keeps.
  { rounds: 24, numbers: [SLOTS], lengths: SHORT, room: 256 },
];
/** What no layout touches, in the origin's memory. */
const UNTOUCHED = -1;

/** A side of a transfer, and its elements in their order. */
interface Shape {
  readonly layout: Layout;
  readonly cells: readonly number[];
}

/** Datatypes of which others are made that differ in their extent alone. */
const PAIRS = Datatype.vector(2, 1, 2, Datatype.FLOAT64);

/** So many elements within `room`: blocks of one length, of any, rows of a matrix, or all of them consecutive. */
function drawShape(random: Random, elements: number, room: number): Shape {
  const type = Datatype.FLOAT64;
  const blocks = (block: number, places: readonly number[]): number[] =>
    places.flatMap((place) => Array.from({ length: block }, (_, i) => place + i));
  const even = [1, 2, 3, 4, 5, 6, 10, 20].filter((block) => elements % block === 0);
  const block = random.pick(even);
  const count = elements / block;
  const stride = Math.max(block, Math.min(block + random.below(4), Math.floor((room - block) / count)));
  switch (random.below(6)) {
    case 0: {
      const places = Array.from({ length: count }, (_, i) => i * stride);
      return { layout: { type: Datatype.vector(count, block, stride, type) }, cells: blocks(block, places) };
    }
    case 1: {
      // Not in the order in which they lie.
      const places = Array.from({ length: count }, (_, i) => i * stride);
      for (let i = count - 1; i > 0; i--) {
        const j = random.below(i + 1);
        [places[i], places[j]] = [places[j], places[i]];
      }
      return { layout: { type: Datatype.indexedBlock(block, places, type) }, cells: blocks(block, places) };
    }
    case 2: {
      const lengths: number[] = [];
      const places: number[] = [];
      let [left, at, gaps] = [elements, random.below(3), room - elements - 3];
      while (left > 0) {
        const length = Math.min(left, 1 + random.below(9));
        lengths.push(length);
        places.push(at);
        const gap = Math.min(gaps, random.below(4));
        gaps -= gap;
        at += length + gap;
        left -= length;
      }
      const cells = places.flatMap((place, i) => Array.from({ length: lengths[i] }, (_, j) => place + j));
      return { layout: { type: Datatype.indexed(lengths, places, type) }, cells };
    }
    case 3: {
      const [rows, columns] = [count, stride];
      const from = random.below(columns - block + 1);
      const subarray = Datatype.subarray([rows, columns], [rows, block], [0, from], type);
      const places = Array.from({ length: rows }, (_, i) => i * columns + from);
      return { layout: { type: subarray }, cells: blocks(block, places) };
    }
    case 4: {
      const [pairs, extent] = [elements / 2, 3 + random.below(Math.min(3, Math.floor((2 * room) / elements) - 2))];
      const resized = Datatype.resized(PAIRS, 0, 8 * extent);
      const cells = Array.from({ length: elements }, (_, i) => (i >> 1) * extent + 2 * (i % 2));
      return { layout: { type: resized, count: pairs }, cells };
    }
    default:
      return {
        layout: { type: Datatype.contiguous(elements, type) },
        cells: Array.from({ length: elements }, (_, i) => i),
      };
  }
}

interface Use {
  readonly call: 'put' | 'get' | 'sum' | 'add';
  readonly slot: number;
  readonly origin: Shape;
  readonly target: Shape;
}

interface Round {
  readonly kind: 'general' | 'fence' | 'lockAll' | 'locks';
  /** By source and target. */
  readonly uses: readonly (readonly (readonly Use[])[])[];
}

/** A target that has had a layout may know it, so some come again. */
function drawRounds({ shared, ranks }: Trial, { rounds, numbers, lengths, room }: Program): readonly Round[] {
  const known: { readonly origin: Shape; readonly target: Shape }[] = [];
  const use = (_: unknown, slot: number): Use => {
    const call = shared.pick(['put', 'put', 'get', 'get', 'sum', 'add'] as const);
    if (call === 'add') {
      const elements = shared.pick(SHORT);
      return { call, slot, origin: drawShape(shared, elements, room), target: drawShape(shared, elements, COMMON) };
    }
    if (known.length > 0 && shared.chance(0.4)) return { call, slot, ...shared.pick(known) };
    const elements = shared.pick(lengths);
    known.push({ origin: drawShape(shared, elements, room), target: drawShape(shared, elements, room) });
    return { call, slot, ...known[known.length - 1] };
  };
  return Array.from({ length: rounds }, () => ({
    kind: shared.pick(['general', 'fence', 'lockAll', 'locks'] as const),
    uses: ranks.map(() => ranks.map(() => Array.from({ length: shared.pick(numbers) }, use))),
  }));
}

const lengthOf = ({ cells }: Shape): number => cells.reduce((most, cell) => Math.max(most, cell + 1), 0);

/** The ranks' parts, as they must be. */
class Parts {
  readonly parts: readonly Float64Array[];
  readonly #room: number;

  constructor(size: number, room: number) {
    this.#room = room;
    this.parts = Array.from({ length: size }, () => new Float64Array(size * SLOTS * room + COMMON));
  }

  placeOf(source: number, { call, slot }: Use): number {
    return call === 'add' ? this.parts.length * SLOTS * this.#room : (source * SLOTS + slot) * this.#room;
  }

  /** What element `i` of a transfer writes or adds: sums of all of them are exact. */
  static value({ call, slot }: Use, round: number, source: number, i: number): number {
    return call === 'put' ? 1e7 * (round + 1) + 1e5 * source + 1e4 * slot + i : round + 1 + (i % 7);
  }

  apply({ uses }: Round, round: number): void {
    for (const [source, targets] of uses.entries()) {
      for (const [target, list] of targets.entries()) {
        for (const use of list) if (use.call !== 'get') this.#write(use, round, source, target);
      }
    }
  }

  #write(use: Use, round: number, source: number, target: number): void {
    const part = this.parts[target];
    const at = this.placeOf(source, use);
    for (const [i, cell] of use.target.cells.entries()) {
      const value = Parts.value(use, round, source, i);
      if (use.call === 'put') part[at + cell] = value;
      else part[at + cell] += value;
    }
  }

  /** What a get must find, at each element of the origin's memory. */
  found(use: Use, source: number, target: number): Float64Array {
    const found = new Float64Array(lengthOf(use.origin)).fill(UNTOUCHED);
    const at = this.placeOf(source, use);
    for (const [i, cell] of use.origin.cells.entries()) found[cell] = this.parts[target][at + use.target.cells[i]];
    return found;
  }
}

/** Issues one transfer. @returns its origin's memory */
function issue(win: Window<Float64Array>, parts: Parts, use: Use, round: number, target: number): Float64Array {
  const source = win.group.rank;
  const memory = new Float64Array(lengthOf(use.origin)).fill(UNTOUCHED);
  const at = parts.placeOf(source, use);
  const layout: TransferLayout = { origin: use.origin.layout, target: use.target.layout };
  if (use.call === 'get') {
    win.get(memory, target, at, layout);
    return memory;
  }
  for (const [i, cell] of use.origin.cells.entries()) memory[cell] = Parts.value(use, round, source, i);
  if (use.call === 'put') win.put(memory, target, at, layout);
  else win.accumulate(memory, target, at, Op.SUM, layout);
  return memory;
}

/** What the ranks of one run share outside of the fabric: they are tasks, and whoever is rank 0 draws and keeps it. */
interface Scene {
  readonly plan: readonly Round[];
  readonly parts: Parts;
}

function drawScene(t: Trial): Scene {
  const program = t.shared.pick(PROGRAMS);
  return { plan: drawRounds(t, program), parts: new Parts(t.size, program.room) };
}

let scene: Scene | undefined;

/**
 * In each round every rank puts to, gets from and adds to places of its own at the others, and adds to one that all
 * share. All of a part is compared behind the epoch, and what was fetched with what was there before it. In a passive
 * epoch the origin's memory is overwritten when `flushLocal` has returned.
 */
export async function layouts(t: Trial, info: WindowInfo): Promise<void> {
  const { rank, random } = t;
  await t.barrier();
  if (rank === 0) scene = drawScene(t);
  await t.barrier();
  const { plan, parts } = scene!;
  type Check = () => void;

  const transfer = async (win: Window<Float64Array>, round: number, target: number): Promise<Check[]> => {
    const checks: Check[] = [];
    const written: Float64Array[] = [];
    for (const use of plan[round].uses[rank][target]) {
      const memory = issue(win, parts, use, round, target);
      if (use.call !== 'get') {
        written.push(memory);
        continue;
      }
      const expected = parts.found(use, rank, target);
      checks.push(() => assert.deepEqual(memory, expected, `round ${round}: slot ${use.slot} of rank ${target}`));
    }
    await t.comm.compute(random.below(2) * random.below(20));
    const { kind } = plan[round];
    if ((kind !== 'lockAll' && kind !== 'locks') || random.chance(0.5)) return checks;
    await win.flushLocal(target);
    for (const memory of written) memory.fill(Number.NaN);
    for (const check of checks) check();
    return [];
  };

  const epoch = async (win: Window<Float64Array>, round: number): Promise<void> => {
    const checks: Check[] = [];
    const targets = [...t.ranks].sort(() => random.below(3) - 1);
    const toAll = async (): Promise<void> => {
      for (const target of targets) checks.push(...(await transfer(win, round, target)));
    };
    switch (plan[round].kind) {
      case 'general':
        win.post(win.group);
        await win.start(win.group);
        await toAll();
        await win.complete();
        for (const check of checks.splice(0)) check();
        await win.wait();
        break;
      case 'fence':
        await win.fence(Assert.NO_PRECEDE);
        await toAll();
        await win.fence(Assert.NO_SUCCEED);
        break;
      case 'lockAll':
        await win.lockAll();
        await toAll();
        await win.unlockAll();
        break;
      default:
        for (const target of targets) {
          await win.lock(target, random.chance(0.5) ? Lock.EXCLUSIVE : Lock.SHARED);
          checks.push(...(await transfer(win, round, target)));
          await win.unlock(target);
        }
    }
    for (const check of checks) check();
  };

  await t.window(
    Float64Array,
    parts.parts[0].length,
    async (win) => {
      for (const [round, one] of plan.entries()) {
        await epoch(win, round);
        // Locks do not tell the owner that others have come to an end.
        await t.barrier();
        if (rank === 0) parts.apply(one, round);
        await t.barrier();
        const expected = parts.parts[rank];
        const { local } = win;
        for (let i = 0; i < local.length; i++) {
          if (local[i] === expected[i]) continue;
          assert.fail(`round ${round} (${one.kind}): element ${i} is ${local[i]}, not ${expected[i]}`);
        }
        await t.barrier();
      }
    },
    { info },
  );
}
