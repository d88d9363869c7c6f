/** Making a window: what each rank offers is exchanged, and the schemes are chosen, once. */

import { types } from 'node:util';
import { barrierWords, makeBarrier } from '../comm/barrier.ts';
import type { Block } from '../comm/blocks.ts';
import { allocateRegistered, PLACE_NUMBERS } from '../comm/blocks.ts';
import type { CollectiveName } from '../comm/collective-signature.ts';
import { Communicator, checkLength, type OwnChannel } from '../comm/communicator.ts';
import type { Job, Meetings } from '../comm/job.ts';
import { MessageBarrier } from '../comm/message-barrier.ts';
import { type GeneratorOperation, readWait, type WaitOptions } from '../comm/operation.ts';
import type { Refusal } from '../comm/refusals.ts';
import {
  arrayOver,
  isTypedArrayConstructor,
  type RawMemory,
  refuseLost,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base.ts';
import type { CopyKernels } from '../datatype/copy.ts';
import { argumentRangeError, argumentTypeError, RankFailedError, RmaError, reading, show } from '../errors.ts';
import { isResizable } from '../intrinsics.ts';
import { loadNative } from '../native.ts';
import { ALL_LOCK_WORDS, AllLock } from '../sync/lock/all.ts';
import { QueueLock, queueLockWords } from '../sync/lock/queue.ts';
import { remoteLockWords } from '../sync/lock/remote.ts';
import { SyncByRequests } from '../sync/pscw/by-requests.ts';
import { Counters, counterWords } from '../sync/pscw/counters.ts';
import type { GeneralActiveTarget } from '../sync/pscw/scheme.ts';
import type { BulkKernels } from '../transfer/accumulate.ts';
import { OperationServer } from '../transfer/operation-server.ts';
import { RemotePart } from '../transfer/remote-part.ts';
import { RemoteStripes, remoteStripeWords } from '../transfer/remote-stripes.ts';
import { RequestUpdates } from '../transfer/request-updates.ts';
import { type Meeting, type RemoteRegion, type RemoteWord, RequestTransfer } from '../transfer/requests.ts';
import { STRIPE_WORDS, Stripes } from '../transfer/stripes.ts';
import { readOwner, SHARE_NUMBERS, type Share, shareMemory, UserMemory } from '../transfer/user-memory.ts';
import { ALL_ACCESS } from '../verbs/checks.ts';
import type { Memory, MemoryRegion, RemotePointer } from '../verbs/memory.ts';
import { Attachments, type Directory } from './attachments.ts';
import { type Hints, inBulk, numberOf, readInfo, type WindowInfo } from './info.ts';
import { directoryWords, RemoteDirectory } from './remote-directory.ts';
import {
  firstLockWord,
  locksByRequests,
  makeSchemes,
  movesByRequests,
  nodeWords,
  openChannels,
  type Schemes,
  setUpNode,
} from './schemes.ts';
import { DIRECTORY_WORDS, SharedDirectory } from './shared-directory.ts';
import { LOADS, MIXED_WAYS, REQUESTS, Target, type Way } from './target.ts';
import { requestTrace } from './traced.ts';

/** Options of the calls that create a window. `signal` and `timeout` limit the wait for the other ranks. */
export interface WindowOptions extends WaitOptions {
  /** Hints for the window; all ranks must pass the same hints. */
  readonly info?: WindowInfo;
  /**
   * The displacement unit of this rank's part in bytes; default: the element size. With 0, every displacement is the
   * beginning of the part.
   */
  readonly dispUnit?: number;
  /** The name of the window in error messages; all ranks should pass the same name. */
  readonly name?: string;
}

/** How the memory of a window was provided (`MPI_WIN_CREATE_FLAVOR`). */
export type Flavor = 'create' | 'allocate' | 'shared' | 'dynamic';

/** Everything that making a window has found out. */
export interface WindowParts extends Omit<Schemes, 'release'> {
  readonly comm: Communicator;
  readonly name: string;
  readonly flavor: Flavor;
  /** The library's own view of this rank's part. */
  readonly local: TypedArray;
  /** The array that the program has made the part of, if it has. */
  readonly given: TypedArray | undefined;
  readonly dispUnit: number;
  readonly hints: Hints;
  readonly targets: readonly Target[];
  /** The word of a rank that `putNotify` raises; index 0. */
  signalWord(rank: number): Int32Array;
  /** Start, complete, post and wait. */
  readonly general: GeneralActiveTarget;
  /** Maps a target's memory. */
  map(rank: number): RemotePart;
  /** The locks of a rank's part for accumulates. */
  /** Absent where accumulates are requests. */
  makeStripes(rank: number): Stripes | undefined;
  /** Work requests of this window, whatever they are for. */
  readonly wire: RequestTransfer | undefined;
  /** The same if they move the bytes of put and get; absent where those are loads and stores. */
  readonly requests: RequestTransfer | undefined;
  /** Accumulates by requests; absent where the processors do them. */
  readonly updates: RequestUpdates | undefined;
  /** What is attached where, in a dynamic window: displacements are addresses there. */
  readonly attachments: Attachments | undefined;
  /** The way to ranks whose memory is not the library's; it comes before the others. Absent if there are none. */
  readonly userMemory: UserMemory | undefined;
  readonly kernels: (BulkKernels & CopyKernels) | undefined;
  /** Names the window in traces, the same at all ranks. */
  readonly trace: string;
  /** Which window of its communicator it is, from 1: the same at all ranks. */
  readonly number: number;
  /** Gives memory, regions and mappings back. */
  release(): void;
}

/** A window that the ranks are agreeing on. */
export interface WindowInTheMaking {
  readonly operation: GeneratorOperation<WindowParts>;
  readonly options: WaitOptions;
}

/** The calls that make a window. */
type WindowCall = Extract<CollectiveName, `Window.${string}`>;

/** What this rank brings in. */
interface Offer {
  /** This rank's part; where the first rank allocates for all, an empty array of the right type until it has. */
  readonly local: TypedArray;
  readonly given?: TypedArray;
  readonly memory: Memory | undefined;
  /** Its part is memory of its own, which nobody can map. */
  readonly share?: Share;
  /** Elements of a part that the first rank is to allocate. */
  readonly wanted?: number;
  readonly dispUnit: number;
  readonly hints: Hints;
  /** Gives back what was made for the window. */
  readonly discard: () => void;
}

/** Numbers that a rank tells the others: whether it refuses, then what a target is. */
const REFUSED = 0;
const BYTES = 1;
const DISP_UNIT = 2;
const RKEY = 3;
const ADDRESS = 4;
const SCHEME = 5;
const ELEMENT = 6;
const PLACE = 7;
const SHARE = PLACE + PLACE_NUMBERS;
const SPACE = SHARE + SHARE_NUMBERS;
/** What names the memory to neighbours, how long that is, and where in it the part begins. */
const HANDLE = SPACE + 1;
const HANDLE_BYTES = HANDLE + 1;
const HANDLE_OFFSET = HANDLE_BYTES + 1;
/** Where the words are that only the device's atomics touch: key and address. */
const WORDS = HANDLE_OFFSET + 1;
const NUMBERS = WORDS + 2;

/** How many windows without a name a rank has made: mostly, all ranks of a window give it the same number. */
const windowsMade = new WeakMap<Job, number>();

function nextName(job: Job): string {
  const count = (windowsMade.get(job) ?? 0) + 1;
  windowsMade.set(job, count);
  return `#${count}`;
}

/** Refuses a call that would block a thread on which other ranks run. */
export function refuseSync(comm: Communicator, call: string): void {
  if (Communicator.is(comm)) comm.job.refuseSync(call);
}

/** Begins `Window.allocate`. Throws only for what is wrong with the communicator: a refused argument ends the collective at all ranks. */
export function beginAllocate(
  comm: Communicator,
  type: TypedArrayConstructor,
  length: number,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.allocate';
  return beginWindow(comm, call, 'allocate', options, (given) => offerAllocation(comm, call, type, length, given));
}

/** Begins `Window.allocateShared`. */
export function beginAllocateShared(
  comm: Communicator,
  type: TypedArrayConstructor,
  length: number,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.allocateShared';
  return beginWindow(comm, call, 'shared', options, (given) => {
    const { loadStore } = comm.job.context.capabilities;
    if (!loadStore) {
      refuseStrangers(comm, call);
      // Each part lies in its own rank's memory, which that rank's device knows.
      given = { ...given, info: { ...given.info, alloc_shared_noncontig: true } };
    }
    const offer = offerAllocation(comm, call, type, length, given);
    if (loadStore && offer.hints.fence !== 'immediate') {
      throw new RmaError(
        'ERR_INFO_VALUE',
        `${call}: fence "${offer.hints.fence}" requires a window that is accessed by requests, but ranks access a shared window by loads and stores; use fence "immediate" or Window.allocate`,
      );
    }
    return offer;
  });
}

/** Throws unless this rank can load and store the memory of all ranks. */
function refuseStrangers(comm: Communicator, call: string): void {
  const stranger = comm.group.worldRanks.findIndex((_, rank) => !comm.shares(rank));
  if (stranger < 0) return;
  throw new RmaError(
    'ERR_RMA_SHARED',
    `${call}: rank ${comm.rank} reaches rank ${stranger} through a device and cannot load and store its memory; use comm.splitType('shared') to select ranks that can, or use Window.allocate`,
  );
}

/** Begins `Window.create`. */
export function beginCreate(
  comm: Communicator,
  given: TypedArray | RawMemory | null,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.create';
  return beginWindow(comm, call, 'create', options, (options) => {
    const memory = given === null ? new Uint8Array(0) : arrayOver(call, given);
    const { length } = memory;
    const array = typeCodeOf(given) < 0 ? {} : { given: given as TypedArray };
    const common = { ...checkOptions(comm, call, options, memory.BYTES_PER_ELEMENT), ...array };
    refuseLost(call, 'memory', memory, length);
    if (memory.byteLength === 0) return { ...common, local: memory, memory: undefined, discard: () => {} };
    const owner = comm.job.libraryMemory.get(memory.buffer);
    if (owner !== undefined) return { ...common, local: memory, memory: owner, discard: () => {} };
    return { ...common, local: memory, ...offerOwnMemory(comm, call, memory, common.hints) };
  });
}

/** Begins `Window.createDynamic`. */
export function beginCreateDynamic(comm: Communicator, options: WindowOptions | undefined): WindowInTheMaking {
  const call = 'Window.createDynamic';
  return beginWindow(comm, call, 'dynamic', options, (given) => {
    if (given.dispUnit !== undefined && given.dispUnit !== 1) {
      throw argumentRangeError(
        `${call}: displacements are addresses, so dispUnit must be 1, not ${show(given.dispUnit)}`,
        'ERR_DISP',
      );
    }
    const common = checkOptions(comm, call, given, 1);
    const local = new Uint8Array(new ArrayBuffer(0));
    const { loadStore } = comm.job.context.capabilities;
    const { fence, lock } = common.hints;
    for (const [key, value] of [
      ['fence', fence === 'immediate' || (!loadStore && fence !== 'deferred') ? undefined : fence],
      ['lock', lock === 'queue' ? undefined : lock],
    ]) {
      if (value === undefined) continue;
      throw new RmaError(
        'ERR_INFO_VALUE',
        `${call}: the hint ${key} cannot be "${value}" for a dynamic window, whose memory is not known when it is created`,
      );
    }
    if (!loadStore) return { ...common, local, memory: undefined, discard: () => {} };
    const native = loadNative();
    const share = native && shareMemory(comm.job, native, undefined);
    return { ...common, local, memory: undefined, discard: () => share?.withdraw(), ...(share && { share }) };
  });
}

/**
 * Memory that others can map, or, where there is no mapping, reach by requests, for `attach`; `undefined` if they cannot map it. The caller has checked that it
 * is an array. Errors: `ERR_BUFFER`.
 */
export function reachable(
  comm: Communicator,
  call: string,
  memory: TypedArray,
): { readonly memory: Memory; readonly discard: () => void } | undefined {
  const known = comm.job.libraryMemory.get(memory.buffer);
  if (known !== undefined) return { memory: known, discard: () => {} };
  refuseResizable(call, memory);
  const { context } = comm.job;
  const exposed = comm.size === 1 ? undefined : context.exposeMemory(memory.buffer, memory.byteLength);
  if (exposed !== undefined) return { memory: exposed, discard: () => exposed.free() };
  return context.capabilities.loadStore ? undefined : adopted(comm, call, memory);
}

/** Memory of the program's own, where others reach it by requests. */
function adopted(
  comm: Communicator,
  call: string,
  memory: TypedArray,
): { readonly memory: Memory; readonly discard: () => void } {
  const { context } = comm.job;
  if (!context.capabilities.remoteUserMemory) {
    throw new RmaError(
      'ERR_BUFFER',
      `${call}: this device reaches only memory from the library; use memory from comm.allocMem or Window.allocate`,
    );
  }
  const own = context.adoptMemory(memory.buffer);
  return { memory: own, discard: () => own.free() };
}

function refuseResizable(call: string, memory: TypedArray): void {
  const { buffer } = memory;
  if (!isResizable(buffer)) return;
  throw new RmaError(
    'ERR_BUFFER',
    `${call}: the ${types.isSharedArrayBuffer(buffer) ? 'Shared' : ''}ArrayBuffer is resizable, so its memory could change while other ranks access it; use a buffer of fixed length`,
  );
}

/** Memory that is not the library's: the best way to it that there is. */
function offerOwnMemory(
  comm: Communicator,
  call: string,
  memory: TypedArray,
  hints: Hints,
): Pick<Offer, 'memory' | 'share' | 'discard'> {
  const { context } = comm.job;
  if (!context.capabilities.loadStore) {
    refuseResizable(call, memory);
    return adopted(comm, call, memory);
  }
  const exposed = reachable(comm, call, memory);
  if (exposed !== undefined) return exposed;
  const native = loadNative();
  if (native !== undefined) {
    const share = shareMemory(comm.job, native, memory);
    return { memory: undefined, share, discard: () => share.withdraw() };
  }
  if (comm.size === 1 && hints.fence === 'immediate') return { memory: undefined, discard: () => {} };
  throw new RmaError(
    'ERR_BUFFER',
    `${call}: without the native addon (see "onesided info") other threads cannot access a plain ArrayBuffer; use a SharedArrayBuffer of fixed length, memory from comm.allocMem, or Window.allocate`,
  );
}

/** Memory for this rank's part; none yet for one that the first rank allocates. */
function offerAllocation(
  comm: Communicator,
  call: string,
  type: TypedArrayConstructor,
  length: number,
  given: WindowOptions,
): Offer {
  if (!isTypedArrayConstructor(type)) {
    throw argumentTypeError(
      `${call}: the element type must be a typed-array constructor, not ${show(type)}`,
      'ERR_TYPE',
    );
  }
  checkLength(call, length);
  const common = checkOptions(comm, call, given, type.BYTES_PER_ELEMENT);
  const bytes = length * type.BYTES_PER_ELEMENT;
  if (!Number.isSafeInteger(bytes))
    throw argumentRangeError(`${call}: ${length} elements exceed the limit of 2^53 − 1 bytes`, 'ERR_SIZE');
  const empty = { ...common, local: new type(new ArrayBuffer(0)), memory: undefined, discard: () => {} };
  if (call === 'Window.allocateShared' && !common.hints.nonContiguous) return { ...empty, wanted: length };
  if (bytes === 0) return empty;
  const memory = allocate(comm, call, bytes);
  return { ...common, local: new type(memory.buffer, 0, length), memory, discard: () => giveBack(comm, memory) };
}

function allocate(comm: Communicator, call: string, bytes: number): Memory {
  try {
    return comm.job.allocateMemory(bytes);
  } catch (cause) {
    throw new RmaError(
      'ERR_SIZE',
      `${call}: cannot allocate ${bytes} bytes of shared memory: ${(cause as Error).message}`,
      { cause },
    );
  }
}

function giveBack(comm: Communicator, memory: Memory): void {
  comm.job.libraryMemory.delete(memory.buffer);
  memory.free();
}

/** The options, read once. */
function readOptions(call: string, options: WindowOptions | undefined): WindowOptions {
  if (options === undefined) return {};
  const wait = readWait(call, options, ['info', 'dispUnit', 'name']);
  const { info, dispUnit, name } = reading(call, 'the options', () => ({
    info: options.info,
    dispUnit: options.dispUnit,
    name: options.name,
  }));
  if (name !== undefined && typeof name !== 'string') {
    throw argumentTypeError(`${call}: name must be a string, not ${show(name)}`);
  }
  return {
    ...wait,
    ...(info !== undefined && { info }),
    ...(dispUnit !== undefined && { dispUnit }),
    ...(name && { name }),
  };
}

function checkOptions(
  comm: Communicator,
  call: string,
  options: WindowOptions,
  elementSize: number,
): { dispUnit: number; hints: Hints } {
  const { dispUnit = elementSize } = options;
  if (typeof dispUnit !== 'number')
    throw argumentTypeError(`${call}: dispUnit must be a number, not ${show(dispUnit)}`, 'ERR_DISP');
  if (!Number.isInteger(dispUnit) || dispUnit < 0 || dispUnit > 2 ** 31 - 1) {
    throw argumentRangeError(`${call}: dispUnit must be 0 … 2^31 − 1 bytes, not ${show(dispUnit)}`, 'ERR_DISP');
  }
  return {
    dispUnit,
    hints: readInfo(call, options.info, comm.job.context.capabilities.immediateCompletion, comm.size),
  };
}

function beginWindow(
  comm: Communicator,
  call: WindowCall,
  flavor: Flavor,
  options: WindowOptions | undefined,
  makeOffer: (given: WindowOptions) => Offer,
): WindowInTheMaking {
  if (!Communicator.is(comm)) {
    throw argumentTypeError(
      `${call}: the first argument must be a communicator, such as the result of init(), not ${show(comm)}`,
      'ERR_COMM',
    );
  }
  const refusal = comm.refusal(call);
  if (refusal !== undefined) throw refusal;
  let given: WindowOptions = {};
  let offer: Offer | undefined;
  let wrong: unknown;
  try {
    given = readOptions(call, options);
    offer = makeOffer(given);
  } catch (error) {
    wrong = error;
  }
  const name = given.name ?? nextName(comm.job);
  return {
    operation: comm.begin(meet(comm, call, flavor, name, offer, wrong), call, { name: call }),
    options: offer === undefined ? {} : { signal: given.signal, timeout: given.timeout },
  };
}

/** What a rank has made for a window before the others know of it. */
interface Prepared {
  /** What it tells the others. */
  readonly numbers: Float64Array;
  readonly block: Block;
  /** Its part; absent if it has none that others can reach. */
  readonly region: MemoryRegion | undefined;
  discard(): void;
}

/**
 * Makes this rank's words of a window, and registers its part.
 * @param node where in its words those of the schemes begin
 * @param words how many 32-bit words it needs
 * Errors: `ERR_SIZE`; then nothing is left.
 */
function prepare(
  comm: Communicator,
  call: string,
  flavor: Flavor,
  offer: Offer,
  node: number,
  words: number,
): Prepared {
  const { job, size } = comm;
  const { loadStore } = job.context.capabilities;
  const { neighbours } = job.context;
  const { hints, local, memory } = offer;
  let region: MemoryRegion | undefined;
  let block: Block | undefined;
  let atomics: Block | undefined;
  const discard = (): void => {
    region?.deregister();
    if (atomics !== block) atomics?.free();
    block?.free();
  };
  try {
    if (!loadStore) atomics = allocateWords(job, remoteWords(size, flavor));
    else if (locksByRequests(hints, true)) atomics = allocateWords(job, remoteLockWords(size));
    block = loadStore ? job.blocks.allocate(words) : atomics!;
    if (memory !== undefined) region = job.pd.registerMemory(memory, local.byteOffset, local.byteLength, ALL_ACCESS);
  } catch (cause) {
    discard();
    throw new RmaError(
      'ERR_SIZE',
      `${call}: there is no memory for what the library needs for the window: ${(cause as Error).message}`,
      { cause },
    );
  }
  // Nobody knows where they are yet.
  if (loadStore) setUpNode(hints, block.words.subarray(node, words));
  if (atomics !== undefined) atomics.words[0] = firstLockWord(hints, size);
  const numbers = new Float64Array(NUMBERS);
  numbers[WORDS] = atomics?.place[0] ?? 0;
  numbers[WORDS + 1] = atomics?.place[1] ?? 0;
  numbers[BYTES] = (offer.wanted ?? local.length) * local.BYTES_PER_ELEMENT;
  numbers[DISP_UNIT] = offer.dispUnit;
  numbers[RKEY] = region?.rkey ?? 0;
  numbers[ADDRESS] = region?.address ?? 0;
  numbers[SCHEME] = numberOf(hints);
  numbers[ELEMENT] = local.BYTES_PER_ELEMENT;
  numbers.set(block.place, PLACE);
  numbers[SPACE] = comm.lastSpace;
  if (neighbours !== undefined && memory !== undefined) {
    numbers[HANDLE] = neighbours.handleOf(memory);
    numbers[HANDLE_BYTES] = memory.byteLength;
    numbers[HANDLE_OFFSET] = local.byteOffset;
  }
  if (offer.share !== undefined) numbers.set(offer.share.numbers, SHARE);
  return { numbers, block, region, discard };
}

/** The numbers of a rank that makes no window. */
function refusing(): Float64Array {
  const numbers = new Float64Array(NUMBERS);
  numbers[REFUSED] = 1;
  return numbers;
}

/** For the other ranks. */
function notMade(call: string, { rank, why }: Refusal): RmaError {
  const reason = why.startsWith(`${call}: `) ? why.slice(call.length + 2) : why;
  return new RmaError('ERR_WIN', `${call}: no window was created, because the call failed on rank ${rank}: ${reason}`);
}

/** The collective part. A rank that refuses says so, so that nobody waits for it. */
function* meet(
  comm: Communicator,
  call: string,
  flavor: Flavor,
  name: string,
  offer: Offer | undefined,
  wrong: unknown,
): Generator<void, WindowParts> {
  const { job, size } = comm;
  const lids = comm.group.worldRanks;
  const locks = barrierWords(size);
  // Counters stand on cache lines of their own.
  const allParts = Math.ceil((locks + queueLockWords(size)) / 32) * 32;
  const counters = allParts + ALL_LOCK_WORDS;
  const signal = counters + counterWords(size);
  const stripes = Math.ceil((signal + 1) / 32) * 32;
  const table = stripes + STRIPE_WORDS;
  const node = flavor === 'dynamic' ? table + DIRECTORY_WORDS : table;
  const words = node + (offer === undefined ? 0 : nodeWords(offer.hints, size));
  const { loadStore } = job.context.capabilities;
  const { neighbours } = job.context;
  let prepared: Prepared | undefined;
  let failure = wrong;
  try {
    if (offer !== undefined) prepared = prepare(comm, call, flavor, offer, node, words);
  } catch (error) {
    failure = error;
  }
  const { numbers = refusing() } = prepared ?? {};
  let onDiscard: (() => void) | undefined;
  const discard = (): void => {
    onDiscard?.();
    prepared?.discard();
    offer?.discard();
  };
  const all = yield* comm.exchange(numbers);
  const of = (rank: number, what: number): number => all[NUMBERS * rank + what];
  const refused = indexWhere(size, (rank) => of(rank, REFUSED) !== 0);
  const broken = refused < 0 ? brokenPromise(call, size, of, offer?.hints) : undefined;
  if (offer === undefined || prepared === undefined || refused >= 0 || broken !== undefined) {
    discard();
    const why = refused < 0 ? '' : yield* comm.hearWhy(refused, failure);
    throw failure ?? broken ?? notMade(call, { rank: refused, why });
  }
  const { block, region } = prepared;

  const blockOf = (rank: number): Int32Array =>
    rank === comm.rank
      ? block.words
      : job.blocks.map(lids[rank], all.subarray(NUMBERS * rank + PLACE, NUMBERS * (rank + 1)), words);
  // All at once, before anything else is waited for: so they have the same numbers at all ranks.
  let space = ranksOf(size).reduce((max, rank) => Math.max(max, of(rank, SPACE)), 0);
  const openChannel = (): OwnChannel => {
    const channel = comm.openChannel(space);
    space = channel.space;
    return channel;
  };
  const trace = comm.traceId();
  const number = comm.windows;
  const barrier = loadStore
    ? makeBarrier(job.context, comm.rank, lids, comm.traits, blockOf, comm.signals(trace))
    : new MessageBarrier(openChannel());
  const channels = openChannels(offer.hints, openChannel);
  const posts = loadStore ? undefined : openChannel();
  const description = `window ${name}`;

  let wire: RequestTransfer | undefined;
  let updates: RequestUpdates | undefined;
  /** A word of a rank that only the device's atomics touch. */
  const remoteWord = (rank: number, index: number): RemoteWord => ({
    rank,
    rkey: of(rank, WORDS),
    address: of(rank, WORDS + 1) + 8 * index,
  });
  const ownNode = loadStore ? undefined : new Int32Array(nodeWords(offer.hints, size));
  if (ownNode !== undefined) {
    setUpNode(offer.hints, ownNode);
    if (channels.agent !== undefined) job.tasks?.meetings.offer(channels.agent.space, lids[comm.rank], ownNode);
  }
  /** Those of another rank where ranks are tasks, and on one node. */
  const nodeOf = (rank: number): Int32Array => {
    if (ownNode === undefined) return blockOf(rank).subarray(node, words);
    if (rank === comm.rank || job.tasks === undefined) return ownNode;
    return job.tasks.meetings.find(channels.agent!.space, lids[rank]) as Int32Array;
  };
  const byRequests = movesByRequests(offer.hints, loadStore);
  if (byRequests || locksByRequests(offer.hints, loadStore)) {
    const makeTransfer = (): RequestTransfer =>
      new RequestTransfer(
        job.context,
        job.pd,
        job.origins,
        size,
        offer.hints.fence === 'remote-notify',
        requestTrace(comm, trace),
        { now: () => job.progress.now(), findFailure: () => job.findFailure(), timeout: job.progress.timeout },
      );
    const regions = Array.from({ length: size }, (_, rank) => ({ rkey: of(rank, RKEY), address: of(rank, ADDRESS) }));
    if (job.tasks !== undefined) {
      wire = makeTransfer();
      wire.connectLater(meetingOf(comm, space, job.tasks.meetings), lids, regions);
    } else {
      try {
        wire = yield* connected(comm, call, makeTransfer, regions);
      } catch (error) {
        discard();
        throw error;
      }
    }
    if (region !== undefined && offer.local.byteOffset === 0) wire.lendPart(offer.local.buffer, region);
    if (!loadStore) {
      const word = (rank: number, i: number): RemoteWord => remoteWord(rank, remoteLockWords(size) + i);
      const failed = (): number => {
        const failure = job.failure();
        return failure instanceof RankFailedError ? lids.indexOf(failure.rank) : -1;
      };
      const remoteStripes = new RemoteStripes(job.context, wire, comm.rank, size, word, {
        now: () => job.progress.now(),
        failed,
      });
      updates = new RequestUpdates(wire, comm.rank, regions, remoteStripes, inBulk(offer.hints), loadNative());
    }
    if (job.tasks !== undefined) yield* comm.farewell();
  }
  const requests = byRequests ? wire : undefined;
  const general =
    posts !== undefined
      ? new SyncByRequests(posts, wire!)
      : new Counters(job.context, comm.rank, lids, comm.traits.plainFlags, (rank) =>
          blockOf(rank).subarray(counters, signal),
        );

  const { hints, dispUnit, share } = offer;
  const owners = lids.map((lid, rank) => {
    // This rank's own part is loaded and stored, unless everything goes by requests.
    if (rank === comm.rank && requests === undefined) return undefined;
    const numbers = all.subarray(NUMBERS * rank + SHARE, NUMBERS * (rank + 1));
    return readOwner(job, lid, numbers, rank === comm.rank ? share : undefined);
  });
  const stripesOf = (rank: number, base: number): Stripes =>
    new Stripes(blockOf(rank).subarray(stripes, table), base, job);
  const makeDirectory = (): Directory => {
    if (loadStore) return new SharedDirectory(comm, (rank) => blockOf(rank).subarray(table, node), stripesOf);
    const first = remoteWords(size, undefined);
    return new RemoteDirectory(comm, requests!, block.words.subarray(2 * first), (rank, index) =>
      remoteWord(rank, first + index),
    );
  };
  const attachments = flavor === 'dynamic' ? new Attachments(comm, description, share, makeDirectory()) : undefined;
  const native = loadNative();
  const userMemory =
    native !== undefined && owners.some((owner) => owner !== undefined)
      ? new UserMemory(job, native, owners)
      : undefined;
  const sizes = Array.from({ length: size }, (_, rank) => of(rank, BYTES));
  const pointers: RemotePointer[] = [];
  let { local } = offer;
  const isNeighbour = (rank: number): boolean => neighbours?.has(lids[rank]) === true && of(rank, HANDLE) !== 0;
  let partOf = (rank: number): RemotePart => {
    if (rank === comm.rank) return new RemotePart(local.buffer, local.byteOffset, sizes[rank]);
    if (of(rank, SHARE) !== 0) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `${description}: other ranks cannot load and store the part of rank ${rank}, because it is private memory of that rank; use put and get, or memory from comm.allocMem on that rank`,
      );
    }
    if (isNeighbour(rank)) {
      const { buffer, offset, release } = neighbours!.map(lids[rank], of(rank, HANDLE), of(rank, HANDLE_BYTES));
      pointers.push({ buffer, offset, release });
      return new RemotePart(buffer, offset + of(rank, HANDLE_OFFSET), sizes[rank]);
    }
    if (!loadStore) {
      throw new RmaError(
        'ERR_RMA_SHARED',
        `${description}: the part of rank ${rank} is behind a device, so other ranks cannot load and store it; use put and get`,
      );
    }
    const pointer = job.context.remotePointer(lids[rank], of(rank, RKEY), of(rank, ADDRESS), sizes[rank], ALL_ACCESS);
    pointers.push(pointer);
    return new RemotePart(pointer.buffer, pointer.offset, sizes[rank]);
  };
  const wayTo = (rank: number): Way => (requests === undefined ? LOADS : isNeighbour(rank) ? MIXED_WAYS : REQUESTS);
  if (offer.wanted !== undefined && sizes.some((bytes) => bytes > 0)) {
    let first: FirstRanksMemory;
    try {
      first = yield* allocateByFirst(comm, call, sizes);
    } catch (error) {
      discard();
      throw error;
    }
    onDiscard = first.discard;
    partOf = (rank) => first.part(rank, pointers);
    if (sizes[comm.rank] > 0) {
      const part = partOf(comm.rank);
      const type = local.constructor as TypedArrayConstructor;
      local = new type(part.buffer, part.u8.byteOffset + part.skew, offer.wanted);
    }
  }
  const kernels = loadNative();
  const signalWord = (rank: number): Int32Array => blockOf(rank).subarray(signal, signal + 1);
  const map = (rank: number): RemotePart => {
    if (sizes[rank] === 0) return new RemotePart(new ArrayBuffer(0), 0, 0);
    if (rank !== comm.rank) return partOf(rank);
    if (local.length === 0) throw goneError(description);
    return new RemotePart(local.buffer, local.byteOffset, sizes[rank]);
  };
  // Others reach memory of this rank's own through its thread, which has stripes for all of it.
  const makeStripes = (rank: number): Stripes =>
    rank === comm.rank && share?.stripes !== undefined ? share.stripes : stripesOf(rank, 0);
  let ownPart: RemotePart | undefined;
  let ownStripes: Stripes | undefined;
  const server = new OperationServer(
    () => {
      if (ownPart === undefined || ownPart.u8.length < sizes[comm.rank]) ownPart = map(comm.rank);
      return ownPart;
    },
    () => {
      // By requests nobody else touches a part by its processor's instructions.
      ownStripes ??= loadStore ? makeStripes(comm.rank) : new Stripes(new Int32Array(STRIPE_WORDS), 0, job);
      return ownStripes;
    },
    kernels,
    () => {
      if (requests === undefined) Atomics.add(signalWord(comm.rank), 0, 1);
      else requests.addSignal();
    },
  );
  const { release: releaseSchemes, ...schemes } = makeSchemes({
    comm,
    hints,
    description,
    barrier,
    channels,
    kernels,
    wire,
    server,
    queueLock: (rank) => new QueueLock(blockOf(rank).subarray(locks, allParts), comm.rank, lids, job.context),
    allLock: () => new AllLock(blockOf(0).subarray(allParts, counters), comm.rank, lids, job.context),
    remoteWord,
    nodeWords: nodeOf,
  });
  return {
    ...schemes,
    comm,
    name,
    flavor,
    local,
    given: offer.given,
    dispUnit,
    hints,
    general,
    signalWord,
    wire,
    requests,
    updates,
    attachments,
    userMemory,
    kernels,
    trace,
    number,
    targets: sizes.map((bytes, rank) => new Target(rank, bytes, of(rank, DISP_UNIT), wayTo(rank))),
    map,
    makeStripes: (rank) => (loadStore ? makeStripes(rank) : undefined),
    release() {
      releaseSchemes();
      if (channels.agent !== undefined) job.tasks?.meetings.withdraw(channels.agent.space, lids[comm.rank]);
      attachments?.release();
      wire?.close();
      for (const pointer of pointers) pointer.release();
      discard();
    },
  };
}

