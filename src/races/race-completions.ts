/** What completes the operations of a rank, and who learns of it. */
import type { Pending, RaceAccess } from './race-access.ts';
import type { RaceMemories } from './race-memories.ts';
import type { RaceOrder } from './race-order.ts';
import type { RaceTellers } from './race-tellers.ts';

export class RaceCompletions {
  readonly #tellers: RaceTellers;
  readonly #order: RaceOrder;
  readonly #memories: RaceMemories;

  constructor(tellers: RaceTellers, order: RaceOrder, memories: RaceMemories) {
    this.#tellers = tellers;
    this.#order = order;
    this.#memories = memories;
  }

  /**
   * What tells operations of a window apart that are not complete together, or, unless these are `together`, whose rank
   * has given its clock away between them.
   */
  countOf(rank: number, key: string, together: boolean): number {
    const completions = this.#tellers.of(rank).completions.get(key) ?? 0;
    return together ? -1 - completions : this.#order.now(rank) * 2 ** 26 + completions;
  }

  #countCompletion(rank: number, key: string): void {
    const { completions } = this.#tellers.of(rank);
    completions.set(key, (completions.get(key) ?? 0) + 1);
  }

  /** An operation has begun. */
  pend(rank: number, key: string, pending: Pending): void {
    pending.access.pending = pending;
    const { pending: windows } = this.#tellers.of(rank);
    const list = windows.get(key);
    if (list === undefined) windows.set(key, [pending]);
    else list.push(pending);
  }

  /** @param target −1: all @param after operations after this number, up to `to` @param remote at the target, too */
  completed(rank: number, key: string, target: number, after: number, to: number, remote: boolean): void {
    const { pending } = this.#tellers.of(rank);
    const list = pending.get(key);
    if (list === undefined) return;
    this.#countCompletion(rank, key);
    const left: Pending[] = [];
    for (const one of list) {
      const isMeant = (target < 0 || one.target === target) && one.number > after && one.number <= to;
      if (!isMeant || !(remote || one.endsHere)) left.push(one);
      else this.#end(rank, one);
    }
    pending.set(key, left);
  }

  #end(rank: number, { access, words, memory }: Pending): void {
    access.done = true;
    access.pending = undefined;
    if (memory >= 0) this.#memories.ended(memory, access);
    this.#order.happened(rank);
    if (access.completed === 0) access.completed = this.#order.now(rank);
    if (words !== undefined) this.#order.takeWords(words, rank);
  }

  pendingFor(rank: number, key: string, target: number): RaceAccess[] {
    const { pending } = this.#tellers.of(rank);
    this.#countCompletion(rank, key);
    const all = pending.get(key) ?? [];
    return all.filter((one) => one.target === target && one.access.side === 'target').map(({ access }) => access);
  }

  /** The same, of which this rank will not hear again. */
  takeFor(rank: number, key: string, target: number): RaceAccess[] {
    const taken = this.pendingFor(rank, key, target);
    const { pending } = this.#tellers.of(rank);
    const isTaken = (one: Pending): boolean => one.target === target && one.access.side === 'target';
    pending.set(
      key,
      (pending.get(key) ?? []).filter((one) => !isTaken(one)),
    );
    return taken;
  }

  /** A target learns that accesses to its part are complete. */
  learn(rank: number, accesses: readonly RaceAccess[]): void {
    this.#order.happened(rank);
    for (const access of accesses) if (access.known === 0) access.known = this.#order.now(rank);
  }

  fenceBegun(rank: number, key: string): void {
    const teller = this.#tellers.of(rank);
    const list = teller.pending.get(key) ?? [];
    teller.pending.delete(key);
    this.#countCompletion(rank, key);
    this.#order.happened(rank);
    // Those that come out of the fence know; this rank itself only when it does.
    for (const { access } of list) if (access.completed === 0) access.completed = this.#order.now(rank);
    teller.fenced.set(key, [...(teller.fenced.get(key) ?? []), ...list]);
    const ranks = this.#tellers.windows.get(key)?.ranks ?? [];
    this.#order.fenceBegun(key, rank, ranks.length);
  }

  fenceEnded(rank: number, key: string): void {
    const teller = this.#tellers.of(rank);
    for (const one of teller.fenced.get(key) ?? []) this.#end(rank, one);
    teller.fenced.delete(key);
    this.#order.fenceEnded(key, rank);
  }
}
