/**
 * The path of puts and gets in windows with a schedule: they wait, and are then posted by the path around which it is,
 * in the order of the schedule (transfer/schedule/held-operations.ts). Whatever completes operations of such a window
 * has all that waits posted before.
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { HeldOperations } from '../../transfer/schedule/held-operations.ts';
import type { Operation } from '../../wait/operation.ts';
import type { Completion, Later, Moves, OwnMemory, Path, ProgressBy } from './path.ts';

/** Puts and gets only: updates are not held. */
export class HeldPath implements Path {
  readonly own: OwnMemory | undefined;
  readonly #direct: Later;
  readonly #held: HeldOperations;
  readonly #rank: number;

  constructor(direct: Later, held: HeldOperations, rank: number) {
    this.own = direct.own;
    this.#direct = direct;
    this.#held = held;
    this.#rank = rank;
  }

  open(): void {}

  aligned(at: number): number {
    return this.#direct.aligned(at);
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#held.hold({
      puts: true,
      poster: this.#direct,
      rank: this.#rank,
      origin,
      from,
      at,
      to,
      turn: this.#direct.turn,
    });
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#held.hold({
      puts: false,
      poster: this.#direct,
      rank: this.#rank,
      origin,
      from,
      at,
      to,
      turn: this.#direct.turn,
    });
  }

  update(...update: Parameters<Path['update']>): void {
    this.#direct.update(...update);
  }

  swap(...swap: Parameters<Path['swap']>): void {
    this.#direct.swap(...swap);
  }

  progressBy(moves: Moves): ProgressBy {
    return this.#direct.progressBy(moves);
  }
}

export class HeldCompletion implements Completion {
  readonly #requests: RequestTransfer;
  readonly #held: HeldOperations;

  constructor(requests: RequestTransfer, held: HeldOperations) {
    this.#requests = requests;
    this.#held = held;
  }

  flush(rank?: number): Operation {
    this.#held.post();
    return this.#requests.flush(rank);
  }

  flushLocal(rank?: number): Operation {
    this.#held.post();
    return this.#requests.flushLocal(rank);
  }

  tryFlush(rank: number | undefined, extent: 'here' | 'in memory'): boolean {
    this.#held.post();
    return this.#requests.tryFlush(rank, extent);
  }

  /** What is held when this is called is posted together, so it waits for all of that which goes to the rank. */
  soFar(rank: number): Operation {
    let posted: Operation | undefined;
    this.#held.whenPosted(() => {
      posted = this.#requests.soFar(rank);
    });
    return {
      advance: () => {
        if (posted === undefined) this.#held.post();
        return posted!.advance();
      },
      describe: () => posted?.describe() ?? `a request to rank ${rank}`,
      abandon: () => posted?.abandon?.(),
      isPolling: () => posted?.isPolling?.() ?? false,
    };
  }

  endHolding(): void {
    this.#requests.endHolding();
  }
}
