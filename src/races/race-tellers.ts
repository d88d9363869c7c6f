/** What ranks have told of themselves: their names and lines, epochs, windows, and what they have under way. */
import type { CommonAccess, Pending, RaceEpoch } from './race-access.ts';
import { RaceRecords } from './race-records.ts';

interface KnownWindow {
  readonly key: string;
  readonly name: string;
  /** Ranks of the world. */
  readonly ranks: readonly number[];
}

interface LastOperation {
  readonly target: number;
  /** Numbers of the rank's texts. */
  readonly site: number;
  readonly call: number;
  /** Its number, if it is completed alone; else −1. */
  readonly alone: number;
  /** By which its records are found again. */
  readonly count: number;
  readonly common: CommonAccess;
}

/** What a rank has told of itself. */
export interface Teller {
  readonly texts: Map<number, string>;
  readonly epochs: Map<number, RaceEpoch>;
  /** By window: what is not complete. */
  readonly pending: Map<string, Pending[]>;
  /** The operation that `USE` belongs to. */
  last: LastOperation | undefined;
  /** By window: how often something was completed. */
  readonly completions: Map<string, number>;
  /** By what they have in common. */
  readonly records: RaceRecords;
  /** Of fences that have begun: what they complete. */
  readonly fenced: Map<string, Pending[]>;
}

export class RaceTellers {
  readonly #tellers: Teller[];
  readonly windows = new Map<string, KnownWindow>();
  readonly communicators = new Map<string, readonly number[]>();

  constructor(size: number) {
    this.#tellers = Array.from({ length: size }, () => ({
      texts: new Map(),
      epochs: new Map(),
      pending: new Map(),
      last: undefined,
      completions: new Map(),
      records: new RaceRecords(),
      fenced: new Map(),
    }));
  }

  of(rank: number): Teller {
    return this.#tellers[rank];
  }

  text(rank: number, id: number): string {
    return this.#tellers[rank].texts.get(id) ?? '';
  }

  worldRank(window: string, place: number): number {
    return this.windows.get(window)?.ranks[place] ?? place;
  }
}
