/**
 * The messages of a communicator's collectives. Each carries the signature of its call (collective-signature.ts), which
 * is compared with that of the call under way here.
 *
 * All ranks call the same collectives in the same order, messages from one source arrive in order, and whatever is sent
 * in a collective is received in it. So the oldest message of a source that was not taken yet belongs to the call under
 * way here, or to a later one if that source has gone ahead. Anything else means that ranks have called different
 * collectives. That is looked at as messages arrive, whatever source is waited for: a rank may hold the proof while it
 * waits for a message that will never come.
 */
import { RmaError } from '../errors.ts';
import type { ProcessorTime } from '../providers/modelled/processor.ts';
import {
  type Agreed,
  describeSignature,
  isSigned,
  ordinal,
  readWithdrawal,
  SIGNATURE_BYTES,
  Signature,
  sequenceOf,
  withdrawalOf,
} from './collective-signature.ts';
import type { Channel } from './collectives.ts';
import type { Messenger } from './messages.ts';

export class CollectiveChannel implements Channel {
  readonly rank: number;
  readonly size: number;
  readonly processor: ProcessorTime | undefined;
  awaited = -1;
  readonly #messenger: Messenger;
  readonly #worldRanks: readonly number[];
  readonly #context: number;
  /** Of the communicator. */
  readonly #name: string;
  /** Messages that nobody has taken, by their source's rank in the world. */
  readonly #inbox = new Map<number, Uint8Array[]>();
  /** Of the call that is under way, or was the last. */
  readonly #signature = new Signature();
  #begun = false;
  #mismatch: RmaError | undefined;
  readonly #stop: () => void;

  /** @param context names the messages of this channel */
  constructor(
    messenger: Messenger,
    rank: number,
    worldRanks: readonly number[],
    context: number,
    name: string,
    processor: ProcessorTime | undefined,
  ) {
    this.rank = rank;
    this.size = worldRanks.length;
    this.processor = processor;
    this.#messenger = messenger;
    this.#worldRanks = worldRanks;
    this.#context = context;
    this.#name = name;
    this.#stop = messenger.listen(context, (source, message) => this.#arrived(source, message));
  }

  /** A collective begins here: the one before is complete. @param sequence its number on the communicator */
  begin(agreed: Agreed, sequence: number): void {
    this.#signature.write(agreed, sequence);
    this.#begun = true;
    if (this.#inbox.size > 0) for (const [source, queue] of this.#inbox) this.#look(source, queue[0]);
  }

  send(target: number, payload: Uint8Array): void {
    this.#messenger.send(this.#worldRanks[target], this.#context, payload, this.#signature.bytes);
  }

  /** Tells all other ranks that this one has given up the call under way: they may wait for what it would have sent. */
  withdraw(reason: string): void {
    const signature = withdrawalOf(this.#signature.bytes);
    const payload = Buffer.from(reason);
    for (let other = 0; other < this.size; other++) {
      if (other === this.rank) continue;
      this.#messenger.send(this.#worldRanks[other], this.#context, payload, signature);
    }
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
    return message.subarray(SIGNATURE_BYTES);
  }

  #arrived(source: number, message: Uint8Array): void {
    const queue = this.#inbox.get(source);
    if (queue !== undefined) queue.push(message);
    else {
      this.#inbox.set(source, [message]);
      this.#look(source, message);
    }
  }

  /** At a source's oldest message: it must be of the call under way, or of a later one. */
  #look(source: number, message: Uint8Array): void {
    const signature = this.#signature.bytes;
    if (!this.#begun || isSigned(message, signature)) return;
    // The difference is right when the numbers wrap around, too.
    const ahead = (sequenceOf(message) - sequenceOf(signature)) | 0;
    if (ahead <= 0) this.#refuse(source, message);
  }

  #refuse(source: number, message: Uint8Array): RmaError {
    const own = this.#signature.bytes;
    const [theirs, mine] = [sequenceOf(message) >>> 0, sequenceOf(own) >>> 0];
    const place = theirs === mine ? '' : `, its ${ordinal(mine)}`;
    const withdrawn = readWithdrawal(message);
    if (withdrawn !== undefined) {
      this.#mismatch ??= new RmaError(
        'ERR_COLLECTIVE',
        `rank ${this.#worldRanks.indexOf(source)} gave up its ${ordinal(theirs)} collective on ${this.#name}, while ` +
          `this rank called ${describeSignature(own)}${place}: ${withdrawn}`,
      );
      return this.#mismatch;
    }
    this.#mismatch ??= new RmaError(
      'ERR_COLLECTIVE',
      `rank ${this.#worldRanks.indexOf(source)} called ${describeSignature(message)}, ` +
        `its ${ordinal(theirs)} collective ` +
        `on ${this.#name}, while this rank called ${describeSignature(own)}${place}; all ranks must call the same ` +
        'collectives in the same order, with the same type, length, operation and root',
    );
    return this.#mismatch;
  }
}
