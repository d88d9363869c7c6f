/** What the calls of one BSP computation share: variables, messages, what was asked for, and the superstep's end. */
import type { Communicator } from '../comm/communicator.ts';
import type { Operation } from '../comm/operation.ts';
import { RmaError } from '../errors.ts';
import { difference, lengthsOf, NO_NUMBERS, numbersOf } from './control.ts';
import type { Delivery, Superstep } from './delivery/delivery.ts';
import type { MulticastStatistics } from './delivery/multicast.ts';
import { forgetLast } from './elements.ts';
import { Ledger } from './ledger.ts';
import { Outgoing } from './outgoing.ts';
import { Placement } from './placement.ts';
import { MessageQueue } from './queue.ts';
import { Registrations } from './registrations.ts';

export class Core implements Superstep, Operation {
  readonly comm: Communicator;
  readonly registrations = new Registrations();
  readonly queue = new MessageQueue();
  readonly outgoing: Outgoing;
  readonly placement: Placement;
  readonly #delivery: Delivery;
  /** Supersteps that have ended. */
  step = 0;
  /** Bytes of the tags of messages that are sent in this superstep. */
  tagSize = 0;
  /** What was set in this superstep. */
  nextTagSize: number | undefined;
  /** A `sync` has begun, and was not completed: its wait may have ended early. */
  #begun = false;
  #ends = false;
  #numbers: Float64Array = NO_NUMBERS;
  #all: readonly Float64Array[] | undefined;
  /** Why nothing can be done any more. */
  #broken: RmaError | undefined;
  #ended = false;
  #closed = false;
  /** Told when everything has been given back. */
  whenClosed: (() => void) | undefined;
  #isAwaited = false;

  /** What each superstep was; absent if nobody wants to know. */
  readonly ledger: Ledger | undefined;

  /**
   * @param short whether headers of puts are compressed
   * @param reports whether what supersteps do is kept
   */
  constructor(comm: Communicator, delivery: Delivery, short: boolean, reports: boolean) {
    const { processor } = comm.job;
    this.comm = comm;
    this.#delivery = delivery;
    this.outgoing = new Outgoing(comm.size, () => delivery.pool, short, processor);
    this.ledger = reports ? new Ledger(() => comm.now()) : undefined;
    this.placement = new Placement(comm.rank, this.registrations, this.queue, processor);
  }

  /** Refuses calls that come too late, or while the superstep is ending. Errors: `ERR_RMA_SYNC`, `ERR_COMM`, … */
  check(call: string): void {
    if (!this.#begun && !this.#ended && this.#broken === undefined) return;
    // What broke it may be a process that is gone, which is then what is wrong.
    if (this.#broken !== undefined) {
      throw this.comm.job.failure() ?? new RmaError(this.#broken.code, this.#broken.message, { cause: this.#broken });
    }
    if (this.#ended) throw new RmaError('ERR_COMM', `${call}: this process has called end(); make no calls after it`);
    throw new RmaError(
      'ERR_RMA_SYNC',
      `${call}: superstep ${this.step} is ending; await sync() first (if its wait ended early, call sync() again)`,
    );
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  get statistics(): MulticastStatistics | undefined {
    return this.#delivery.statistics;
  }

  get bytes(): number {
    return this.#delivery.bytes;
  }

  /** The superstep ends; or goes on to end, if a wait for that ended early. */
  beginSync(call: string, ends: boolean): void {
    if (this.#begun && !this.#isAwaited && this.#ends === ends && this.#broken === undefined) return;
    this.check(call);
    this.#ends = ends;
    this.ledger?.ends();
    this.#numbers = this.#changes(ends);
    this.#begun = true;
    try {
      this.#delivery.begin(this, this.#numbers);
    } catch (error) {
      throw this.#break(error);
    }
  }

  /** What this process does that all must do; mostly nothing, which costs nothing. */
  #changes(ends: boolean): Float64Array {
    const { registrations, nextTagSize } = this;
    if (!ends && nextTagSize === undefined && registrations.isUnchanged) return NO_NUMBERS;
    const { pushedLengths, poppedIds } = registrations;
    return numbersOf({ ends, tagSize: nextTagSize, pushed: pushedLengths, popped: poppedIds });
  }

  /** The wait of one call; another one can begin when it has ended. */
  await(): Operation {
    this.#isAwaited = true;
    return this;
  }

  abandon(): void {
    this.#isAwaited = false;
  }

  advance(): boolean {
    try {
      if (!this.#delivery.advance()) return false;
      this.#finish();
      this.#isAwaited = false;
      return true;
    } catch (error) {
      throw this.#break(error);
    }
  }

  isPolling(): boolean | number {
    return this.#delivery.isPolling?.() ?? false;
  }

  describe(): string {
    return `sync() of superstep ${this.step} (waiting for ${this.#delivery.waitsFor()})`;
  }

  compare(numbers: readonly Float64Array[] | undefined): void {
    this.#all = numbers;
    this.queue.begin(this.tagSize);
    if (numbers === undefined) return;
    for (let pid = 0; pid < numbers.length; pid++) {
      const differs = difference(this.#numbers, numbers[pid], pid);
      if (differs === undefined) continue;
      throw new RmaError('ERR_COLLECTIVE', `bsp.${this.#ends ? 'end' : 'sync'} of superstep ${this.step}: ${differs}`);
    }
  }

  #finish(): void {
    const all = this.#all;
    if (!this.outgoing.isEmpty) for (const results of this.outgoing.results) results?.check();
    if (all !== undefined) {
      this.registrations.apply(lengthsOf(all));
      this.tagSize = this.nextTagSize ?? this.tagSize;
      this.nextTagSize = undefined;
      this.#all = undefined;
    }
    if (this.ledger !== undefined) this.#account(this.ledger);
    this.outgoing.reset();
    forgetLast();
    this.step++;
    this.#begun = false;
    if (this.#ends) this.#ended = true;
  }

  #account(ledger: Ledger): void {
    const { sent, got } = this.outgoing.bytesBeside(this.comm.rank);
    const { placement } = this;
    ledger.ended(sent + placement.served, got + placement.received);
    placement.served = placement.received = 0;
  }

  /** Nothing can be called any more. */
  end(): void {
    this.#ended = true;
    this.registrations.clear();
  }

  /** Gives everything back: nobody reads this process's chunks any more, or the communicator ends. */
  close(): void {
    this.end();
    if (this.#closed) return;
    this.#closed = true;
    this.#delivery.close();
    this.whenClosed?.();
  }

  #break(error: unknown): unknown {
    this.#broken ??=
      error instanceof RmaError
        ? error
        : new RmaError('ERR_COMM', `bsp: superstep ${this.step} failed: ${String(error)}`, { cause: error });
    return error;
  }
}
