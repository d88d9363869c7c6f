/**
 * All collectives on typed arrays against what they mean, said in plain JavaScript: random calls, among random parts of
 * the ranks, one by one or several begun at once. All ranks draw the same program from the seed, and each knows what
 * all others contribute.
 */
import assert from 'node:assert/strict';
import { type Communicator, Datatype, Op, type TypedArray } from 'onesided';
import {
  BASE_TYPES,
  type BaseType,
  combined,
  firstDifference,
  isAllowed,
  OPS,
  randomValues,
  setValue,
  valueAt,
} from './model.ts';
import { Random } from './random.ts';

/** Every kind of typed array. */
const TYPES: readonly BaseType[] = [
  ...BASE_TYPES,
  { name: 'UINT8 (clamped)', array: Uint8ClampedArray, type: Datatype.UINT8, bits: 8, kind: 'unsigned' },
];

/** Not those of pairs, which no typed array holds. */
const REDUCTIONS: readonly Op[] = OPS.filter(
  (op) => op !== Op.REPLACE && op !== Op.NO_OP && BASE_TYPES.some((base) => isAllowed(op, base)),
);

/** What rank `rank` brings: whole numbers, so that the order of additions does not matter. */
export function contribution(seed: number, base: BaseType, length: number, rank: number, salt: number): TypedArray {
  const random = new Random(seed, rank, salt);
  if (base.kind !== 'float') return randomValues(base, length, random);
  const values = empty(base, length);
  for (let i = 0; i < length; i++) setValue(values, i, random.between(-9, 9));
  return values;
}

/** An array that is not the beginning of its buffer, with bytes on either side that must stay as they are. */
export function within(base: BaseType, length: number): { array: TypedArray; guards: () => boolean } {
  const bytes = (length * base.bits) / 8;
  const buffer = new ArrayBuffer(bytes + 32);
  const all = new Uint8Array(buffer).fill(0xcc);
  const array = new base.array(buffer, 16, length);
  return {
    array,
    guards: () => all.subarray(0, 16).every((b) => b === 0xcc) && all.subarray(16 + bytes).every((b) => b === 0xcc),
  };
}

function empty(base: BaseType, length: number): TypedArray {
  return new base.array(new ArrayBuffer((length * base.bits) / 8));
}