/** Work requests among the ranks of a window. A rank that cannot make its queue pairs, or connect them, says so. */
function* connected(
  comm: Communicator,
  call: string,
  make: () => RequestTransfer,
  regions: readonly RemoteRegion[],
): Generator<void, RequestTransfer> {
  const { rank: self, size } = comm;
  let transfer: RequestTransfer | undefined;
  let failure: unknown;
  const attempt = (step: () => void): void => {
    try {
      step();
    } catch (error) {
      failure = error;
    }
  };
  // A queue pair for each rank, and whether they could not be made.
  const stride = size + 1;
  const own = new Float64Array(stride);
  attempt(() => {
    transfer = make();
    for (let rank = 0; rank < size; rank++) own[rank] = transfer.queuePairFor(rank);
  });
  if (failure !== undefined) own[size] = 1;
  const numbers = yield* comm.exchange(own);
  const first = indexWhere(size, (rank) => numbers[stride * rank + size] !== 0);
  let refusal: Refusal | undefined;
  if (first >= 0) refusal = { rank: first, why: yield* comm.hearWhy(first, failure) };
  else {
    const mineAt = Float64Array.from({ length: size }, (_, rank) => numbers[stride * rank + self]);
    attempt(() => transfer!.connect(comm.group.worldRanks, mineAt, regions));
    refusal = yield* comm.agree(failure);
  }
  if (refusal === undefined) return transfer!;
  transfer?.close();
  throw failure ?? notMade(call, refusal);
}

