/** Begins a BSP computation: the processes agree on how supersteps are delivered, and make what that needs. */

import { barrierWish, isWithoutWords } from '../collective/barrier-kinds.ts';
import { Communicator } from '../collective/communicator.ts';
import type { BarrierState } from '../collective/word-barrier.ts';
import { argumentTypeError, RmaError, show } from '../errors.ts';
import { type Block, PLACE_NUMBERS } from '../message/word-blocks.ts';
import { type InitOptions, init } from '../start/init.ts';
import { Bsp } from './bsp.ts';
import {
  type BspOptions,
  comparedNumbers,
  comparedWords,
  type ReadOptions as Read,
  readOptions,
} from './bsp-options.ts';
import { Bsp2 } from './bsp2.ts';
import { Core } from './computation.ts';
import { COUNT_EXCHANGES, defaultCounts } from './delivery/counts.ts';
import { DatagramPort, type PortNumbers } from './delivery/datagram-port.ts';
import type { Delivery } from './delivery/delivery.ts';
import { type Carrying, type Datagrams, goesInDatagrams, MOST_PIECES, packedKind } from './delivery/delivery-kinds.ts';
import { MulticastCounts, partsFor } from './delivery/multicast-counts.ts';
import {
  GROUP_NUMBERS,
  type GroupNumbers,
  type MulticastMembers,
  makeGroup,
  NO_GROUP,
} from './delivery/multicast-members.ts';
import { PacedCarrier } from './delivery/paced-carrier.ts';
import { PackedDelivery } from './delivery/packed-delivery.ts';
import { routedCounts } from './delivery/routed-counts.ts';
import { type OwnBarrier, SharedDelivery, sharedWords } from './delivery/shared-delivery.ts';
import type { StepTrace } from './ledger.ts';
import { comparePacing, pacerOf } from './pacing-options.ts';
import {
  knownMachine,
  makeLedger,
  measureMachine,
  prepareReport,
  recordMachine,
  stepTrace,
  wantsProbe,
} from './recorded-supersteps.ts';
import { Unit } from './unit.ts';
import { colorsOf, type Units } from './units.ts';

/** What messages are about, each in a space of its own. */
const [CHUNKS, COUNTS, QUESTIONS, NEWS, BARRIER] = [0, 1, 2, 3, 4];

/**
 * Begins a BSP computation of the ranks of a communicator (`bsp_begin`). Collective.
 * Errors: `ERR_ARG` if the ranks give different options; `ERR_RMA_SHARED` if `shared` cannot be; `TypeError`;
 * `ERR_VERBS`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
 */
export function begin(comm: Communicator, options: BspOptions & { readonly units: Units }): Promise<Bsp2>;
export function begin(comm: Communicator, options?: BspOptions): Promise<Bsp>;
export async function begin(comm: Communicator, options?: BspOptions): Promise<Bsp> {
  if (!Communicator.is(comm)) {
    throw argumentTypeError(
      `bsp.begin: the first argument must be a communicator, such as the result of init(), not ${show(comm)}`,
      'ERR_COMM',
    );
  }
  let read: Read | undefined;
  let wrong: unknown;
  try {
    read = readOptions(comm, options);
    prepareReport(comm.job);
  } catch (error) {
    wrong = error;
  }
  const { core, trace, measures } = await made(comm, read, wrong, true);
  if (trace !== undefined) {
    const how = howOf(comm, read!);
    if (measures) {
      const probing = await made(comm, { ...read!, report: false }, undefined, false);
      await measureMachine(new Bsp(probing.core), comm.job, how);
    }
    const machine = knownMachine(comm.job, how);
    if (machine !== undefined) recordMachine(trace, machine);
    core.ledger!.restart();
  }
  if (read!.units === undefined) return watched(new Bsp(core), comm);
  try {
    core.unit = await beginUnits(core, read!, read!.units);
  } catch (error) {
    core.close();
    throw error;
  }
  return watched(new Bsp2(core, core.unit), comm);
}

/** Of a program that is searched for races: its supersteps order its processes. */
function watched<B extends Bsp>(bsp: B, comm: Communicator): B {
  comm.job.races?.supersteps(bsp, comm.traceId(), bsp.pid, bsp.nprocs);
  return bsp;
}

