/**
 * How processes learn, at the end of a superstep, how many chunks come to each of them (BSP-IB §3.1, §3.2). A process
 * that knows that knows too that all have come to the end of the superstep.
 *
 * - `all-to-all`: each tells each other one how many chunks it has for it. p − 1 messages a process, one after the
 *   other in time for the adapter, one hop.
 * - `tree`: the sums for each process, by a reduce-scatter. ⌈log2 p⌉ messages a process, as many hops.
 * - `multicast`: the sums of all by a datagram to all (multicast-counts.ts).
 *
 * Where packets are paced, they also learn totals (totals.ts): in the same messages; `tree` needs another reduction, of
 * what is not a sum. Where packets may be lost, they learn how many come from whom: sums cannot say that, and `tree`
 * gives way to another one (routed-counts.ts).
 */
import { allgather, allreduce, reduceScatter, type Step } from '../../collective/collectives.ts';
import { bytesOf } from '../../datatype/base-types.ts';
import { Op } from '../../datatype/op.ts';
import type { Channel } from '../../message/message-channel.ts';
import { addLoad, type Load, SUMS, TOTAL_WORDS, type Totals, totalsIn, wordsOf } from './totals.ts';

/** What comes to a process. */
export interface Counts {
  /** Chunks with puts and messages, and chunks with requests of gets, of all others together. */
  readonly puts: number;
  readonly gets: number;
  /** What each process does that all must do alike (alike.ts); `undefined` if no process does any of it. */
  readonly numbers: readonly Float64Array[] | undefined;
  /** If processes say their loads. */
  readonly totals: Totals | undefined;
  /** Packets that come from each process, if these say that. */
  readonly from?: Int32Array | undefined;
}

/**
 * @param puts chunks for each process, and those with gets
 * @param load what this process will send, if all say so
 */
export type Exchange = (
  channel: Channel,
  puts: Int32Array,
  gets: Int32Array,
  numbers: Float64Array,
  load: Load | undefined,
) => Step<Counts>;

/** A way of counting, with what it needs. */
export interface Counting {
  readonly exchange: Exchange;
  /** As `Operation.isPolling`, while it exchanges. */
  isPolling?(): boolean | number;
  close?(): void;
}

/** What a process tells each other one in any case; and if it says its load. */
const TOLD = 2;
const TOLD_WITH_LOAD = 4;
/** And if it says how many packets it has for the other one. */
const TOLD_WITH_PACKETS = 5;

function* allToAll(
  channel: Channel,
  puts: Int32Array,
  gets: Int32Array,
  numbers: Float64Array,
  load: Load | undefined,
): Step<Counts> {
  const { rank, size } = channel;
  const to = load?.to;
  const fixed = load === undefined ? TOLD : to === undefined ? TOLD_WITH_LOAD : TOLD_WITH_PACKETS;
  for (let k = 1; k < size; k++) {
    const target = (rank + k) % size;
    const told = new Float64Array(fixed + numbers.length);
    told[0] = puts[target];
    told[1] = gets[target];
    if (load !== undefined) told.set([load.packets, load.microseconds], TOLD);
    if (to !== undefined) told[TOLD_WITH_LOAD] = to[target];
    told.set(numbers, fixed);
    channel.send(target, bytesOf(told));
  }
  const all = new Array<Float64Array>(size).fill(numbers);
  let speaks = numbers.length > 0;
  let [putsHere, getsHere] = [0, 0];
  const words = new Int32Array(TOTAL_WORDS);
  const from = to && new Int32Array(size);
  if (load !== undefined) addLoad(words, load);
  for (let k = 1; k < size; k++) {
    const source = (rank - k + size) % size;
    const told = new Float64Array((yield* receiveBytes(channel, source)).buffer);
    putsHere += told[0];
    getsHere += told[1];
    if (load !== undefined) addLoad(words, { packets: told[2], microseconds: told[3] });
    if (from !== undefined) from[source] = told[TOLD_WITH_LOAD];
    all[source] = told.subarray(fixed);
    if (told.length > fixed) speaks = true;
  }
  const totals = load && totalsIn(words);
  return { puts: putsHere, gets: getsHere, numbers: speaks ? all : undefined, totals, from };
}

/** The next message from a process, as words. */
export function* receiveWords(channel: Channel, source: number): Step<Int32Array> {
  return new Int32Array((yield* receiveBytes(channel, source)).buffer);
}

/** The next message from a process, in memory of its own. */
function* receiveBytes(channel: Channel, source: number): Step<Uint8Array<ArrayBuffer>> {
  for (;;) {
    const message = channel.receive(source);
    if (message !== undefined) {
      channel.awaited = -1;
      return Uint8Array.from(message);
    }
    channel.awaited = source;
    yield;
  }
}

/** What is summed for each process: chunks of puts, and of gets, and the processes that speak; then totals. */
const SUMMED = 3;

function* tree(
  channel: Channel,
  puts: Int32Array,
  gets: Int32Array,
  numbers: Float64Array,
  load: Load | undefined,
): Step<Counts> {
  const { size } = channel;
  const each = load === undefined ? SUMMED : SUMMED + SUMS;
  const sums = new Int32Array(each * size);
  const speaks = numbers.length > 0 ? 1 : 0;
  const words = load && wordsOf(load);
  for (let pid = 0; pid < size; pid++) {
    sums.set([puts[pid], gets[pid], speaks], each * pid);
    if (words !== undefined) sums.set(words.slice(0, SUMS), each * pid + SUMMED);
  }
  const mine = new Int32Array(each);
  yield* reduceScatter(channel, sums, mine, new Array<number>(size).fill(each), Op.SUM.code);
  let totals: Totals | undefined;
  if (words !== undefined) {
    const most = Int32Array.from(words.slice(SUMS));
    yield* allreduce(channel, most, Op.MAX.code);
    totals = totalsIn([...mine.subarray(SUMMED), ...most]);
  }
  const all = mine[2] > 0 ? yield* gatherNumbers(channel, numbers) : undefined;
  return { puts: mine[0], gets: mine[1], numbers: all, totals };
}

/** The numbers of all processes. */
export function* gatherNumbers(channel: Channel, numbers: Float64Array): Step<Float64Array[]> {
  const { size } = channel;
  const lengths = new Float64Array(size);
  yield* allgather(channel, bytesOf(Float64Array.of(numbers.length)), bytesOf(lengths));
  const most = Math.max(...lengths);
  const block = new Float64Array(most);
  block.set(numbers);
  const all = new Float64Array(most * size);
  yield* allgather(channel, bytesOf(block), bytesOf(all));
  return Array.from(lengths, (length, pid) => all.slice(most * pid, most * pid + length));
}

/** By name, those that need nothing. */
export const COUNT_EXCHANGES = { 'all-to-all': allToAll, tree } as const satisfies Record<string, Exchange>;
/** The values of the option `counts`. */
export const COUNT_EXCHANGE_NAMES = ['all-to-all', 'tree', 'multicast'] as const;
export type CountExchange = (typeof COUNT_EXCHANGE_NAMES)[number];
/** From so many processes on, the messages of `all-to-all` take longer than the hops of `tree`. */
const MANY = 16;

export function defaultCounts(nprocs: number): keyof typeof COUNT_EXCHANGES {
  return nprocs < MANY ? 'all-to-all' : 'tree';
}
