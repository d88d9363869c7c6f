/** Files that the ranks of several hosts have written for the search for races, collected on the launcher's host. */
import { appendFileSync } from 'node:fs';
import { readClock, writeClock } from '../../races/logs/host-clock.ts';
import { LOG_FILES, logFile } from '../../races/logs/race-log-format.ts';
import type { Report } from './frames.ts';
import type { ClockDifference } from './host-rings.ts';

export class HostLogs {
  readonly #folder: string | undefined;

  /** @param folder absent: races are not searched for */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  get areWanted(): boolean {
    return this.#folder !== undefined;
  }

  /** A piece, behind those that were kept. */
  keep({ rank, file, log }: Extract<Report, { log: string }>): void {
    if (this.#folder === undefined || !LOG_FILES.includes(file)) return;
    appendFileSync(logFile(this.#folder, rank, file), Buffer.from(log, 'base64'));
  }

  /**
   * Hosts whose ranks have not come so far as to compare their clocks with rank 0's are set by what this host knows.
   * @param hosts that of rank 0 first
   */
  completeClocks(hosts: readonly { readonly ranks: readonly number[]; readonly clock: ClockDifference }[]): void {
    if (this.#folder === undefined) return;
    const [{ clock: own }, ...others] = hosts;
    for (const { ranks, clock } of others) {
      const within = clock.within + own.within;
      if (readClock(this.#folder, ranks[0]).length > 0 || within === Number.POSITIVE_INFINITY) continue;
      writeClock(this.#folder, ranks[0], [{ at: 0, ahead: clock.ahead - own.ahead, within }]);
    }
  }
}
