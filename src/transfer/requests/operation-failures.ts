/**
 * Why operations have failed where no call could say it. A call that waits for operations of their rank says it once,
 * and no other call does: a flush says it of all of them, the request of one (`rput` and its like) of those that were
 * issued up to it.
 *
 * **Turns.** Each such request ends a turn, and what is issued later belongs to the next one. So a request is told of a
 * failure of its own turn, or of an earlier one. A task that takes several requests to its rank belongs to one turn,
 * that in which it was begun.
 */

interface Failure {
  readonly error: unknown;
  readonly turn: number;
}

/** Failures of a rank that are kept: of more, the last one stands for those behind the others. */
const KEPT = 64;

export class OperationFailures {
  /** That of what is issued now. */
  turn = 0;
  /** In the order in which they were found. Those of rank −1 may be of any. */
  #byRank: Map<number, Failure[]> | undefined;

  /** A request comes behind what has been issued so far. @returns the last turn that it is told of */
  endTurn(): number {
    return this.turn++;
  }

  note(error: unknown, rank: number, turn = this.turn): void {
    this.#byRank ??= new Map();
    const failures = this.#byRank.get(rank);
    if (failures === undefined) this.#byRank.set(rank, [{ error, turn }]);
    else if (failures.length < KEPT) failures.push({ error, turn });
    else failures[KEPT - 1] = { error, turn };
  }

  /**
   * Says the first failure of each rank up to a turn (of rank −1 whatever its turn), and forgets what it has said. It
   * says them to `failed`. Without that, it throws that of the first rank that was noted; the others stay.
   * @param rank the rank whose operations are waited for; failures of rank −1 concern every rank. All, if it is
   * undefined
   */
  tell(rank: number | undefined, failed: ((error: unknown) => void) | undefined, last: number): void {
    const all = this.#byRank;
    if (all === undefined) return;
    for (const [of, failures] of all) {
      if (rank !== undefined && of !== rank && of !== -1) continue;
      const isTold = ({ turn }: Failure): boolean => of === -1 || turn <= last;
      const first = failures.find(isTold);
      if (first === undefined) continue;
      const left = failures.filter((failure) => !isTold(failure));
      if (left.length > 0) all.set(of, left);
      else all.delete(of);
      if (all.size === 0) this.#byRank = undefined;
      if (failed === undefined) throw first.error;
      failed(first.error);
    }
  }
}
