/** Waits for notifications, which puts with a signal raise at this rank (path/signals.ts). */

import { argumentRangeError, argumentTypeError, show } from '../../errors.ts';
import { type Operation, readWait, type WaitOptions } from '../../wait/operation.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { Signals } from '../path/signals.ts';

export class NotificationWaits {
  readonly #epochs: Epochs;
  readonly #signals: Signals;
  /** What this rank has taken of its own count. */
  #taken = 0;

  constructor(epochs: Epochs, signals: Signals) {
    this.#epochs = epochs;
    this.#signals = signals;
  }

  wait(count: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('waitNotify', options);
      const taking = this.#begin('waitNotify', count);
      const { job, members } = this.#epochs.comm;
      return members.look(taking) ? job.progress.done() : members.wait(taking, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  waitSync(count: number, options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('waitNotify');
    const wait = readWait('waitNotify', options);
    this.#epochs.comm.members.waitSync(this.#begin('waitNotify', count), wait);
  }

  test(count: number): boolean {
    return this.#epochs.comm.members.look(this.#begin('testNotify', count));
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
    let arrived = 0;
    return {
      advance: () => {
        // What it looks at is gone with the window.
        this.#epochs.checkAlive(call);
        arrived = this.#arrived();
        if (arrived < count) return false;
        this.#taken = (this.#taken + count) | 0;
        return true;
      },
      describe: () => `${call} of ${what} (${arrived} of ${count} notifications have arrived)`,
    };
  }

  /** Notifications that have arrived and were not taken. */
  #arrived(): number {
    return (this.#signals.count() - this.#taken) | 0;
  }
}
