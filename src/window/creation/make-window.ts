/**
 * The collective part of making a window, as a line of steps. The ranks agree, and get what only all together can make
 * (memory of the first rank, connections). Each puts its window together, and all hear whether every rank could.
 *
 * Whatever fails at one rank is said in the next exchange, so no rank waits for one that has given up, and none has a
 * window that another has not. What was made by then is given back (`Undo`).
 */

import { type BarrierWish, barrierWish, isWithoutWords } from '../../collective/barrier-kinds.ts';
import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import { lookInWaits } from '../../job/looks.ts';
import { loadNative } from '../../native.ts';
import { SyncByRequests } from '../../sync/pscw/pscw-by-requests.ts';
import type { GeneralActiveTarget } from '../../sync/pscw/pscw-scheme.ts';
import { availableHere } from '../../transfer/layouts/host-assisted.ts';
import { needsMessages } from '../../transfer/layouts/layout-kinds.ts';
import type { RemotePart } from '../../transfer/loads/remote-part.ts';
import { STRIPE_WORDS, Stripes } from '../../transfer/loads/stripes.ts';
import { NearMemory } from '../../transfer/requests/near-memory.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { OperationMessages } from '../../transfer/served/operation-messages.ts';
import { OperationQueue } from '../../transfer/served/operation-queue.ts';
import { OperationServer } from '../../transfer/served/operation-server.ts';
import { TargetUpdates } from '../../transfer/served/target-updates.ts';
import { type Owner, readOwner, servesMemory, UserMemory } from '../../transfer/served/user-memory.ts';
import { Attachments } from '../attached/attachments.ts';
import { RemoteDirectory } from '../attached/remote-directory.ts';
import { SharedDirectory } from '../attached/shared-directory.ts';
import type { ServedUpdates } from '../path/served-path.ts';
import { SignalsByRequests, SignalWords } from '../path/signals.ts';
import { Target, Targets } from '../path/target.ts';
import { queueTrace } from '../path/traced-requests.ts';
import { type Agreement, agree, type Making, notMade } from './agreement.ts';
import { layoutCosts } from './layout-costs.ts';
import { noncontiguousTransfers } from './layout-transfers.ts';
import { nowAndThen } from './now-and-then.ts';
import type { Offer } from './offer.ts';
import { DeviceWords, SharedWords } from './own-words.ts';
import { allocateByFirst, Mapping } from './part-mapping.ts';
import {
  heldOf,
  makeSchemes,
  movesByRequests,
  nodeWords,
  openChannels,
  type SchemeChannels,
  setUpNode,
} from './schemes.ts';
import { Undo } from './undo.ts';
import { type Hints, servedTypes } from './window-info.ts';
import type { WindowParts } from './window-parts.ts';
import { makeWire, type Wire } from './wire.ts';

/**
 * If its wait ends early, others have perhaps made the window: then what this rank has made for it is given back with
 * the communicator.
 * @param offer what this rank brings in; absent if it refuses
 * @param wrong then, why
 */
export function makeWindow(making: Making, offer: Offer | undefined, wrong: unknown): Generator<void, WindowParts> {
  const undo = new Undo();
  if (offer !== undefined) undo.add(offer.discard);
  const noRelease = making.comm.onRelease(() => undo.run());
  return makeOrUndo(making, offer, wrong, undo, noRelease);
}

function* makeOrUndo(
  making: Making,
  offer: Offer | undefined,
  wrong: unknown,
  undo: Undo,
  noRelease: () => void,
): Generator<void, WindowParts> {
  try {
    const parts = yield* makeTogether(making, yield* agree(making, offer, wrong, undo), undo);
    noRelease();
    return parts;
  } catch (error) {
    noRelease();
    undo.run();
    throw error;
  }
}

