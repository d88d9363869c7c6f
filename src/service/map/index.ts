/** A map that the members of a service share. */
export type { EntryOptions, SharedMapOptions } from './map-options.ts';
export type { ShardLock } from './shard-lock.ts';
export { type MapMemory, SharedMap, type SharedMapStatistics } from './shared-map.ts';
export type { CodecName, CustomCodec } from './value-codecs.ts';
