/**
 * Put with signal: a count at the target that a put raises after its data is there.
 *
 * Where remote memory can be stored to, the count is a word of the target's block. The origin raises it by an atomic addition, which no
 * earlier store passes; the target loads it before the data. Origins add, only the target takes, and what it has taken it counts by itself, so
 * the word only grows (wrapping around). Where puts are requests, the signal is a write with immediate behind them.
 */
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import { argumentRangeError, argumentTypeError, show } from '../errors.ts';
import { loadAcquire } from '../memory-model.ts';
import type { RequestTransfer } from '../transfer/requests.ts';
import type { WindowParts } from './creation/parts.ts';
import type { Epochs } from './epochs.ts';
import type { Target } from './target.ts';

export class Notifications {
  readonly #epochs: Epochs;
  readonly #requests: RequestTransfer | undefined;
  readonly #lids: readonly number[];
  readonly #wordOf: (rank: number) => Int32Array;
  readonly #words: (Int32Array | undefined)[] = [];
  /** What this rank has taken of its own count. */
  #taken = 0;

  constructor(parts: WindowParts, epochs: Epochs) {
    this.#epochs = epochs;
    this.#requests = parts.requests;
    this.#lids = parts.comm.group.worldRanks;
    this.#wordOf = parts.signalWord;
  }

  /** Raises the target's count, after everything that was issued to it. */
  signal(t: Target): void {
    const { comm } = this.#epochs;
    if (this.#requests !== undefined) {
      const requests = this.#requests;
      this.#epochs.attempt(() => requests.signal(t.rank));
      return;
    }
    Atomics.add(this.#word(t.rank), 0, 1);
    if (t.rank !== comm.rank) comm.job.context.wake(this.#lids[t.rank]);
  }

  #word(rank: number): Int32Array {
    this.#words[rank] ??= this.#epochs.attempt(() => this.#wordOf(rank));
    return this.#words[rank];
  }

  wait(count: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('waitNotify', options);
      const taking = this.#begin('waitNotify', count);
      const { progress } = this.#epochs.comm.job;
      return progress.look(taking) ? progress.done() : progress.wait(taking, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  waitSync(count: number, options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('waitNotify');
    const wait = readWait('waitNotify', options);
    this.#epochs.comm.job.progress.waitSync(this.#begin('waitNotify', count), wait);
  }

  test(count: number): boolean {
    return this.#epochs.comm.job.progress.look(this.#begin('testNotify', count));
  }

  #begin(call: string, count: number): Operation {
    const { what } = this.#epochs;
    this.#epochs.checkAlive(call);
    if (typeof count !== 'number') {
      throw argumentTypeError(`${call} on ${what}: the count must be a number, not ${show(count)}`);
    }
    if (!Number.isInteger(count) || count < 1 || count > 2 ** 30) {
      throw argumentRangeError(`${call} on ${what}: the count must be 1 … 2^30, not ${show(count)}`);
    }
    return {
      advance: () => {
        if (this.#arrived() < count) return false;
        this.#taken = (this.#taken + count) | 0;
        return true;
      },
      describe: () => `${call} of ${what} (${this.#arrived()} of ${count} notifications have arrived)`,
    };
  }

  /** Notifications that have arrived and were not taken. */
  #arrived(): number {
    if (this.#requests === undefined) return (loadAcquire(this.#word(this.#epochs.comm.rank), 0) - this.#taken) | 0;
    this.#requests.poll();
    return (this.#requests.signals - this.#taken) | 0;
  }
}
