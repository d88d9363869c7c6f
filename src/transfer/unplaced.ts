/**
 * Puts that may be complete before they are in the target's memory: where a provider's completions do not say that
 * (capability `completionImpliesPlacement`), who flushes or unlocks confirms it by a read.
 *
 * A device carries out the requests of a connection in order, and a read finds in memory what was written before it
 * (InfiniBand 1.3, o9-20; on the target's bus, a read pushes the writes before it). So the answer to a read of one byte
 * says that all puts of its connection are where the target's processor finds them, also if it is told of them by a
 * message that takes another way. The byte is one of the last put's, which is certainly there to be read.
 *
 * Fences and complete need none of this: they notify the target behind the puts, on the same connection.
 */
export class Unplaced {
  /** By rank: whether there is such a put, and where the last one went. */
  readonly #pending: Uint8Array;
  readonly #rkeys: Float64Array;
  readonly #addresses: Float64Array;

  constructor(ranks: number) {
    this.#pending = new Uint8Array(ranks);
    this.#rkeys = new Float64Array(ranks);
    this.#addresses = new Float64Array(ranks);
  }

  /** A put of at least one byte was begun. */
  note(rank: number, rkey: number, address: number): void {
    this.#pending[rank] = 1;
    this.#rkeys[rank] = rkey;
    this.#addresses[rank] = address;
  }

  /** Whether there were puts to a rank since the last call, which confirms them, or since `clear`. */
  take(rank: number): boolean {
    const pending = this.#pending[rank] === 1;
    this.#pending[rank] = 0;
    return pending;
  }

  /** Where the last put to a rank went. */
  lastTo(rank: number): { readonly rkey: number; readonly address: number } {
    return { rkey: this.#rkeys[rank], address: this.#addresses[rank] };
  }

  /** The targets of all of them are notified behind them. */
  clear(): void {
    this.#pending.fill(0);
  }
}
