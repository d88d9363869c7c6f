/**
 * Which ranks each rank of a barrier tells and waits for, as data (report on NIC-based barriers, §5): schedules.
 * Whatever carries out a barrier, an adapter as well as a processor, executes its schedule from beginning to end.
 *
 *     dissemination          round m: rank r tells r + 2^m and waits for r − 2^m, modulo p; ⌈log2 p⌉ rounds
 *     pairwise               round m: rank r and r xor 2^m tell each other, among the M = 2^⌊log2 p⌋ lowest ranks. Each
 *                            rank r ≥ M tells r − M before, and is told by it afterwards: ⌊log2 p⌋ rounds, or two more
 *     gather-broadcast:d     a tree whose ranks have d children at most: what has come goes up, the end down; about
 *                            2·log_d p steps
 *
 * A tag tells the messages of one barrier between two ranks apart. Tags are below `BARRIER_TAGS`.
 *
 * Why it is a barrier. A rank sends a step's message when the steps before it are complete: all messages that it waits
 * for in them have come. So a message says that its sender has entered, and that all ranks have entered whose entry the
 * sender knew of. In dissemination, after round m, a rank knows of the 2^(m + 1) ranks up to itself, and in the end of
 * all p. In pairwise exchange, it knows of the block of 2^(m + 1) ranks that it lies in. In the tree, the root knows of
 * all ranks, and so do the ranks that it tells.
 *
 * This does not hold if a message is sent as soon as the message of the round before has arrived, whether or not the
 * sender has entered and the earlier rounds are complete; §7 of the report can be read in that way. Then a message says
 * no more than that the ranks on its one path have entered (test/comm/barrier-algorithms.test.ts has the counts of
 * both).
 */
import { RmaError } from '../errors.ts';
import type { BarrierSchedule, BarrierStep } from '../verbs/adapter-barrier.ts';

/** More than any tag. */
export const BARRIER_TAGS = 64;
const MOST_CHILDREN = 32;

/** Tags of what is no round: from a rank that is no part of the exchange, and back. */
const BEFORE = BARRIER_TAGS - 2;
const AFTER = BARRIER_TAGS - 1;

const tell = (peer: number, tag: number): BarrierStep => ({ sends: true, peer, tag });
const wait = (peer: number, tag: number): BarrierStep => ({ sends: false, peer, tag });

function dissemination(rank: number, size: number): BarrierSchedule {
  const steps: BarrierStep[] = [];
  for (let distance = 1, round = 0; distance < size; distance *= 2, round++)
    steps.push(tell((rank + distance) % size, round), wait((rank - distance + size) % size, round));
  return steps;
}

function pairwise(rank: number, size: number): BarrierSchedule {
  const exchanged = 2 ** Math.floor(Math.log2(size));
  if (rank >= exchanged) return [tell(rank - exchanged, BEFORE), wait(rank - exchanged, AFTER)];
  const steps: BarrierStep[] = [];
  const represented = rank + exchanged < size;
  if (represented) steps.push(wait(rank + exchanged, BEFORE));
  for (let distance = 1, round = 0; distance < exchanged; distance *= 2, round++)
    steps.push(tell(rank ^ distance, round), wait(rank ^ distance, round));
  if (represented) steps.push(tell(rank + exchanged, AFTER));
  return steps;
}

function gatherBroadcast(rank: number, size: number, degree: number): BarrierSchedule {
  const first = degree * rank + 1;
  const children = Array.from({ length: Math.max(0, Math.min(degree, size - first)) }, (_, i) => first + i);
  const steps: BarrierStep[] = children.map((child) => wait(child, BEFORE));
  if (rank > 0) {
    const parent = Math.floor((rank - 1) / degree);
    steps.push(tell(parent, BEFORE), wait(parent, AFTER));
  }
  return [...steps, ...children.map((child) => tell(child, AFTER))];
}

/**
 * The schedule of one rank.
 * @param algorithm `dissemination`, `pairwise`, or `gather-broadcast:d` with 2 to 32 children a rank
 * Errors: `ERR_ARG` if there is no such algorithm.
 */
export function barrierSchedule(algorithm: string, rank: number, size: number): BarrierSchedule {
  if (algorithm === 'dissemination') return dissemination(rank, size);
  if (algorithm === 'pairwise') return pairwise(rank, size);
  return gatherBroadcast(rank, size, degreeOf(algorithm));
}

/** Children of a rank; `undefined` if it is no tree that there is. */
function childrenOf(algorithm: string): number | undefined {
  const degree = Number(/^gather-broadcast:([1-9]\d?)$/.exec(algorithm)?.[1]);
  return degree >= 2 && degree <= MOST_CHILDREN ? degree : undefined;
}

function degreeOf(algorithm: string): number {
  const degree = childrenOf(algorithm);
  if (degree !== undefined) return degree;
  const known = `dissemination, pairwise and gather-broadcast:2 … gather-broadcast:${MOST_CHILDREN}`;
  throw new RmaError('ERR_ARG', `there is no barrier algorithm ${JSON.stringify(algorithm)}; there are ${known}`);
}

/** The ranks that a rank tells or waits for, each once. */
export function peersOf(schedule: BarrierSchedule): number[] {
  return [...new Set(schedule.map(({ peer }) => peer))];
}

/** How many algorithms there are. */
export const BARRIER_ALGORITHMS = MOST_CHILDREN + 1;
export const DEFAULT_ALGORITHM = 'dissemination';

/** Counts algorithms from the default on: 0 … `BARRIER_ALGORITHMS` − 1; `undefined` if there is no such one. */
export function numberOfAlgorithm(algorithm: string): number | undefined {
  return algorithm === DEFAULT_ALGORITHM ? 0 : algorithm === 'pairwise' ? 1 : childrenOf(algorithm);
}

/** The algorithm of a number. */
export function algorithmNamed(number: number): string {
  return number === 0 ? DEFAULT_ALGORITHM : number === 1 ? 'pairwise' : `gather-broadcast:${number}`;
}

/** Bits of an algorithm: one for its name, and for a tree the children of a rank, as they are and inverted. */
const DISSEMINATION = 1;
const PAIRWISE = 2;
const TREE = 4;
const DEGREE = 3;
const DEGREE_BITS = 5;
const DEGREE_MASK = 2 ** DEGREE_BITS - 1;

/** An algorithm as 13 bits, whose bitwise OR with those of another one says that they differ. */
export function algorithmBits(algorithm: string): number {
  if (algorithm === 'dissemination') return DISSEMINATION;
  if (algorithm === 'pairwise') return PAIRWISE;
  const degree = degreeOf(algorithm) - 1;
  return TREE | (degree << DEGREE) | ((degree ^ DEGREE_MASK) << (DEGREE + DEGREE_BITS));
}

/** Whether the bitwise OR of some algorithms is that of one. */
export function isOneAlgorithm(bits: number): boolean {
  const names = bits & (DISSEMINATION | PAIRWISE | TREE);
  const degree = (bits >>> DEGREE) & DEGREE_MASK;
  const inverted = (bits >>> (DEGREE + DEGREE_BITS)) & DEGREE_MASK;
  return (names & (names - 1)) === 0 && (degree & inverted) === 0;
}
