/** What is given back when a communicator is finalized: its own memory, and the windows on it. */
import type { RmaError } from '../errors.ts';

export class Releases {
  /** Oldest first. */
  readonly #releases = new Set<() => void>();
  readonly #refusals = new Set<() => RmaError | undefined>();

  /** See `Communicator.onRelease`. */
  add(release: () => void, refusal?: () => RmaError | undefined): () => boolean {
    this.#releases.add(release);
    if (refusal !== undefined) this.#refusals.add(refusal);
    return () => {
      if (refusal !== undefined) this.#refusals.delete(refusal);
      return this.#releases.delete(release);
    };
  }

  /** Throws the first refusal to give everything back now. */
  check(): void {
    for (const refusal of this.#refusals) {
      const error = refusal();
      if (error !== undefined) throw error;
    }
  }

  /** Gives back the newest first, as it may stand on the others. Each may take itself from the list. */
  giveBack(): void {
    for (const release of [...this.#releases].reverse()) release();
    this.#releases.clear();
  }
}
