/**
 * The multicast barrier (BSP-IB §3.2). Each other process tells process 0, the manager, how many chunks it has for
 * which process. The manager sends the sums to all, as one datagram to a multicast group. No process but the manager
 * sends or receives more than one message, and that arrives after two hops, however many processes there are.
 *
 * Datagrams may be lost. A process that gets no sums for some time after it had told the manager asks for its own by a
 * message, which connections deliver, and is answered by one. As long as nothing is lost, nothing is sent for that.
 *
 * Why each process gets the sums of its superstep n, once, and no others, if no process dies:
 * - What a process tells the manager, questions and answers are messages of connections: they come, each once, those of
 *   one process to another in order. Only the sums for all are datagrams: they may be lost, late, doubled, or not the
 *   manager's.
 * - Sums are taken if they have the number n, come from the manager's queue pair, and were not taken before. The
 *   manager calculates those of n once, so all that bear that number are the same. Sums that come late, or a second
 *   time, have a number that was taken.
 * - A process tells of n + 1 only after it has taken the sums of n. So the manager, which waits for all, cannot have
 *   sums of n + 1 before all have those of n. Those of n are all that any process can ask for, and the manager keeps
 *   them until it has others. A question that comes while the manager still waits for n is kept, and answered with the
 *   sums, not only by the datagram: a process that has asked once does not ask again. Datagrams of at most two
 *   supersteps are on their way to a process, and it has receives for so many.
 * - Numbers have 32 bits. Those of datagrams that are late by 2^32 supersteps would be mistaken.
 * - The manager answers whenever it looks for messages: in the next superstep, while it waits for chunks of this one,
 *   and in the last superstep too, since all meet after it (`Bsp.end`), and the manager cannot go on before.
 *
 * If a process dies, every process that waits learns it as from any wait: the manager waits for all, and all wait for
 * the manager, or for what it has told them to expect. If the manager has died between the sums and its answer to a
 * question, the asker waits for the manager.
 *
 * Where the port of some process has no multicast, `tree` does the same (begin-computation.ts).
 */

import type { Step } from '../../collective/collectives.ts';
import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import { bytesOf } from '../../datatype/base-types.ts';
import type { Channel } from '../../message/message-channel.ts';
import { type Counting, type Counts, gatherNumbers, receiveWords } from './counts.ts';
import { datagramBytes, type GroupNumbers, type MulticastMembers } from './multicast-members.ts';
import { addLoad, type Load, TOTAL_WORDS, totalsIn } from './totals.ts';

/**
 * Words of a datagram before the sums: superstep, whether some process speaks, the first process; and the totals, if
 * processes say their loads.
 */
const HEAD = 3;
const headWith = (hasTotals: boolean): number => (hasTotals ? HEAD + TOTAL_WORDS : HEAD);
/** Sums of a process: its chunks of puts, and of gets. */
const EACH = 2;
const MANAGER = 0;

/** Datagrams for the sums of all processes. @param hasTotals whether processes say their loads */
export function partsFor(comm: Communicator, hasTotals: boolean): number {
  return Math.ceil(comm.size / sumsIn(datagramBytes(comm), headWith(hasTotals)));
}

function sumsIn(bytes: number, head: number): number {
  return Math.floor((bytes / 4 - head) / EACH);
}

/** What has been counted of the protocol, at this process. */
export interface MulticastStatistics {
  /** Supersteps whose sums have come by a datagram; at the manager, those whose sums it has sent. */
  readonly multicasts: number;
  /** Questions for sums that had not come; at the manager, those that it has answered. */
  readonly nacks: number;
}

export class MulticastCounts implements Counting {
  multicasts = 0;
  nacks = 0;
  readonly #comm: Communicator;
  readonly #group: MulticastMembers;
  readonly #questions: OwnChannel;
  readonly #nackAfter: number;
  readonly #sumsOfPart: number;
  readonly #stop: () => void;
  #step = 0;
  /** When this process asks, by its clock in microseconds; ∞ if it has asked, or need not. */
  #askAt = Number.POSITIVE_INFINITY;
  readonly #head: number;
  /** What has come of the superstep under way: whether some process speaks, puts, gets, totals. */
  #mine: readonly [speaks: number, puts: number, gets: number, totals: Int32Array] | undefined;
  /** The manager: the sums that it calculated last, their superstep, and the processes that have asked too early. */
  #sums = new Int32Array(0);
  #totals = new Int32Array(0);
  #summed = -1;
  #speaks = 0;
  readonly #asked = new Set<number>();

  /**
   * @param first the numbers of process 0's group
   * @param nackAfter milliseconds
   * @param hasTotals whether processes say their loads
   */
  constructor(
    comm: Communicator,
    group: MulticastMembers,
    first: GroupNumbers,
    questions: OwnChannel,
    nackAfter: number,
    hasTotals: boolean,
  ) {
    this.#comm = comm;
    this.#group = group;
    this.#questions = questions;
    this.#nackAfter = 1000 * nackAfter;
    this.#head = headWith(hasTotals);
    this.#sumsOfPart = sumsIn(datagramBytes(comm), this.#head);
    group.join(first);
    this.#stop = questions.listen((source, message) => this.#heard(source, message));
  }

