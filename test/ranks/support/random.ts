/** Random numbers that a seed repeats (mulberry32), the same on all ranks that name the same seeds. */
export class Random {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = 0x9e3779b9;
    for (const seed of seeds) {
      this.#state = (Math.imul(this.#state ^ seed, 0x85ebca6b) + 0x27d4eb2f) | 0;
      this.bits();
    }
  }

  /** 32 bits. */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** 0 … n − 1. */
  below(n: number): number {
    return this.bits() % n;
  }

  /** low … high. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.bits() < probability * 2 ** 32;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }
}
