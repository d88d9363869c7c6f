/**
 * What the ranks of a job have started, wherever it has gone: a process in a session of its own is in no group of a
 * rank's, and when its parent ends nothing shows whose it was. So ranks have a mark of their job in their environment,
 * which all that they start inherits; the kernel shows the environment that a program began with, whatever the program
 * makes of it (/proc/PID/environ).
 *
 * What a rank starts without the mark stays.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** The variable whose value is the same in all processes of a job, and in no others. */
export const MARK_VARIABLE = 'ONESIDED_JOB';
/** A process that starts others without end is not caught. */
const MOST_LOOKS = 50;

export function newMark(): string {
  return randomBytes(16).toString('hex');
}

/** Kills all processes of this user that have the mark. A system call or three for each process of the machine. */
export function killMarked(mark: string): void {
  const killed = new Set<number>();
  for (let look = 0; look < MOST_LOOKS; look++) {
    const fresh = processesWithMark(mark).filter((pid) => !killed.has(pid));
    // What is killed here may have started something since it was looked at.
    if (fresh.length === 0) return;
    for (const pid of fresh) {
      killed.add(pid);
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended, or has become another user's.
      }
    }
  }
}

function processesWithMark(mark: string): number[] {
  const variable = `${MARK_VARIABLE}=${mark}`;
  return namesOf('/proc')
    .filter((name) => /^\d+$/.test(name) && environmentOf(name).split('\0').includes(variable))
    .map(Number);
}

function namesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Empty for a process that has ended, or is another user's. */
function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}
