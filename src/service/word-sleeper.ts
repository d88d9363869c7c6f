/**
 * Tasks of one member that sleep on one word, in the kernel, in a thread of its own: the event loop is free meanwhile,
 * and does not end.
 */
import type { Native, Parker } from '../native.ts';

export class WordSleeper {
  readonly #native: Native;
  readonly #words: Int32Array;
  readonly #index: number;
  readonly #sleepers = new Set<() => void>();
  #parker: Parker | undefined;
  #isParked = false;

  constructor(native: Native, words: Int32Array, index: number) {
    this.#native = native;
    this.#words = words;
    this.#index = index;
  }

  /**
   * Ends when the word is not `seen` any more, after `ms` milliseconds, when the signal aborts, or early. Of several
   * that sleep at once the first one's `ms` counts.
   */
  async sleep(seen: number, ms: number, signal?: AbortSignal): Promise<void> {
    if (Atomics.load(this.#words, this.#index) !== seen) return;
    this.#parker ??= new this.#native.Parker(() => this.#wake());
    // If it is parked already, then on what the word was before: whoever has changed it has rung, or rings.
    if (!this.#isParked) this.#parker.begin(this.#words, this.#index, seen, ms, true);
    this.#isParked = true;
    const target = signal as (AbortSignal & EventTarget) | undefined;
    let wake!: () => void;
    await new Promise<void>((resolve) => {
      wake = resolve;
      this.#sleepers.add(wake);
      target?.addEventListener('abort', wake);
    });
    target?.removeEventListener('abort', wake);
    this.#sleepers.delete(wake);
    if (this.#sleepers.size > 0 || !this.#isParked) return;
    // The only one has been aborted.
    this.#parker.interrupt();
    this.#isParked = false;
  }

  /** Wakes all, and sleeps no more. */
  close(): void {
    this.#parker?.close();
    this.#parker = undefined;
    this.#wake();
  }

  #wake(): void {
    this.#isParked = false;
    for (const wake of this.#sleepers) wake();
    this.#sleepers.clear();
  }
}
