/** What tests of windows by requests share: two ranks on a modelled fabric, and what they post. */
import { vi } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { QueuePairCore as QueuePair } from '../../src/providers/core/queue-pair-base.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';

export const FABRIC = 'infinihost-64';

/**
 * Writes and reads that are posted from now on, until `vi.restoreAllMocks`, in order: `p` and `g`. Notifications do not
 * count.
 */
export function postings(): string[] {
  const posted: string[] = [];
  const { wrRdmaWrite, wrRdmaRead } = QueuePair.prototype;
  vi.spyOn(QueuePair.prototype, 'wrRdmaWrite').mockImplementation(function (this: unknown, ...args) {
    posted.push('p');
    wrRdmaWrite.apply(this as never, args);
  });
  vi.spyOn(QueuePair.prototype, 'wrRdmaRead').mockImplementation(function (this: unknown, ...args) {
    posted.push('g');
    wrRdmaRead.apply(this as never, args);
  });
  return posted;
}

/** Two ranks with a window of 1,000 numbers. */
export async function two(
  main: (win: Window<Float64Array>, world: Communicator) => Promise<void>,
  info: WindowInfo,
  options: Partial<TaskOptions> = {},
): Promise<void> {
  await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 1000, { info });
      await main(win, world);
      await win.free();
    },
    { fabric: FABRIC, ...options },
  );
}
