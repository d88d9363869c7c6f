/**
 * Which memory is looked at, so that a load or store of the program needs one look-up to know that it does not matter.
 * What the instrumented modules of the program call (instrument/) finds this by a symbol: it is loaded before, and
 * without, the library.
 */

/** A memory of a rank, and which of its bytes belong to parts of other ranks. */
export interface TrackedMemory {
  /** The program has loaded or stored bytes `low` … `high − 1` of a buffer. @param type of `Atomics`; else −1 */
  touch(low: number, high: number, writes: number, site: number, call: string, type: number): void;
}

const SHARED = Symbol.for('onesided.races');

export interface RaceRuntime {
  readonly memories: WeakMap<ArrayBufferLike, TrackedMemory>;
  /** Lines of the program, by number. */
  readonly sites: string[];
  /** Columns of instrumented modules as they were, by module. */
  readonly columns: Map<string, (line: number, column: number) => number>;
  /** The line of the program's call that is under way; −1: it is not known. */
  site: number;
  /** Whether modules are instrumented as they are loaded. */
  instruments: boolean;
  /** What cannot be seen, as far as that is known, and who is told of more. */
  readonly unseen: Set<string>;
  tellUnseen: ((text: string) => void) | undefined;
}

/** The one of this thread. */
export function raceRuntime(): RaceRuntime {
  const place = globalThis as { [SHARED]?: RaceRuntime };
  place[SHARED] ??= {
    memories: new WeakMap(),
    sites: [],
    columns: new Map(),
    site: -1,
    instruments: false,
    unseen: new Set(),
    tellUnseen: undefined,
  };
  return place[SHARED];
}

/** Something of the program's that will not be seen; the report says so. */
export function cannotSee(text: string): void {
  const { unseen, tellUnseen } = raceRuntime();
  if (unseen.has(text)) return;
  unseen.add(text);
  tellUnseen?.(text);
}

const numbers = new Map<string, number>();

/** The number of a line that the library has found. */
export function siteNumber(site: string): number {
  let number = numbers.get(site);
  if (number === undefined) {
    number = raceRuntime().sites.push(site) - 1;
    numbers.set(site, number);
  }
  return number;
}
