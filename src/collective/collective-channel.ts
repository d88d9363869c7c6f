/**
 * The messages of a communicator's collectives. Each carries the signature of its call (collective-signature.ts), which
 * is compared with that of the call under way here.
 *
 * All ranks call the same collectives in the same order, messages from one source arrive in order, and whatever is sent
 * in a collective is received in it. So the oldest message of a source that was not taken yet belongs to the call under
 * way here, or to a later one if that source has gone ahead. Anything else means that ranks have called different
 * collectives. Messages are checked for this as they arrive, whichever source this rank waits for: a rank may hold the
 * proof while it waits for a message that will never come.
 *
 * Barriers exchange no messages here. A rank that waits long in one asks the ranks that have not come (`ask`), and says
 * how many barriers and collectives it has called. A rank that has called one more collective, and has not called that
 * barrier before it, is elsewhere: it gives up its call, and all others learn of it. Fences are checked in the same way
 * (fence-order.ts).
 */
import { RmaError } from '../errors.ts';
import { Fifo } from '../fifo.ts';
import type { Channel, SharedMessages } from '../message/message-channel.ts';
import type { Messenger } from '../message/messenger.ts';
import type { Processor } from '../verbs/processor.ts';
import {
  type Agreed,
  barrierMessage,
  describeSignature,
  isAside,
  isSigned,
  ordinal,
  outOfStepMessage,
  type PlacedBarrier,
  readBarrier,
  readFence,
  readOutOfStep,
  readWithdrawal,
  readWithdrawn,
  SIGNATURE_BYTES,
  Signature,
  sequenceOf,
  withdrawalOf,
} from './collective-signature.ts';
import { FenceOrder, type OrderChannel } from './fence-order.ts';

/** For a message that this rank has shared: a rank that has still to read it. */
type Shared = () => number | undefined;

export class CollectiveChannel implements Channel, OrderChannel {
  readonly rank: number;
  readonly size: number;
  readonly processor: Processor;
  awaited = -1;
  readonly #messenger: Messenger;
  readonly #worldRanks: readonly number[];
  readonly #context: number;
  /** Of the communicator. */
  readonly #name: string;
  /** Messages that no call has taken, by their source's rank in the world. */
  readonly #inbox = new Map<number, Uint8Array[]>();
  /** Of the call that is under way, or was the last. */
  readonly #signature = new Signature();
  #begun = false;
  /** Barriers that were called before that call. */
  #barriers = 0;
  /** Of others that wait long, by their ranks in the world. */
  readonly #asking = new Map<number, PlacedBarrier>();
  #mismatch: RmaError | undefined;
  readonly #stop: () => void;
  readonly fences: FenceOrder;
  readonly shared: SharedMessages | undefined;
  /** Of messages here that lie in their senders' memory. */
  readonly #releases = new Map<Uint8Array, () => void>();
  /** The one that was taken last. */
  #taken: Uint8Array | undefined;
  /** Messages of this rank that were shared and perhaps not read, oldest first. */
  readonly #unread = new Fifo<Shared>();
  /** Nothing is received here any more. */
  #ended = false;

