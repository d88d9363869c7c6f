/**
 * The ranks that share something: a communicator and all that was made on it. A wait for them ends when one of them has
 * failed, or when the connection with one was lost; it goes on whatever becomes of other ranks.
 */
import { LostConnectionError, LostQueueError, type RankFailedError } from '../errors.ts';
import type { Messenger } from '../message/messenger.ts';
import type { Concerned } from '../wait/concerned.ts';
import type { Operation, WaitOptions } from '../wait/operation.ts';
import type { Background, ProgressEngine } from '../wait/progress.ts';
import type { Stirred } from '../wait/servers.ts';
import type { AskedAbout, RankFailures } from './rank-failures.ts';

/** What the waits for some ranks need of their job. */
export interface WaitingJob {
  readonly rank: number;
  readonly failures: RankFailures;
  readonly messenger: Pick<Messenger, 'lost'>;
  readonly progress: ProgressEngine;
}

export class Members implements Concerned, AskedAbout {
  readonly #job: WaitingJob;
  readonly #ranks: readonly number[];
  /** This rank, in the job. */
  readonly rank: number;
  /** Kept by `RankFailures`: the one that has failed, or −1, as of what it had read then. */
  failed = -1;
  failuresRead = -1;
  /** What a server of theirs has thrown, until a wait is told. */
  #noted: { readonly error: unknown } | undefined;

  /** @param ranks of the job */
  constructor(job: WaitingJob, ranks: readonly number[]) {
    this.#job = job;
    this.#ranks = ranks;
    this.rank = job.rank;
  }

  /** All those of several. */
  static together(several: readonly Members[]): Members {
    const ranks = new Set(several.flatMap((members) => members.#ranks));
    return new Members(several[0].#job, [...ranks]);
  }

  /** @param rank of the job */
  has(rank: number): boolean {
    return this.#ranks.includes(rank);
  }

  /** The failure of one of them, if there is one. One load while no rank of the job has failed. */
  failure(): RankFailedError | undefined {
    return this.#job.failures.among(this);
  }

  /**
   * The same, after a look at the processes of all ranks: for callers that wait in another way than `progress` does.
   * Some system calls a rank.
   */
  findFailure(): RankFailedError | undefined {
    this.#job.failures.inspectAll();
    return this.failure();
  }

  /** The failure of one of them, if that is behind an error of the device; else the error. */
  explain(error: unknown): unknown {
    return this.#job.failures.explain(error, this);
  }

  trouble(): unknown {
    return this.failure() ?? this.#told() ?? this.#lost();
  }

  /**
   * What a server of theirs has lost for good is left to their waits, which could last for ever: a look at something
   * else is not concerned.
   */
  check(): void {
    const noted = this.#noted?.error;
    const isLoss = noted instanceof LostConnectionError || noted instanceof LostQueueError;
    const error = (isLoss ? undefined : this.#told()) ?? this.#lost();
    if (error !== undefined) throw error;
  }

  note(error: unknown): void {
    this.#noted ??= { error };
  }

  /** What a server of theirs has thrown since the last call. */
  #told(): unknown {
    const noted = this.#noted;
    if (noted === undefined) return undefined;
    this.#noted = undefined;
    return this.explain(noted.error);
  }

  /** What was lost of the messages of one of them. */
  #lost(): unknown {
    const { lost } = this.#job.messenger;
    if (lost.size === 0) return undefined;
    for (const [rank, error] of lost) if (this.has(rank)) return this.explain(error);
    return undefined;
  }

  // ---- waits for them -----------------------------------------------------------------------------------------------

  wait(operation: Operation, options?: WaitOptions): Promise<void> {
    return this.#job.progress.wait(operation, options, this);
  }

  waitSync(operation: Operation, options?: WaitOptions): void {
    this.#job.progress.waitSync(operation, options, this);
  }

  /** One look at an operation, outside a wait. */
  look(operation: Operation): boolean {
    return this.#job.progress.look(operation, this);
  }

  /** Calls `serve` in the waits of this rank; what it throws ends a wait for these ranks. */
  serve(serve: () => number, background: Background): () => void {
    return this.#job.progress.serve(serve, background, this);
  }

  /** The same for what need not be called while it is quiet (`Progress.serveUnlessQuiet`). */
  serveUnlessQuiet(serve: () => number, isQuiet: () => boolean): Stirred {
    return this.#job.progress.serveUnlessQuiet(serve, isQuiet, this);
  }
}
