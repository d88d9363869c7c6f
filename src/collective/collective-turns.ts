/** The collectives of a communicator, one after the other, and whether its ranks still agree on what comes next. */
import type { TypedArray } from '../datatype/base-types.ts';
import { RmaError } from '../errors.ts';
import type { Job } from '../job/job.ts';
import type { Members } from '../job/members.ts';
import type { Operation } from '../wait/operation.ts';
import type { CollectiveChannel } from './collective-channel.ts';
import { type BarrierWait, CollectiveOperation, type Turn } from './collective-operation.ts';
import type { Agreed } from './collective-signature.ts';
import { type LeftBarrier, LeftBarriers } from './left-barriers.ts';

export class CollectiveTurns implements Turn {
  readonly channel: CollectiveChannel;
  readonly line: Operation[] = [];
  readonly left: LeftBarriers;
  readonly #job: Job;
  readonly #members: Members;
  /** Of the communicator, for messages. */
  readonly #name: string;
  /**
   * How many collectives that exchange messages were called; the first one, which sets up the communicator, is not
   * counted.
   */
  #sequence = -1;
  /** Barriers that were called. */
  barriers = 0;
  /** Set when a collective ended early: the ranks no longer agree on what comes next. */
  #broken: string | undefined;

  constructor(job: Job, members: Members, channel: CollectiveChannel, name: string) {
    this.#job = job;
    this.#members = members;
    this.channel = channel;
    channel.fences.called = () => this;
    this.#name = name;
    this.left = new LeftBarriers(members);
  }

  /** Takes barriers whose waits have ended early from the end of the line. @returns how many there were */
  takeLeft(): number {
    let taken = 0;
    for (let last = this.line.at(-1); last !== undefined && this.left.has(last); last = this.line.at(-1)) {
      const barrier = last as LeftBarrier;
      this.left.take(barrier);
      barrier.drop();
      taken++;
    }
    return taken;
  }

  /** The number of the collective that was called last. */
  get sequence(): number {
    return Math.max(0, this.#sequence);
  }

  /** @param agreed what its messages say of it; `undefined` for one whose messages, if any, go another way */
  enter<T>(
    generator: Generator<void, T>,
    call: string,
    agreed: Agreed | undefined,
    buffers?: readonly TypedArray[],
    barrier?: BarrierWait,
  ): CollectiveOperation<T> {
    this.check(call);
    if (agreed !== undefined) this.#sequence++;
    const steps = this.#thenDrain(generator, barrier !== undefined);
    return new CollectiveOperation(steps, call, this, agreed, this.#sequence, buffers, barrier);
  }

  /** The first collective, where it is not called as one: the ranks have just agreed on it. */
  beginFirst(agreed: Agreed): void {
    this.channel.begin(agreed, ++this.#sequence, 0);
  }

  /** Throws what `refusal` returns. */
  check(call: string): void {
    const refusal = this.refusal(call);
    if (refusal) throw refusal;
  }

  refusal(call: string): RmaError | undefined {
    if (this.#job.finalized)
      return new RmaError('ERR_COMM', `${call}: this rank has finalized the job; make no calls after finalize()`);
    if (this.#broken !== undefined) {
      // What ended early may have done so because of a rank that is gone, which is then what is wrong.
      const failure = this.#members.failure();
      if (failure !== undefined) return failure;
      return new RmaError('ERR_COMM', `${call}: ${this.#name} can no longer be used: ${this.#broken}`);
    }
    return undefined;
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  broke(why: string): void {
    this.#broken ??= why;
    this.channel.end();
    this.left.rest();
  }

  /** What is nobody's own: the next wait for these ranks is told. */
  note(error: unknown): void {
    this.#members.note(error);
  }

  finalized(): void {
    this.#broken = 'it was finalized';
    this.left.rest();
  }

  /**
   * A collective is complete here when what it sends has left, too: a rank that computes or exits afterwards would
   * otherwise keep others waiting for messages that found no room at once. Since they wait for that, what has arrived
   * is acknowledged.
   * @param isBarrier it goes on when its wait has ended, so what bringing messages in throws must not end it
   */
  *#thenDrain<T>(generator: Generator<void, T>, isBarrier: boolean): Generator<void, T> {
    const result = yield* generator;
    const { messenger } = this.#job;
    messenger.acknowledge();
    while (!messenger.drained) {
      try {
        messenger.poll();
      } catch (error) {
        if (!isBarrier) throw error;
        this.note(error);
      }
      messenger.acknowledge();
      if (!messenger.drained) yield;
    }
    return result;
  }
}
