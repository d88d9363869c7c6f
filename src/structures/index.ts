/**
 * Shared data structures on windows: a counter, a mutex and a bounded queue.
 *
 *     import { BoundedQueue, Counter, Mutex } from 'onesided/sync';
 */
import { publicCalls } from '../program-line.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { Counter } from './counter.ts';
import { Mutex } from './mutex.ts';

export { BoundedQueue, type QueueOptions } from './bounded-queue.ts';
export { Counter } from './counter.ts';
export { Mutex, type MutexHold } from './mutex.ts';
export type { PlaceOptions } from './words.ts';

publicCalls(BoundedQueue, Counter, Mutex);
