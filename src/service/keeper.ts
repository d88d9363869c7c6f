/**
 * A small process that keeps the memory of a service open while a member lives, and for some seconds behind its end: a
 * shell that waits for the end of a pipe, whose other end only the member has, and then sleeps. The kernel closes the
 * pipe however the member ends. Each member that asks for it has one of its own: so the memory stays for as long as the
 * last of them wanted, whichever that is.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { RmaError } from '../errors.ts';
import type { Member } from '../start/notices.ts';

const SHELL = '/bin/sh';
const KEEPER_FD = 3;
const KEEP = `trap '' HUP INT TERM; read -r over; exec sleep "$1"`;

export interface Keeper {
  /** Where others find the memory. */
  readonly member: Member;
  /** The member leaves: the seconds begin. */
  end(): void;
}

/** @param fd the memory's */
export function startKeeper(fd: number, seconds: number): Keeper {
  const { PATH } = process.env;
  const keeper = existsSync(SHELL)
    ? spawn(SHELL, ['-c', KEEP, 'onesided-keeper', String(seconds)], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore', fd],
        env: PATH === undefined ? {} : { PATH },
      })
    : undefined;
  keeper?.on('error', () => {});
  if (keeper?.pid === undefined) {
    throw new RmaError('ERR_SERVICE', `Service.join: keep needs ${SHELL}, which cannot be started here`);
  }
  keeper.unref();
  // Nothing is written: its end is all that counts.
  const pipe = keeper.stdin as Writable & { unref(): void };
  pipe.on('error', () => {});
  pipe.unref();
  return { member: { pid: keeper.pid, fd: KEEPER_FD }, end: () => void pipe.end() };
}
