/**
 * The fence where operations are complete when they are issued: nothing is left to complete, so a barrier is enough.
 *
 * Why that is right here and wrong on a network (dissertation §6.2): a completion on the network says that the origin's
 * buffer is free, not that the data has arrived, and a barrier message can overtake it. Here the origin's processor has
 * itself stored into the target's memory. The barrier's first flag is stored with sequential consistency after those
 * stores, and a rank that has seen the flags of all rounds loads after them, so it sees all data.
 *
 * Each half alone, completing an epoch or opening one, needs the whole barrier; a fence that does neither needs
 * nothing.
 */

import type { BarrierState } from '../../collective/word-barrier.ts';
import { fenceKind } from './fence-kind.ts';
import { type FenceScheme, noFences } from './fence-scheme.ts';

class ImmediateFence implements FenceScheme {
  readonly statistics = noFences();
  #barrier: BarrierState;
  #description: string;
  #active = false;

  constructor(barrier: BarrierState, description: string) {
    this.#barrier = barrier;
    this.#description = description;
  }

  begin(precedes: boolean, succeeds: boolean): void {
    if (this.#active) return;
    this.statistics.fences++;
    if (!precedes && !succeeds) return;
    this.#active = true;
    this.#barrier.begin();
  }

  advance(): boolean {
    if (!this.#active) return true;
    if (!this.#barrier.advance()) return false;
    this.#active = false;
    return true;
  }

  askedFor(): readonly number[] {
    return this.#barrier.askedFor();
  }

  describe(): string {
    return `fence of ${this.#description} (waiting for ${this.#barrier.waitsFor()})`;
  }
}

export const immediate = fenceKind({
  name: 'immediate',
  moves: 'immediately',
  isDefault: ({ immediateCompletion }) => immediateCompletion,
  make: ({ barrier, description }) => new ImmediateFence(barrier, description),
});
