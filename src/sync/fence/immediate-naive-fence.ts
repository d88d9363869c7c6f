/**
 * The immediate fence as it was at first (dissertation §6.3.1): like immediate-optimized-fence.ts, but instead of the
 * barrier every rank posts a flag to every other one, and waits for all of theirs: p − 1 messages a rank, where a
 * barrier has ⌈log2 p⌉. It is here to be compared with.
 *
 * The flags leave one after the other, each when the one before is complete, as in the library behind the dissertation
 * (MVAPICH 2, source: a flag is an RDMA write, whose completion is awaited before the next is posted). So they take
 * p − 1 round trips; sent at once they would be cheaper than a barrier up to some 16 ranks.
 *
 * Flags are counted for each source: with `NO_PRECEDE` a fast rank can be a fence ahead, and its second flag must not
 * stand for that of a slow one. It cannot be two ahead: for its second fence it needs this rank's flag.
 */

import { FenceByFinish } from './fence-by-finish.ts';
import { fenceKind } from './fence-kind.ts';

/** That a rank has come to the fence. */
const HERE = 0;

class ImmediateNaiveFence extends FenceByFinish {
  /** Fences that have posted flags. */
  #posted = 0;

  protected *steps(precedes: boolean, succeeds: boolean): Generator<void, void> {
    if (precedes) yield* this.finish();
    if (!succeeds) return;
    const { rank, size } = this.comm;
    const { notifications } = this.requests;
    this.#posted = (this.#posted + 1) | 0;
    for (let i = 1; i < size; i++) {
      notifications.flag((rank + i) % size, HERE);
      this.statistics.flags++;
      yield* this.completeOwn();
    }
    let next = 0;
    /** The first rank whose flag has not come: the flags of those before it have. */
    const missing = (): number => {
      while (next < size && (next === rank || ((notifications.flagsFrom(next, HERE) - this.#posted) | 0) >= 0)) next++;
      return next;
    };
    this.asks = () => [missing()].filter((rank) => rank < size);
    yield* this.until(
      () => missing() === size,
      () => `waiting for the flag of rank ${missing()}`,
    );
  }
}

export const immediateNaive = fenceKind({
  name: 'immediate-naive',
  moves: 'by requests',
  make: ({ comm, wire, description }) => new ImmediateNaiveFence(comm, wire!, description),
});
