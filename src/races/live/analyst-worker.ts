/** The worker thread of the launcher that analyzes races while the ranks run, and tells the report in the end. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadNative } from '../../native.ts';
import type { AnalysisOptions } from '../race-analysis.ts';
import { analyzeLive } from './race-analyst.ts';
import { exchangeBytes, RaceExchange } from './race-exchange.ts';

/** What the launcher gives it. */
export interface AnalystData {
  /** What threads share, or the descriptor of a memory file. */
  readonly memory: SharedArrayBuffer | number;
  readonly size: number;
  readonly options: AnalysisOptions;
}

const { memory, size, options } = workerData as AnalystData;

function exchange(): RaceExchange {
  if (typeof memory !== 'number') return new RaceExchange(memory);
  const native = loadNative()!;
  return new RaceExchange(native.memoryMap(memory, 0, exchangeBytes(size)), native);
}

parentPort!.postMessage(analyzeLive(exchange(), options));
