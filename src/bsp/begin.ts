/** Begins a BSP computation: the processes agree on how supersteps are delivered, and make what that needs. */
import { type Block, PLACE_NUMBERS } from '../comm/blocks.ts';
import { Communicator } from '../comm/communicator.ts';
import { type InitOptions, init } from '../comm/init.ts';
import { readWait, type WaitOptions } from '../comm/operation.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { unknownName } from '../options.ts';
import { Bsp } from './bsp.ts';
import { Core } from './core.ts';
import { COUNT_EXCHANGE_NAMES, COUNT_EXCHANGES, type CountExchange, defaultCounts } from './delivery/counts.ts';
import type { Delivery } from './delivery/delivery.ts';
import { GROUP_NUMBERS, type Group, type GroupNumbers, makeGroup, NO_GROUP } from './delivery/group.ts';
import { MulticastCounts, partsFor } from './delivery/multicast.ts';
import { PackedDelivery } from './delivery/packed.ts';
import { SharedDelivery, sharedWords } from './delivery/shared.ts';

/** How a superstep is delivered. */
export const DELIVERIES = ['shared', 'packed'] as const;
export type DeliveryName = (typeof DELIVERIES)[number];
/** Headers of puts. */
export const HEADERS = ['compressed', 'plain'] as const;
export type HeaderName = (typeof HEADERS)[number];

/** Options of a BSP computation. All processes give the same. */
export interface BspOptions extends WaitOptions {
  /**
   * How a superstep is delivered. `shared`: through memory that all processes load and store. `packed`: as messages of
   * 16 KiB (BSP-IB §3.1). Default: `shared` where processes can load and store each other's memory.
   */
  readonly delivery?: DeliveryName;
  /** Headers of puts: `compressed` to 4 bytes where the numbers are small (BSP-IB §3.2; default), or `plain`, of 12. */
  readonly headers?: HeaderName;
  /**
   * How the processes learn what comes to them, when superstep are delivered as messages. `all-to-all`: each tells each
   * other one. `tree`: by a reduction, in ⌈log2 p⌉ messages. `multicast`: process 0 is told by all, and sends all
   * of it in a datagram to all; who misses it asks (BSP-IB §3.2). Where the devices have no multicast, that is `tree`.
   * Default: `tree` from 16 processes on.
   */
  readonly counts?: CountExchange;
  /**
   * With `multicast`, the milliseconds after which a process asks for what has not come (default: 10). Longer than the
   * processes differ in when they come to the end of a superstep; shorter makes losses cost less.
   */
  readonly nackAfter?: number;
  /** Keeps what each superstep does, for `Bsp.report` (default: false). Costs some 0.1 µs a superstep. */
  readonly report?: boolean;
}

interface Read {
  readonly delivery: DeliveryName;
  readonly headers: HeaderName;
  readonly counts: CountExchange;
  readonly report: boolean;
  readonly nackAfter: number;
  readonly wait: WaitOptions | undefined;
}

const OPTIONS = ['delivery', 'headers', 'counts', 'report', 'nackAfter'] as const;
const NACK_AFTER = 10;

/**
 * Begins a BSP computation of the ranks of a communicator (`bsp_begin`). Collective.
 * Errors: `ERR_ARG` if the ranks give different options; `ERR_RMA_SHARED` if `shared` cannot be; `TypeError`;
 * `ERR_VERBS`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
 */
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
  } catch (error) {
    wrong = error;
  }
  const begun = comm.collective({ name: 'bsp.begin', steps: () => makeTogether(comm, read, wrong) }, read?.wait);
  await begun.promise;
  const core = begun.operation.result;
  core.whenClosed = comm.onRelease(() => core.close());
  return new Bsp(core);
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
export async function run<T>(main: (bsp: Bsp) => Promise<T> | T, options: RunOptions = {}): Promise<T> {
  if (typeof main !== 'function') throw argumentTypeError(`bsp.run: main must be a function, not ${show(main)}`);
  const { init: joining, ...others } = options;
  const world = await init(joining);
  const bsp = await begin(world, others);
  const result = await main(bsp);
  await bsp.end();
  await world.finalize();
  return result;
}

function readOptions(comm: Communicator, options: BspOptions | undefined): Read {
  const wait = readWait('bsp.begin', options, OPTIONS);
  const given = reading('bsp.begin', 'the options', () => ({
    delivery: options?.delivery,
    headers: options?.headers,
    counts: options?.counts,
    report: options?.report ?? false,
    nackAfter: options?.nackAfter ?? NACK_AFTER,
  }));
  if (typeof given.nackAfter !== 'number' || !(given.nackAfter >= 0)) {
    throw argumentRangeError(`bsp.begin: nackAfter must be at least 0 milliseconds, not ${show(given.nackAfter)}`);
  }
  if (typeof given.report !== 'boolean') {
    throw argumentTypeError(`bsp.begin: report must be true or false, not ${show(given.report)}`);
  }
  const { loadStore } = comm.job.context.capabilities;
  const delivery = oneOf('delivery', given.delivery ?? (loadStore ? 'shared' : 'packed'), DELIVERIES);
  if (delivery === 'shared' && !loadStore) {
    throw new RmaError(
      'ERR_RMA_SHARED',
      "bsp.begin: delivery: 'shared' needs processes that load and store each other's memory, and these do not; use 'packed'",
    );
  }
  return {
    delivery,
    headers: oneOf('headers', given.headers ?? HEADERS[0], HEADERS),
    counts: oneOf('counts', given.counts ?? defaultCounts(comm.size), COUNT_EXCHANGE_NAMES),
    report: given.report,
    nackAfter: given.nackAfter,
    wait,
  };
}