function* makeTogether(making: Making, agreed: Agreement, undo: Undo): Generator<void, WindowParts> {
  const { comm, call } = making;
  const { records, offer } = agreed;
  const channels = openWindowChannels(comm, offer.hints, records.of(0, 'space'));
  const trace = comm.traceId();
  const number = comm.windows;
  const device = new DeviceWords(agreed.words, records);
  const first = offer.wanted === undefined ? undefined : yield* allocateByFirst(making, records, undo);
  let wire: Wire | undefined;
  let closing: BarrierState | undefined;
  let parts: WindowParts | undefined;
  let failure: unknown;
  try {
    wire = yield* makeWire(making, agreed, device, trace, channels.free, undo);
  } catch (error) {
    failure = error;
  }
  try {
    // A rank that has failed takes part: the others may wait for it.
    if (channels.barrier !== undefined)
      closing = yield* comm.barrierWithoutWords(channels.barrier, undo, wishOf(offer.hints), failure);
    if (failure === undefined && (channels.barrier === undefined || closing !== undefined)) {
      const mapping = new Mapping(comm, `window ${making.name}`, records, offer, first, undo);
      const materials = { channels, device, wire: wire!, closing, mapping, trace, undo };
      parts = { ...assemble(making, agreed, materials), trace, number };
      // Before others can access it.
      comm.job.races?.made(parts);
    }
  } catch (error) {
    failure ??= error;
  }
  // After this, requests may come: all are ready for them.
  const refusal = yield* comm.allCould(failure);
  if (failure !== undefined) throw failure;
  if (refusal !== undefined) throw notMade(call, refusal);
  if (making.measures === undefined && comm.size > 1 && parts!.noncontiguous?.needsCosts)
    parts!.noncontiguous.costs = yield* layoutCosts(making, makeWindow);
  return parts!;
}

interface WindowChannels extends SchemeChannels {
  /** For the barrier, and for start, complete, post and wait, where those are messages. */
  readonly barrier: OwnChannel | undefined;
  readonly posts: OwnChannel | undefined;
  /** For updates that the target carries out. */
  readonly updates: OwnChannel | undefined;
  /** For puts and gets of layouts. */
  readonly layouts: OwnChannel | undefined;
  /** A space that nothing has a channel in. */
  readonly free: number;
}

/** The barrier that closes fences, if the hints say which. */
function wishOf({ barrier, barrier_algorithm }: Hints): BarrierWish | undefined {
  return barrierWish(barrier, barrier_algorithm);
}

/** At most `SPACES`, with the one that stays free. The same numbers at all ranks, since all have the same hints. */
function openWindowChannels(comm: Communicator, hints: Hints, first: number): WindowChannels {
  let free = first;
  const open = (): OwnChannel => comm.openChannel(free++);
  const { context, processor } = comm.job;
  const { loadStore } = context.capabilities;
  const scheme = availableHere(hints.noncontiguous, context, processor);
  const barrier = loadStore && !isWithoutWords(wishOf(hints)) ? undefined : open();
  const ofSchemes = openChannels(hints, open);
  const posts = loadStore ? undefined : open();
  const updates = loadStore || servedTypes(hints) === undefined ? undefined : open();
  const layouts = loadStore || !needsMessages(scheme) ? undefined : open();
  return { ...ofSchemes, barrier, posts, updates, layouts, free };
}

/** What a window is put together from. */
interface Materials {
  readonly channels: WindowChannels;
  readonly device: DeviceWords;
  readonly wire: Wire;
  /** Absent where ranks share words for it. */
  readonly closing: BarrierState | undefined;
  readonly mapping: Mapping;
  readonly trace: string;
  readonly undo: Undo;
}

/** What the ranks of a window synchronize by. */
interface Ground {
  readonly barrier: BarrierState;
  readonly general: GeneralActiveTarget;
  /** Absent where memory cannot be loaded and stored. */
  readonly shared: SharedWords | undefined;
  /** The words that the ranks of a node share for their lock. */
  nodeWords(rank: number): Int32Array;
}

/** @param server carries out what comes with the message that completes its epoch; absent if nothing does */
function groundOf(
  comm: Communicator,
  { words, records, offer }: Agreement,
  materials: Materials,
  server: OperationServer | undefined,
): Ground {
  const { channels, wire, trace, undo } = materials;
  if (words.block !== undefined) {
    const shared = new SharedWords(comm, words.layout, words.block, records);
    const nodeWordsOf = (rank: number): Int32Array => shared.node(rank);
    const barrier = materials.closing ?? shared.barrier(trace);
    return { barrier, general: shared.counters(), shared, nodeWords: nodeWordsOf };
  }
  const { tasks } = comm.job;
  const members = comm.group.worldRanks;
  const own = new Int32Array(nodeWords(offer.hints, comm.size, false));
  setUpNode(offer.hints, own);
  const space = channels.agent?.space;
  if (space !== undefined && tasks !== undefined) {
    tasks.registry.offer(space, members[comm.rank], own);
    undo.add(() => tasks.registry.withdraw(space, members[comm.rank]));
  }
  const general = new SyncByRequests(channels.posts!, wire.wire!, server, queueTrace(comm, trace, 'complete'));
  if (server !== undefined) {
    undo.add(() => general.release());
    undo.add(lookInWaits(comm.members, () => general.serve(), true));
  }
  return {
    barrier: materials.closing!,
    general,
    shared: undefined,
    // Those of another rank where ranks are tasks, and on one node.
    nodeWords: (rank) =>
      rank === comm.rank || tasks === undefined ? own : (tasks.registry.find(space!, members[rank]) as Int32Array),
  };
}

