/** Something for each rank, made when it is first asked for: of many ranks, most talk to few. */
export class ByRank<T> {
  readonly #made: (T | undefined)[] = [];
  readonly #make: (rank: number) => T;
  readonly #ranks: number[] = [];
  readonly #all: T[] = [];

  constructor(make: (rank: number) => T) {
    this.#make = make;
  }

  of(rank: number): T {
    return this.#made[rank] ?? this.#add(rank);
  }

  find(rank: number): T | undefined {
    return this.#made[rank];
  }

  /** All that were made, in the order of ranks. */
  get all(): readonly T[] {
    return this.#all;
  }

  #add(rank: number): T {
    const entry = this.#make(rank);
    this.#made[rank] = entry;
    let [at, end] = [0, this.#ranks.length];
    while (at < end) {
      const middle = (at + end) >>> 1;
      if (this.#ranks[middle] < rank) at = middle + 1;
      else end = middle;
    }
    this.#ranks.splice(at, 0, rank);
    this.#all.splice(at, 0, entry);
    return entry;
  }
}
