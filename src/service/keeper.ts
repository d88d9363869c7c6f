/**
 * A small process that keeps the memory of a service open while a member lives, and for some seconds behind its end: a
 * shell that waits for the end of a pipe, whose other end only the member has, and then sleeps. The kernel closes the
 * pipe however the member ends. Each member that asks for it has one of its own: so the memory stays for as long as the
 * last of them wanted, whichever that is.
 *
 * It is nobody's child: what ends a process with all of its children, as pm2 does, would end it, too. So another shell
 * starts it, says its number by a file that only we have open, and ends.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, readSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { RmaError } from '../errors.ts';
import type { Native } from '../native.ts';
import type { Member } from '../start/notices.ts';

const SHELL = '/bin/sh';
const KEEPER_FD = 3;
const KEEP = `trap '' HUP INT TERM; { read -r over <&4; exec sleep "$1"; } 5>&- & echo $! >&5`;
/** Milliseconds for two shells to start. */
const PATIENCE_MS = 10_000;

export interface Keeper {
  /** Where others find the memory. */
  readonly member: Member;
  /** The member leaves: the seconds begin. */
  end(): void;
}

/** Blocks until it is there: some milliseconds. @param fd the memory's */
export function startKeeper(native: Native, fd: number, seconds: number): Keeper {
  const { PATH } = process.env;
  const answer = native.memoryCreate('onesided-keeper');
  try {
    const starter = existsSync(SHELL)
      ? spawn(SHELL, ['-c', KEEP, 'onesided-keeper', String(seconds)], {
          detached: true,
          stdio: ['ignore', 'ignore', 'ignore', fd, 'pipe', answer],
          env: PATH === undefined ? {} : { PATH },
        })
      : undefined;
    starter?.on('error', () => {});
    const pid = starter?.pid === undefined ? undefined : numberIn(answer);
    if (pid === undefined) {
      throw new RmaError('ERR_SERVICE', `Service.join: keep needs ${SHELL}, which cannot be started here`);
    }
    starter!.unref();
    // Nothing is written: its end is all that counts.
    const pipe = starter!.stdio[4] as Writable & { unref(): void };
    pipe.on('error', () => {});
    pipe.unref();
    return { member: { pid, fd: KEEPER_FD }, end: () => void pipe.destroy() };
  } finally {
    closeSync(answer);
  }
}

/** The number in a file of one line, which another process writes. @returns `undefined` if it does not */
function numberIn(fd: number): number | undefined {
  const buffer = Buffer.alloc(32);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const end = performance.now() + PATIENCE_MS;
  do {
    const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0));
    if (text.endsWith('\n')) return Number(text);
    Atomics.wait(pause, 0, 0, 1);
  } while (performance.now() < end);
  return undefined;
}
