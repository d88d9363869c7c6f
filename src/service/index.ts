/**
 * Services: processes that come, die and come back, and what they share.
 *
 *     import { Service } from 'onesided/service';
 */
import { publicCalls } from '../program-line.ts';
import { KeyvStore } from './keyv-store.ts';
import { MapPromises, SharedMap } from './map/index.ts';
import { RateLimiter } from './rate-limiter.ts';
import { Service } from './service.ts';
import { ServiceCounter } from './service-counter.ts';
import { ServiceMutex } from './service-mutex.ts';
import { ServiceQueue } from './service-queue.ts';
import { ServiceWindow } from './window/service-window.ts';

export { KeyvStore } from './keyv-store.ts';
export type { Allowance, LimiterAlgorithm, LimiterOptions } from './limiter-options.ts';
export type {
  CodecName,
  CodecOf,
  CustomCodec,
  EntryOptions,
  EntryWaitOptions,
  MapPromises,
  MapWriteOptions,
  SharedMap,
  SharedMapOptions,
  SharedMapStatistics,
} from './map/index.ts';
export type { MemberEvent } from './membership-news.ts';
export type { ServiceQueueOptions, ValueQueueOptions } from './queue-shape.ts';
export type { RateLimiter } from './rate-limiter.ts';
export { Service, type ServiceOptions } from './service.ts';
export type { ServiceCounter } from './service-counter.ts';
export type { Member } from './service-members.ts';
export type { ServiceHold, ServiceMutex } from './service-mutex.ts';
export type { ServiceQueue, Taken } from './service-queue.ts';
export type { Interrupted } from './window/robust-stripes.ts';
export type { ServiceWindow } from './window/service-window.ts';
export type { WindowHold, WindowHoldAll } from './window/window-locks.ts';

publicCalls(
  KeyvStore,
  ServiceWindow,
  Service,
  ServiceCounter,
  ServiceMutex,
  ServiceQueue,
  SharedMap,
  MapPromises,
  RateLimiter,
);
