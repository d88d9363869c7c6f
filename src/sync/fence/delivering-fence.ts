/**
 * For debugging (`ONESIDED_DEBUG=poison`): a fence by requests that waits for this rank's own operations before it
 * tells any other rank of them, and then has their results delivered and their origins compared. Behind the fence it
 * would be too late where an origin lies in this rank's own part of the window: a rank that has passed the fence may
 * put there before this rank has seen that the fence is complete.
 */
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { Operation } from '../../wait/operation.ts';
import type { FenceScheme, FenceStatistics } from './fence-scheme.ts';

export class DeliveringFence implements FenceScheme {
  /** Called when the own operations are complete. */
  deliver: () => void = () => {};
  readonly #fence: FenceScheme;
  readonly #requests: RequestTransfer;
  /** Of the own operations, while they are waited for; the fence itself begins behind it. */
  #own: Operation | undefined;
  #succeeds = false;
  /** The first of them that has failed: told when the fence has taken all its steps, as that of every scheme. */
  #failure: { readonly error: unknown } | undefined;
  /** The fence has been carried out, and has failed. */
  #failed = false;

  constructor(fence: FenceScheme, requests: RequestTransfer) {
    this.#fence = fence;
    this.#requests = requests;
  }

  get statistics(): FenceStatistics {
    return this.#fence.statistics;
  }

  get after(): number | undefined {
    return this.#fence.after;
  }

  begin(precedes: boolean, succeeds: boolean): void {
    if (this.#own !== undefined || this.#failed) return;
    // One that goes on has nothing of its own left.
    if (!precedes) this.#fence.begin(precedes, succeeds);
    else {
      this.#succeeds = succeeds;
      this.#own = this.#requests.flushAnyway((error) => {
        this.#failure ??= { error };
      });
    }
  }

  advance(): boolean {
    if (this.#failed) {
      this.#failed = false;
      return true;
    }
    if (this.#own !== undefined) {
      if (!this.#own.advance()) return false;
      this.#own = undefined;
      this.deliver();
      this.#fence.begin(true, this.#succeeds);
    }
    if (!this.#fence.advance()) return false;
    const failure = this.#failure;
    if (failure === undefined) return true;
    this.#failure = undefined;
    this.#failed = true;
    throw failure.error;
  }

  askedFor(): readonly number[] {
    return this.#own === undefined ? this.#fence.askedFor() : [];
  }

  describe(): string {
    return this.#own === undefined ? this.#fence.describe() : `fence: ${this.#own.describe()}`;
  }

  linger(): void {
    if (this.#own === undefined) this.#fence.linger?.();
  }

  abandon(): void {
    (this.#own ?? this.#fence).abandon?.();
  }

  isPolling(): boolean | number {
    return (this.#own ?? this.#fence).isPolling?.() ?? false;
  }
}
