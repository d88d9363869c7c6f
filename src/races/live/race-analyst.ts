/** The analysis of races while the ranks run: in a worker thread of the launcher (analyst-worker.ts). */
import { forEachEvent } from '../logs/race-log-format.ts';
import { type AnalysisOptions, RaceAnalysis } from '../race-analysis.ts';
import { type Race, type RaceReport, withoutRanks } from '../race-findings.ts';
import { describeRace } from '../race-text.ts';
import type { RaceExchange } from './race-exchange.ts';

/** Answers all ranks until the exchange is closed; blocks this thread. @returns what was found */
export function analyzeLive(exchange: RaceExchange, options: AnalysisOptions): RaceReport {
  let last: Race | undefined;
  const { size } = exchange;
  const analysis = new RaceAnalysis(size, { ...options, found: (race) => (last = race) });
  exchange.serve((rank, numbers) => {
    last = undefined;
    forEachEvent(
      numbers,
      (id, text) => analysis.text(rank, id, text),
      (kind, data) => analysis.event(rank, kind, data, data.length),
    );
    return last === undefined ? '' : describeRace(last);
  });
  const silent = Array.from({ length: size }, (_, rank) => rank).filter((rank) => !exchange.hasCome(rank));
  return withoutRanks(analysis.report, silent);
}
