/** A map that the members of a service share. */
export { now } from './map-clock.ts';
export {
  type CodecOf,
  type EntryOptions,
  factsOf,
  type MapWriteOptions,
  memoryOf,
  type ReadMapOptions,
  readMapOptions,
  type SharedMapOptions,
} from './map-options.ts';
export { type EntryWaitOptions, MapPromises } from './map-promises.ts';
export type { MapMemory } from './map-state.ts';
export type { SharedMapStatistics } from './map-statistics.ts';
export type { ShardLock } from './shard-lock.ts';
export { SharedMap } from './shared-map.ts';
export type { CodecName, CustomCodec } from './value-codecs.ts';
