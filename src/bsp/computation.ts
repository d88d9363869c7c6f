/** What the calls of one BSP computation share: variables, messages, what was asked for, and the superstep's end. */
import type { Communicator, OwnChannel } from '../collective/communicator.ts';
import type { TypedArray } from '../datatype/base-types.ts';
import { RmaError } from '../errors.ts';
import { difference, NO_NUMBERS, numbersOf } from './alike.ts';
import { checkPlace, readPart } from './bsp-arguments.ts';
import type { Delivery, DeliveryStatistics } from './delivery/delivery.ts';
import { Part } from './element-words.ts';
import type { Ledger } from './ledger.ts';
import { News } from './news.ts';
import { MessageQueue } from './received-messages.ts';
import { VariableRegistrations } from './registrations.ts';
import { RepeatedDirectPut, RepeatedPut } from './repeated.ts';
import type { Slot } from './slot.ts';
import { Step } from './superstep.ts';
import type { Unit } from './unit.ts';

const DOUBLE = 8;
/** So many calls can be told of at once: their bytes are a 31-bit number. */
const MOST_CALLS = 2 ** 27;

export class Core extends Step {
  readonly registrations: VariableRegistrations;
  readonly queue: MessageQueue;
  /** What a call names. */
  readonly part = new Part();
  readonly #news: News;
  /** Bytes of the tags of messages that are sent in this superstep. */
  tagSize = 0;
  /** What was set in this superstep. */
  nextTagSize: number | undefined;
  /** A `sync` has begun, and was not completed: its wait may have ended early. */
  #begun = false;
  #ends = false;
  #numbers: Float64Array = NO_NUMBERS;
  #all: readonly Float64Array[] | undefined;
  /** Why nothing can be done any more; and whether all learn of it by themselves. */
  #broken: RmaError | undefined;
  #isKnown = false;
  #ended = false;
  #closed = false;
  /** The unit of this process, if the machine has two levels. */
  unit: Unit | undefined;
  /** The unit's superstep is ending, and the one of all after it. */
  #isInUnit = false;
  /** Told when everything has been given back. */
  whenClosed: (() => void) | undefined;
  /** The variable that was named last. */
  #last: TypedArray | undefined;
  #lastSlot: Slot | undefined;
  #lastStep = -1;

  /** Calls that repeat the one before. */
  readonly repeatedPut = new RepeatedPut();
  readonly repeatedDirectPut = new RepeatedDirectPut();

  /** What each superstep was; absent if that is not wanted. */
  readonly ledger: Ledger | undefined;

  /**
   * @param short whether headers of puts are compressed
   * @param ledger told what supersteps do, if that is wanted
   * @param channel for what breaks the computation
   */
  constructor(comm: Communicator, delivery: Delivery, short: boolean, ledger: Ledger | undefined, channel: OwnChannel) {
    const registrations = new VariableRegistrations(delivery.variables);
    const queue = new MessageQueue();
    super(comm, delivery, registrations, queue, delivery.route, short);
    this.registrations = registrations;
    this.queue = queue;
    this.#news = new News(channel, (error) => this.#break(error));
    this.ledger = ledger;
  }

