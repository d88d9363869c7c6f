/**
 * The path of puts and gets in windows with the hint `noncontiguous`: layouts of several pieces may take a way of their
 * own, with the target's processor; everything else is requests.
 */
import { bytesOf, type TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { NoncontiguousTransfers } from '../../transfer/layouts/layout-moves.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { ProgressBy } from './path.ts';
import { Requests, type Senders } from './request-path.ts';

export class Layouts extends Requests {
  readonly #transfers: NoncontiguousTransfers;
  readonly #target: number;

  /** @param rank another rank than this one: its own part needs no messages */
  constructor(transfers: NoncontiguousTransfers, senders: Senders, rank: number, epochs: Epochs) {
    super(senders, rank, undefined, undefined, epochs);
    this.#transfers = transfers;
    this.#target = rank;
  }

  override put(origin: TypedArray, from: Side, at: number, to: Side): void {
    if (!this.#transfers.move(true, bytesOf(origin), from, this.#target, at, to)) super.put(origin, from, at, to);
  }

  override get(origin: TypedArray, from: Side, at: number, to: Side): void {
    if (!this.#transfers.move(false, bytesOf(origin), from, this.#target, at, to)) super.get(origin, from, at, to);
  }

  override progressBy(): ProgressBy {
    return this.#transfers.needsTarget ? 'target' : super.progressBy();
  }
}
