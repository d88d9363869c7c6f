/** Completion queues of a device. */
import { RmaError } from '../../errors.ts';
import type { RdmaContext } from '../../native.ts';
import { overrunError } from '../../verbs/checks.ts';
import { WcFlag, WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { QpType } from '../../verbs/queue-pair.ts';
import { CompletionQueueCore } from '../core/completion-queue-base.ts';
import type { RdmaParent } from './rdma-parent.ts';
import { verb } from './verb.ts';

/** Most completions that one poll fetches. */
const BATCH = 64;
/**
 * Words of the polling function (native/rdma_data_path.cc, poller): how many it may fetch, how many it has, an errno;
 * then the completions.
 */
const MAX = 0;
const GOT = 1;
const ERRNO = 2;
const HEADER = 8;
/** Words of a completion. */
const WORDS = 8;
const RECEIVE = 0x8000_0000;
/** Which completion wakes this rank. */
const NONE = 0;
const ANY = 1;
const SOLICITED = 2;

export class RdmaCompletionQueue extends CompletionQueueCore {
  readonly number: number;
  /** Queue pairs of type UD among them. */
  datagrams = 0;
  /** Why nothing comes from it any more: completions were lost, or the device is. */
  refusal: RmaError | undefined;
  readonly #context: RdmaParent;
  readonly #device: RdmaContext;
  readonly #words: Uint32Array;
  readonly #fetch: () => void;
  /** Receives that were never posted, and complete as flushed: wrId and queue pair. */
  #flushed: { readonly wrId: number; readonly qpNum: number }[] = [];
  #wanted: typeof NONE | typeof ANY | typeof SOLICITED = NONE;

  /** @param made its number and capacity, if it is there: a helper's, which is not polled here */
  constructor(context: RdmaParent, device: RdmaContext, cqe: number, made?: readonly [number, number]) {
    const [number, capacity] = made ?? verb('create a completion queue', () => device.createCq(cqe));
    super(capacity, BATCH);
    this.#context = context;
    this.#device = device;
    this.number = number;
    // With an ArrayBuffer of its own: the memory of a small array without one moves.
    this.#words = new Uint32Array(new ArrayBuffer(4 * (HEADER + this.batch * WORDS)));
    this.#fetch = device.poller(this.number, this.#words);
  }

  poll(max: number): number {
    if (this.isDestroyed || this.#context.isClosed) this.mustLive('poll');
    if (this.refusal !== undefined) throw this.refusal;
    const words = this.#words;
    const limit = Math.min(max, this.batch);
    let n = 0;
    // Completions of queue pairs that are gone, or were reset, are dropped; then there may be more behind them.
    while (n < limit) {
      const wanted = limit - n;
      words[MAX] = wanted;
      this.#fetch();
      const got = words[GOT];
      for (let i = 0; i < got; i++) if (this.#take(HEADER + i * WORDS, n)) n++;
      if (words[ERRNO] !== 0 && n === 0) {
        this.refusal = new RmaError(
          'ERR_VERBS',
          `poll: the device refused to poll the completion queue (errno ${words[ERRNO]})`,
        );
        throw this.refusal;
      }
      if (got < wanted) break;
    }
    if (n < limit && this.#flushed.length > 0) n = this.#takeFlushed(n, limit);
    if (n > 0) this.#context.parking.taken();
    return n;
  }

  /** Completions were lost. */
  overrun(): void {
    this.refusal ??= overrunError(this.capacity);
  }

  addFlushed(wrId: number, qpNum: number): void {
    this.#flushed.push({ wrId, qpNum });
    this.#context.parking.note();
  }

  /** Of a queue pair that is reset or destroyed. */
  dropFlushed(qpNum: number): void {
    this.#flushed = this.#flushed.filter((flushed) => flushed.qpNum !== qpNum);
  }

  #takeFlushed(taken: number, limit: number): number {
    const { wc } = this;
    let n = taken;
    for (const { wrId, qpNum } of this.#flushed.splice(0, limit - taken)) {
      wc.wrId[n] = wrId;
      wc.status[n] = WcStatus.WR_FLUSH_ERR;
      wc.opcode[n] = WcOpcode.RECV;
      wc.flags[n] = 0;
      wc.byteLen[n] = 0;
      wc.immData[n] = 0;
      wc.qpNum[n] = qpNum;
      n++;
    }
    return n;
  }

  #take(w: number, n: number): boolean {
    const { wc } = this;
    const words = this.#words;
    const owner = words[w];
    const status = words[w + 2];
    wc.status[n] = status;
    wc.qpNum[n] = words[w + 7];
    wc.flags[n] = 0;
    wc.immData[n] = 0;
    if (owner >= RECEIVE) {
      const slots = this.#context.receiver(owner - RECEIVE);
      if (slots === undefined) return false;
      this.#context.parking.received++;
      wc.wrId[n] = slots.take(words[w + 1]);
      const good = status === WcStatus.SUCCESS;
      // The opcode of a completion in error says nothing.
      const withData = words[w + 3] === WcOpcode.RECV_RDMA_WITH_IMM;
      wc.opcode[n] = good && withData ? WcOpcode.RECV_RDMA_WITH_IMM : WcOpcode.RECV;
      wc.byteLen[n] = good ? words[w + 5] : 0;
      if (good && (words[w + 4] & WcFlag.WITH_IMM) !== 0) {
        wc.flags[n] = WcFlag.WITH_IMM;
        wc.immData[n] = words[w + 6];
      }
      // Some devices say of all completions that there is a header: those of connections have none.
      if (good && this.datagrams > 0 && this.#context.queuePairs.get(words[w + 7])?.qpType === QpType.UD) {
        wc.flags[n] |= WcFlag.GRH;
        wc.srcQp[n] = words[w + 4] >>> 8;
      }
      if (!good) this.#context.failed(words[w + 7]);
      return true;
    }
    const qp = this.#context.sender(owner);
    if (qp === undefined) return false;
    qp.complete(words[w + 1], status, wc, n);
    return true;
  }

  /**
   * The device is asked when this rank is about to sleep, or sleeps: that takes a system call, and a rank that polls
   * soon needs none.
   */
  reqNotify(solicitedOnly = false): void {
    if (this.isDestroyed || this.#context.isClosed) this.mustLive('request notification');
    if (this.#wanted !== ANY) this.#wanted = solicitedOnly ? SOLICITED : ANY;
    if (this.#context.parking.isAsleep) this.notify();
  }

  /** This rank is about to sleep. What has come since the queue was polled last ends the sleep. */
  notify(): void {
    if (this.#wanted === NONE) return;
    const solicitedOnly = this.#wanted === SOLICITED;
    this.#wanted = NONE;
    const device = this.#device;
    try {
      if (verb('request notification', () => device.reqNotifyCq(this.number, solicitedOnly)))
        this.#context.parking.note();
    } catch (error) {
      // A thread that sleeps may not be concerned. One that polls is, and looks again instead of sleeping.
      this.refusal ??= error as RmaError;
      this.#context.parking.note();
    }
  }

  override destroy(): void {
    if (!this.#context.isClosed) super.destroy();
  }

  protected release(): void {
    this.#context.giveBack('destroy a completion queue', () => this.#device.destroyCq(this.number));
    this.#context.cqs.delete(this.number);
    // The device's notifications of all queues were taken with it: all sleepers look again.
    this.#context.parking.note();
  }

  protected override mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    super.mustLive(call);
  }
}