/** A delivery that the ranks of a communicator have made together. */
interface Agreed {
  readonly delivery: Delivery;
  /** The first of the numbers of its messages. */
  readonly space: number;
  /** Some process wants the machine to be measured before. */
  readonly measures: boolean;
}

/** @param recorded whether supersteps are recorded, where the job's are */
async function agreeOn(comm: Communicator, read: Read | undefined, wrong: unknown, recorded: boolean): Promise<Agreed> {
  const steps = () => makeTogether(comm, read, wrong, recorded);
  const begun = comm.collective({ name: 'bsp.begin', steps }, read?.wait);
  await begun.promise;
  return begun.operation.result;
}

/** A computation that has begun. */
interface Made {
  readonly core: Core;
  readonly trace: StepTrace | undefined;
  readonly measures: boolean;
}

async function made(comm: Communicator, read: Read | undefined, wrong: unknown, recorded: boolean): Promise<Made> {
  const { delivery, space, measures } = await agreeOn(comm, read, wrong, recorded);
  const trace = recorded ? stepTrace(comm, comm.traceId(), read!.delivery) : undefined;
  const ledger = makeLedger(comm, read!.report, trace);
  const core = new Core(comm, delivery, read!.headers === 'compressed', ledger, comm.openChannel(space + NEWS));
  core.whenClosed = comm.onRelease(() => core.close());
  return { core, trace, measures };
}

/** What a measured machine depends on. */
function howOf({ size }: Communicator, read: Read): string {
  const { delivery, headers, counts, barrier, barrierAlgorithm, pacing } = read;
  const paced = pacing === undefined ? '' : ` ${Object.values(pacing).join('/')}`;
  return `${size} ${delivery} ${headers} ${counts ?? defaultCounts(size)} ${barrier} ${barrierAlgorithm}${paced}`;
}

/**
 * The units, each with a communicator and a delivery of its own. If one cannot be made, all processes learn of it:
 * `makeTogether` tells those of the unit, an agreement of all the others.
 */
async function beginUnits(core: Core, read: Read, units: Units): Promise<Unit> {
  const { comm } = core;
  const told = comm.collective({ name: 'bsp.begin', steps: () => colorsOf(comm, units) }, read.wait);
  await told.promise;
  const uids = told.operation.result;
  const part = await comm.split(uids[comm.rank], 0, read.wait);
  let agreedOn: Agreed | undefined;
  let failure: unknown;
  try {
    agreedOn = await agreeOn(part!, read, undefined, false);
  } catch (error) {
    failure = error;
  }
  const agreed = comm.collective({ name: 'bsp.begin', steps: () => comm.allCould(failure) }, read.wait);
  await agreed.promise;
  if (failure !== undefined) throw failure;
  const { delivery } = agreedOn!;
  const refusal = agreed.operation.result;
  if (refusal === undefined) return new Unit(core, part!, delivery, uids, read.headers === 'compressed');
  delivery.close();
  throw new RmaError('ERR_ARG', `bsp.begin: rank ${refusal.rank} could not begin its unit: ${refusal.why}`);
}

/** Options of `run`. */
export interface RunOptions extends BspOptions {
  /** Those of `init`, for processes that meet by name. */
  readonly init?: InitOptions;
}

/**
 * Runs a BSP computation in the job that started this process, from its beginning to its end: `init`, `begin`, `main`,
 * `end`, `finalize` (`bsp_init`, `bsp_begin` and `bsp_end`).
 * @returns what `main` returns
 */
export function run<T>(
  main: (bsp: Bsp2) => Promise<T> | T,
  options: RunOptions & { readonly units: Units },
): Promise<T>;
export function run<T>(main: (bsp: Bsp) => Promise<T> | T, options?: RunOptions): Promise<T>;
export async function run<T>(main: (bsp: never) => Promise<T> | T, options: RunOptions = {}): Promise<T> {
  if (typeof main !== 'function') throw argumentTypeError(`bsp.run: main must be a function, not ${show(main)}`);
  const { init: joining, ...others } = options;
  const world = await init(joining);
  const bsp = await begin(world, others);
  const result = await main(bsp as never);
  await bsp.end();
  await world.finalize();
  return result;
}

