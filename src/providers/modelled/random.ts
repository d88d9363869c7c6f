/**
 * Random numbers of a modelled fabric: xoshiro128** (Blackman and Vigna, "Scrambled linear pseudorandom number
 * generators", 2021), seeded through splitmix32.
 *
 * Integer operations and multiplications by powers of two only: the same seed gives the same numbers on every machine
 * and in every version of the engine.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param stream another sequence for the same seed: what draws from one does not disturb the others */
  constructor(seed: number, stream = 0) {
    let state = (seed ^ Math.imul(Math.floor(seed / 2 ** 32), 0x9e3779b1) ^ Math.imul(stream, 0x85ebca77)) >>> 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) >>> 0;
      let x = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
      return (x ^ (x >>> 15)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    // Never all zero.
    this.#d = next() | 1;
  }

  /** 32 bits. */
  bits(): number {
    const x = Math.imul(this.#b, 5);
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0;
    const t = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= t;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** From 0 up to, but not including, 1; a multiple of 2^−32. */
  fraction(): number {
    return this.bits() / 2 ** 32;
  }
}
