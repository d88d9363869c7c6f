/**
 * What fences of several steps have in common: each is a generator among the collectives of the communicator, and goes
 * on after a wait that ended early.
 *
 * An operation that has failed does not end it: other ranks count on what this rank tells them. So the fence takes all
 * its steps, and fails then; called again, it has been carried out.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { Operation } from '../../wait/operation.ts';
import { type FenceScheme, noFences } from './fence-scheme.ts';

export abstract class StepwiseFence implements FenceScheme {
  readonly statistics = noFences();
  protected readonly comm: Communicator;
  /** What it waits for, for messages. */
  protected step: string | (() => string) = '';
  /** Ranks that have perhaps not come, in a step that does not receive messages of collectives. */
  protected asks: (() => readonly number[]) | undefined;
  after: number | undefined;
  readonly #description: string;
  /** Which window of the communicator it belongs to: the one that is being made. */
  readonly #window: number;
  #under: Operation | undefined;
  /** The first operation of the fence that is under way that has failed. */
  #failure: { readonly error: unknown } | undefined;
  /** It has been carried out, and has failed. */
  #failed = false;

  constructor(comm: Communicator, description: string) {
    this.comm = comm;
    this.#window = comm.windows;
    this.#description = description;
  }

  begin(precedes: boolean, succeeds: boolean): void {
    if (this.#under !== undefined || this.#failed) return;
    this.statistics.fences++;
    if (!this.isNeeded(precedes, succeeds)) return;
    this.step = 'waiting for its turn among the collectives';
    this.asks = undefined;
    this.after = this.comm.sequence;
    this.#under = this.comm.begin(this.steps(precedes, succeeds), `fence of ${this.#description}`, {
      name: 'win.fence',
      count: this.#window,
    });
  }

  advance(): boolean {
    if (this.#failed) {
      this.#failed = false;
      return true;
    }
    if (this.#under === undefined) return true;
    if (!this.#under.advance()) return false;
    this.#under = undefined;
    const failure = this.#failure;
    if (failure === undefined) return true;
    this.#failure = undefined;
    this.#failed = true;
    throw failure.error;
  }

  /** An operation has failed; others go on. */
  protected note(error: unknown): void {
    this.#failure ??= { error };
  }

  describe(): string {
    const { step } = this;
    return `fence of ${this.#description} (${typeof step === 'string' ? step : step()})`;
  }

  askedFor(): readonly number[] {
    return this.asks?.() ?? this.comm.awaitedRanks;
  }

  linger(): void {
    this.#under?.linger?.();
  }

  /** The fence goes on when it is called again. */
  abstract abandon(): void;

  /** Whether there is anything to do at all, by what is asserted. */
  protected isNeeded(precedes: boolean, succeeds: boolean): boolean {
    return precedes || succeeds;
  }

  protected abstract steps(precedes: boolean, succeeds: boolean): Generator<void, void>;
}