  /** Refuses calls that come too late, or while the superstep is ending. Errors: `ERR_RMA_SYNC`, `ERR_COMM`, … */
  check(call: string): void {
    if (!this.#begun && !this.#ended && this.#broken === undefined && !this.unit?.isEnding) return;
    this.refuseBroken();
    if (this.#ended) throw new RmaError('ERR_COMM', `${call}: this process has called end(); make no calls after it`);
    if (!this.#begun) {
      throw new RmaError(
        'ERR_RMA_SYNC',
        `${call}: a superstep of the unit is ending; await usync() first (if its wait ended early, call usync() again)`,
      );
    }
    throw new RmaError(
      'ERR_RMA_SYNC',
      `${call}: superstep ${this.step} is ending; await sync() first (if its wait ended early, call sync() again)`,
    );
  }

  /** Errors: what has broken the computation; if a process is gone, that is what is wrong. */
  refuseBroken(): void {
    if (this.#broken === undefined) return;
    throw this.comm.members.failure() ?? new RmaError(this.#broken.code, this.#broken.message, { cause: this.#broken });
  }

  /** The variable that an array names; mostly, the same as in the last call. Errors: `ERR_RMA_ATTACH`, `ERR_BUFFER`. */
  slotOf(call: string, variable: TypedArray): Slot {
    this.check(call);
    if (variable === this.#last && this.step === this.#lastStep) return this.#lastSlot!;
    const slot = this.registrations.find(call, variable);
    this.#last = variable;
    this.#lastSlot = slot;
    this.#lastStep = this.step;
    return slot;
  }

  /**
   * What a put or a get names: elements of an array, which are in `part` then, and a place of a variable at a process.
   * `put`, `hpput` and `hpget` of `Bsp` have these three lines themselves: with this call, V8 inlines less, and they
   * take 3 to 8 % longer.
   * @param name of the array, in messages
   * @param count the rest of the array if absent
   * @returns the variable
   * Errors: those of `slotOf`, `readPart` and `checkPlace`.
   */
  named(
    call: string,
    name: string,
    pid: number,
    array: TypedArray,
    start: number,
    count: number | undefined,
    variable: TypedArray,
    offset: number,
  ): Slot {
    const slot = this.slotOf(call, variable);
    const part = readPart(this.part, call, name, array, start, count, slot);
    checkPlace(call, pid, this.comm.size, slot, offset, part.count * part.width);
    return slot;
  }

  /** Whether the call before named the same process and the same arrays. */
  isLast(pid: number, source: TypedArray, variable: TypedArray): boolean {
    return source === this.part.array && variable === this.#last && pid === this.part.pid;
  }

  /**
   * Elements to a variable.
   * @param variable as the call names it; `undefined` if it is not like the one before, for then the next one will
   * hardly be either
   */
  put(pid: number, slot: Slot, at: number, part: Part, variable: TypedArray | undefined): void {
    this.outgoing.put(pid, slot, at, part);
    part.pid = pid;
    if (variable !== undefined && isDouble(part, slot)) {
      this.outgoing.remember(this.repeatedPut, pid, variable, slot, part.array as Float64Array);
    }
  }

  /** The same without the promise of a copy. */
  hpput(pid: number, slot: Slot, at: number, part: Part, variable: TypedArray | undefined): void {
    const { direct } = this.delivery;
    part.pid = pid;
    if (direct?.put(pid, slot, at, part) !== true) {
      this.outgoing.put(pid, slot, at, part);
      return;
    }
    if (pid === this.comm.rank) return;
    this.#noteDirect(pid, 1, part.count * part.width, 0);
    if (variable === undefined || !isDouble(part, slot)) return;
    const there = direct.doublesOf?.(pid, slot);
    if (there === undefined) return;
    this.#settle();
    this.repeatedDirectPut.remember(pid, part.array as Float64Array, variable, there);
  }

  /** Elements from a variable, likewise. */
  hpget(pid: number, slot: Slot, at: number, part: Part): void {
    if (this.delivery.direct?.get(pid, slot, at, part) !== true) this.outgoing.get(pid, slot.id, at, part);
    else if (pid !== this.comm.rank) this.#noteDirect(pid, 1, 0, part.count * part.width);
  }

  #noteDirect(pid: number, calls: number, written: number, read: number): void {
    this.outgoing.apart += calls;
    // All processes keep reports, or none does.
    if (this.ledger !== undefined) this.outgoing.tellDirect(pid, calls, written, read);
  }

  /** Takes account of the calls of `hpput` that were repeated. Errors: `ERR_SIZE`. */
  #settle(): void {
    const repeated = this.repeatedDirectPut;
    while (repeated.calls > 0) {
      const calls = Math.min(repeated.calls, MOST_CALLS);
      repeated.calls -= calls;
      this.delivery.direct!.sent += DOUBLE * calls;
      this.#noteDirect(repeated.pid, calls, DOUBLE * calls, 0);
    }
  }

  /** A superstep ends: the next call is checked as the first one was. Errors: `ERR_SIZE`. */
  settleCalls(): void {
    try {
      this.#settle();
    } catch (error) {
      throw this.fail(error);
    }
    this.#forgetCalls();
  }

  #forgetCalls(): void {
    this.repeatedPut.forget();
    this.repeatedDirectPut.forget();
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** A superstep is ending, and can: its wait goes on, or has ended early, and can be called again. */
  get isEnding(): boolean {
    return this.#begun && this.#broken === undefined;
  }

  get statistics(): DeliveryStatistics | undefined {
    return this.delivery.statistics;
  }

  /** The superstep ends; or goes on to end, if a wait for that ended early. */
  beginSync(call: string, ends: boolean): void {
    if (this.#begun && !this.isAwaited && this.#ends === ends && this.#broken === undefined) return;
    this.check(call);
    this.settleCalls();
    this.#ends = ends;
    this.ledger?.ends(this.step, this.outgoing.callsBeside(this.comm.rank));
    this.#begun = true;
    this.#isInUnit = this.unit !== undefined;
    try {
      this.#numbers = this.#changes(ends);
      if (this.unit === undefined) this.delivery.begin(this, this.#numbers);
      else this.unit.beginSync(call, true);
    } catch (error) {
      throw this.fail(error);
    }
  }

  /** The superstep of the unit ends first; then the one of all. */
  #leaveUnit(unit: Unit): boolean {
    if (!unit.advance()) return false;
    this.#isInUnit = false;
    this.delivery.begin(this, this.#numbers);
    return true;
  }

  /** What this process does that all must do; mostly nothing, which costs nothing. */
  #changes(ends: boolean): Float64Array {
    const { registrations, nextTagSize } = this;
    if (!ends && nextTagSize === undefined && registrations.isUnchanged) return NO_NUMBERS;
    const { pushed, told, poppedIds } = registrations;
    return numbersOf({ ends, tagSize: nextTagSize, pushed, variables: told, popped: poppedIds });
  }

  advance(): boolean {
    try {
      if (this.#isInUnit && !this.#leaveUnit(this.unit!)) return false;
      if (!this.delivery.advance()) {
        this.refuseBroken();
        return false;
      }
      this.#finish();
      this.isAwaited = false;
      return true;
    } catch (error) {
      throw this.fail(error);
    }
  }

  override isPolling(): boolean | number {
    return this.#isInUnit ? this.unit!.isPolling() : super.isPolling();
  }

  describe(): string {
    if (this.#isInUnit) return `sync() of superstep ${this.step}, in it ${this.unit!.describe()}`;
    return `sync() of superstep ${this.step} (waiting for ${this.delivery.waitsFor()})`;
  }

  compare(numbers: readonly Float64Array[] | undefined): void {
    this.ledger?.came();
    this.#all = numbers;
    this.queue.begin(this.tagSize);
    if (numbers === undefined) return;
    for (let pid = 0; pid < numbers.length; pid++) {
      const differs = difference(this.#numbers, numbers[pid], pid);
      if (differs === undefined) continue;
      this.#isKnown = true;
      throw new RmaError('ERR_COLLECTIVE', `bsp.${this.#ends ? 'end' : 'sync'} of superstep ${this.step}: ${differs}`);
    }
  }

  #finish(): void {
    const all = this.#all;
    this.checkResults();
    if (all !== undefined) {
      this.registrations.apply(all);
      this.tagSize = this.nextTagSize ?? this.tagSize;
      this.nextTagSize = undefined;
      this.#all = undefined;
    }
    if (this.ledger !== undefined) this.#account(this.ledger);
    this.next();
    this.part.array = NO_NUMBERS;
    this.#begun = false;
    if (this.#ends) this.#ended = true;
  }

  #account(ledger: Ledger): void {
    const { sent, got } = this.outgoing.bytesBeside(this.comm.rank);
    const { placement } = this;
    const { direct = { sent: 0, got: 0 }, route = { sent: 0 } } = this.delivery;
    const traffic = {
      sent: sent + placement.served + direct.sent + route.sent,
      received: got + placement.received + direct.got,
      calls: placement.calls,
    };
    ledger.ended(this.step, traffic);
    placement.served = placement.received = placement.calls = direct.sent = direct.got = route.sent = 0;
  }

  /** Nothing can be called any more. */
  end(): void {
    this.#ended = true;
    this.#forgetCalls();
    this.registrations.clear();
  }

  /** Gives everything back: no process reads this one's chunks any more, or the communicator ends. */
  override close(): void {
    this.end();
    if (this.#closed) return;
    this.#closed = true;
    this.unit?.close();
    super.close();
    this.#news.close();
    this.whenClosed?.();
  }

  /** Nothing can be done any more; the others learn of it. @returns the error */
  fail(error: unknown): unknown {
    if (this.#broken !== undefined) return error;
    const code = error instanceof Error && 'code' in error ? (error as { code: unknown }).code : undefined;
    this.#break(
      error instanceof RmaError
        ? error
        : new RmaError(
            code === 'ERR_BUFFER' || code === 'ERR_SIZE' ? code : 'ERR_COMM',
            `bsp: superstep ${this.step} failed: ${error instanceof Error ? error.message : String(error)}`,
            { cause: error },
          ),
    );
    // The others already know of a process that is gone, and of what all have compared.
    if (!this.#isKnown && this.comm.members.failure() === undefined) this.#news.tell(this.#broken!);
    return error;
  }

  #break(error: RmaError): void {
    this.#forgetCalls();
    this.#broken ??= error;
  }
}

/** Whether it is one double to a variable of doubles. */
function isDouble({ count, tag }: Part, slot: Slot): boolean {
  return count === 1 && tag === 'Float64Array' && slot.tag === tag;
}
