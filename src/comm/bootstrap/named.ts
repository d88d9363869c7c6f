/**
 * Jobs that unrelated processes of one user join by name.
 *
 * The first to come makes the control memory and says in a small file where it is: process, descriptor, size. The others
 * open `/proc/PID/fd/N`, which the kernel allows to the same user only. The file lies in a directory that only this user can enter; it is
 * made complete under another name and linked into place, so nobody reads half of it; it goes away when the job is complete. A file whose maker is
 * dead is moved aside, looked at again, and removed.
 */
import {
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../../errors.ts';
import type { Native } from '../../native.ts';
import type { Membership } from '../job.ts';
import { controlBytes, createControl, Header, MAX_RANKS, viewControl } from './control.ts';
import { joinProcesses, startTimeOf } from './process.ts';
import { requestedEvents } from './tracing.ts';

interface Notice {
  readonly pid: number;
  readonly started: number;
  readonly fd: number;
  readonly size: number;
}

let temporaries = 0;

/** Throws unless a job can have this name and size. */
export function checkNamedJob(name: unknown, size: unknown): void {
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
    throw argumentTypeError(
      `init: a job's name is 1 to 100 letters, digits, dots, dashes or underscores, not ${show(name)}`,
    );
  }
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > MAX_RANKS) {
    throw argumentRangeError(
      `init: job ${show(name)} needs a size of 1 to ${MAX_RANKS} ranks, not ${show(size)}`,
      'ERR_SIZE',
    );
  }
}

/** @returns the membership, and what to call when all ranks are there */
export function joinNamed(native: Native, name: string, size: number): { membership: Membership; complete(): void } {
  const file = join(privateDirectory(), `${name}.job`);
  for (let attempt = 0; attempt < 100; attempt++) {
    const found = read(file);
    if (found === undefined) {
      const made = make(native, file, size);
      if (made !== undefined) return made;
    } else if (startTimeOf(found.notice.pid) !== found.notice.started) removeStale(file, found.text);
    else return { membership: enter(native, name, found.notice, size), complete: () => {} };
  }
  throw new RmaError(
    'ERR_COMM',
    `init: could not agree on job ${show(name)}: ${file} keeps changing; remove it if no such job runs`,
  );
}

function enter(native: Native, name: string, notice: Notice, size: number): Membership {
  if (notice.size !== size) {
    throw new RmaError(
      'ERR_SIZE',
      `init: job ${show(name)} was begun with ${notice.size} ranks, not ${size}; all must name the same size`,
    );
  }
  let fd: number;
  try {
    fd = openSync(`/proc/${notice.pid}/fd/${notice.fd}`, 'r+');
  } catch (cause) {
    throw new RmaError(
      'ERR_COMM',
      `init: process ${notice.pid}, which began job ${show(name)}, does not let this one in`,
      { cause },
    );
  }
  const control = viewControl(native.memoryMap(fd, 0, controlBytes(size)), size);
  const rank = Atomics.add(control.header, Header.NEXT_RANK, 1);
  if (rank >= size) {
    closeSync(fd);
    throw new RmaError('ERR_COMM', `init: job ${show(name)} already has its ${size} ranks`);
  }
  return joinProcesses(native, fd, rank, size, false);
}

function make(native: Native, file: string, size: number): { membership: Membership; complete(): void } | undefined {
  const { control, fd } = createControl(native, size, requestedEvents(size));
  Atomics.store(control.header, Header.NEXT_RANK, 1);
  const notice: Notice = { pid: process.pid, started: startTimeOf(process.pid), fd, size };
  const temporary = `${file}.${process.pid}.${temporaries++}`;
  writeFileSync(temporary, JSON.stringify(notice), { mode: 0o600, flag: 'wx' });
  try {
    linkSync(temporary, file);
  } catch (error) {
    closeSync(fd);
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw error;
  } finally {
    unlinkSync(temporary);
  }
  const withdraw = (): void => {
    if (read(file)?.text === JSON.stringify(notice)) unlinkSync(file);
  };
  process.once('exit', withdraw);
  const complete = (): void => {
    process.off('exit', withdraw);
    withdraw();
    closeSync(fd);
  };
  return { membership: joinProcesses(native, openSync(`/proc/self/fd/${fd}`, 'r+'), 0, size, false), complete };
}

function read(file: string): { notice: Notice; text: string } | undefined {
  try {
    const text = readFileSync(file, 'utf8');
    const notice = JSON.parse(text) as Notice | null;
    for (const word of ['pid', 'started', 'fd', 'size'] as const) {
      if (!Number.isSafeInteger(notice?.[word])) throw new Error(`its ${word} is not a number`);
    }
    return { notice: notice!, text };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new RmaError('ERR_COMM', `init: ${file} does not describe a job; remove it if no such job runs`, {
      cause: error,
    });
  }
}

/** Two may find the same stale file: whoever moves it aside looks whether it is still that one, and puts a newer one back. */
function removeStale(file: string, text: string): void {
  const aside = `${file}.${process.pid}.${temporaries++}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (readFileSync(aside, 'utf8') !== text) {
    try {
      linkSync(aside, file);
    } catch {
      // A still newer one took its place; the maker of the one aside will find its job empty and time out.
    }
  }
  unlinkSync(aside);
}

function privateDirectory(): string {
  const { uid } = userInfo();
  // Set to nothing counts as not set.
  const directory = join(process.env['XDG_RUNTIME_DIR'] || tmpdir(), `onesided-${uid}`);
  let status: Stats;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    status = lstatSync(directory);
  } catch (cause) {
    throw new RmaError(
      'ERR_COMM',
      `init: ${directory}, where named jobs meet, cannot be made (${(cause as Error).message})`,
      {
        cause,
      },
    );
  }
  if (!status.isDirectory() || status.uid !== uid || (status.mode & 0o077) !== 0) {
    throw new RmaError('ERR_COMM', `init: ${directory} must be a directory of this user alone (mode 700)`);
  }
  return directory;
}
