/** The emulator as one of the providers: over shared memory, between processes or threads. */
import { debugs, nodeSize } from '../../debug.ts';
import { nativeStatus } from '../../native.ts';
import type { Context } from '../../verbs/device.ts';
import { availability, providerKind, showAvailability } from '../provider-kind.ts';
import { openEmulator, openEmulatorAsDevice } from './emulator-context.ts';
import type { EmulatorFabric } from './emulator-fabric.ts';
import { openProcessFabric } from './process-fabric.ts';

const RANKS_A_HOST = debugs('neighbours') ? 2 : 1;

/** The emulator over a fabric. */
export function openContext(fabric: EmulatorFabric): Context {
  return debugs('requests') ? openEmulatorAsDevice(fabric, RANKS_A_HOST) : openEmulator(fabric, nodeSize());
}

export const emulator = providerKind({
  name: 'emulator',
  isDefault: true,
  summary: 'connect the ranks by shared memory (default)',
  ranks: ['processes', 'threads'],
  open: (native, table, rank, size) => openContext(openProcessFabric(native, table, rank, size)),
  report() {
    const processes = availability(nativeStatus().loaded ? undefined : 'needs the native addon');
    const threads = availability(undefined);
    return {
      json: { processes, threads },
      lines: [
        ['emulator', ''],
        ['  processes', showAvailability(processes)],
        ['  threads', showAvailability(threads)],
      ],
    };
  },
});
