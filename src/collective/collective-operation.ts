/** A collective of a communicator in its turn: it begins when those that were called before it are complete. */
import type { TypedArray } from '../datatype/base-types.ts';
import { RmaError } from '../errors.ts';
import { GeneratorOperation, type Operation } from '../wait/operation.ts';
import type { CollectiveChannel } from './collective-channel.ts';
import type { Agreed } from './collective-signature.ts';
import type { LeftBarrier, LeftBarriers } from './left-barriers.ts';

/** What the collectives of one communicator share. */
export interface Turn {
  readonly channel: CollectiveChannel;
  /** Those that were begun and are not complete, oldest first. */
  readonly line: Operation[];
  /** Barriers whose waits have ended early keep their places in the line. */
  readonly left: LeftBarriers;
  /** Barriers that were called. */
  readonly barriers: number;
  /** The error for what comes too late, or undefined. */
  refusal(call: string): RmaError | undefined;
  /** The ranks no longer agree on what comes next. */
  broke(why: string): void;
}

/** What is said of a barrier. */
export interface BarrierWait {
  /** Called when it waits for long. */
  linger(): void;
  /** As of `LeftBarrier`, while it is at the head of the line. */
  owes(): boolean;
}

/** Errors after which another rank may still wait for what this rank would have sent next. */
const BREAKING: readonly string[] = ['ERR_TRUNCATE', 'ERR_COLLECTIVE'];

export class CollectiveOperation<T> extends GeneratorOperation<T> implements LeftBarrier {
  readonly order: number;
  readonly #call: string;
  readonly #turn: Turn;
  readonly #agreed: Agreed | undefined;
  readonly #sequence: number;
  /** Barriers that were called before. */
  readonly #barriers: number;
  readonly #barrier: BarrierWait | undefined;
  readonly #buffers: readonly TypedArray[];
  /** Their bytes when the call was made. */
  readonly #lengths: readonly number[];
  #state: 'waiting' | 'open' | 'complete' | 'ended' = 'waiting';
  #error: unknown;

  /**
   * @param call its name, for messages
   * @param agreed what its messages say of it; absent if none go through the channel
   * @param sequence its number on the communicator
   * @param buffers of the caller: they must stay until the call is complete
   * @param barrier of one
   */
  constructor(
    generator: Generator<void, T>,
    call: string,
    turn: Turn,
    agreed: Agreed | undefined,
    sequence: number,
    buffers: readonly TypedArray[] = [],
    barrier?: BarrierWait,
  ) {
    super(generator, `${call} among ${turn.channel.size} ranks`);
    this.order = agreed === undefined ? turn.left.nextOrder() : 0;
    this.#call = call;
    this.#turn = turn;
    this.#agreed = agreed;
    this.#sequence = sequence;
    this.#barriers = turn.barriers;
    this.#barrier = barrier;
    this.#buffers = buffers;
    this.#lengths = buffers.map(({ byteLength }) => byteLength);
    turn.line.push(this);
  }

  override advance(): boolean {
    while (this.#state === 'waiting' || this.#state === 'open') {
      const head = this.#turn.line[0];
      if (head !== this) {
        try {
          if (!head.advance()) return false;
        } catch {
          // It has left the line and will tell its own caller.
        }
        continue;
      }
      try {
        if (this.#state === 'waiting') this.#start();
        if (!this.#step()) return false;
      } catch (error) {
        this.#error = error;
        this.#leave('ended');
        if (error instanceof RmaError && BREAKING.includes(error.code)) this.#turn.broke(error.message);
        throw error;
      }
      this.#leave('complete');
    }
    if (this.#state === 'ended') throw this.#error;
    return true;
  }

  linger(): void {
    if (this.#barrier !== undefined) this.#barrier.linger();
    else if (this.#state === 'open') this.#turn.channel.lookBehind();
  }

  get owes(): boolean {
    if (this.#state === 'complete' || this.#state === 'ended') return false;
    return this.#state === 'waiting' || this.#barrier?.owes() === true;
  }

  override describe(): string {
    const words = super.describe();
    if (this.#state === 'complete' || this.#state === 'ended') return words;
    const [head] = this.#turn.line;
    if (head !== this) return `${words} (after ${head.describe()})`;
    const { awaited } = this.#turn.channel;
    return awaited < 0 ? words : `${words} (waiting for rank ${awaited})`;
  }

  override abandon(): void {
    if (this.#state === 'ended') return;
    // A barrier, which has no messages here. Its caller was not told if it is complete.
    if (this.#agreed === undefined) {
      this.#turn.left.add(this);
      return;
    }
    if (this.#state === 'complete') return;
    this.drop();
    this.#turn.broke(`${this.describe()} ended early`);
  }

  drop(): void {
    if (this.#state === 'complete' || this.#state === 'ended') return;
    super.abandon();
    this.#leave('ended');
  }

  /** Its turn has come. A call that was made while the one before was under way may find that that one has failed. */
  #start(): void {
    const refusal = this.#turn.refusal(this.#call);
    if (refusal !== undefined) throw refusal;
    this.#state = 'open';
    if (this.#agreed !== undefined) this.#turn.channel.begin(this.#agreed, this.#sequence, this.#barriers);
  }

  /** Goes on as far as it can. A buffer that is no longer what it was ends the call for all ranks. */
  #step(): boolean {
    if (this.#buffers.length === 0) return super.advance();
    let cause: unknown;
    if (this.#buffers.every(({ byteLength }, i) => byteLength === this.#lengths[i])) {
      try {
        return super.advance();
      } catch (error) {
        if (error instanceof RmaError) throw error;
        // An empty view does not tell whether its buffer is still there.
        cause = error;
      }
    }
    const why =
      `${this.#call}: a buffer was transferred or resized while the call was under way; ` +
      'leave buffers alone until it is complete';
    const memory = cause instanceof RangeError && /allocation failed/.test(cause.message) ? cause.message : undefined;
    const said = memory === undefined ? why : `${this.#call}: ${memory}`;
    this.#turn.channel.withdraw(said);
    this.#turn.broke(said);
    throw new RmaError(memory === undefined ? 'ERR_BUFFER' : 'ERR_SIZE', said, { cause });
  }

  #leave(state: 'complete' | 'ended'): void {
    this.#state = state;
    const at = this.#turn.line.indexOf(this);
    if (at >= 0) this.#turn.line.splice(at, 1);
  }
}