  /** @param context names the messages of this channel */
  constructor(
    messenger: Messenger,
    rank: number,
    worldRanks: readonly number[],
    context: number,
    name: string,
    processor: Processor,
  ) {
    this.rank = rank;
    this.size = worldRanks.length;
    this.processor = processor;
    this.#messenger = messenger;
    this.#worldRanks = worldRanks;
    this.#context = context;
    this.#name = name;
    this.fences = new FenceOrder(this, name);
    this.#stop = messenger.listen(
      context,
      (source, message) => this.#arrived(source, message),
      false,
      (source, message, release) => this.#keep(source, message, release),
    );
    const bytes = messenger.sharedBytes - SIGNATURE_BYTES;
    if (bytes > 0) this.shared = this.#makeShared(bytes);
  }

  /**
   * A collective begins here: the one before is complete.
   * @param sequence its number on the communicator
   * @param barriers that were called before it
   */
  begin(agreed: Agreed, sequence: number, barriers: number): void {
    this.#signature.write(agreed, sequence);
    this.#barriers = barriers;
    this.#begun = true;
    for (const [source, barrier] of this.#asking) this.#compare(source, barrier);
    if (this.#inbox.size > 0) for (const [source, queue] of this.#inbox) this.#look(source, queue[0]);
  }

  send(target: number, payload: Uint8Array): void {
    this.#messenger.send(this.#worldRanks[target], this.#context, payload, this.#signature.bytes);
  }

  #makeShared(bytes: number): SharedMessages {
    const messenger = this.#messenger;
    const others = Array.from({ length: this.size - 1 }, (_, i) => (this.rank + 1 + i) % this.size);
    const share = (readers: readonly number[], payload: Uint8Array): void => {
      const targets = readers.map((reader) => this.#worldRanks[reader]);
      const shared = messenger.share(targets, this.#context, payload, this.#signature.bytes);
      while (this.#unread.length > 0 && this.#unread.first!() === undefined) this.#unread.shift();
      if (shared !== undefined) this.#unread.push(shared);
      else for (const reader of readers) this.send(reader, payload);
    };
    return {
      bytes,
      toOthers: (payload) => share(others, payload),
      to: (target, payload) => share([target], payload),
      unread: () => {
        messenger.poll();
        if (this.#mismatch !== undefined) throw this.#mismatch;
        let reader: number | undefined;
        while (this.#unread.length > 0 && reader === undefined) {
          reader = this.#unread.first!();
          if (reader === undefined) this.#unread.shift();
        }
        this.awaited = reader === undefined ? -1 : this.#worldRanks.indexOf(reader);
        return this.#unread.length;
      },
      release: () => this.#release(this.#taken),
    };
  }

  #keep(source: number, message: Uint8Array, release: () => void): void {
    if (this.#ended || this.#mismatch !== undefined) {
      release();
      return;
    }
    this.#releases.set(message, release);
    this.#arrived(source, message);
  }

  #release(message: Uint8Array | undefined): void {
    if (message === undefined) return;
    this.#releases.get(message)?.();
    this.#releases.delete(message);
  }

  /**
   * No call takes messages any more: this rank releases what others have shared, so that no sender waits until it is
   * read.
   */
  end(): void {
    this.#ended = true;
    for (const [source, queue] of this.#inbox) {
      const own = queue.filter((message) => !this.#releases.has(message));
      if (own.length > 0) this.#inbox.set(source, own);
      else this.#inbox.delete(source);
    }
    for (const release of this.#releases.values()) release();
    this.#releases.clear();
  }

  /** Tells all other ranks that this one has given up the call under way: they may wait for what it would have sent. */
  withdraw(reason: string): void {
    const signature = withdrawalOf(this.#signature.bytes, this.#barriers);
    const payload = Buffer.from(reason);
    for (let other = 0; other < this.size; other++) {
      if (other === this.rank) continue;
      this.#messenger.send(this.#worldRanks[other], this.#context, payload, signature);
    }
  }

  /** Set once some message has shown that ranks have called different collectives. */
  get mismatch(): RmaError | undefined {
    return this.#mismatch;
  }

  get begun(): Uint8Array | undefined {
    return this.#begun ? this.#signature.bytes : undefined;
  }

  tell(target: number, message: Uint8Array): void {
    this.#messenger.send(this.#worldRanks[target], this.#context, message);
  }

  tellOthers(message: Uint8Array): void {
    for (let other = 0; other < this.size; other++) if (other !== this.rank) this.tell(other, message);
  }

  refuse(error: RmaError): void {
    this.#mismatch ??= error;
  }

  /**
   * Looks whether a rank has given up the call that this one waits long in: the message that says so may stand behind
   * what that rank has sent before.
   */
  lookBehind(): void {
    this.fences.linger();
    for (const [source, queue] of this.#inbox) {
      const last = queue[queue.length - 1];
      const ahead = (sequenceOf(last) - sequenceOf(this.#signature.bytes)) | 0;
      if (readWithdrawn(last) !== undefined && ahead <= 0) this.#refuse(source, last);
    }
  }

  /** Asks ranks where they are: this one waits for them in a barrier. */
  ask(targets: readonly number[], barrier: PlacedBarrier): void {
    this.fences.linger();
    for (const [source, queue] of this.#inbox) {
      const last = queue[queue.length - 1];
      const barriers = readWithdrawn(last);
      // Nothing comes behind it.
      if (barriers === undefined || barriers >= barrier.number) continue;
      this.#mismatch ??= this.#withdrawn(source, last, `barrier, its ${ordinal(barrier.number)}`);
    }
    if (this.#mismatch !== undefined) return;
    const message = barrierMessage(barrier);
    for (const target of targets) this.tell(target, message);
  }

  /** Errors: `ERR_COLLECTIVE` once some message has shown that ranks have called different collectives. */
  receive(source: number): Uint8Array | undefined {
    const from = this.#worldRanks[source];
    const waiting = this.#take(from);
    if (waiting !== undefined) return waiting;
    this.#messenger.poll();
    return this.#take(from);
  }

  /** Takes no messages any more. */
  close(): void {
    this.#stop();
    this.end();
  }

  #take(source: number): Uint8Array | undefined {
    if (this.#mismatch !== undefined) throw this.#mismatch;
    const queue = this.#inbox.get(source);
    if (queue === undefined) return undefined;
    const [message] = queue;
    // A source that has gone ahead has not sent what is waited for, and never will.
    if (!isSigned(message, this.#signature.bytes)) throw this.#refuse(source, message);
    queue.shift();
    if (queue.length === 0) this.#inbox.delete(source);
    else this.#look(source, queue[0]);
    this.#taken = message;
    return message.subarray(SIGNATURE_BYTES);
  }

  #arrived(source: number, message: Uint8Array): void {
    if (isAside(message)) {
      this.#noted(source, message);
      return;
    }
    const queue = this.#inbox.get(source);
    if (queue !== undefined) queue.push(message);
    else {
      this.#inbox.set(source, [message]);
      this.#look(source, message);
    }
  }

  #noted(source: number, message: Uint8Array): void {
    const barrier = readBarrier(message);
    if (barrier !== undefined) {
      this.#asking.set(source, barrier);
      if (this.#begun) this.#compare(source, barrier);
      return;
    }
    const rank = this.#worldRanks.indexOf(source);
    const fence = readFence(message);
    if (fence !== undefined) this.fences.asked(rank, fence);
    else this.fences.hear(rank, readOutOfStep(message));
  }

  /** At a source's oldest message: it must be of the call under way, or of a later one. */
  #look(source: number, message: Uint8Array): void {
    const signature = this.#signature.bytes;
    if (!this.#begun || isSigned(message, signature)) return;
    // The difference is right when the numbers wrap around, too.
    const ahead = (sequenceOf(message) - sequenceOf(signature)) | 0;
    if (ahead <= 0) this.#refuse(source, message);
  }

  /** The call under way here, or the last one, with a barrier that a rank waits in. */
  #compare(source: number, { number, sequence }: PlacedBarrier): void {
    const own = this.#signature.bytes;
    // The difference is right when the numbers wrap around, too.
    if (this.#mismatch !== undefined || ((sequenceOf(own) - sequence) | 0) <= 0 || this.#barriers >= number) return;
    const theirs = `rank ${this.#worldRanks.indexOf(source)} called barrier, its ${ordinal(number)}`;
    const mine = `called ${describeSignature(own)}, its ${ordinal(sequenceOf(own) >>> 0)} collective`;
    const advice = 'all ranks must call the same collectives and barriers in the same order';
    this.#mismatch = new RmaError(
      'ERR_COLLECTIVE',
      `${theirs} on ${this.#name}, while this rank ${mine} on it; ${advice}`,
    );
    this.withdraw(`${theirs}, while rank ${this.rank} ${mine}; ${advice}`);
  }

  /** @param mine this rank's call */
  #withdrawn(source: number, message: Uint8Array, mine: string): RmaError {
    return new RmaError(
      'ERR_COLLECTIVE',
      `rank ${this.#worldRanks.indexOf(source)} gave up its ${ordinal(sequenceOf(message) >>> 0)} collective on ` +
        `${this.#name}, while this rank called ${mine}: ${readWithdrawal(message)}`,
    );
  }

  #refuse(source: number, message: Uint8Array): RmaError {
    const own = this.#signature.bytes;
    const [theirs, mine] = [sequenceOf(message) >>> 0, sequenceOf(own) >>> 0];
    const place = theirs === mine ? '' : `, its ${ordinal(mine)}`;
    if (readWithdrawn(message) !== undefined) {
      this.#mismatch ??= this.#withdrawn(source, message, `${describeSignature(own)}${place}`);
      return this.#mismatch;
    }
    if (this.#mismatch !== undefined) return this.#mismatch;
    const called = `rank ${this.#worldRanks.indexOf(source)} called ${describeSignature(message)}`;
    const which = `its ${ordinal(theirs)} collective`;
    const here = `called ${describeSignature(own)}${place}`;
    const advice =
      'all ranks must call the same collectives in the same order, with the same type, length, operation and root';
    const words = `${called}, ${which} on ${this.#name}, while this rank ${here}; ${advice}`;
    this.#mismatch = new RmaError('ERR_COLLECTIVE', words);
    // Others may wait for what this rank would have sent.
    this.tellOthers(outOfStepMessage(`${called}, ${which}, while rank ${this.rank} ${here}; ${advice}`, false));
    return this.#mismatch;
  }
}
