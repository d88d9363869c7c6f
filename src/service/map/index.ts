/** A map that the members of a service share. */
export { CopySpace } from './copy-space.ts';
export { now } from './map-clock.ts';
export { mostOf } from './map-layout.ts';
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
export {
  type Codec,
  type CodecName,
  type CustomCodec,
  type EncodedValue,
  Refused,
  readCodec,
  sayCodec,
  Undecodable,
} from './value-codecs.ts';
