/** Work requests among the ranks of a window: the connections, and accumulates that go by them. */
import type { Communicator } from '../../collective/communicator.ts';
import { RankFailedError } from '../../errors.ts';
import type { Registry } from '../../job/membership.ts';
import { loadNative } from '../../native.ts';
import { fenceNamed } from '../../sync/fence/fence-kinds.ts';
import { OVERTAKING_BY_REQUESTS_MS } from '../../sync/lock/lock-overtaking.ts';
import { HELPER_NUMBERS, HelperConnections } from '../../transfer/layouts/helper-connections.ts';
import { availableHere, hasHelper } from '../../transfer/layouts/host-assisted.ts';
import { needsSecond } from '../../transfer/layouts/layout-kinds.ts';
import type { ConnectionRegistry, Connections } from '../../transfer/requests/connections.ts';
import { regionsBy } from '../../transfer/requests/regions.ts';
import { RemoteStripes } from '../../transfer/requests/remote-stripes.ts';
import { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { RequestUpdates } from '../../transfer/requests/request-updates.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import { requestTrace } from '../path/traced-requests.ts';
import { type Agreement, type Making, notMade } from './agreement.ts';
import type { DeviceWords } from './own-words.ts';
import { lockWords, movesByRequests } from './schemes.ts';
import type { Undo } from './undo.ts';
import { inBulk } from './window-info.ts';

export interface Wire {
  /** Absent where nothing takes requests. */
  readonly wire?: RequestTransfer;
  readonly updates?: RequestUpdates;
  /** With the hint `noncontiguous`, where the provider has helpers; absent if a rank could not make its own. */
  readonly helpers?: HelperConnections | undefined;
}

/**
 * Collective, where the hints or the provider ask for requests.
 * @param space a space of messages that is the window's at all its ranks, and no other's that has one of them
 */
export function* makeWire(
  { comm, call, flavor }: Making,
  { records, offer, region }: Agreement,
  words: DeviceWords,
  trace: string,
  space: number,
  undo: Undo,
): Generator<void, Wire> {
  const { job, size, group } = comm;
  const { hints } = offer;
  const { loadStore } = job.context.capabilities;
  if (!movesByRequests(hints, loadStore) && lockWords(hints, size, loadStore) === 0) return {};
  const make = (): RequestTransfer => {
    const { progress } = job;
    const notifies = fenceNamed(hints.fence).notifies === true;
    const patience = {
      now: () => progress.now(),
      findFailure: () => comm.members.findFailure(),
      timeout: progress.timeout,
      processor: job.processor,
    };
    const wire = new RequestTransfer(
      job.context,
      job.pd,
      job.origins,
      size,
      notifies,
      requestTrace(comm, trace),
      patience,
      needsSecond(availableHere(hints.noncontiguous, job.context, job.processor)),
    );
    undo.add(() => wire.close());
    return wire;
  };
  const regions = regionsBy((rank) => ({
    rkey: records.of(rank, 'region'),
    address: records.of(rank, 'region', 1),
  }));
  let wire: RequestTransfer;
  let failure: unknown;
  if (job.tasks === undefined) {
    const [made, numbers] = yield* queuePairs(comm, call, make);
    wire = made;
    try {
      wire.connect(group.worldRanks, numbers, regions);
    } catch (error) {
      // Said in the next exchange.
      failure = error;
    }
  } else {
    wire = make();
    wire.connectLater(connectionRegistry(comm, space, job.tasks.registry), group.worldRanks, regions);
  }
  if (region !== undefined && offer.local.byteOffset === 0) wire.keepPart(offer.local.buffer, region);
  if (loadStore) {
    if (failure !== undefined) throw failure;
    return { wire };
  }
  // Of a dynamic window, others' layouts may lie anywhere.
  const helped = hasHelper(hints.noncontiguous, job.context) && flavor !== 'dynamic';
  const helpers = helped ? yield* connectedHelpers(comm, wire, region, undo, failure) : undefined;
  if (failure !== undefined) throw failure;
  const failed = (): number => {
    const failure = comm.members.failure();
    return failure instanceof RankFailedError ? group.worldRanks.indexOf(failure.rank) : -1;
  };
  const stripes = new RemoteStripes(wire, comm.rank, size, (rank, i) => words.stripe(rank, i), {
    now: () => job.progress.now(),
    failed,
    processor: job.processor,
    overtaking: hints.lock_order === 'arrival' ? 0 : OVERTAKING_BY_REQUESTS_MS,
  });
  const updates = new RequestUpdates(wire, comm.rank, regions, stripes, inBulk(hints), loadNative());
  return { wire, updates, helpers };
}

/** A rank that cannot make its queue pairs says so. @returns what to connect them to, besides */
function* queuePairs(
  comm: Communicator,
  call: string,
  make: () => RequestTransfer,
): Generator<void, readonly [RequestTransfer, Float64Array]> {
  const { rank: self, size } = comm;
  let transfer: RequestTransfer | undefined;
  let failure: unknown;
  // A queue pair for each rank, and whether they could not be made.
  const stride = size + 1;
  const own = new Float64Array(stride);
  try {
    transfer = make();
    for (let rank = 0; rank < size; rank++) own[rank] = transfer.queuePairFor(rank);
  } catch (error) {
    failure = error;
    own[size] = 1;
  }
  const numbers = yield* comm.exchange(own);
  let first = 0;
  while (first < size && numbers[stride * first + size] === 0) first++;
  if (first < size) {
    const why = yield* comm.hearWhy(first, failure);
    throw failure ?? notMade(call, { rank: first, why });
  }
  return [transfer!, Float64Array.from({ length: size }, (_, rank) => numbers[stride * rank + self])];
}

/**
 * If a rank cannot make its helper or the queue pairs, none is used: layouts have another way.
 * @param failure why this rank cannot even be part of the window, which it says in the agreement behind this
 */
function* connectedHelpers(
  comm: Communicator,
  wire: RequestTransfer,
  region: MemoryRegion | undefined,
  undo: Undo,
  failure: unknown,
): Generator<void, HelperConnections | undefined> {
  const { rank: self, size, job } = comm;
  const stride = HELPER_NUMBERS * size + 1;
  const own = new Float64Array(stride);
  let helpers: HelperConnections | undefined;
  try {
    if (failure !== undefined) throw failure;
    helpers = new HelperConnections(job.context, job.pd, region, wire, size, self);
    undo.add(() => helpers!.close());
    for (let rank = 0; rank < size; rank++) own.set(helpers.numbersFor(rank), HELPER_NUMBERS * rank);
  } catch {
    own[stride - 1] = 1;
  }
  const numbers = yield* comm.exchange(own);
  for (let rank = 0; rank < size; rank++) {
    if (numbers[stride * (rank + 1) - 1] === 0) continue;
    helpers?.close();
    return undefined;
  }
  helpers!.start(comm.group.worldRanks, (rank) => {
    const at = stride * rank + HELPER_NUMBERS * self;
    return numbers.subarray(at, at + HELPER_NUMBERS);
  });
  return helpers;
}

function connectionRegistry(comm: Communicator, space: number, registry: Registry): ConnectionRegistry {
  const members = comm.group.worldRanks;
  return {
    rank: comm.rank,
    offer: (connections) => registry.offer(space, members[comm.rank], connections),
    find: (rank) => registry.find(space, members[rank]) as Connections | undefined,
    withdraw: () => registry.withdraw(space, members[comm.rank]),
  };
}