function assemble(making: Making, agreed: Agreement, materials: Materials): Omit<WindowParts, 'trace' | 'number'> {
  const { comm, flavor, name } = making;
  const { job, size, rank: me } = comm;
  const { records, offer } = agreed;
  const { channels, device, mapping, undo } = materials;
  const { wire, updates } = materials.wire;
  const { hints, dispUnit, share } = offer;
  const { loadStore } = job.context.capabilities;
  const requests = movesByRequests(hints, loadStore) ? wire : undefined;
  if (wire !== undefined) wire.remote.near = nearMemory(making, agreed, materials);
  // Where memory is loaded and stored, epochs are completed by a word, with which nothing travels. What is attached
  // to a dynamic window is not the target's to look for.
  const held = requests && heldOf(hints, !loadStore && flavor !== 'dynamic');
  const ownPart = ownPartOf(() => mapping.map(me), mapping.bytes(me));
  const server = serverOf(
    ownPart,
    // By requests, no other rank touches a part by its processor's instructions.
    () => makeStripes(me) ?? new Stripes(new Int32Array(STRIPE_WORDS), 0, comm.members),
    () => signals.raiseOwn(),
  );
  const { barrier, general, shared, nodeWords } = groundOf(
    comm,
    agreed,
    materials,
    held?.folds === true ? server : undefined,
  );
  // Others reach memory of this rank's own through its thread, which has stripes for all of it.
  const makeStripes = (rank: number): Stripes | undefined =>
    rank === me && share?.stripes !== undefined ? share.stripes : shared?.stripes(rank, 0);
  const attachments = attachmentsOf(making, agreed, materials, shared, requests);
  const signals =
    requests === undefined
      ? new SignalWords(comm, (rank) => shared!.signal(rank))
      : new SignalsByRequests(requests, channels.layouts !== undefined);
  const kernels = loadNative();
  const isNear = (rank: number): boolean => rank === me || mapping.isNeighbour(rank);
  const { release: releaseSchemes, ...schemes } = makeSchemes({
    comm,
    hints,
    description: `window ${name}`,
    barrier,
    channels,
    kernels,
    wire,
    server,
    remoteWord: (rank, index) => device.lock(rank, index),
    fenceWords: device.fence,
    nodeWords,
    travels: travelling(making, offer.hints, requests, channels) ? (rank) => !isNear(rank) : undefined,
    queueTrace: (name) => queueTrace(comm, materials.trace, name),
  });
  undo.add(releaseSchemes);
  const byTarget =
    attachments === undefined
      ? byTargetOf(comm, agreed, materials, server, ownPart)
      : { served: undefined, noncontiguous: undefined };
  return {
    ...schemes,
    ...byTarget,
    serve: nowAndThen([schemes.serve, byTarget.served?.updates.poll, byTarget.noncontiguous?.serve]),
    comm,
    name,
    flavor,
    local: mapping.local,
    given: offer.given,
    dispUnit,
    hints,
    general,
    signals,
    wire,
    requests,
    held,
    updates,
    attachments,
    userMemory: userMemoryOf(comm, agreed, requests !== undefined),
    kernels,
    targets: new Targets(size, (rank) => new Target(rank, mapping.bytes(rank), records.of(rank, 'dispUnit'))),
    isNeighbour: (rank) => mapping.isNeighbour(rank),
    map: (rank) => mapping.map(rank),
    makeStripes: (rank) => (shared === undefined ? undefined : makeStripes(rank)),
    release: () => undo.run(),
  };
}

/**
 * Whether operations may travel with their locks: where owners carry out updates, and nothing else puts operations off,
 * or sends them another way. Searches for races know the order of locks by their calls.
 */
function travelling(
  { comm, flavor }: Making,
  hints: Hints,
  requests: RequestTransfer | undefined,
  channels: WindowChannels,
): boolean {
  if (requests?.updates !== true || flavor === 'dynamic' || comm.job.races !== undefined) return false;
  return channels.updates === undefined && channels.layouts === undefined && heldOf(hints, true) === undefined;
}

