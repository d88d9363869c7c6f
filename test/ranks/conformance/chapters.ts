/** All requirements of the chapter, by the sections that have a test file each. */
import { communication } from './communication.ts';
import { errors } from './errors.ts';
import { initialization } from './initialization.ts';
import { memoryModel } from './memory-model.ts';
import type { Requirement } from './requirement.ts';
import { semantics } from './semantics.ts';
import { synchronization } from './synchronization.ts';

export const chapters: Readonly<Record<string, readonly Requirement[]>> = {
  initialization,
  communication,
  'memory-model': memoryModel,
  synchronization,
  errors,
  semantics,
};
