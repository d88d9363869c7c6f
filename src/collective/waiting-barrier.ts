/**
 * A barrier of requests that wait (`wrWait`, `capabilities.waits`): a rank posts its whole schedule when it enters, and
 * the adapters do the rest, also while the ranks compute (report on NIC-based barriers, §7).
 *
 * It is the barrier of words (word-barrier.ts), carried out by adapters. Each message that a rank waits for is a word
 * of its memory, which one other rank writes: the number of the barrier. "Word ≥ mine", compared in wrapping
 * arithmetic, is exact, since a writer is at most one barrier ahead. A message that the rank sends is a write behind
 * waits for all words of the steps before it, on the connection to its target.
 *
 * Why a wait for each of the earlier steps. The connections of a rank go on independently of each other, so that the
 * word of the step before has come does not say that the words of those before it have. A message that says less is no
 * barrier (test/comm/barrier-algorithms.test.ts). All waits of barrier n are posted when the rank enters it, so a word
 * that comes early is found.
 *
 * The end: waits for all words, on a connection of this rank with itself, where nothing else is under way; the last one
 * raises the one completion.
 */
import type { RmaError } from '../errors.ts';
import { lostConnection, lostQueue } from '../message/lost-connection.ts';
import type { Channel } from '../message/message-channel.ts';
import { allocateRegistered, freeRegistered } from '../message/registered-memory.ts';
import { beginQueuePair, connectQueuePair } from '../message/reliable-queue-pairs.ts';
import type { BarrierSchedule } from '../verbs/adapter-barrier.ts';
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import { barrierSchedule, peersOf } from './barrier-algorithms.ts';
import { meetPeers } from './barrier-peers.ts';
import type { BarrierState } from './word-barrier.ts';

/** Bytes from one word to the next: a cache line. */
const STRIDE = 64;
const WORD_BYTES = 4;
/** Barriers whose requests a connection has room for, at least. */
const MOST_BARRIERS = 8;

interface Connection {
  readonly qp: QueuePair;
  /** Requests since the last one that raises a completion: only that gives their places in the queue back. */
  silent: number;
}

/** Where in its words a rank waits for a message: words are in the order of the steps that wait. */
function wordOf(schedule: BarrierSchedule, source: number, tag: number): number {
  const waits = schedule.filter(({ sends }) => !sends);
  return waits.findIndex((step) => step.peer === source && step.tag === tag);
}

interface Made {
  readonly context: Context;
  readonly cq: CompletionQueue;
  readonly region: MemoryRegion;
  readonly connections: ReadonlyMap<number, Connection>;
  /** Requests that a queue pair holds. */
  readonly depth: number;
  readonly own: QueuePair;
}

/** A message of the schedule: where it goes, and how many words it waits for. */
interface Write {
  readonly connection: Connection;
  readonly rkey: number;
  readonly address: number;
  readonly waits: number;
}

export class WaitingBarrier implements BarrierState {
  readonly #made: Made;
  readonly #schedule: BarrierSchedule;
  readonly #writes: readonly Write[];
  readonly #members: readonly number[];
  readonly #words: Int32Array;
  readonly #waits: number;
  readonly #value = new Int32Array(1);
  readonly #bytes = new Uint8Array(this.#value.buffer);
  #count = 0;
  #active = false;
  #isComplete = false;
  #lost: RmaError | undefined;

  /**
   * Collective: the ranks that tell each other something connect.
   * @param channel nothing else goes through it meanwhile
   * @param members the contexts of all ranks
   * @param undo is given what gives back what was made, as soon as there is something
   * @param mayBegin throws if this rank cannot, for another reason
   * @returns `undefined` if another rank could not
   * Errors: `ERR_VERBS`.
   */
  static *setUp(
    context: Context,
    pd: ProtectionDomain,
    channel: Channel,
    members: readonly number[],
    algorithm: string,
    undo: (release: () => void) => void,
    mayBegin: () => void,
  ): Generator<void, WaitingBarrier | undefined> {
    const { rank, size } = channel;
    const schedule = barrierSchedule(algorithm, rank, size);
    const theirs = new Map<number, Float64Array>();
    const made = yield* meetPeers(schedule, channel, {
      make() {
        mayBegin();
        const made = make(context, pd, schedule, undo);
        connectQueuePair(made.own, { member: members[rank], qpNumber: made.own.number }, 1);
        return made;
      },
      tell: told,
      hear: ({ connections }, peer, message) => {
        const numbers = new Float64Array(message.buffer);
        theirs.set(peer, numbers);
        connectQueuePair(connections.get(peer)!.qp, { member: members[peer], qpNumber: numbers[0] }, 1);
      },
    });
    if (made === undefined) return undefined;
    return new WaitingBarrier(made, schedule, writesOf(schedule, made, theirs, channel, algorithm), members);
  }

