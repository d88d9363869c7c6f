/**
 * When the packets of a process leave (BSP over TCP/IP, section 3): its time goes in cycles of Q
 * slots of ε. In each cycle it sends one packet, at the beginning of a slot that it draws from all Q alike. So if Q
 * processes send, a slot has one packet in the mean, and nobody repeats a bad order. Cycles of different processors
 * begin when these do: no clocks are compared.
 *
 * Slots are drawn from a seed, the process and the superstep, so a run with the same seed has the same ones.
 */

/** How fast packets leave. */
export interface Pace {
  /** Slots of a cycle (Q), a whole number. */
  readonly slots: number;
  /** Microseconds of a slot (ε); 0: packets leave as soon as they can. */
  readonly slot: number;
  /** Chunks leave whole, not in packets. */
  readonly whole: boolean;
}

export const UNPACED: Pace = { slots: 1, slot: 0, whole: false };
/** As without the option. */
export const WHOLE: Pace = { ...UNPACED, whole: true };

function mixed(x: number): number {
  let y = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  y = Math.imul(y ^ (y >>> 15), 0x735a2d97);
  return (y ^ (y >>> 15)) >>> 0;
}

const GOLDEN = 0x9e3779b9;

export class Slots {
  /** Microseconds at which the next packet leaves. */
  due = 0;
  /** Cycles that have begun since `begin`. */
  cycles = 0;
  #began = 0;
  #pace: Pace = UNPACED;
  #state = 0;

  /**
   * Begins with the first cycle.
   * @param now microseconds
   * @param numbers what is drawn from: the same numbers give the same slots
   */
  begin(now: number, pace: Pace, ...numbers: number[]): void {
    this.#began = now;
    this.#pace = pace;
    this.#state = 0;
    for (const number of numbers) {
      this.#state = mixed((this.#state + GOLDEN) ^ (number >>> 0) ^ Math.imul(Math.floor(number / 2 ** 32), GOLDEN));
    }
    this.cycles = 0;
    this.next();
  }

  /** The packet has left: goes on to the next cycle, and draws its slot. */
  next(): void {
    const { slots, slot } = this.#pace;
    this.#state = (this.#state + GOLDEN) >>> 0;
    const drawn = Math.floor((mixed(this.#state) / 2 ** 32) * slots);
    this.due = this.#began + (this.cycles * slots + drawn) * slot;
    this.cycles++;
  }
}