function oneOf<T extends string>(name: string, value: unknown, known: readonly T[]): T {
  if (typeof value !== 'string') throw argumentTypeError(`bsp.begin: ${name} must be a string, not ${show(value)}`);
  if (!(known as readonly string[]).includes(value)) {
    throw argumentTypeError(`bsp.begin: ${name}: ${unknownName(value, known)}`);
  }
  return value as T;
}

/** What the ranks tell each other: whether it is refused, the options, the last space of messages, the words. */
function* makeTogether(comm: Communicator, read: Read | undefined, wrong: unknown): Generator<void, Core> {
  const chosen = read && [
    DELIVERIES.indexOf(read.delivery),
    HEADERS.indexOf(read.headers),
    COUNT_EXCHANGE_NAMES.indexOf(read.counts),
    Number(read.report),
  ];
  let block: Block | undefined;
  let group: Group | undefined;
  let failure = wrong;
  try {
    if (read?.delivery === 'shared') block = comm.job.blocks.allocate(sharedWords(comm.size));
    else if (read?.counts === 'multicast') group = makeGroup(comm, partsFor(comm), comm.lastSpace);
  } catch (error) {
    failure = error;
  }
  const refusal = yield* comm.agree(failure);
  const giveBack = (): void => {
    block?.free();
    group?.close();
  };
  if (failure !== undefined) {
    giveBack();
    throw failure;
  }
  if (refusal !== undefined) {
    giveBack();
    throw new RmaError('ERR_ARG', `bsp.begin: rank ${refusal.rank} could not begin: ${refusal.why}`);
  }
  const place = block?.place ?? new Array<number>(PLACE_NUMBERS).fill(0);
  const mine = Float64Array.of(...chosen!, comm.lastSpace, ...(group?.numbers ?? NO_GROUP), ...place);
  const all = yield* comm.exchange(mine);
  const numbersOf = (rank: number): Float64Array => all.subarray(mine.length * rank, mine.length * (rank + 1));
  let space = 0;
  for (let rank = 0; rank < comm.size; rank++) {
    const theirs = numbersOf(rank);
    space = Math.max(space, theirs[chosen!.length]);
    const i = chosen!.findIndex((number, at) => number !== theirs[at]);
    if (i < 0) continue;
    giveBack();
    const known: readonly (readonly string[])[] = [DELIVERIES, HEADERS, COUNT_EXCHANGE_NAMES, ['false', 'true']];
    throw new RmaError(
      'ERR_ARG',
      `bsp.begin: all ranks must give the same options, but rank ${rank} gave ${OPTIONS[i]} '${known[i][theirs[i]]}', this rank '${known[i][chosen![i]]}'`,
    );
  }
  const toldBy = (rank: number): Float64Array => numbersOf(rank).subarray(chosen!.length + 1);
  // One process without is enough: then nobody has it.
  for (let rank = 0; rank < comm.size; rank++) {
    if (toldBy(rank)[0] !== 0) continue;
    group?.close();
    group = undefined;
  }
  const [qpNumber, number, qkey] = toldBy(0);
  const joined = group && ([group, [qpNumber, number, qkey]] as const);
  const delivery = makeDelivery(comm, read!, space, block, (rank) => toldBy(rank).subarray(GROUP_NUMBERS), joined);
  // Nobody writes to words that another one has not mapped yet, or given back.
  return new Core(comm, delivery, read!.headers === 'compressed', read!.report);
}

/**
 * @param placeOf where the words of a rank are
 * @param joined this process's part of the multicast group, and the numbers of process 0
 */
function makeDelivery(
  comm: Communicator,
  { counts, nackAfter }: Read,
  space: number,
  block: Block | undefined,
  placeOf: (rank: number) => Float64Array,
  joined: readonly [Group, GroupNumbers] | undefined,
): Delivery {
  if (block !== undefined) {
    const { blocks } = comm.job;
    const words = sharedWords(comm.size);
    const map = (rank: number): Int32Array => blocks.map(comm.group.worldRanks[rank], placeOf(rank), words);
    return new SharedDelivery(comm, block, map, comm.traceId());
  }
  const chunks = comm.openChannel(space);
  const counting = comm.openChannel(chunks.space);
  if (joined !== undefined) {
    const questions = comm.openChannel(counting.space);
    const way = new MulticastCounts(comm, ...joined, questions, nackAfter);
    return new PackedDelivery(comm, [chunks, counting], way);
  }
  const exchange = COUNT_EXCHANGES[counts === 'multicast' ? 'tree' : counts];
  return new PackedDelivery(comm, [chunks, counting], { exchange });
}
