/** Races of ranks that are tasks: all of them tell one analysis at once, in the order in which they run. */
import { RmaError } from '../../errors.ts';
import type { RaceWatch } from '../../job/race-watch.ts';
import { RaceAnalysis } from '../race-analysis.ts';
import type { RaceSink } from '../race-events.ts';
import type { Race, RaceReport } from '../race-findings.ts';
import { describeRace, RACE_EXIT, showReport } from '../race-text.ts';
import { RankWatch } from './rank-watch.ts';

/** How races are searched for: `races` of `runTasks`. */
export interface RaceOptions {
  /** Atomic calls order nothing but themselves, as in MPI; default: a polled word orders, as in C++. */
  readonly strict?: boolean;
  /** Throw `ERR_RMA_RACE` at the call that completes a race; default: go on. */
  readonly throw?: boolean;
  /** Bytes of memory for what was accessed; default: six times the windows, at least 64 MiB and at most 1 GiB. */
  readonly memory?: number;
  /** A file for the report as JSON. */
  readonly file?: string;
  /** A file for a picture of the races (SVG). */
  readonly picture?: string;
  /** Gets the report at the end. Without it, the report goes to stderr, and the exit code is 66 if there is a race. */
  readonly report?: (report: RaceReport) => void;
}

export class TaskRaces {
  readonly #analysis: RaceAnalysis;
  readonly #options: RaceOptions;
  #last: Race | undefined;

  constructor(size: number, options: RaceOptions) {
    this.#options = options;
    this.#analysis = new RaceAnalysis(size, {
      ...(options.strict !== undefined && { strict: options.strict }),
      ...(options.memory !== undefined && { memory: options.memory }),
      found: (race) => (this.#last = race),
    });
  }

  watch(rank: number): RaceWatch {
    const analysis = this.#analysis;
    const sink: RaceSink = {
      isPrompt: this.#options.throw === true,
      text: (id, text) => analysis.text(rank, id, text),
      event: (kind, data, length) => {
        analysis.event(rank, kind, data, length);
        if (this.#last !== undefined) this.#found();
      },
    };
    return new RankWatch(rank, sink);
  }

  #found(): void {
    const race = this.#last!;
    this.#last = undefined;
    if (this.#options.throw === true) throw new RmaError('ERR_RMA_RACE', describeRace(race));
  }

  /** All ranks have ended. */
  finish(): void {
    const { report } = this.#analysis;
    const { report: told } = this.#options;
    const write = told === undefined ? (text: string) => void process.stderr.write(text) : () => {};
    const code = showReport(report, this.#options, write);
    if (told !== undefined) told(report);
    if (told === undefined || code !== RACE_EXIT) process.exitCode ??= code || undefined;
  }
}
