/** The requirements of BSPlib, as a chapter of its own. */
import { bspProcesses } from './bsp-processes.ts';
import { bspTransfers } from './bsp-transfers.ts';
import type { Requirement } from './requirement.ts';

export const bspChapters: Readonly<Record<string, readonly Requirement[]>> = {
  bsp: [...bspProcesses, ...bspTransfers],
};
