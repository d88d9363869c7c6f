/**
 * Jobs that unrelated processes of one user join by name.
 *
 * The first to come makes the control memory, and says in a notice (notices.ts) where it is: process, descriptor, size.
 * The others open `/proc/PID/fd/N`, which the kernel allows to the same user only, and add themselves to the notice.
 * Each keeps the control memory open until it leaves the job, so the kernel itself knows which processes are members:
 * one that was killed has no descriptors any more.
 *
 * While one member is there the name is taken, with two exceptions. When the ranks have agreed to end (`finalize`), the
 * name is free at once, though some of them may still be leaving. And a job that can never become complete, because a
 * member of it died or gave up before all had come, is left to its end: its members are told, and the next process to
 * come begins a new job.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { type Control, controlBytes, createControl, Header, MAX_RANKS, viewControl } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import type { Native } from '../native.ts';
import { VERSION } from '../version.ts';
import { isIn, type Member, type Notice, Notices } from './notices.ts';
import { joinProcesses } from './process.ts';
import { requestedRecords } from './tracing.ts';

/** How long to wait for the lock of the notices: thousands of processes may come at once. */
const JOIN_PATIENCE_MS = 30_000;
/** A process that cannot remove the notice leaves it: the next one to come sees that no member is there. */
const LEAVE_PATIENCE_MS = 1000;
/** Members that a message names. */
const NAMED = 8;

/** Throws unless a job can have this name and size. */
export function checkNamedJob(name: unknown, size: unknown): void {
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
    throw argumentTypeError(
      `init: the name of a job must be 1 to 100 letters, digits, dots, dashes or underscores, not ${show(name)}`,
    );
  }
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > MAX_RANKS) {
    throw argumentRangeError(
      `init: job ${show(name)} needs a size of 1 to ${MAX_RANKS} ranks, not ${show(size)}`,
      'ERR_SIZE',
    );
  }
}

/** A rank that this process has been given. */
interface Place {
  readonly rank: number;
  /** The control memory's file, open as long as this process is a member. */
  readonly fd: number;
  readonly notice: Notice;
}

export function joinNamed(native: Native, name: string, size: number): Membership {
  const notices = new Notices(native);
  const place = notices.locked(JOIN_PATIENCE_MS, () => {
    const notice = notices.read(name);
    const job = notice && openJob(native, name, notice);
    if (job === undefined) return begin(native, notices, name, size);
    try {
      if (isOver(job)) return begin(native, notices, name, size);
      refuse(name, size, job);
      return enter(notices, name, job);
    } finally {
      closeSync(job.fd);
    }
  });
  let member = true;
  let control: Control | undefined;
  const leave = (): void => {
    if (!member) return;
    member = false;
    process.off('exit', leave);
    closeSync(place.fd);
    try {
      notices.locked(LEAVE_PATIENCE_MS, () => withdraw(notices, name, place.notice, control));
    } catch {
      // Then the notice stays, but names no member that is there.
    }
  };
  process.once('exit', leave);
  try {
    const membership = joinProcesses(native, openSync(`/proc/self/fd/${place.fd}`, 'r+'), place.rank, size, false);
    control = membership.control;
    return { ...membership, leave };
  } catch (error) {
    leave();
    throw error;
  }
}

/** A job that members are in. */
interface Standing {
  readonly notice: Notice;
  readonly living: readonly Member[];
  readonly control: Control;
  /** To be closed. */
  readonly fd: number;
}