function joined(base: BaseType, parts: readonly TypedArray[]): TypedArray {
  const all = empty(
    base,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  let at = 0;
  for (const part of parts) {
    (all as Float64Array).set(part as Float64Array, at);
    at += part.length;
  }
  return all;
}

function reduced(base: BaseType, op: Op, parts: readonly TypedArray[]): TypedArray {
  const result = parts[0].slice() as TypedArray;
  for (const part of parts.slice(1)) {
    for (let i = 0; i < result.length; i++) {
      setValue(result, i, combined(base, op, valueAt(result, i), valueAt(part, i)));
    }
  }
  return result;
}

/** What is drawn for one call, the same at all ranks. */
interface Drawn {
  readonly base: BaseType;
  readonly op: Op;
  readonly root: number;
  readonly length: number;
  /** From each rank (first) to each rank. */
  readonly counts: readonly (readonly number[])[];
  /** What rank r has, of so many elements. */
  values(rank: number, length: number): TypedArray;
}

/** One kind of call: its arguments at a rank, the buffer that it writes there, and what must be in it. */
interface Call {
  readonly args: readonly unknown[];
  /** `undefined` where this rank receives nothing. */
  readonly written: TypedArray | undefined;
  readonly expected: TypedArray | undefined;
}

type Kind = (drawn: Drawn, rank: number, size: number, buffer: (length: number) => TypedArray) => Call;

const ranksOf = (size: number): number[] => Array.from({ length: size }, (_, rank) => rank);
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
/** The part of rank `rank` of an array with `counts` elements for each. */
function partOf(all: TypedArray, counts: readonly number[], rank: number): TypedArray {
  const start = sum(counts.slice(0, rank));
  return all.slice(start, start + counts[rank]) as TypedArray;
}

/** `null` elsewhere, or something that must not be looked at. */
const notHere = (rank: number): unknown => (rank % 2 === 0 ? null : 'not looked at');

const KINDS: Readonly<Record<string, Kind>> = {
  broadcast({ base, root, length, values }, rank, _size, buffer) {
    const written = buffer(length);
    if (rank === root) (written as Float64Array).set(values(root, length) as Float64Array);
    return { args: [written, root], written, expected: joined(base, [values(root, length)]) };
  },
  reduce({ base, op, root, length, values }, rank, size, buffer) {
    const send = values(rank, length);
    if (rank !== root) return { args: [send, notHere(rank), op, root], written: undefined, expected: undefined };
    const written = buffer(length);
    const expected = reduced(
      base,
      op,
      ranksOf(size).map((r) => values(r, length)),
    );
    return { args: [send, written, op, root], written, expected };
  },
  allreduce({ base, op, length, values }, rank, size, buffer) {
    const written = buffer(length);
    const expected = reduced(
      base,
      op,
      ranksOf(size).map((r) => values(r, length)),
    );
    return { args: [values(rank, length), written, op], written, expected };
  },
  reduceScatter({ base, op, counts, values }, rank, size, buffer) {
    const [own] = counts;
    const written = buffer(own[rank]);
    const all = reduced(
      base,
      op,
      ranksOf(size).map((r) => values(r, sum(own))),
    );
    return { args: [values(rank, sum(own)), written, op, own], written, expected: partOf(all, own, rank) };
  },
  scan({ base, op, length, values }, rank, _size, buffer) {
    const written = buffer(length);
    const expected = reduced(
      base,
      op,
      ranksOf(rank + 1).map((r) => values(r, length)),
    );
    return { args: [values(rank, length), written, op], written, expected };
  },
  exscan({ base, op, length, values }, rank, _size, buffer) {
    const written = buffer(length);
    const expected =
      rank === 0
        ? (written.slice() as TypedArray)
        : reduced(
            base,
            op,
            ranksOf(rank).map((r) => values(r, length)),
          );
    return { args: [values(rank, length), written, op], written, expected };
  },
  gather({ base, root, length, values }, rank, size, buffer) {
    const send = values(rank, length);
    if (rank !== root) return { args: [send, notHere(rank), root], written: undefined, expected: undefined };
    const written = buffer(length * size);
    return {
      args: [send, written, root],
      written,
      expected: joined(
        base,
        ranksOf(size).map((r) => values(r, length)),
      ),
    };
  },
  gatherv({ base, root, counts, values }, rank, size, buffer) {
    const [own] = counts;
    const send = values(rank, own[rank]);
    if (rank !== root) {
      return { args: [send, notHere(rank), notHere(rank), root], written: undefined, expected: undefined };
    }
    const written = buffer(sum(own));
    const expected = joined(
      base,
      ranksOf(size).map((r) => values(r, own[r])),
    );
    return { args: [send, written, own, root], written, expected };
  },
  scatter({ root, length, values }, rank, size, buffer) {
    const all = values(root, length * size);
    const written = buffer(length);
    const send = rank === root ? all : notHere(rank);
    return { args: [send, written, root], written, expected: partOf(all, new Array<number>(size).fill(length), rank) };
  },
  scatterv({ root, counts, values }, rank, _size, buffer) {
    const [own] = counts;
    const all = values(root, sum(own));
    const written = buffer(own[rank]);
    const [send, list] = rank === root ? [all, own] : [notHere(rank), notHere(rank)];
    return { args: [send, list, written, root], written, expected: partOf(all, own, rank) };
  },
  allgather({ base, length, values }, rank, size, buffer) {
    const written = buffer(length * size);
    const expected = joined(
      base,
      ranksOf(size).map((r) => values(r, length)),
    );
    return { args: [values(rank, length), written], written, expected };
  },
  alltoall({ base, length, values }, rank, size, buffer) {
    const written = buffer(length * size);
    const each = new Array<number>(size).fill(length);
    const expected = joined(
      base,
      ranksOf(size).map((r) => partOf(values(r, length * size), each, rank)),
    );
    return { args: [values(rank, length * size), written], written, expected };
  },
  alltoallv({ base, counts, values }, rank, size, buffer) {
    const into = ranksOf(size).map((r) => counts[r][rank]);
    const written = buffer(sum(into));
    const expected = joined(
      base,
      ranksOf(size).map((r) => partOf(values(r, sum(counts[r])), counts[r], rank)),
    );
    return { args: [values(rank, sum(counts[rank])), counts[rank], written, into], written, expected };
  },
};
/** MPI's name for the same call. */
const ALIASES: Readonly<Record<string, string>> = { broadcast: 'bcast' };

/** Lengths of vectors, and of the blocks of calls with counts. */
interface Lengths {
  readonly vectors: readonly number[];
  readonly blocks: readonly number[];
}

const SHORT: Lengths = { vectors: [0, 1, 2, 5, 33, 4, 4, 4, 4, 3000], blocks: [0, 0, 1, 3, 20] };
/** About the bounds from which on vectors go through shared memory, in parts, by the width of their elements. */
const LONG: Lengths = { vectors: [1, 8193, 33_000, 66_001, 140_003, 262_151], blocks: [0, 1, 2000, 34_001, 40_000] };

function draw(seed: number, step: number, size: number, lengths: Lengths): { name: string; drawn: Drawn } {
  const random = new Random(seed, step);
  const name = random.pick(Object.keys(KINDS));
  const op = random.pick(REDUCTIONS);
  const base = random.pick(TYPES.filter((candidate) => isAllowed(op, candidate)));
  const counts = ranksOf(size).map(() => ranksOf(size).map(() => random.pick(lengths.blocks)));
  return {
    name,
    drawn: {
      base,
      op,
      root: random.below(size),
      length: random.pick(lengths.vectors),
      counts,
      values: (rank, length) => contribution(seed, base, length, rank, step),
    },
  };
}

/** Makes the call of one step; gives what there is to check when it is complete. */
function make(comm: Communicator, seed: number, step: number, isSync: boolean, lengths: Lengths): Promise<() => void> {
  const { rank, size } = comm;
  const { name, drawn } = draw(seed, step, size, lengths);
  const guards: (() => boolean)[] = [];
  const call = KINDS[name](drawn, rank, size, (length) => {
    const made = within(drawn.base, length);
    guards.push(made.guards);
    return made.array;
  });
  const inputs = call.args.map((arg) =>
    ArrayBuffer.isView(arg) && arg !== call.written ? (arg as TypedArray).slice() : undefined,
  );
  const label =
    `step ${step} of seed ${seed}: ${name} of ${drawn.length} ${drawn.base.name}, ${drawn.op}, root ${drawn.root}, ` +
    `counts ${JSON.stringify(drawn.counts)}, rank ${rank} of ${size}`;
  const check = (): void => {
    for (const [i, input] of inputs.entries()) {
      if (input !== undefined)
        assert.equal(firstDifference(call.args[i] as TypedArray, input), -1, `${label}: an input has changed`);
    }
    if (call.written !== undefined) {
      const at = firstDifference(call.written, call.expected!);
      assert.equal(at, -1, `${label}: element ${at} is ${call.written[at]}, not ${call.expected![at]}`);
    }
    assert.ok(
      guards.every((isWhole) => isWhole()),
      `${label}: bytes beside the buffer were written`,
    );
  };
  const methods = comm as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
  const form = step % 2 === 0 ? name : (ALIASES[name] ?? name);
  if (isSync) {
    methods[`${form}Sync`](...call.args);
    return Promise.resolve(check);
  }
  return (methods[form](...call.args) as Promise<void>).then(() => check);
}

/**
 * @param canBlock whether `…Sync` forms are possible here
 * @param isLong with vectors of some megabytes
 */
export async function tryCollectives(
  world: Communicator,
  seed: number,
  steps: number,
  canBlock: boolean,
  isLong = false,
): Promise<void> {
  const lengths = isLong ? LONG : SHORT;
  let comm = world;
  const forms = new Random(seed, world.rank, 4);
  for (let step = 0; step < steps; ) {
    const random = new Random(seed, step, 1);
    if (random.chance(0.15)) {
      if (comm !== world) await comm.finalize();
      const color = new Random(seed, step, 2, world.rank).below(2);
      const key = new Random(seed, step, 3, world.rank).between(-3, 3);
      comm = (await world.split(random.chance(0.5) ? color : 0, key))!;
    }
    const together = random.chance(0.3) ? 3 : 1;
    const begun: Promise<() => void>[] = [];
    for (let i = 0; i < together; i++) begun.push(make(comm, seed, step++, canBlock && forms.chance(0.5), lengths));
    for (const check of await Promise.all(begun)) check();
  }
  if (comm !== world) await comm.finalize();
}
