/**
 * Ranks that are processes: joined through control memory that the launcher, or the first rank of a named job, has
 * made.
 */
import { closeSync, fstatSync } from 'node:fs';
import { coresHere } from '../cores.ts';
import { RmaError } from '../errors.ts';
import {
  CONTROL_LAYOUT,
  type Control,
  controlBytes,
  declareFailed,
  FailKind,
  Header,
  isControl,
  Slot,
  viewControl,
} from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import type { Native } from '../native.ts';
import type { Context } from '../verbs/device.ts';
import { startTimeOf } from './process-start.ts';
import { openProcessContext } from './provider.ts';
import { recordProcess } from './tracing.ts';

/**
 * Joins as `rank`.
 * @param fd the control memory's descriptor; it is closed
 * @param watched whether a launcher watches the ranks
 * @param cores that the ranks have together
 */
export function joinProcesses(
  native: Native,
  fd: number,
  rank: number,
  size: number,
  watched: boolean,
  cores = coresHere(),
): Membership {
  const control = openControl(native, fd, size);
  takeSlot(control, rank);
  let recorded: ReturnType<typeof recordProcess>;
  let context: Context;
  try {
    try {
      recorded = recordProcess(native, control, fd, rank, watched);
    } finally {
      // Not before: if another thread of this process is the rank, the number may be that of a file of its own by now.
      closeSync(fd);
    }
    noteStart(control, rank);
    context = openProcessContext(native, control.fabric, rank, size);
  } catch (error) {
    // A launcher tells the others how this process ends; without one, no other process does.
    if (!watched) declareFailed(control, rank, FailKind.GAVE_UP, 0);
    throw error;
  }
  return {
    rank,
    size,
    control,
    context,
    cores,
    schedYield: () => native.schedYield(),
    describe: (other) => `process ${pidOf(control, other)}`,
    alive: (other) => isAlive(control, other),
    watched,
    ...(!watched && { terminate: (other: number) => void process.kill(pidOf(control, other), 'SIGTERM') }),
    ...recorded,
    leave: () => {},
  };
}

/** The ranks of a job on several hosts, as one of them sees them. */
export interface DistantPeers {
  /** For messages, by rank. */
  readonly who: readonly string[];
  /** Whether a rank is a process that can be looked at from here, by rank. */
  readonly isNear: readonly boolean[];
  /** For all of them together. */
  readonly cores: number;
}

/**
 * Joins as `rank` of a job on several hosts whose agents keep the control memory.
 * @param launched what this rank shares with its agent and its neighbours; the descriptor is closed
 */
export function joinAgentsRanks(
  native: Native,
  { control, fd }: { readonly control: Control; readonly fd: number },
  context: Context,
  rank: number,
  { who, isNear, cores }: DistantPeers,
): Membership {
  takeSlot(control, rank);
  let recorded: ReturnType<typeof recordProcess>;
  try {
    recorded = recordProcess(native, control, fd, rank, true);
  } finally {
    closeSync(fd);
  }
  noteStart(control, rank);
  return {
    rank,
    size: who.length,
    control,
    context,
    cores,
    schedYield: () => native.schedYield(),
    describe: (other) => who[other],
    // The agents tell of the others.
    alive: (other) => !isNear[other] || isAlive(control, other),
    watched: true,
    distant: true,
    ...recorded,
    leave: () => {},
  };
}

/** Maps the control memory behind a descriptor, if it is that of a job of so many ranks and of this version. */
export function openControl(native: Native, fd: number, size: number): Control {
  const bytes = controlBytes(size);
  const notOurs = (cause?: unknown): RmaError =>
    new RmaError(
      'ERR_COMM',
      `init: file descriptor ${fd} is not, or is no longer, the control memory of a job; ` +
        '"onesided run" passes it to each rank, and only one thread of a rank can call init()',
      { cause },
    );
  // If another thread of this process is the rank, it has closed the descriptor, and the number may by now be that of
  // any file.
  let found: number;
  let memory: ArrayBuffer;
  try {
    found = fstatSync(fd).size;
    memory = native.memoryMap(fd, 0, Math.min(found, bytes));
  } catch (cause) {
    throw notOurs(cause);
  }
  if (!isControl(memory)) {
    native.memoryUnmap(memory);
    throw notOurs();
  }
  if (found < bytes) {
    throw new RmaError(
      'ERR_VERSION',
      `init: the job's control memory has ${found} bytes, but ${size} ranks need ${bytes}: ` +
        'the launcher runs another version of onesided',
    );
  }
  const control = viewControl(memory, size);
  const layout = Atomics.load(control.header, Header.LAYOUT);
  if (layout !== CONTROL_LAYOUT) {
    throw new RmaError(
      'ERR_VERSION',
      `init: the job's control memory has layout ${layout}, but this library uses layout ${CONTROL_LAYOUT}; ` +
        'the launcher and all ranks must run the same version of onesided',
    );
  }
  return control;
}

/** Makes this process the rank, unless another one is. */
function takeSlot(control: Control, rank: number): void {
  const holder = Atomics.compareExchange(control.slots, rank * control.slotWords + Slot.PID, 0, process.pid);
  if (holder !== 0) {
    throw new RmaError(
      'ERR_COMM',
      `init: process ${holder} is already rank ${rank}; only one process can be a rank, and it calls init() once`,
    );
  }
}

/** Notes when this process has started, by which others tell it from a later one of the same number. */
function noteStart(control: Control, rank: number): void {
  const slot = rank * control.slotWords;
  const started = startTimeOf(process.pid);
  Atomics.store(control.slots, slot + Slot.START_LO, started | 0);
  Atomics.store(control.slots, slot + Slot.START_HI, Math.floor(started / 2 ** 32));
}

/** The process of a rank; 0 if it has not come yet. */
function pidOf(control: Control, rank: number): number {
  return Atomics.load(control.slots, rank * control.slotWords + Slot.PID);
}

function isAlive(control: Control, rank: number): boolean {
  const pid = pidOf(control, rank);
  if (pid === 0) return true;
  const began = startTimeOf(pid);
  const noted = Atomics.load(control.slots, rank * control.slotWords + Slot.START_LO);
  // A rank notes its number before its start.
  return began >= 0 && (noted === 0 || noted === (began | 0));
}
