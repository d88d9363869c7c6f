/** Ranks that tell the analysis of races what a test says, in the order in which it says it. */
import { type AnalysisOptions, RaceAnalysis } from '../../src/races/race-analysis.ts';
import { Meeting, OpKind, RaceEvent } from '../../src/races/race-events.ts';
import type { RaceReport } from '../../src/races/race-findings.ts';

/** `TypeCode`s. */
const INT32 = 4;
const INT16 = 2;

export class Told {
  readonly analysis: RaceAnalysis;
  readonly ranks: readonly TellingRank[];

  constructor(size: number, options: AnalysisOptions = {}) {
    this.analysis = new RaceAnalysis(size, options);
    this.ranks = Array.from({ length: size }, (_, rank) => new TellingRank(this.analysis, rank, size));
    for (const rank of this.ranks) rank.makesWindow();
  }

  get report(): RaceReport {
    return this.analysis.report;
  }

  /** The lines of the races that were found, in the order of finding. */
  get lines(): string[] {
    return this.report.races.map(({ accesses }) => accesses.map(({ site }) => site).join('-'));
  }

  /** All ranks come to a barrier, and leave it. */
  barrier(): void {
    for (const rank of this.ranks) rank.arrives();
    for (const rank of this.ranks) rank.leaves();
  }

  fence(): void {
    for (const rank of this.ranks) rank.tell(RaceEvent.FENCE_BEGUN, [rank.text('win')]);
    for (const rank of this.ranks) rank.tell(RaceEvent.FENCE_ENDED, [rank.text('win')]);
  }
}

export class TellingRank {
  readonly #analysis: RaceAnalysis;
  readonly #rank: number;
  readonly #size: number;
  readonly #texts = new Map<string, number>();
  #operations = 0;
  #barriers = 0;
  epoch = 0;

  constructor(analysis: RaceAnalysis, rank: number, size: number) {
    this.#analysis = analysis;
    this.#rank = rank;
    this.#size = size;
  }

  text(text: string): number {
    const id = this.#texts.get(text) ?? this.#texts.size + 1;
    if (!this.#texts.has(text)) this.#analysis.text(this.#rank, id, text);
    this.#texts.set(text, id);
    return id;
  }

  tell(kind: number, numbers: readonly number[]): void {
    this.#analysis.event(this.#rank, kind, Float64Array.from(numbers), numbers.length);
  }

  /** Of 64 bytes, in memory number 100 + rank. */
  makesWindow(): void {
    const all = Array.from({ length: this.#size }, (_, rank) => rank);
    this.tell(RaceEvent.COMMUNICATOR, [this.text('0'), this.text('world'), ...all]);
    this.tell(RaceEvent.WINDOW, [this.text('win'), this.text('w'), this.text('0'), 100 + this.#rank, 0, 64, 0]);
  }

  #operation(kind: number, call: string, target: number, low: number, site: string, options: OperationOptions): void {
    const { type = INT32, size = 4, reads = false, bytes = size, op = -1 } = options;
    this.tell(RaceEvent.OPERATION, [
      ...[this.text('win'), target, kind, reads ? 1 : 0, type, size, ++this.#operations],
      ...[this.text(site), this.text(call), this.epoch, op, low, low + bytes],
    ]);
  }

  put(target: number, low: number, site: string, options: OperationOptions = {}): void {
    this.#operation(OpKind.PUT, options.call ?? 'put', target, low, site, options);
  }

  get(target: number, low: number, site: string, options: OperationOptions = {}): void {
    this.#operation(OpKind.GET, 'get', target, low, site, options);
  }

  accumulate(target: number, low: number, site: string, options: OperationOptions = {}): void {
    this.#operation(OpKind.UPDATE, options.call ?? 'accumulate', target, low, site, options);
  }

  fetch(target: number, low: number, site: string, options: OperationOptions = {}): void {
    this.#operation(OpKind.UPDATE, 'fetchAndOp', target, low, site, options);
  }

  /** The last operation reads or writes bytes of an array of this rank's own. */
  uses(name: string, low: number, writes: boolean, memory = 200 + this.#rank): void {
    const numbers = [this.text('win'), this.#operations, memory, writes ? 1 : 0, this.text(name), low, low + 4];
    this.tell(RaceEvent.USE, numbers);
  }

  /** A load or store of this rank's part. */
  loads(low: number, site: string, memory = 100 + this.#rank): void {
    this.tell(RaceEvent.ACCESS, [memory, low, low + 4, 0, this.text(site), this.text('load'), -1]);
  }

  stores(low: number, site: string, memory = 100 + this.#rank): void {
    this.tell(RaceEvent.ACCESS, [memory, low, low + 4, 1, this.text(site), this.text('store'), -1]);
  }

  looks(low: number, site: string): void {
    this.tell(RaceEvent.ATOMIC, [100 + this.#rank, low, low + 4, 0, this.text(site), this.text('Atomics'), INT32]);
  }

  flushes(target: number): void {
    this.tell(RaceEvent.COMPLETED, [this.text('win'), target, 0, Number.POSITIVE_INFINITY, 1]);
  }

  flushesLocally(target: number): void {
    this.tell(RaceEvent.COMPLETED, [this.text('win'), target, 0, Number.POSITIVE_INFINITY, 0]);
  }

  /** What a request stands for is complete here. */
  waitsFor(operation: number, target: number): void {
    this.tell(RaceEvent.COMPLETED, [this.text('win'), target, operation - 1, operation, 0]);
  }

  arrives(): void {
    const place = [Meeting.ALL, 0, this.#rank];
    this.tell(RaceEvent.ARRIVED, [this.text('barrier'), ++this.#barriers, this.#size, ...place]);
  }

  leaves(): void {
    this.tell(RaceEvent.LEFT, [this.text('barrier'), this.#barriers, this.#rank]);
  }

  meets(name: string, number: number, meeting: number, root: number): void {
    this.tell(RaceEvent.ARRIVED, [this.text(name), number, this.#size, meeting, root, this.#rank]);
  }

  parts(name: string, number: number): void {
    this.tell(RaceEvent.LEFT, [this.text(name), number, this.#rank]);
  }

  sends(to: number): void {
    this.tell(RaceEvent.SENT, [this.text('message'), to]);
  }

  receives(from: number): void {
    this.tell(RaceEvent.RECEIVED, [this.text('message'), from]);
  }

  locks(owner: number, exclusive: boolean): void {
    this.tell(RaceEvent.LOCKED, [this.text('win'), owner, exclusive ? 1 : 0]);
  }

  unlocks(owner: number, exclusive: boolean): void {
    this.flushes(owner);
    this.tell(RaceEvent.UNLOCKED, [this.text('win'), owner, exclusive ? 1 : 0]);
  }

  opens(kind: string): void {
    this.tell(RaceEvent.EPOCH, [++this.epoch, this.text(kind), this.text(`${kind} line`)]);
  }

  tellOf(kind: number, ...ranks: number[]): void {
    this.tell(kind, [this.text('win'), ...ranks]);
  }
}

export interface OperationOptions {
  readonly type?: number;
  readonly size?: number;
  readonly bytes?: number;
  readonly reads?: boolean;
  readonly call?: string;
  /** The operation that alone may meet it. */
  readonly op?: number;
}

export const SHORT: OperationOptions = { type: INT16, size: 2, bytes: 4 };
