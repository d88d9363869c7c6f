/**
 * The calls of a communicator that send and receive messages (MPI 4.1, chapter 3): their arguments are checked here;
 * which message goes to which receive is in point-to-point.ts.
 */
import { bytesOf, checkBuffer, ownView, type TypedArray } from '../datatype/base-types.ts';
import { POISON, refusePassingOn } from '../datatype/poison.ts';
import type { Job } from '../job/job.ts';
import type { Members } from '../job/members.ts';
import { type Operation, readWait } from '../wait/operation.ts';
import { checkRank } from './collective-arguments.ts';
import { CollectiveCalls } from './collective-calls.ts';
import type { CollectiveTurns } from './collective-turns.ts';
import { Rank } from './group.ts';
import {
  NOTHING_TO_RECEIVE,
  type PointToPoint,
  type ReceiveOptions,
  readSend,
  readTag,
  type SendOptions,
} from './point-to-point.ts';

/** What `receive` has besides the options of all calls that wait. */
const TAG: readonly string[] = ['tag'];

export abstract class MessageCalls extends CollectiveCalls {
  /** @internal */
  abstract readonly job: Job;
  /** @internal */
  abstract readonly members: Members;
  /** Refuses calls of a communicator that is finalized or broken. */
  readonly #turns: CollectiveTurns;
  readonly #messages: PointToPoint;

  /** @internal */
  constructor(turns: CollectiveTurns, messages: PointToPoint) {
    super();
    this.#turns = turns;
    this.#messages = messages;
  }

  /**
   * Sends the contents of `buffer` to rank `target`. The call copies the contents and never waits: if the target has no
   * room for the message yet, the message leaves during later calls that wait.
   * @param options the tag, if the target receives the message by it
   * Errors: `ERR_RANK`, `TypeError`, `RangeError` for the tag. A tag other than 0 costs one more copy of the contents.
   */
  send(buffer: TypedArray, target: number, options?: SendOptions): void {
    this.#turns.check('send');
    checkBuffer('send', 'buffer', buffer);
    const tag = readSend('send', options);
    if (target === Rank.NULL) return;
    checkRank('send', this, target);
    if (POISON) refusePassingOn('send', 'buffer', buffer);
    try {
      this.#messages.send(target, bytesOf(buffer), tag);
    } catch (error) {
      throw this.members.explain(error);
    }
  }

  /**
   * Receives the next message from rank `source` with the tag of the options (0 if there is none) into `buffer`. The
   * message must have exactly the length of `buffer`. One that has not is taken all the same, as in MPI, and lost: the
   * call throws `ERR_TRUNCATE`, and the next call receives the next message. Messages of one source and tag come in the
   * order of their sends; those with other tags are kept until a call asks for them, in as much memory as they need.
   * With `Rank.NULL` as the source, the call receives nothing. A call that ends early (a timeout, an abort) leaves the
   * message to the next one, but may have written a part of it into `buffer`.
   */
  async receive(buffer: TypedArray, source: number, options?: ReceiveOptions): Promise<void> {
    const wait = readWait('receive', options, TAG);
    const tag = readTag('receive', options);
    await this.members.wait(this.#receive(buffer, source, tag), wait);
  }

  /** Receives the next message from rank `source` into `buffer`, and blocks this thread until the message is there. */
  receiveSync(buffer: TypedArray, source: number, options?: ReceiveOptions): void {
    this.job.refuseSync('receive');
    const wait = readWait('receive', options, TAG);
    const tag = readTag('receive', options);
    this.members.waitSync(this.#receive(buffer, source, tag), wait);
  }

  /** Receives the next message from rank `source` into `buffer` (MPI's name for `receive`). */
  recv(buffer: TypedArray, source: number, options?: ReceiveOptions): Promise<void> {
    return this.receive(buffer, source, options);
  }

  /** Receives a message and blocks this thread until it is there (MPI's name for `receiveSync`). */
  recvSync(buffer: TypedArray, source: number, options?: ReceiveOptions): void {
    this.receiveSync(buffer, source, options);
  }

  #receive(buffer: TypedArray, source: number, tag: number): Operation {
    this.#turns.check('receive');
    const own = ownView('receive', 'buffer', buffer);
    if (source === Rank.NULL) return NOTHING_TO_RECEIVE;
    checkRank('receive', this, source);
    return this.#messages.receive(own, source, tag);
  }
}
