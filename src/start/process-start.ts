/** When processes started: what tells a process from a later one of the same number. */
import { readFileSync } from 'node:fs';
import { type Control, Header } from '../job/control-region.ts';

/**
 * The bit of a task's flags (/proc/PID/stat, field 9) that is set before anything of the process is torn down:
 * `PF_EXITING`.
 */
const EXITING = 0x4;

/**
 * When a process started, in clock ticks since boot; −1 if there is none, or if it is dead but not yet collected, or
 * about to be: its descriptors vanish a moment before it becomes a zombie, and a rank that finds them gone asks here
 * whether it lives.
 *
 * The dot in the path is for user-mode emulators (a container of another architecture): for `/proc/PID/stat` of the
 * process itself they make up another start time than all others read. With the dot they do not recognize it.
 */
export function startTimeOf(pid: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/./${pid}/stat`, 'latin1');
  } catch {
    return -1;
  }
  // The name (field 2) may contain anything, so the fields are counted from the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const gone = fields[0] === 'Z' || fields[0] === 'X' || (Number(fields[6]) & EXITING) !== 0;
  return gone ? -1 : Number(fields[19]);
}

/** Says in the control memory which process the launcher is: this one. */
export function noteLauncher({ header }: Control): void {
  Atomics.store(header, Header.LAUNCHER_START, startTimeOf(process.pid) | 0);
  Atomics.store(header, Header.LAUNCHER_PID, process.pid);
}

/** The launcher's number, if it is not there any more. */
export function goneLauncher({ header }: Control): number | undefined {
  const pid = Atomics.load(header, Header.LAUNCHER_PID);
  const started = startTimeOf(pid);
  return started >= 0 && (started | 0) === Atomics.load(header, Header.LAUNCHER_START) ? undefined : pid;
}
