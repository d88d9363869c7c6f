/** The launcher's side of a search while the ranks run: the memory by which they ask, and the thread that answers. */
import { closeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { RmaError } from '../../errors.ts';
import { loadNative } from '../../native.ts';
import { moduleFile } from '../../place.ts';
import type { AnalysisOptions } from '../race-analysis.ts';
import type { RaceReport } from '../race-findings.ts';
import type { AnalystData } from './analyst-worker.ts';
import type { LivePlace } from './race-asker.ts';
import { exchangeBytes, RaceExchange } from './race-exchange.ts';

export class LiveSearch {
  /** Where ranks ask. */
  readonly place: LivePlace;
  readonly #exchange: RaceExchange;
  readonly #worker: Worker;
  readonly #fd: number | undefined;
  readonly #ended: Promise<RaceReport | Error>;

  /** @param kind of ranks; processes need the addon */
  constructor(size: number, kind: 'processes' | 'threads', options: AnalysisOptions) {
    const bytes = exchangeBytes(size);
    const native = kind === 'processes' ? loadNative() : undefined;
    let memory: AnalystData['memory'];
    if (native === undefined) {
      memory = new SharedArrayBuffer(bytes);
      this.place = memory;
      this.#exchange = new RaceExchange(memory);
    } else {
      memory = native.memoryCreate('onesided-races');
      this.#fd = memory;
      native.memoryResize(memory, bytes);
      this.place = `/proc/${process.pid}/fd/${memory}`;
      this.#exchange = new RaceExchange(native.memoryMap(memory, 0, bytes), native);
    }
    this.#exchange.format(size);
    const workerData: AnalystData = { memory, size, options };
    this.#worker = new Worker(moduleFile('races/live/analyst-worker')!, { workerData, name: 'races', execArgv: [] });
    this.#ended = new Promise((resolve) => {
      const failed = (error: Error): void => {
        // The ranks need not wait for it any more.
        this.#exchange.close();
        resolve(error);
      };
      this.#worker.once('message', resolve).once('error', failed);
      this.#worker.once('exit', (code) => failed(new Error(`its thread ended with code ${code}`)));
    });
  }

  /** All ranks have ended. Rejects if the analysis has failed. */
  async report(): Promise<RaceReport> {
    this.#exchange.close();
    const ended = await this.#ended;
    if (!(ended instanceof Error)) return ended;
    const message = `races: the analysis has failed, and nothing is known of them: ${ended.message}`;
    throw new RmaError('ERR_COMM', message, { cause: ended });
  }

  async close(): Promise<void> {
    this.#exchange.close();
    await this.#ended;
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}
