/** All requirements of MPI's chapter, by the sections that have a test file each; and those of BSPlib. */
import { bspChapters } from './bsp.ts';
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

/** What can be put on trial. */
export const allChapters: Readonly<Record<string, readonly Requirement[]>> = { ...chapters, ...bspChapters };

/** What a requirement is one of, for people. */
export function standardOf(chapter: string): string {
  return chapter in bspChapters ? 'BSPlib' : 'MPI 4.1';
}