  private constructor(made: Made, schedule: BarrierSchedule, writes: readonly Write[], members: readonly number[]) {
    this.#made = made;
    this.#schedule = schedule;
    this.#writes = writes;
    this.#members = members;
    this.#words = new Int32Array(made.region.memory.buffer);
    this.#waits = schedule.filter(({ sends }) => !sends).length;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    this.#count = (this.#count + 1) | 0;
    this.#value[0] = this.#count;
    this.#isComplete = this.#waits === 0;
    for (const { connection, rkey, address, waits } of this.#writes) {
      const { qp } = connection;
      connection.silent += waits + 1;
      const isDue = 2 * connection.silent > this.#made.depth;
      if (isDue) connection.silent = 0;
      qp.wrStart();
      this.#wait(qp, waits, 0);
      qp.wrRdmaWrite(0, isDue ? SendFlag.SIGNALED : 0, rkey, address);
      qp.wrSetInlineData(this.#bytes, 0, WORD_BYTES);
      qp.wrComplete();
    }
    if (this.#isComplete) return;
    const { own } = this.#made;
    own.wrStart();
    this.#wait(own, this.#waits, SendFlag.SIGNALED);
    own.wrComplete();
  }

  /** @param flags of the last one */
  #wait(qp: QueuePair, words: number, flags: number): void {
    const { lkey, address } = this.#made.region;
    for (let i = 0; i < words; i++)
      qp.wrWait(0, i === words - 1 ? flags : 0, lkey, address + i * STRIDE, this.#count >>> 0);
  }

  advance(): boolean {
    if (!this.#isComplete) this.#poll();
    if (!this.#isComplete) {
      if (this.#lost !== undefined) throw this.#lost;
      return false;
    }
    this.#active = false;
    return true;
  }

  /** Where the adapter is this rank's processor, the requests that wait go on when it looks. */
  get owes(): boolean {
    return this.#active && !this.#isComplete;
  }

  #poll(): void {
    const { cq } = this.#made;
    try {
      this.#take(cq);
      cq.reqNotify();
    } catch (error) {
      this.#lost ??= lostQueue(error, 'the requests of barriers');
    }
  }

  #take(cq: CompletionQueue): void {
    const { own, connections, context } = this.#made;
    const { status, qpNum } = cq.wc;
    for (let n = cq.poll(16); n > 0; n = cq.poll(16)) {
      for (let i = 0; i < n; i++) {
        if (status[i] === WcStatus.SUCCESS) this.#isComplete ||= qpNum[i] === own.number;
        else if (this.#lost === undefined) {
          const peer = [...connections].find(([, { qp }]) => qp.number === qpNum[i])?.[0];
          const member = peer === undefined ? context.member : this.#members[peer];
          this.#lost = lostConnection(context, member, status[i], 'a barrier');
        }
      }
    }
  }

  waitsFor(): string {
    const awaited = this.#awaited();
    return awaited < 0 ? 'its own adapter' : `rank ${awaited}`;
  }

  askedFor(): readonly number[] {
    const awaited = this.#awaited();
    return awaited < 0 ? [] : [awaited];
  }

  /** The rank whose word is the first that has not come. */
  #awaited(): number {
    let word = 0;
    for (const { sends, peer } of this.#schedule) {
      if (sends) continue;
      if (((Atomics.load(this.#words, (word++ * STRIDE) / WORD_BYTES) - this.#count) | 0) < 0) return peer;
    }
    return -1;
  }
}

function told({ region, connections }: Made, peer: number): Uint8Array {
  return new Uint8Array(Float64Array.of(connections.get(peer)!.qp.number, region.rkey, region.address).buffer);
}

function writesOf(
  schedule: BarrierSchedule,
  { connections }: Made,
  theirs: ReadonlyMap<number, Float64Array>,
  { rank, size }: Channel,
  algorithm: string,
): Write[] {
  const writes: Write[] = [];
  let waits = 0;
  for (const { sends, peer, tag } of schedule) {
    if (!sends) {
      waits++;
      continue;
    }
    const [, rkey, address] = theirs.get(peer)!;
    const word = wordOf(barrierSchedule(algorithm, peer, size), rank, tag);
    writes.push({ connection: connections.get(peer)!, rkey, address: address + word * STRIDE, waits });
  }
  return writes;
}

function make(
  context: Context,
  pd: ProtectionDomain,
  schedule: BarrierSchedule,
  undo: (release: () => void) => void,
): Made {
  const waits = schedule.filter(({ sends }) => !sends).length;
  const access = Access.LOCAL_WRITE | Access.REMOTE_WRITE;
  const region = allocateRegistered(context, pd, STRIDE * Math.max(1, waits), access);
  const made: (() => void)[] = [() => freeRegistered(region)];
  // Once, in the opposite order.
  undo(() => {
    for (const release of made.splice(0).reverse()) release();
  });
  const cq = context.createCq(2 * MOST_BARRIERS * (schedule.length + 2));
  made.push(() => cq.destroy());
  // More than the requests of a barrier on one connection: half of them, and as many as there are steps.
  const depth = Math.min(context.device.maxQpWr, MOST_BARRIERS * (schedule.length + 2));
  const open = (): QueuePair => {
    const init = { sendCq: cq, recvCq: cq, maxSendWr: depth, maxSendSge: 1, maxRecvWr: 1, maxInlineData: WORD_BYTES };
    const qp = beginQueuePair(pd, init, Access.REMOTE_WRITE);
    made.push(() => qp.destroy());
    return qp;
  };
  const connections = new Map(peersOf(schedule).map((peer) => [peer, { qp: open(), silent: 0 }]));
  const own = open();
  cq.reqNotify();
  return { context, cq, region, connections, depth, own };
}
