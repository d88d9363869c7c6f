/**
 * Races of ranks that are processes or threads: each writes what it tells to a file of its own, and the files are
 * analyzed when the job has ended. Under `onesided run` the launcher does that; elsewhere rank 0 does, as it exits,
 * once all ranks have come to the end of the job together. If races are thrown and there is a launcher, ranks ask it
 * instead, each time they tell something (live/).
 */
import { rmSync } from 'node:fs';
import type { Communicator } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import type { RaceWatch } from '../../job/race-watch.ts';
import { type LivePlace, RaceAsker } from '../live/race-asker.ts';
import { makeLogFolder } from '../logs/log-folder.ts';
import { analyzeLogs } from '../logs/race-log-reader.ts';
import { RaceLogWriter } from '../logs/race-log-writer.ts';
import { RaceAnalysis } from '../race-analysis.ts';
import type { RaceSink } from '../race-events.ts';
import type { Race } from '../race-findings.ts';
import { analysisOf, type RaceRequest } from '../race-request.ts';
import { describeRace, showReport } from '../race-text.ts';
import { ClockComparison } from './clock-comparison.ts';
import { RankWatch } from './rank-watch.ts';
import { replace } from './window-watch.ts';

/** Where the ranks of a job write. */
const FOLDER_BYTES = 1024;

export interface JobRaces {
  readonly watch: RaceWatch;
  /** The world is there. */
  begin(world: Communicator): Promise<void>;
}

/** What the launcher has made. Neither: none of ours has started this rank. */
export interface RacePlaces {
  /** For the ranks' files. */
  readonly folder: string | undefined;
  /** Where ranks ask. */
  readonly live: LivePlace | undefined;
  /** Of a job on several hosts: by rank, the first rank of its host. */
  readonly hosts: readonly number[] | undefined;
}

export function watchRank(
  rank: number,
  size: number,
  request: RaceRequest,
  { folder, live, hosts }: RacePlaces,
): JobRaces {
  const asker = live === undefined ? undefined : RaceAsker.at(live, rank, size);
  if (asker !== undefined) return { watch: new RankWatch(rank, asker), begin: () => Promise.resolve() };
  const log = new RaceLogWriter(rank);
  if (folder !== undefined) log.open(folder);
  process.on('exit', () => log.close());
  const watch = new RankWatch(rank, request.throw ? throwing(log, rank, size, request) : log);
  return {
    watch,
    async begin(world) {
      if (folder !== undefined) {
        if (hosts?.length === size) await new ClockComparison(rank, hosts, folder).begin(world);
        return;
      }
      const name = new Uint8Array(FOLDER_BYTES);
      const own = rank === 0 ? makeLogFolder() : undefined;
      if (own !== undefined) Buffer.from(name.buffer).write(own);
      await world.broadcast(name, 0);
      try {
        log.open(Buffer.from(name.subarray(0, name.indexOf(0))).toString());
      } catch {
        // Another host, which has no such folder: the report says that nothing was written.
      }
      endWith(world, log, own, size, request);
    },
  };
}

/** Everybody writes all before the last collective; when it is complete, rank 0 can read. */
function endWith(
  world: Communicator,
  log: RaceLogWriter,
  own: string | undefined,
  size: number,
  request: RaceRequest,
): void {
  for (const name of ['finalize', 'finalizeSync'] as const) {
    const original = world[name] as (...args: unknown[]) => unknown;
    replace(world, name, (...args) => {
      log.flush();
      return original.apply(world, args);
    });
  }
  if (own === undefined) return;
  process.on('exit', (code) => {
    log.close();
    try {
      const report = analyzeLogs(own, size, analysisOf(request));
      const isRacy = showReport(report, request, (text) => void process.stderr.write(text));
      if (code === 0 && isRacy !== 0) process.exitCode = isRacy;
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  });
}

/** Also looks for races within this rank at once, and throws them. Those between ranks are found in the end. */
function throwing(log: RaceSink, rank: number, size: number, request: RaceRequest): RaceSink {
  let last: Race | undefined;
  const analysis = new RaceAnalysis(size, { ...analysisOf(request), found: (race) => (last = race) });
  return {
    isPrompt: true,
    text(id, text) {
      log.text(id, text);
      analysis.text(rank, id, text);
    },
    event(kind, data, length) {
      log.event(kind, data, length);
      analysis.event(rank, kind, data, length);
      const race = last;
      last = undefined;
      if (race !== undefined) throw new RmaError('ERR_RMA_RACE', describeRace(race));
    },
  };
}
