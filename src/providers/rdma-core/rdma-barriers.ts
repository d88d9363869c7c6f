/**
 * Barriers on a device (verbs/adapter-barrier.ts): a thread of the addon, which sends and receives datagrams, and tells
 * this rank when a barrier is complete (native/rdma_barrier.h). One thread and one queue pair serve all groups of a
 * context; they are made with the first group.
 *
 * What the two share is a group's words, which the thread writes, and here are read.
 */
import { adapterLoss } from '../../debug.ts';
import { RmaError } from '../../errors.ts';
import type { RdmaContext } from '../../native.ts';
import type {
  AdapterBarrier,
  AdapterBarrierAddress,
  AdapterBarrierInit,
  AdapterBarrierStatistics,
} from '../../verbs/adapter-barrier.ts';
import { checkInteger } from '../../verbs/checks.ts';
import type { RdmaParent } from './rdma-parent.ts';
import { verb } from './verb.ts';

/** The words of a group: `Barriers::Word` of native/rdma_barrier.h. */
const DONE = 0;
const AWAITED = 1;
const PACKETS = 2;
const NACKS = 3;
const FUTILE = 4;
const RESENT = 5;
const DUPLICATES = 6;
const FAILED = 7;
const WORDS = 8;

const NANOSECONDS = 1e6;

export class RdmaBarriers {
  readonly #context: RdmaParent;
  readonly #device: RdmaContext;
  readonly #queuePair: number;
  readonly #qkey: number;

  /** Errors: `ERR_VERBS` (the device has no room). */
  constructor(context: RdmaParent, device: RdmaContext) {
    this.#context = context;
    this.#device = device;
    [this.#queuePair, this.#qkey] = verb('carry out barriers', () =>
      device.createBarriers(context.parking.announced, adapterLoss(), context.member),
    );
  }

  join({ rank, members, schedule, nackAfter }: AdapterBarrierInit): AdapterBarrier {
    const words = new Int32Array(new SharedArrayBuffer(4 * WORDS));
    words[AWAITED] = -1;
    const steps = Int32Array.from(schedule.flatMap(({ sends, peer, tag }) => [sends ? 1 : 0, peer, tag]));
    const group = verb('join a barrier', () =>
      this.#device.joinBarrier(rank, Math.ceil(nackAfter * NANOSECONDS), steps, words),
    );
    const address: AdapterBarrierAddress = { queuePair: this.#queuePair, qkey: this.#qkey, group };
    return new RdmaBarrier(this.#context, this.#device, address, words, members);
  }
}

class RdmaBarrier implements AdapterBarrier {
  readonly address: AdapterBarrierAddress;
  readonly #context: RdmaParent;
  readonly #device: RdmaContext;
  readonly #group: number;
  readonly #words: Int32Array;
  readonly #members: readonly number[];
  #closed = false;

  constructor(
    context: RdmaParent,
    device: RdmaContext,
    address: AdapterBarrierAddress,
    words: Int32Array,
    members: readonly number[],
  ) {
    this.#context = context;
    this.#device = device;
    this.address = address;
    this.#group = address.group;
    this.#words = words;
    this.#members = members;
  }

  get statistics(): AdapterBarrierStatistics {
    const count = (word: number): number => Atomics.load(this.#words, word) >>> 0;
    return {
      barriers: count(DONE),
      packets: count(PACKETS),
      nacks: count(NACKS),
      futile: count(FUTILE),
      resent: count(RESENT),
      duplicates: count(DUPLICATES),
    };
  }

  connect(rank: number, { queuePair, qkey, group }: AdapterBarrierAddress): void {
    checkInteger('connect a barrier', 'the rank', rank, 0, this.#members.length - 1);
    const { gid, lid } = this.#context.peers[this.#members[rank]];
    verb('connect a barrier', () => this.#device.connectBarrier(this.#group, rank, gid, lid, queuePair, qkey, group));
  }

  enter(): void {
    verb('enter a barrier', () => this.#device.enterBarrier(this.#group));
  }

  complete(): number {
    if (Atomics.load(this.#words, FAILED) !== 0) {
      const { name } = this.#context.device;
      throw new RmaError('ERR_VERBS', `a barrier: device ${name} carries out none any more: its queue pair has failed`);
    }
    return Atomics.load(this.#words, DONE);
  }

  awaited(): number {
    return Atomics.load(this.#words, AWAITED);
  }

  close(): void {
    if (this.#closed || this.#context.isClosed) return;
    this.#closed = true;
    this.#context.giveBack('leave a barrier', () => this.#device.leaveBarrier(this.#group));
  }
}
