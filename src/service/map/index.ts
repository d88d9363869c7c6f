/** A map that the members of a service share. */
export { now } from './map-clock.ts';
export type { EntryOptions, SharedMapOptions } from './map-options.ts';
export type { SharedMapStatistics } from './map-statistics.ts';
export type { ShardLock } from './shard-lock.ts';
export { type MapMemory, SharedMap } from './shared-map.ts';
export type { CodecName, CustomCodec } from './value-codecs.ts';
