/** Something for each rank, made when it is first asked for: of many ranks, most talk to few. */
export class ByRank<T> {
  readonly #made: (T | undefined)[] = [];
  readonly #make: (rank: number) => T;
  readonly #ranks: number[] = [];
  readonly #all: T[] = [];
  /** Whether ranks were added since these were in order. */
  #unordered = false;

  constructor(make: (rank: number) => T) {
    this.#make = make;
  }

  of(rank: number): T {
    return this.#made[rank] ?? this.#add(rank);
  }

  find(rank: number): T | undefined {
    return this.#made[rank];
  }

  /** All that were made, in the order of ranks. They are put in order here: of n ranks each is added in O(1). */
  get all(): readonly T[] {
    if (this.#unordered) this.#order();
    return this.#all;
  }

  #add(rank: number): T {
    const entry = this.#make(rank);
    this.#made[rank] = entry;
    if (rank < (this.#ranks.at(-1) ?? 0)) this.#unordered = true;
    this.#ranks.push(rank);
    this.#all.push(entry);
    return entry;
  }

  /** In place: who walks through them meanwhile misses none that was there. */
  #order(): void {
    this.#ranks.sort((a, b) => a - b);
    for (const [i, rank] of this.#ranks.entries()) this.#all[i] = this.#made[rank]!;
    this.#unordered = false;
  }
}
