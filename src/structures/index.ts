/**
 * Shared data structures on windows: a counter, a mutex and a bounded queue.
 *
 *     import { BoundedQueue, Counter, Mutex } from 'onesided/sync';
 */
export { BoundedQueue, type QueueOptions } from './bounded-queue.ts';
export { Counter } from './counter.ts';
export { Mutex, type MutexHold } from './mutex.ts';
export type { PlaceOptions } from './words.ts';
