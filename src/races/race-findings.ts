/** Races that were found: each pair of lines once, with what is missing between them and what would mend it. */
import { mayMeet, type RaceAccess } from './race-access.ts';
import type { RaceEdge } from './race-order.ts';

/** One of the two accesses of a race. */
export interface RaceSide {
  /** Of the world. */
  readonly rank: number;
  /** `put`, `load`, `store`, … */
  readonly call: string;
  /** What it did: wrote, read, or updated these bytes. */
  readonly does: 'writes' | 'reads' | 'updates';
  /** The argument whose bytes they are; absent: they are those of the target, or of a load or store. */
  readonly argument?: string;
  /** The rank that the call is for. */
  readonly target?: number;
  /** `FILE:LINE:COLUMN`, as far as it is known. */
  readonly site: string;
  readonly epoch?: { readonly kind: string; readonly opened: string };
}

export interface Race {
  /** `remote`: between two ranks. `local`: within one. */
  readonly kind: 'remote' | 'local';
  /** Whose memory it is in: a part of a window, or an array of a rank. */
  readonly where: {
    readonly window?: string;
    /** Of the world. */
    readonly rank: number;
    /** In the part; in an array, from its buffer's beginning. */
    readonly bytes: readonly [first: number, last: number];
  };
  readonly accesses: readonly [RaceSide, RaceSide];
  /** By what the second rank has heard from the first, last, since the first access was called; absent: it has not. */
  readonly heard?: RaceEdge;
  /** What does not order them. */
  readonly missing: string;
  /** The shortest thing that would. */
  readonly mend: string;
  /** How often it was found. */
  count: number;
}

/** What the analysis keeps of accesses, in its shadow of the windows. */
export interface ShadowSize {
  /** Bytes that it took at most, about. */
  readonly bytes: number;
  /** What it may take. */
  readonly bound: number;
  /** Bytes of all windows, at most. */
  readonly windows: number;
  /** Words that atomic calls have changed and that were taken for one, since memory is bounded. */
  readonly words: number;
}

export interface RaceReport {
  readonly races: readonly Race[];
  /** Whether atomic calls order nothing, as in MPI. */
  readonly strict: boolean;
  readonly ranks: number;
  /** Events that were looked at. */
  readonly events: number;
  /** What could not be seen. */
  readonly unseen: readonly string[];
  /**
   * Of a job on several hosts: how many there are, by how many microseconds their clocks may differ from what was taken
   * for the difference, and how many events came before what they take by these clocks, and were put behind it.
   */
  readonly clocks?: { readonly hosts: number; readonly within: number; readonly late: number } | undefined;
  /** What is kept of accesses. */
  readonly shadow: ShadowSize;
  /** Bytes of memory whose accesses were forgotten, since memory for them is bounded. */
  readonly forgotten: number;
}

/** @param silent ranks that have told nothing */
export function withoutRanks(report: RaceReport, silent: readonly number[]): RaceReport {
  if (silent.length === 0) return report;
  const who = silent.length === 1 ? `rank ${silent[0]}` : `${silent.length} ranks (${silent.slice(0, 8).join(', ')})`;
  return { ...report, unseen: [...report.unseen, `${who}: nothing was told`] };
}

export class Findings {
  readonly races: Race[] = [];
  readonly #known = new Map<string, Race>();

  /** @returns the race, if it is a new one */
  note(a: RaceAccess, b: RaceAccess, where: Race['where'], heard: RaceEdge | undefined): Race | undefined {
    const key = [a, b].map(nameOf).sort().join('|');
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.count++;
      return undefined;
    }
    const race: Race = {
      kind: a.rank === b.rank ? 'local' : 'remote',
      where,
      accesses: [sideOf(a), sideOf(b)],
      ...(heard !== undefined && { heard }),
      ...remedy(a, b, heard),
      count: 1,
    };
    this.#known.set(key, race);
    this.races.push(race);
    return race;
  }
}

/** Of one line, whatever rank it is at. */
function nameOf({ site, call, side }: RaceAccess): string {
  return `${site} ${call} ${side ?? ''}`;
}

function sideOf({ rank, call, writes, atomic, side, target, site, epoch }: RaceAccess): RaceSide {
  return {
    rank,
    call,
    does: !writes ? 'reads' : atomic >= 0 ? 'updates' : 'writes',
    ...(side !== undefined && side !== 'target' && { argument: side }),
    ...(target >= 0 && { target }),
    site,
    ...(epoch !== undefined && { epoch: { kind: epoch.kind, opened: epoch.site } }),
  };
}

