/** MPI 4.1, 12.5: the synchronization calls. */
import { fences } from './fences.ts';
import { flushes } from './flushes.ts';
import { generalActiveTarget } from './general-active-target.ts';
import { locks } from './locks.ts';
import type { Requirement } from './requirement.ts';

export const synchronization: readonly Requirement[] = [...fences, ...generalActiveTarget, ...locks, ...flushes];
