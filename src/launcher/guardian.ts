/**
 * Starts processes that do not outlive this one, whatever ends it.
 *
 * A small shell process, the guardian, in a session of its own, reads a pipe whose other end only this process holds:
 * `= MARK`, `+ PID` when a process has started, `- PID` when nothing of it is left, `.` when the job has ended. When
 * this process dies, of SIGKILL for instance, the kernel closes the pipe, and the guardian kills the process groups
 * that were not taken back, and all processes with the job's mark (descendants.ts): what the ranks have started in
 * other groups, and the one that was being started, of which the guardian has not heard. That process may not have
 * become its program yet, and has no mark until then, so the guardian looks again a little later. Idle it sleeps in
 * `read`. It works for every program, also for one that never calls `init` or is in an endless loop.
 *
 * Programs are started directly, not by a shell: a shell keeps variables to itself whose names it does not like, and
 * makes new values of others.
 *
 * Where there is no `/bin/sh`, the processes are not guarded; where there is no `grep` or `xargs`, only their groups
 * are.
 */
import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { MARK_VARIABLE } from './descendants.ts';

const SHELL = '/bin/sh';

const GUARD = `
trap '' HUP INT TERM
live= mark=
while read -r op what; do
  case $op in
    =) mark=$what ;;
    +) live="$live $what " ;;
    -) live="\${live%% $what *} \${live#* $what }" ;;
    .) exit ;;
  esac
done
[ -n "$mark" ] || exit
for pid in $live; do kill -s KILL -- "-$pid"; done
for seconds in 0 1 2; do
  sleep $seconds
  marked=$(printf '%s\\0' /proc/[0-9]*/environ | xargs -0 grep -lsF "${MARK_VARIABLE}=$mark")
  for file in $marked; do pid=\${file#/proc/}; kill -s KILL "\${pid%/environ}"; done
done
`;

export interface Guardian {
  /** As `child_process.spawn`; the process leads a session, and thus a process group, of its own. */
  spawn(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { stdio: Extract<StdioOptions, unknown[]> },
  ): ChildProcess;
  /** Nothing is left of the group that this process led. */
  gone(pid: number): void;
  /** Ends the guardian. @param nothingLeft otherwise it kills what it knows of, as it does when this process dies */
  close(nothingLeft: boolean): void;
}

/** @param mark of the job, in the environment of all that is started */
export function startGuardian(mark: string): Guardian {
  const pipe = existsSync(SHELL) ? pipeToGuardian(mark) : undefined;
  const say = (line: string): void => void pipe?.write(`${line}\n`);
  return {
    spawn: (command, args, options) => {
      const child = spawn(command, args, { ...options, detached: true });
      if (child.pid !== undefined) say(`+ ${child.pid}`);
      return child;
    },
    gone: (pid) => say(`- ${pid}`),
    close: (nothingLeft) => void pipe?.end(nothingLeft ? '.\n' : undefined),
  };
}

function pipeToGuardian(mark: string): Writable | undefined {
  const { PATH } = process.env;
  const shell = spawn(SHELL, ['-c', GUARD, 'onesided-guardian'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    // Not the mark of a job that this one is started in: what it started goes with it, but not its guardian.
    env: PATH === undefined ? {} : { PATH },
  });
  // If the guardian is ended, the job goes on without it.
  shell.on('error', () => {});
  // Absent if the process could not be started (no descriptors are left, say). Then no rank can be started either,
  // which says why.
  const stdin = shell.stdin as Writable | undefined;
  if (stdin === undefined) return undefined;
  stdin.on('error', () => {});
  shell.unref();
  stdin.write(`= ${mark}\n`);
  return stdin;
}