/** The job of a notice, unless none of its members is there. */
function openJob(native: Native, name: string, notice: Notice): Standing | undefined {
  const living = notice.members.filter((member) => isIn(notice, member));
  for (const { pid, fd: theirs } of living) {
    let fd: number;
    try {
      fd = openSync(`/proc/${pid}/fd/${theirs}`, 'r+');
    } catch (cause) {
      if (!isIn(notice, { pid, fd: theirs })) continue;
      throw new RmaError(
        'ERR_COMM',
        `init: cannot join job ${show(name)}: process ${pid}, a rank of the job, denies access`,
        {
          cause,
        },
      );
    }
    // Its number may have become another file's since it was looked at.
    const { dev, ino } = fstatSync(fd);
    if (dev === notice.device && ino === notice.inode) {
      if (notice.version === VERSION) return { notice, living, control: viewOf(native, fd, notice.size), fd };
      closeSync(fd);
      throw new RmaError(
        'ERR_VERSION',
        `init: process ${pid} in job ${show(name)} runs onesided ${notice.version}, ` +
          `but this process runs ${VERSION}; all ranks of a job must run the same version`,
      );
    }
    closeSync(fd);
  }
  return undefined;
}

function viewOf(native: Native, fd: number, size: number): Control {
  return viewControl(native.memoryMap(fd, 0, controlBytes(size)), size);
}

/**
 * Whether nothing will come of the job any more: its ranks have agreed to end, or it was never complete and cannot
 * become so.
 */
function isOver({ notice, living, control: { header } }: Standing): boolean {
  if (Atomics.load(header, Header.FINALIZED) > 0) return true;
  if (Atomics.load(header, Header.JOINED) >= notice.size) return false;
  return living.length < notice.members.length || Atomics.load(header, Header.FAILED) !== 0;
}

/** Throws if the job has all its ranks, or was begun with another number of them. */
function refuse(name: string, size: number, { notice, living }: Standing): void {
  if (notice.members.length >= notice.size) {
    const pids = living.slice(0, NAMED).map(({ pid }) => pid);
    const more = living.length > NAMED ? ` and ${living.length - NAMED} more` : '';
    const who = `${living.length === 1 ? 'process' : 'processes'} ${pids.join(', ')}${more}`;
    throw new RmaError(
      'ERR_COMM',
      `init: the name ${show(name)} is taken: the job has all ${notice.size} ranks, ` +
        `and ${who} ${living.length === 1 ? 'is' : 'are'} still in it; ` +
        'join after they have called finalize() or ended, or choose another name',
    );
  }
  if (notice.size !== size) {
    throw new RmaError(
      'ERR_SIZE',
      `init: job ${show(name)} was started with ${notice.size} ranks, not ${size}; ` +
        'all processes must pass the same size',
    );
  }
}

function begin(native: Native, notices: Notices, name: string, size: number): Place {
  const { fd } = createControl(native, size, requestedRecords(size));
  const { dev, ino } = fstatSync(fd);
  const members = [{ pid: process.pid, fd }];
  return announce(notices, name, { version: VERSION, size, device: dev, inode: ino, members }, fd);
}

function enter(notices: Notices, name: string, { notice, fd: theirs }: Standing): Place {
  const fd = openSync(`/proc/self/fd/${theirs}`, 'r+');
  return announce(notices, name, { ...notice, members: [...notice.members, { pid: process.pid, fd }] }, fd);
}

/** Writes the notice, in which this process stands last. */
function announce(notices: Notices, name: string, notice: Notice, fd: number): Place {
  try {
    notices.write(name, notice);
  } catch (cause) {
    closeSync(fd);
    throw new RmaError('ERR_COMM', `init: cannot publish job ${show(name)} (${(cause as Error).message})`, {
      cause,
    });
  }
  return { rank: notice.members.length - 1, fd, notice };
}

/** Removes the notice, if it is this job's and the job is over, or no member is left in it. */
function withdraw(notices: Notices, name: string, own: Notice, control: Control | undefined): void {
  const notice = notices.read(name);
  if (notice === undefined || notice.device !== own.device || notice.inode !== own.inode) return;
  const ended = control !== undefined && Atomics.load(control.header, Header.FINALIZED) > 0;
  if (ended || !notice.members.some((member) => isIn(notice, member))) notices.remove(name);
}
