/** What a map tells of itself. */
import { COUNT, EVICTED, EXPIRED, LIVE, MOVED, RECOVERED, type ShardMemory } from './map-layout.ts';

/** What a map counts, all members together. */
export interface SharedMapStatistics {
  /** Entries, those included that have expired and not been met since. */
  readonly entries: number;
  /** Bytes of these entries, of `capacity`. */
  readonly bytes: number;
  readonly capacity: number;
  /** Bytes of the longest value with its key. */
  readonly longest: number;
  /** Entries that went to make room. */
  readonly evicted: number;
  /** Entries that were found expired when room was made. */
  readonly expired: number;
  /** Entries that were copied when room was made. */
  readonly moved: number;
  /** How often a lock was taken over from a dead member. */
  readonly recovered: number;
}

/** @param longest bytes of the longest value with its key */
export function statisticsOf(shards: readonly ShardMemory[], longest: number): SharedMapStatistics {
  const sum = (word: number): number => shards.reduce((total, { words }) => total + words[word], 0);
  return {
    entries: sum(COUNT),
    bytes: 8 * sum(LIVE),
    capacity: 8 * shards[0].capacity * shards.length,
    longest,
    evicted: sum(EVICTED),
    expired: sum(EXPIRED),
    moved: sum(MOVED),
    recovered: sum(RECOVERED),
  };
}
