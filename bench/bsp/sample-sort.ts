/**
 * Sorting by regular sampling (Martin and Tiskin 1999, section 3). Each process sorts what it has and gives samples of
 * it, at regular distances, to all; from all samples, which all sort, come the keys that separate the units. Each
 * process cuts what it has there and puts the pieces to the processes of those units. Within a unit the same is done
 * again for its processes. On a flat machine there is only the first round.
 *
 * A process gets at most twice its share of a round, if keys are not equal; there is room for a little more.
 */
import type { Levels } from './levels.ts';

/** Of its share, what a process has room for. */
const ROOM = 3;

/** One of those among which keys are divided, and how they reach each other. */
interface Round {
  /** How many there are, and which one this is. */
  readonly parts: number;
  readonly index: number;
  /** Whose samples are looked at, and which of them this one is. */
  readonly sampled: number;
  readonly position: number;
  /** Puts to all who look at samples, and to the one of a part that gets keys of this one. */
  toAll(source: Float64Array, variable: Float64Array, offset: number): void;
  toPart(part: number, source: Float64Array, variable: Float64Array, offset: number, count: number, from: number): void;
  sync(): Promise<void>;
}

/**
 * The keys of all processes, in order: first those of the first process of the first unit.
 * @returns wrong places: keys that are out of order, or not those that there were
 */
export async function sampleSort(levels: Levels, n: number): Promise<() => number> {
  const { bsp, q, p, unit, member } = levels;
  const { nprocs } = bsp;
  const share = Math.floor(n / nprocs);
  if (share * nprocs !== n) throw new RangeError(`n must be a multiple of ${nprocs}, not ${n}`);
  const first = (unit * p + member) * share;
  const keys = Float64Array.from({ length: share }, (_, i) => keyOf(first + i));
  const room = new Float64Array(ROOM * share);
  const samples = new Float64Array(nprocs * Math.max(q, p));
  const counts = new Float64Array(Math.max(q, p));
  for (const one of [room, samples, counts]) bsp.pushReg(one);
  await levels.sync();
  keys.sort();
  await levels.charge(share * Math.log2(share));
  const between: Round = {
    ...{ parts: q, index: unit, sampled: nprocs, position: unit * p + member },
    toAll(source, variable, offset) {
      for (let pid = 0; pid < nprocs; pid++) bsp.put(pid, source, variable, offset);
    },
    toPart(part, source, variable, offset, count, from) {
      bsp.put(levels.pid(part, member), source, variable, offset, count, from);
    },
    sync: () => levels.sync(),
  };
  const within: Round = {
    ...{ parts: p, index: member, sampled: p, position: member },
    toAll(source, variable, offset) {
      for (let other = 0; other < p; other++) levels.uput(other, source, variable, offset);
    },
    toPart(part, source, variable, offset, count, from) {
      levels.uput(part, source, variable, offset, count, from);
    },
    sync: () => levels.usync(),
  };
  let mine = await divide(levels, keys, between, [room, samples, counts]);
  if (p > 1) mine = await divide(levels, mine, within, [room, samples, counts]);
  for (const one of [room, samples, counts]) bsp.popReg(one);
  return () => wrong(mine, n, levels);
}

/** @param keys in order @param into registered: room for keys, samples and counts @returns this one's, in order */
async function divide(
  levels: Levels,
  keys: Float64Array,
  round: Round,
  [room, samples, counts]: readonly [Float64Array, Float64Array, Float64Array],
): Promise<Float64Array> {
  const { parts, index, sampled, position } = round;
  const own = Float64Array.from({ length: parts }, (_, i) => keys[Math.floor((i * keys.length) / parts)]);
  round.toAll(own, samples, parts * position);
  await round.sync();
  const all = samples.slice(0, parts * sampled).sort();
  await levels.charge(all.length * Math.log2(all.length));
  const cuts = new Int32Array(parts + 1);
  cuts[parts] = keys.length;
  for (let part = 1; part < parts; part++) cuts[part] = placeOf(keys, all[part * sampled + Math.floor(sampled / 2)]);
  for (let part = 0; part < parts; part++) {
    round.toPart(part, Float64Array.of(cuts[part + 1] - cuts[part]), counts, index, 1, 0);
  }
  await round.sync();
  // Each tells the others where their pieces begin: after those of the parts before.
  const lengths = counts.slice(0, parts);
  const starts = new Float64Array(parts);
  for (let part = 1; part < parts; part++) starts[part] = starts[part - 1] + lengths[part - 1];
  for (let part = 0; part < parts; part++) round.toPart(part, starts, counts, index, 1, part);
  await round.sync();
  for (let part = 0; part < parts; part++) {
    const count = cuts[part + 1] - cuts[part];
    if (count > 0) round.toPart(part, keys, room, counts[part], count, cuts[part]);
  }
  await round.sync();
  const mine = room.slice(0, starts[parts - 1] + lengths[parts - 1]).sort();
  // The pieces are in order: what is left to do is to merge them.
  await levels.charge(mine.length * Math.log2(parts));
  return mine;
}

/** The first place in sorted keys that is not below one. */
function placeOf(keys: Float64Array, key: number): number {
  let [from, to] = [0, keys.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (keys[middle] < key) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Keys look random, and each occurs once: an odd factor permutes the numbers below a power of two. */
function keyOf(i: number): number {
  return (Math.imul(i, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
}

const sorted = new Map<number, Float64Array>();

/** Where this process's keys stand among all: they begin at the first one's place, and follow without a gap. */
function wrong(mine: Float64Array, n: number, { unit, member, q, p }: Levels): number {
  let all = sorted.get(n);
  if (all === undefined) {
    all = Float64Array.from({ length: n }, (_, i) => keyOf(i)).sort();
    sorted.set(n, all);
  }
  // No process may be without keys: then its place could not be told from them.
  if (mine.length === 0) return 1;
  const start = placeOf(all, mine[0]);
  const isFirst = unit === 0 && member === 0;
  const isLast = unit === q - 1 && member === p - 1;
  let errors = (isFirst && start !== 0) || (isLast && start + mine.length !== n) ? 1 : 0;
  for (let i = 0; i < mine.length; i++) if (mine[i] !== all[start + i]) errors++;
  return errors;
}
