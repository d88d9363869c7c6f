/** Ranks that are worker threads of one process, started by the launcher. They need no addon. */
import type { MessagePort } from 'node:worker_threads';
import { coresHere } from '../cores.ts';
import { RmaError } from '../errors.ts';
import { Slot, viewControl } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import { openContext } from '../providers/emulator/emulator-provider.ts';
import { openThreadFabric } from '../providers/emulator/thread-fabric.ts';
import { monotonicClock } from '../trace/clock.ts';
import { Recorder } from '../trace/recorder.ts';
import { recordedBy } from './tracing.ts';

/** What the launcher puts into a rank's `workerData.onesided`. */
export interface ThreadInvitation {
  readonly control: SharedArrayBuffer;
  readonly rank: number;
  readonly size: number;
  readonly broker: MessagePort;
  /** The rank's ring, its size, and what is recorded, if the job is traced. */
  readonly trace?: { readonly ring: SharedArrayBuffer; readonly events: number; readonly records: number } | undefined;
  /** Where it asks the analysis of races, if they are thrown. */
  readonly races?: SharedArrayBuffer | undefined;
  /** Milliseconds. */
  readonly timeout?: number;
}

export function joinThreads(invitation: ThreadInvitation): Membership {
  const { rank, size, broker, trace } = invitation;
  const control = viewControl(invitation.control, size);
  if (Atomics.compareExchange(control.slots, rank * control.slotWords + Slot.PID, 0, process.pid) !== 0) {
    throw new RmaError(
      'ERR_COMM',
      `init: another thread is already rank ${rank}; only one thread can be a rank, and it calls init() once`,
    );
  }
  const context = openContext(openThreadFabric(control.fabric, rank, size, broker));
  return {
    rank,
    size,
    control,
    context,
    cores: coresHere(),
    describe: (other) => `worker thread ${other} of process ${process.pid}`,
    alive: () => true,
    watched: true,
    ...(trace && recordedBy(new Recorder(rank, monotonicClock(), trace.ring, 0, trace.events), trace.records)),
    leave: () => {},
  };
}