/** What the ranks tell each other: whether it is refused, the options, the spaces of messages, the words. */
function* makeTogether(
  comm: Communicator,
  read: Read | undefined,
  wrong: unknown,
  recorded: boolean,
): Generator<void, Agreed> {
  const chosen = read && comparedNumbers(read, comm);
  let block: Block | undefined;
  let group: MulticastMembers | undefined;
  let port: DatagramPort | undefined;
  let name = 0;
  let failure = wrong;
  try {
    if (comm.rank === 0) name = comm.nameSpaces();
    if (read?.delivery === 'shared') block = comm.job.blocks.allocate(sharedWords(comm.size));
    else if (hasDatagrams(read)) port = new DatagramPort(comm, MOST_PIECES, name);
    else if (read?.counts === 'multicast') group = makeGroup(comm, partsFor(comm, read.pacing !== undefined), name);
  } catch (error) {
    failure = error;
  }
  const refusal = yield* comm.allCould(failure);
  const giveBack = (): void => {
    block?.free();
    group?.close();
    port?.close();
  };
  if (failure !== undefined) {
    giveBack();
    throw failure;
  }
  if (refusal !== undefined) {
    giveBack();
    throw notBegun(refusal);
  }
  const place = block?.place ?? new Array<number>(PLACE_NUMBERS).fill(0);
  const wants = recorded && read !== undefined && wantsProbe(comm, howOf(comm, read));
  const own = (port ?? group)?.numbers ?? NO_GROUP;
  const mine = Float64Array.of(...chosen!, name, Number(wants), ...own, ...place);
  const all = yield* comm.exchange(mine);
  const numbersOf = (rank: number): Float64Array => all.subarray(mine.length * rank, mine.length * (rank + 1));
  const space = numbersOf(0)[chosen!.length];
  let measures = false;
  for (let rank = 0; rank < comm.size; rank++) {
    const theirs = numbersOf(rank);
    measures ||= theirs[chosen!.length + 1] === 1;
    const i = chosen!.findIndex((number, at) => number !== theirs[at]);
    if (i < 0) continue;
    giveBack();
    const { name, own, other } = comparedWords(comm, i, chosen![i], theirs[i]);
    throw new RmaError(
      'ERR_ARG',
      `bsp.begin: all ranks must give the same options, but rank ${rank} gave ${name} '${other}', this rank '${own}'`,
    );
  }
  if (read?.pacing !== undefined) {
    try {
      yield* comparePacing(comm, read.pacing);
    } catch (error) {
      giveBack();
      throw error;
    }
  }
  const toldBy = (rank: number): Float64Array => numbersOf(rank).subarray(chosen!.length + 2);
  // One process without is enough: then no process has it.
  for (let rank = 0; rank < comm.size; rank++) {
    if (toldBy(rank)[0] !== 0) continue;
    group?.close();
    group = undefined;
  }
  const [qpNumber, number, qkey] = toldBy(0);
  const joined = group && ([group, [qpNumber, number, qkey]] as const);
  if (port !== undefined) yield* joinPort(comm, port, toldBy, giveBack);
  const barrier = yield* makeOwnBarrier(comm, read!, space, giveBack);
  const placeOf = (rank: number): Float64Array => toldBy(rank).subarray(GROUP_NUMBERS);
  // No process writes to words that another one has not mapped yet, or has given back.
  const delivery = makeDelivery(comm, read!, space, block && { block, placeOf, barrier }, joined, port);
  return { delivery, space, measures };
}

/** Another rank could not begin. */
function notBegun({ rank, why }: { readonly rank: number; readonly why: string }): RmaError {
  return new RmaError('ERR_ARG', `bsp.begin: rank ${rank} could not begin: ${why}`);
}

function hasDatagrams(read: Read | undefined): boolean {
  return read !== undefined && goesInDatagrams(read.delivery);
}

/**
 * Collective: the processes begin to receive datagrams. All learn whether each could.
 * @param toldBy the numbers of a process's port, and others
 * @param giveBack what was made
 * Errors: `ERR_VERBS`, `ERR_ARG` (at another rank).
 */
