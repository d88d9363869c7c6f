/**
 * Starts processes that do not outlive this one, whatever ends it.
 *
 * A small shell process, the guardian, in a session of its own, reads a pipe whose other end only this process holds: `+ PID` when a
 * process has started, `- PID` when nothing of it is left. When this process dies, of SIGKILL for instance, the kernel closes the
 * pipe, and the guardian kills the process groups that were not taken back. Idle it sleeps in `read`. It works for every
 * program, also for one that never calls `init` or is in an endless loop.
 *
 * A process that was being started when this one died would not be known to the guardian. So each begins as a shell that waits
 * for a line, which is written after the guardian's; at the end of the file it exits, otherwise it becomes the program, under the same PID.
 *
 * Where there is no `/bin/sh`, programs are started directly and unguarded.
 */
import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Duplex } from 'node:stream';

const SHELL = '/bin/sh';

const GUARD = `
trap '' HUP INT TERM
live=
while read -r op pid; do
  case $op in
    +) live="$live $pid " ;;
    -) live="\${live%% $pid *} \${live#* $pid }" ;;
  esac
done
for pid in $live; do kill -s KILL -- "-$pid"; done
`;

/** `$0 "$@"`, when a line has come on the descriptor. */
function begin(fd: number): string {
  return `read -r go <&${fd} || exit 1; exec ${fd}<&-; exec "$0" "$@"`;
}

export interface Guardian {
  /** As `child_process.spawn`; the process leads a session, and thus a process group, of its own. */
  spawn(
    command: string,
    args: readonly string[],
    options: SpawnOptions & { stdio: Extract<StdioOptions, unknown[]> },
  ): ChildProcess;
  /** Nothing is left of the group that this process led. */
  gone(pid: number): void;
  /** Ends the guardian once it has read everything. */
  close(): void;
}

export function startGuardian(): Guardian {
  if (!existsSync(SHELL)) {
    return {
      spawn: (command, args, options) => spawn(command, args, { ...options, detached: true }),
      gone: () => {},
      close: () => {},
    };
  }
  const shell = spawn(SHELL, ['-c', GUARD, 'onesided-guardian'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  });
  const { stdin } = shell;
  // If somebody ends the guardian, the job goes on without it.
  shell.on('error', () => {});
  stdin.on('error', () => {});
  shell.unref();
  return {
    spawn: (command, args, options) => {
      const fd = options.stdio.length;
      const child = spawn(SHELL, ['-c', begin(fd), command, ...args], {
        ...options,
        detached: true,
        stdio: [...options.stdio, 'pipe'],
      });
      if (child.pid === undefined) return child;
      const go = child.stdio[fd] as Duplex;
      go.on('error', () => {});
      stdin.write(`+ ${child.pid}\n`, () => go.end('\n', () => go.destroy()));
      return child;
    },
    gone: (pid) => void stdin.write(`- ${pid}\n`),
    close: () => void stdin.end(),
  };
}