/** @param space a space of messages that is the window's at all its ranks, and no other's that has one of them */
function meetingOf(comm: Communicator, space: number, meetings: Meetings): Meeting {
  const lids = comm.group.worldRanks;
  return {
    rank: comm.rank,
    offer: (transfer) => meetings.offer(space, lids[comm.rank], transfer),
    find: (rank) => meetings.find(space, lids[rank]) as RequestTransfer | undefined,
    withdraw: () => meetings.withdraw(space, lids[comm.rank]),
  };
}

/** What the ranks' numbers say against each other, or against what was promised by hints. The same at all ranks. */
function brokenPromise(
  call: string,
  size: number,
  of: (rank: number, what: number) => number,
  hints: Hints | undefined,
): RmaError | undefined {
  const differs = (what: number): number => indexWhere(size, (rank) => of(rank, what) !== of(0, what));
  const hinted = differs(SCHEME);
  if (hinted >= 0) {
    return new RmaError(
      'ERR_INFO_VALUE',
      `${call}: the hints of rank ${hinted} differ from those of rank 0; all ranks must pass the same hints`,
    );
  }
  if (call === 'Window.allocateShared' && !hints?.nonContiguous) {
    let at = 0;
    for (let rank = 0; rank < size; rank++) {
      if (of(rank, BYTES) > 0 && at % of(rank, ELEMENT) !== 0) {
        return new RmaError(
          'ERR_SIZE',
          `${call}: the part of rank ${rank} would begin at byte ${at}, which is not a multiple of its element size, ${of(rank, ELEMENT)} bytes; choose other lengths or pass the hint alloc_shared_noncontig`,
        );
      }
      at += of(rank, BYTES);
    }
  }
  for (const [promised, hint, what, thing] of [
    [hints?.sameSize, 'same_size', BYTES, 'part'],
    [hints?.sameDispUnit, 'same_disp_unit', DISP_UNIT, 'displacement unit'],
  ] as const) {
    const rank = differs(what);
    if (!promised || rank < 0) continue;
    return new RmaError(
      'ERR_INFO_VALUE',
      `${call}: the hint ${hint} is set, but rank 0 has a ${thing} of ${of(0, what)} bytes and rank ${rank} one of ${of(rank, what)} bytes`,
    );
  }
  return undefined;
}