/** What this rank's processor reaches of a window by requests: of this rank itself, and of its neighbours. */
function nearMemory(
  { comm, flavor }: Making,
  { records }: Agreement,
  { mapping, device }: Materials,
): NearMemory | undefined {
  const { loadStore, atomicsAgree, completionImpliesPlacement } = comm.job.context.capabilities;
  // What is attached to a dynamic window is reached by requests alone.
  if (loadStore || !atomicsAgree || !completionImpliesPlacement || flavor === 'dynamic') return undefined;
  return new NearMemory((rank) => {
    const words = device.near(rank, comm.rank, mapping);
    const found = words === undefined ? [] : [words];
    if (rank === comm.rank || mapping.isNeighbour(rank)) {
      const [rkey, address] = records.listOf(rank, 'region');
      found.push({ rkey, address, part: mapping.map(rank) });
    }
    return found;
  });
}

/** Where a dynamic window finds what is attached to it; absent for the other flavours. */
function attachmentsOf(
  { comm, flavor, name }: Making,
  { offer }: Agreement,
  { device, undo }: Materials,
  shared: SharedWords | undefined,
  requests: RequestTransfer | undefined,
): Attachments | undefined {
  if (flavor !== 'dynamic') return undefined;
  const directory =
    shared === undefined
      ? new RemoteDirectory(comm, requests!, device.ownDirectory, (rank, i) => device.directory(rank, i))
      : new SharedDirectory(
          comm,
          (rank) => shared.directory(rank),
          (rank, base) => shared.stripes(rank, base),
        );
  const attachments = new Attachments(comm, `window ${name}`, offer.share, directory);
  undo.add(() => attachments.release());
  return attachments;
}

type ByTarget = Pick<WindowParts, 'served' | 'noncontiguous'>;

/** What the target's processor carries out, if the hints want it; nothing of what is attached. */
function byTargetOf(
  comm: Communicator,
  { offer: { hints }, region }: Agreement,
  { channels, wire: { wire, updates, helpers }, trace, undo }: Materials,
  server: OperationServer,
  ownPart: () => RemotePart,
): ByTarget {
  const { layouts } = channels;
  return {
    served: updates && servedUpdates(comm, hints, channels.updates, server, wire!, trace, undo),
    noncontiguous:
      layouts && noncontiguousTransfers(comm, hints.noncontiguous, layouts, ownPart, region, wire!, helpers, undo),
  };
}

/** Updates that targets carry out themselves, if the hints want it. */
function servedUpdates(
  comm: Communicator,
  hints: Hints,
  channel: OwnChannel | undefined,
  server: OperationServer,
  requests: RequestTransfer,
  trace: string,
  undo: Undo,
): ServedUpdates | undefined {
  const takes = servedTypes(hints);
  if (channel === undefined || takes === undefined) return undefined;
  const { messenger } = comm.job;
  const queue = new OperationQueue(comm.size, loadNative(), queueTrace(comm, trace, 'update'));
  const operations = new OperationMessages(channel, queue, server);
  const updates = new TargetUpdates(channel, operations, requests, () => messenger.poll());
  undo.add(() => updates.close());
  undo.add(lookInWaits(comm.members, () => messenger.poll(), true));
  return { updates, takes };
}

/** This rank's part, which is mapped when it is first asked for. */
function ownPartOf(map: () => RemotePart, bytes: number): () => RemotePart {
  let part: RemotePart | undefined;
  return () => {
    // Anew once it was transferred, which says so.
    if (part === undefined || part.u8.length < bytes) part = map();
    return part;
  };
}

/** Carries out at this rank what others have queued for it. */
function serverOf(ownPart: () => RemotePart, makeStripes: () => Stripes, signal: () => void): OperationServer {
  let stripes: Stripes | undefined;
  const ownStripes = (): Stripes => {
    stripes ??= makeStripes();
    return stripes;
  };
  return new OperationServer(ownPart, ownStripes, loadNative(), signal);
}

/** The way to ranks whose memory is not the library's. Absent if there are none, or no addon. */
function userMemoryOf(comm: Communicator, { records, offer }: Agreement, byRequests: boolean): UserMemory | undefined {
  const native = loadNative();
  const { job, rank: me, group } = comm;
  if (native === undefined || !servesMemory(job.context)) return undefined;
  const owners = group.worldRanks.map((member, rank): Owner | undefined => {
    // This rank's own part is loaded and stored, unless everything goes by requests.
    if (rank === me && !byRequests) return undefined;
    return readOwner(job, member, records.listOf(rank, 'share'), rank === me ? offer.share : undefined);
  });
  return owners.some((owner) => owner !== undefined) ? new UserMemory(job, native, owners) : undefined;
}
