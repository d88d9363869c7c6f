/** How a rank joins that `onesided run` has started: a thread, a process, or a process of an agent on some host. */
import { constants } from 'node:os';
import { RmaError } from '../errors.ts';
import { type Control, MAX_RANKS } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import type { Native } from '../native.ts';
import { keepExitCode } from './exit-code.ts';
import { markFatalErrors } from './fatal-errors.ts';
import { joinManaged } from './managed.ts';
import type { Patience, ProcessManager } from './managers/manager.ts';
import { joinProcesses, openControl } from './process.ts';
import { goneLauncher } from './process-start.ts';
import { joinThreads, type ThreadInvitation } from './thread.ts';

const { SIGKILL } = constants.signals;

/**
 * Started by `onesided run --ranks threads`.
 * @param taken called when this rank has its place: it cannot join again
 */
export function joinLauncherThread(invitation: ThreadInvitation, taken: () => void): Membership {
  const membership = joinThreads(invitation);
  taken();
  keepExitCode(membership.control, membership.rank);
  leaveEnvironment();
  return membership;
}

/** Started by `onesided run`. */
export function joinLauncher(native: Native, taken: () => void): Membership {
  const { fd, rank, size } = place();
  const membership = joinProcesses(native, fd, rank, size, true);
  taken();
  goWithLauncher(native, membership.control, rank, () => membership.leave());
  leaveEnvironment();
  return membership;
}

/** Started by an agent of `onesided run --hosts`. */
export async function joinAgent(
  native: Native,
  manager: ProcessManager,
  patience: Patience,
  taken: () => void,
): Promise<{ membership: Membership; complete(): void }> {
  const { fd, rank, size } = place();
  const control = openControl(native, fd, size);
  taken();
  goWithLauncher(native, control, rank, () => {});
  leaveEnvironment();
  return joinManaged(native, manager, patience, { control, fd });
}

/** What this rank was told of its place. */
function place(): { fd: number; rank: number; size: number } {
  const fd = Number(process.env['ONESIDED_CONTROL_FD']);
  const rank = Number(process.env['ONESIDED_RANK']);
  const size = Number(process.env['ONESIDED_SIZE']);
  if (Number.isInteger(rank) && Number.isInteger(size) && rank >= 0 && rank < size && size <= MAX_RANKS)
    return { fd, rank, size };
  throw new RmaError(
    'ERR_COMM',
    `init: ONESIDED_RANK=${rank} and ONESIDED_SIZE=${size} are not the rank and the size of a job`,
  );
}

/** This rank ends with what has started it, and tells it of its errors. */
function goWithLauncher(native: Native, control: Control, rank: number, leave: () => void): void {
  native.parentDeathSignal(SIGKILL);
  // A launcher that has ended before sends no signal, and a rank that has not called this by now may never do so.
  const gone = goneLauncher(control);
  if (gone !== undefined) {
    leave();
    throw new RmaError(
      'ERR_COMM',
      `init: the launcher of this job (process ${gone}) is gone, so rank ${rank} does not wait for the other ` +
        'ranks; start the job again',
    );
  }
  markFatalErrors(rank);
  keepExitCode(control, rank);
}

/** Programs that this one starts are not ranks of its job. */
function leaveEnvironment(): void {
  for (const name of ['ONESIDED_CONTROL_FD', 'ONESIDED_RANK', 'ONESIDED_SIZE']) delete process.env[name];
}