function* joinPort(
  comm: Communicator,
  port: DatagramPort,
  toldBy: (rank: number) => Float64Array,
  giveBack: () => void,
): Generator<void, void> {
  let failure: unknown;
  try {
    port.join(Array.from({ length: comm.size }, (_, rank) => [...toldBy(rank)] as unknown as PortNumbers));
  } catch (error) {
    failure = error;
  }
  const refusal = yield* comm.allCould(failure);
  if (failure === undefined && refusal === undefined) return;
  giveBack();
  throw failure ?? notBegun(refusal!);
}

/**
 * Collective: the barrier that ends supersteps, if it is not the one of words. All learn whether each could make it.
 * @param giveBack what else was made
 * Errors: `ERR_VERBS`, `ERR_ARG` (at another rank).
 */
function* makeOwnBarrier(
  comm: Communicator,
  { barrier, barrierAlgorithm }: Read,
  space: number,
  giveBack: () => void,
): Generator<void, OwnBarrier | undefined> {
  const wish = barrierWish(barrier, barrierAlgorithm);
  if (!isWithoutWords(wish)) return undefined;
  const releases: (() => void)[] = [];
  const release = (): void => {
    for (const one of releases.splice(0)) one();
  };
  let state: BarrierState | undefined;
  let failure: unknown;
  try {
    const undo = { add: (one: () => void): void => void releases.push(one) };
    state = yield* comm.barrierWithoutWords(comm.openChannel(space + BARRIER), undo, wish);
  } catch (error) {
    failure = error;
  }
  const refusal = yield* comm.allCould(failure);
  if (state !== undefined && refusal === undefined) return { state, release };
  release();
  giveBack();
  throw failure ?? notBegun(refusal!);
}

/** What delivery through shared memory is made of. */
interface SharedParts {
  readonly block: Block;
  /** Where the words of a rank are. */
  readonly placeOf: (rank: number) => Float64Array;
  readonly barrier: OwnBarrier | undefined;
}

/**
 * @param shared absent where memory is not shared
 * @param joined this process's part of the multicast group, and the numbers of process 0
 * @param port absent where nothing goes in datagrams
 */
function makeDelivery(
  comm: Communicator,
  read: Read,
  space: number,
  shared: SharedParts | undefined,
  joined: readonly [MulticastMembers, GroupNumbers] | undefined,
  port: DatagramPort | undefined,
): Delivery {
  const { counts, nackAfter, pacing } = read;
  if (shared !== undefined) {
    const { block, placeOf, barrier } = shared;
    const { blocks } = comm.job;
    const words = sharedWords(comm.size);
    const map = (rank: number): Int32Array => blocks.map(comm.group.worldRanks[rank], placeOf(rank), words);
    return new SharedDelivery(comm, block, map, comm.traceId(), barrier);
  }
  const chunks = comm.openChannel(space + CHUNKS);
  const counting = comm.openChannel(space + COUNTS);
  const kind = carriedBy(read, port && { port, nackAfter }, [comm.job.tasks?.seed ?? 0, space]);
  if (joined !== undefined) {
    const questions = comm.openChannel(space + QUESTIONS);
    const way = new MulticastCounts(comm, ...joined, questions, nackAfter, pacing !== undefined);
    return new PackedDelivery(comm, [chunks, counting], way, kind);
  }
  const way = counts === 'multicast' ? 'tree' : (counts ?? defaultCounts(comm.size));
  const exchange = port !== undefined && way === 'tree' ? routedCounts(pacing !== undefined) : COUNT_EXCHANGES[way];
  return new PackedDelivery(comm, [chunks, counting], { exchange }, kind);
}

/** @param seeds of the slots: the same in each run */
function carriedBy({ delivery, pacing }: Read, datagrams: Datagrams | undefined, seeds: readonly number[]): Carrying {
  const kind = packedKind(delivery)!;
  const packets = datagrams === undefined ? kind.packets : kind.datagrams!(datagrams);
  if (packets === undefined || (pacing === undefined && datagrams === undefined)) {
    return { carrier: kind.carrier!, chooser: kind.chooser };
  }
  const packet = pacing?.packet ?? datagrams!.port.most;
  const how = { pacer: pacing && pacerOf(pacing, datagrams === undefined), packet, seeds };
  return { carrier: (comm, user) => new PacedCarrier(comm, user, (below) => packets(comm, below), how) };
}
