/**
 * The path of updates of which the target's processor carries out some or all (hint `update`); the others, and puts and
 * gets, are requests.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { TargetUpdates } from '../../transfer/served/target-updates.ts';
import type { Moves, OwnMemory, ProgressBy } from './path.ts';
import { type Fenced, Requests, type Senders } from './request-path.ts';

/** What carries out updates at their target. */
export interface ServedUpdates {
  readonly updates: TargetUpdates;
  /** Whether it does so for a type. */
  takes(base: number): boolean;
}

export class Served extends Requests {
  readonly #served: ServedUpdates;
  readonly #target: number;

  constructor(served: ServedUpdates, senders: Senders, rank: number, own: OwnMemory | undefined, epochs: Fenced) {
    super(senders, rank, undefined, own, epochs);
    this.#served = served;
    this.#target = rank;
  }

  override update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    if (this.#served.takes(to.base)) {
      this.#served.updates.accumulate(origin, from, this.#target, at, to, op, fetch);
    } else super.update(origin, from, at, to, op, fetch);
  }

  override swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    if (this.#served.takes(to.base)) {
      this.#served.updates.compareAndSwap(origin, compare, result, this.#target, at, to.base);
    } else super.swap(origin, compare, result, at, to);
  }

  override progressBy(moves?: Moves): ProgressBy {
    return moves === 'transfer' ? super.progressBy() : 'target';
  }
}