/** Which bytes. */
export function memoryText({ window, rank, bytes: [first, last] }: Race['where']): string {
  const bytes = first === last ? `byte ${first}` : `bytes ${first} … ${last}`;
  return window === undefined
    ? `${bytes} of an array of rank ${rank}`
    : `${bytes} of the part of rank ${rank} in window ${window}`;
}

/** A line of the program, below the working folder without its path. */
export function shortSite(site: string): string {
  const folder = `${workingFolder()}/`;
  return site.startsWith(folder) ? site.slice(folder.length) : site;
}

function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    // It has been removed.
    return '';
  }
}

/** How edges are told. */
export const EDGE_TEXTS: Readonly<Record<RaceEdge, string>> = {
  collective: 'a collective call',
  fence: 'a fence',
  message: 'a message',
  post: 'its post',
  complete: 'its complete',
  notification: 'a notification',
  lock: 'a lock that it had before',
  word: 'an atomic call on a word',
};

/** @param heard by what the second rank has heard from the first since `a` was called, but not that `a` is complete */
function remedy(a: RaceAccess, b: RaceAccess, heard: RaceEdge | undefined): Pick<Race, 'missing' | 'mend'> {
  const isOperation = a.side !== undefined;
  const fenced = a.epoch?.kind === 'fence' || b.epoch?.kind === 'fence';
  const started = a.epoch?.kind === 'start' || b.epoch?.kind === 'start';
  const name = `the ${a.call} at rank ${a.rank}`;
  if (a.rank === b.rank) {
    const isBuffer = a.side !== 'target';
    const missing = `nothing completes ${name} before its rank comes to the second line`;
    if (fenced) return { missing, mend: 'a fence between the two lines' };
    if (started) return { missing, mend: 'complete() before the second line, or another array' };
    const flush = placed(isBuffer || !a.writes ? 'flushLocal' : 'flush', a);
    const request = a.call.startsWith('r') ? ', or wait for the request' : '';
    return { missing, mend: `${flush} between the two lines${request}` };
  }
  if (isOperation && heard !== undefined) {
    const by = EDGE_TEXTS[heard];
    const missing = `rank ${b.rank} has heard from rank ${a.rank} by ${by}, but ${name} was not complete then`;
    if (fenced) return { missing, mend: 'a fence between the two lines' };
    if (started) return { missing, mend: `complete() at rank ${a.rank} and wait() at its target before that` };
    return { missing, mend: `${placed('flush', a)} at rank ${a.rank} before it tells the other` };
  }
  const missing = `nothing orders the line of rank ${a.rank} before that of rank ${b.rank}, nor the other way round`;
  return { missing, mend: mendOf(a, b, fenced, started) };
}

/** A call for the target of an access, as its window counts ranks. */
function placed(call: string, { place, target }: RaceAccess): string {
  return place === target ? `${call}(${place})` : `${call}(${place}), which is rank ${target},`;
}

function mendOf(a: RaceAccess, b: RaceAccess, fenced: boolean, started: boolean): string {
  const sides = [a, b];
  const plain = sides.find(({ side }) => side === undefined);
  const updates = sides.filter(({ atomic }) => atomic >= 0).length;
  if (updates === 2) {
    const one = mayMeet(a, b) ? 'one element type and whole elements' : 'one operation for both';
    return `${one}, or ${fenced ? 'a fence' : 'a flush and a barrier'} between the two lines`;
  }
  if (updates === 1 && plain === undefined) {
    const other = sides.find(({ atomic }) => atomic < 0)!;
    const update = other.writes ? 'accumulate with Op.REPLACE' : 'getAccumulate with Op.NO_OP';
    return `${update} instead of the ${other.call}`;
  }
  if (fenced) return 'a fence between the two lines';
  if (started)
    return plain === undefined ? 'a post and wait for each of the two ranks' : 'wait() before the second line';
  if (plain !== undefined) {
    const other = sides.find((one) => one !== plain)!;
    if (other.side === undefined) return 'a barrier between the two lines';
    return `${placed('flush', other)} and then a barrier or a message between the two lines`;
  }
  return 'an exclusive lock around each of the two, or a flush and a barrier between them';
}