/** Memory that the first rank has allocated for all, one part right behind the other. */
interface FirstRanksMemory {
  /** The part of a rank, mapped. @param pointers gets what is to be given back */
  part(rank: number, pointers: RemotePointer[]): RemotePart;
  discard(): void;
}

function* allocateByFirst(
  comm: Communicator,
  call: string,
  sizes: readonly number[],
): Generator<void, FirstRanksMemory> {
  const { job } = comm;
  const offsets = sizes.map((_, rank) => sizes.slice(0, rank).reduce((sum, bytes) => sum + bytes, 0));
  const total = offsets[sizes.length - 1] + sizes[sizes.length - 1];
  let memory: Memory | undefined;
  let region: MemoryRegion | undefined;
  let failure: unknown;
  if (comm.rank === 0) {
    try {
      memory = allocate(comm, call, total);
      region = job.pd.registerMemory(memory, 0, total, ALL_ACCESS);
    } catch (error) {
      failure = error;
    }
  }
  const discard = (): void => {
    region?.deregister();
    if (memory !== undefined) giveBack(comm, memory);
  };
  const told = yield* comm.exchange(Float64Array.of(region?.rkey ?? -1, region?.address ?? 0));
  const [rkey, address] = told;
  if (rkey < 0) {
    discard();
    throw failure ?? notMade(call, { rank: 0, why: yield* comm.hearWhy(0, failure) });
  }
  return {
    part(rank, pointers) {
      if (memory !== undefined) return new RemotePart(memory.buffer, offsets[rank], sizes[rank]);
      const lid = comm.group.worldRanks[0];
      const pointer = job.context.remotePointer(lid, rkey, address + offsets[rank], sizes[rank], ALL_ACCESS);
      pointers.push(pointer);
      return new RemotePart(pointer.buffer, pointer.offset, sizes[rank]);
    },
    discard,
  };
}

/** For the rank itself, once its buffer is detached. */
export function goneError(window: string): RmaError {
  return new RmaError(
    'ERR_BUFFER',
    `${window}: this rank's part is detached, because its ArrayBuffer was transferred; other ranks still access the original memory`,
  );
}

/** 64-bit words of a rank: those that only the device's atomics touch, its lock and the stripes of its part; behind them the directory of a dynamic window. */
function remoteWords(size: number, flavor: Flavor | undefined): number {
  return remoteLockWords(size) + remoteStripeWords(size) + (flavor === 'dynamic' ? directoryWords(size) : 0);
}

/** A block of such words, in the form of one that is shared. */
function allocateWords(job: Job, words: number): Block {
  const { memory, region } = allocateRegistered(job.context, job.pd, 8 * words);
  return {
    words: new Int32Array(memory.buffer, 0, 2 * words),
    place: [region.rkey, region.address, 8 * words, 0],
    free() {
      region.deregister();
      memory.free();
    },
  };
}

function ranksOf(size: number): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

function indexWhere(size: number, holds: (rank: number) => boolean): number {
  for (let rank = 0; rank < size; rank++) if (holds(rank)) return rank;
  return -1;
}
