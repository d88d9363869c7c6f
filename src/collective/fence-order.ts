/**
 * Whether the ranks of a communicator call the fences of its windows in the same order as its other collectives.
 *
 * A fence exchanges no messages where a barrier of the window is enough, so it does not show in a collective's
 * signature. A rank that waits long in one tells those that have not come where it stands: which fence of which window,
 * and how many fences, barriers and collectives it has called so far. Suppose that a rank has not called that fence,
 * but has called something that the sender had not called when it said so. Then it has called the two in another order
 * than the sender, and that stays so, whatever either calls next. The rank gives up, and all others learn of it when
 * they wait long.
 *
 * Only waits that are long look at any of this. A fence counts its calls in any case (`FenceStatistics`).
 */
import { RmaError } from '../errors.ts';
import {
  describeSignature,
  fenceMessage,
  ordinal,
  outOfStepMessage,
  type PlacedFence,
  sequenceOf,
} from './collective-signature.ts';

/** Of one window. */
interface Counts {
  /** That this rank has begun. */
  readonly fences: number;
}

/** What a rank has called on the communicator. */
export interface Called {
  readonly barriers: number;
  readonly sequence: number;
}

/** The channel of the communicator's collectives, as far as it is needed here. */
export interface OrderChannel {
  readonly rank: number;
  /** The signature of the call that is under way or was the last; `undefined` before the first. */
  readonly begun: Uint8Array | undefined;
  /** Sends a message that is no part of a collective. */
  tell(target: number, message: Uint8Array): void;
  tellOthers(message: Uint8Array): void;
  /** Nothing that exchanges messages can go on. */
  refuse(error: RmaError): void;
}

const ADVICE = 'all ranks must call the same fences, barriers and other collectives in the same order';

export class FenceOrder {
  /** Set by what counts the calls. */
  called: () => Called = () => ({ barriers: 0, sequence: 0 });
  readonly #channel: OrderChannel;
  /** Of the communicator. */
  readonly #name: string;
  /** By the windows' numbers. */
  readonly #open = new Map<number, Counts>();
  /** Fences of windows that are freed. */
  #freed = 0;
  /** The fence that each rank last said it waits long in. */
  readonly #asking = new Map<number, PlacedFence>();
  /** What another rank has found. */
  #heard: { readonly error: RmaError; readonly fences: boolean } | undefined;
  #mismatch: RmaError | undefined;

  constructor(channel: OrderChannel, name: string) {
    this.#channel = channel;
    this.#name = name;
  }

  /**
   * A window takes part. All ranks free it together.
   * @returns to be called when it is freed
   */
  open(window: number, counts: Counts): () => void {
    this.#open.set(window, counts);
    return () => {
      if (this.#open.delete(window)) this.#freed += counts.fences;
    };
  }

  /** Set once it is known that ranks have called fences and something else in different orders. */
  get mismatch(): RmaError | undefined {
    return this.#mismatch;
  }

  /**
   * This rank waits long in the fence of a window.
   * @param targets to be told of it
   * @param after of a fence that counts as a collective itself: the number of the last one before it
   */
  lingerInFence(window: number, targets: readonly number[], after: number | undefined): void {
    const number = this.#open.get(window)?.fences ?? 0;
    this.linger(`win.fence() of the ${ordinal(window)} window, its ${ordinal(number)}`);
    if (this.#mismatch !== undefined || targets.length === 0) return;
    const { barriers, sequence } = this.called();
    const message = fenceMessage({ window, number, fences: this.#fences, barriers, sequence: after ?? sequence });
    for (const target of targets) this.#channel.tell(target, message);
  }

  /** This rank waits long in a collective. @param fence the one that it waits in, if it is one */
  linger(fence?: string): void {
    for (const [rank, placed] of this.#asking) this.#compare(rank, placed, fence);
    if (this.#heard?.fences) this.#refuse(this.#heard.error);
    else if (this.#heard !== undefined) this.#channel.refuse(this.#heard.error);
  }

  /** A rank says where it waits long. */
  asked(rank: number, placed: PlacedFence): void {
    this.#asking.set(rank, placed);
    this.#compare(rank, placed, undefined);
  }

  /** A rank has found a mismatch. What was called before it may still be completed, so only a long wait is ended. */
  hear(rank: number, { reason, fences }: { readonly reason: string; readonly fences: boolean }): void {
    this.#heard ??= {
      error: new RmaError('ERR_COLLECTIVE', `rank ${rank} gave up its calls on ${this.#name}: ${reason}`),
      fences,
    };
  }

  /** Of all windows that this rank has called. */
  get #fences(): number {
    let sum = this.#freed;
    for (const { fences } of this.#open.values()) sum += fences;
    return sum;
  }

  /** @param fence in which this rank waits long */
  #compare(rank: number, placed: PlacedFence, fence: string | undefined): void {
    const own = this.#open.get(placed.window);
    if (own === undefined || own.fences >= placed.number) return;
    const mine = this.#instead(placed, fence);
    if (mine === undefined) return;
    this.#asking.delete(rank);
    const which = `the ${ordinal(placed.window)} window, its ${ordinal(placed.number)}`;
    const theirs = `rank ${rank} called win.fence() of ${which}`;
    this.#refuse(
      new RmaError('ERR_COLLECTIVE', `${theirs}, on ${this.#name}, while this rank called ${mine}; ${ADVICE}`),
    );
    this.#channel.tellOthers(
      outOfStepMessage(`${theirs}, while rank ${this.#channel.rank} called ${mine}; ${ADVICE}`, true),
    );
  }

  /** What this rank has called and that one had not. */
  #instead(placed: PlacedFence, fence: string | undefined): string | undefined {
    const { begun } = this.#channel;
    // The difference is right when the numbers wrap around, too.
    if (begun !== undefined && ((sequenceOf(begun) - placed.sequence) | 0) > 0)
      return `${describeSignature(begun)}, its ${ordinal(sequenceOf(begun) >>> 0)} collective`;
    const { barriers } = this.called();
    if (barriers > placed.barriers) return `barrier, its ${ordinal(barriers)}`;
    // This rank has called as many fences as that rank, without the one that that rank waits in: so that rank has not
    // called one of them.
    return this.#fences >= placed.fences ? fence : undefined;
  }

  #refuse(error: RmaError): void {
    this.#mismatch ??= error;
    this.#channel.refuse(this.#mismatch);
  }
}