  *exchange(
    channel: Channel,
    puts: Int32Array,
    gets: Int32Array,
    numbers: Float64Array,
    load: Load | undefined,
  ): Step<Counts> {
    const speaks = numbers.length > 0 ? 1 : 0;
    if (channel.rank === MANAGER) yield* this.#manage(channel, plan(puts, gets, speaks, load));
    else {
      channel.send(MANAGER, bytesOf(plan(puts, gets, speaks, load)));
      // Nothing will come by datagrams, so there is nothing to wait for.
      this.#askAt = this.#group.works ? this.#comm.now() + this.#nackAfter : 0;
      while (!this.#look()) {
        channel.awaited = MANAGER;
        yield;
      }
      channel.awaited = -1;
      this.#askAt = Number.POSITIVE_INFINITY;
    }
    const [someoneSpeaks, putsHere, getsHere, totals] = this.#mine!;
    this.#mine = undefined;
    this.#step = (this.#step + 1) | 0;
    const all = someoneSpeaks > 0 ? yield* gatherNumbers(channel, numbers) : undefined;
    return { puts: putsHere, gets: getsHere, numbers: all, totals: load && totalsIn(totals) };
  }

  /** When to look at it again: when it will ask. */
  isPolling(): boolean | number {
    return this.#askAt === Number.POSITIVE_INFINITY ? false : Math.max(0, (this.#askAt - this.#comm.now()) / 1000);
  }

  close(): void {
    this.#stop();
    this.#group.close();
  }

  // ---- everybody but the manager ------------------------------------------------------------------------------------

  /** Whether the sums are there. Asks for them when it is time. */
  #look(): boolean {
    this.#group.receive((words) => this.#came(words));
    if (this.#mine === undefined) this.#questions.poll();
    if (this.#mine !== undefined) return true;
    if (this.#comm.now() < this.#askAt) return false;
    this.#askAt = Number.POSITIVE_INFINITY;
    this.nacks++;
    this.#questions.send(MANAGER, bytesOf(Int32Array.of(this.#step)));
    return false;
  }

  /** A datagram has come. */
  #came(words: Int32Array): void {
    const head = this.#head;
    const at = head + EACH * (this.#comm.rank - words[2]);
    const isHere = words.length >= head && at >= head && at + EACH <= words.length;
    if (!isHere || words[0] !== this.#step || this.#mine !== undefined) return;
    this.#mine = [words[1], words[at], words[at + 1], words.slice(HEAD, head)];
    this.multicasts++;
  }

  // ---- the manager --------------------------------------------------------------------------------------------------

  *#manage(channel: Channel, own: Int32Array): Step {
    const { size } = channel;
    const sums = new Int32Array(EACH * size);
    const totals = new Int32Array(this.#head - HEAD);
    let someoneSpeaks = 0;
    const add = (words: Int32Array): void => {
      someoneSpeaks |= words[0];
      const from = totals.length === 0 ? 1 : 3;
      if (from > 1) addLoad(totals, { packets: words[1], microseconds: words[2] });
      for (let i = from; i + EACH < words.length; i += 1 + EACH) {
        sums[EACH * words[i]] += words[i + 1];
        sums[EACH * words[i] + 1] += words[i + 2];
      }
    };
    add(own);
    for (let source = 1; source < size; source++) add(yield* receiveWords(channel, source));
    this.#sums = sums;
    this.#totals = totals;
    this.#speaks = someoneSpeaks;
    this.#summed = this.#step;
    this.#mine = [someoneSpeaks, sums[0], sums[1], totals];
    if (size > 1) this.#announce(size);
    for (const source of this.#asked) this.#answer(source);
    this.#asked.clear();
  }

  #announce(size: number): void {
    const parts: Int32Array[] = [];
    for (let first = 0; first < size; first += this.#sumsOfPart) {
      const end = Math.min(size, first + this.#sumsOfPart);
      const sums = this.#sums.subarray(EACH * first, EACH * end);
      parts.push(Int32Array.of(this.#step, this.#speaks, first, ...this.#totals, ...sums));
    }
    if (this.#group.send(parts)) this.multicasts++;
    // No datagrams: each process gets a message.
    else for (let pid = 0; pid < size; pid++) if (pid !== MANAGER) this.#asked.add(pid);
  }

  #answer(source: number): void {
    const at = EACH * source;
    const [puts, gets] = this.#sums.subarray(at, at + EACH);
    this.#questions.send(source, bytesOf(Int32Array.of(this.#summed, this.#speaks, puts, gets, ...this.#totals)));
  }

  /** At the manager a question, at the others its answer. */
  #heard(source: number, message: Uint8Array): void {
    const words = new Int32Array(message.slice().buffer);
    if (this.#comm.rank === MANAGER) {
      this.nacks++;
      if (words[0] === this.#summed) this.#answer(source);
      else this.#asked.add(source);
    } else if (words[0] === this.#step && this.#mine === undefined) {
      this.#mine = [words[1], words[2], words[3], words.subarray(4)];
    }
  }
}

/**
 * What a process tells the manager: whether it speaks; its load, if all say so; then the process, its puts and gets,
 * for each that it has any for.
 */
function plan(puts: Int32Array, gets: Int32Array, speaks: number, load: Load | undefined): Int32Array {
  const words = load === undefined ? [speaks] : [speaks, load.packets, load.microseconds];
  for (let pid = 0; pid < puts.length; pid++) if (puts[pid] + gets[pid] > 0) words.push(pid, puts[pid], gets[pid]);
  return Int32Array.from(words);
}
