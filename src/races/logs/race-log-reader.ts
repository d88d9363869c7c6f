/**
 * The analysis of files that ranks have written: their events are merged in the order of time. Clocks of several hosts
 * are set by what was compared (host-clock.ts). That is not exact, so an event that takes something waits until it was
 * given, as far as the two can be told apart from others: all but atomic calls on words.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { type AnalysisOptions, RaceAnalysis } from '../race-analysis.ts';
import { type RaceReport, withoutRanks } from '../race-findings.ts';
import { correction, readClock } from './host-clock.ts';
import { logFile, TEXT } from './race-log-format.ts';

const ROOM = 2 ** 17;

/** The events of one rank, one after the other. */
class RankLog {
  readonly rank: number;
  readonly #file: number;
  #room = new Float64Array(ROOM);
  #begin = 0;
  #end = 0;
  kind = 0;
  length = 0;
  time = 0;
  /** Of this event: the first `length`. */
  data = new Float64Array(64);
  readonly #timeOf: (time: number) => number;

  constructor(folder: string, rank: number, timeOf: (time: number) => number) {
    this.rank = rank;
    this.#timeOf = timeOf;
    this.#file = openSync(logFile(folder, rank), 'r');
  }

  /** Goes to the next event. @returns false if there is none */
  next(text: (id: number, text: string) => void): boolean {
    for (;;) {
      if (!this.#has(3)) return false;
      const at = this.#begin;
      const kind = this.#room[at];
      const second = this.#room[at + 1];
      const third = this.#room[at + 2];
      if (kind === TEXT) {
        const words = Math.ceil(third / 8);
        if (!this.#has(3 + words)) return false;
        text(second, Buffer.from(this.#room.buffer, 8 * (this.#begin + 3), third).toString());
        this.#begin += 3 + words;
        continue;
      }
      if (!this.#has(3 + second)) return false;
      this.kind = kind;
      this.length = second;
      this.time = this.#timeOf(third);
      if (second > this.data.length) this.data = new Float64Array(2 * second);
      // One event after the other: a view for each would take longer than to look at it.
      for (let i = 0; i < second; i++) this.data[i] = this.#room[this.#begin + 3 + i];
      this.#begin += 3 + second;
      return true;
    }
  }

  #has(numbers: number): boolean {
    if (this.#end - this.#begin >= numbers) return true;
    const rest = this.#room.subarray(this.#begin, this.#end);
    if (numbers > this.#room.length) {
      const more = new Float64Array(2 * numbers);
      more.set(rest);
      this.#room = more;
    } else this.#room.copyWithin(0, this.#begin, this.#end);
    this.#end -= this.#begin;
    this.#begin = 0;
    const bytes = new Uint8Array(this.#room.buffer);
    for (let at = 8 * this.#end; at < bytes.length; ) {
      const n = readSync(this.#file, bytes, at, bytes.length - at, null);
      if (n === 0) {
        // A rank that was killed may have left a part of a number.
        this.#end = Math.floor(at / 8);
        return this.#end >= numbers;
      }
      at += n;
      this.#end = Math.floor(at / 8);
      if (at % 8 === 0 && this.#end >= numbers) return true;
    }
    return this.#end >= numbers;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/**
 * @param size ranks of the job; those without a file have not told anything
 * @param firstOf of a job on several hosts: by rank, the first rank of its host
 */
export function analyzeLogs(
  folder: string,
  size: number,
  options: AnalysisOptions,
  firstOf?: readonly number[],
): RaceReport {
  const analysis = new RaceAnalysis(size, options);
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const missing = ranks.filter((rank) => !existsSync(logFile(folder, rank)));
  const all = ranks
    .filter((rank) => !missing.includes(rank))
    .map((rank) => {
      const samples = firstOf === undefined ? [] : readClock(folder, firstOf[rank]);
      return new RankLog(folder, rank, correction(samples));
    });
  let late = 0;
  try {
    late = merge(analysis, all, firstOf !== undefined);
  } finally {
    for (const log of all) log.close();
  }
  const report = withoutRanks(analysis.report, missing);
  return firstOf === undefined ? report : { ...report, clocks: clocksOf(folder, firstOf, late) };
}

/** @param late events that had to wait for what they take */
function clocksOf(folder: string, firstOf: readonly number[], late: number): RaceReport['clocks'] {
  const firsts = [...new Set(firstOf)];
  const samples = firsts.flatMap((rank) => readClock(folder, rank));
  return { hosts: firsts.length, within: Math.max(0, ...samples.map(({ within }) => within)) / 1000, late };
}

/**
 * @param several clocks
 * @returns how many events had to wait for what they take
 */
function merge(analysis: RaceAnalysis, all: readonly RankLog[], several: boolean): number {
  let late = 0;
  const step = (log: RankLog): boolean => log.next((id, text) => analysis.text(log.rank, id, text));
  let logs = all.filter(step);
  /** Those that wait for what others give, since the last event. */
  const waiting = new Set<RankLog>();
  /** Those that are known to be late. */
  const known = new Set<RankLog>();
  while (logs.length > 0) {
    let first: RankLog | undefined;
    let next = Number.POSITIVE_INFINITY;
    for (const log of logs) {
      if (waiting.has(log)) continue;
      if (first === undefined || log.time < first.time) {
        if (first !== undefined) next = Math.min(next, first.time);
        first = log;
      } else next = Math.min(next, log.time);
    }
    const isForced = first === undefined;
    first ??= logs.reduce((a, b) => (b.time < a.time ? b : a));
    if (!isForced && !analysis.isReady(first.rank, first.kind, first.data, first.length, several)) {
      if (!known.has(first)) late++;
      known.add(first);
      waiting.add(first);
      continue;
    }
    known.delete(first);
    waiting.clear();
    do {
      analysis.event(first.rank, first.kind, first.data, first.length);
      if (!step(first)) {
        logs = logs.filter((log) => log !== first);
        break;
      }
    } while (
      !isForced &&
      first.time <= next &&
      analysis.isReady(first.rank, first.kind, first.data, first.length, several)
    );
  }
  return late;
}
