/**
 * Where processes of one user find the members of a named job: a small file for each job, in a directory that only this
 * user can enter.
 *
 * A process that reads or changes a notice holds the directory's lock, which the kernel takes back from a process that
 * dies. A notice is made complete under another name and then given its own, so one that was cut short by a `SIGKILL`
 * is never read.
 */
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { RmaError, show } from '../errors.ts';
import type { Native } from '../native.ts';
import { userCacheFolder } from '../place.ts';
import { Pauses } from '../wait/pauses.ts';

/** A member: a process that has the job's control memory open, under this descriptor. */
export interface Member {
  readonly pid: number;
  readonly fd: number;
}

export interface Notice {
  /** Of the library that began the job. */
  readonly version: string;
  readonly size: number;
  /** The control memory's file, which tells this job from all others. */
  readonly device: number;
  readonly inode: number;
  /** In the order of their ranks. One may be dead, or have left. */
  readonly members: readonly Member[];
}

/**
 * Milliseconds between two attempts to get the lock. What is done under it takes less than one, except in jobs of
 * thousands of ranks.
 */
const RETRY_MS = 1;

/** The directory of this user's notices. */
export class Notices {
  readonly #native: Native;
  /** Where they are. */
  readonly directory: string;
  readonly #call: string;
  readonly #ending: string;

  /**
   * @param call for messages
   * @param ending of the files' names
   * @throws RmaError `ERR_COMM`: another user could enter the directory, or it cannot be made
   */
  constructor(native: Native, call = 'init', ending = 'job') {
    this.#native = native;
    this.directory = privateDirectory(call, ending === 'service' ? (directory) => this.#canLock(directory) : undefined);
    this.#call = call;
    this.#ending = ending;
  }

  /**
   * Calls `act` while no other process reads or changes a notice. Blocks this thread for at most `patienceMs` before
   * that.
   */
  locked<T>(patienceMs: number, act: () => T): T {
    const fd = this.#open();
    try {
      const deadline = performance.now() + patienceMs;
      while (!this.#native.fileLock(fd)) {
        if (performance.now() > deadline) throw this.#refused(patienceMs);
        Atomics.wait(PAUSE, 0, 0, RETRY_MS);
      }
      return act();
    } finally {
      closeSync(fd);
    }
  }

  /** The same, while the event loop goes on before `act`. */
  async lockedLater<T>(patienceMs: number, act: () => T): Promise<T> {
    const fd = this.#open();
    try {
      const deadline = performance.now() + patienceMs;
      const pauses = new Pauses();
      while (!this.#native.fileLock(fd)) {
        const left = deadline - performance.now();
        if (left < 0) throw this.#refused(patienceMs);
        await pauses.next(left);
      }
      return act();
    } finally {
      closeSync(fd);
    }
  }

  /** Not in some file systems of other hosts. */
  #canLock(directory: string): boolean {
    const fd = this.#open(directory);
    try {
      this.#native.fileLock(fd);
      return true;
    } catch {
      return false;
    } finally {
      closeSync(fd);
    }
  }

  #open(directory = this.directory): number {
    return openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  #refused(patienceMs: number): RmaError {
    return new RmaError(
      'ERR_COMM',
      `${this.#call}: another process has held the lock of ${this.directory} for ${patienceMs} ms; ` +
        'check whether one was stopped (SIGSTOP, a debugger) while it joined or left a job or a service',
    );
  }

  /** The notice of a job, if there is one. */
  read(name: string): Notice | undefined {
    const file = this.#file(name);
    try {
      return checked(JSON.parse(readFileSync(file, 'utf8')) as Notice | null);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw new RmaError(
        'ERR_COMM',
        `${this.#call}: ${file} does not describe a ${this.#ending}; ` +
          `remove the file if that ${this.#ending} is not running`,
        {
          cause: error,
        },
      );
    }
  }

  write(name: string, notice: Notice): void {
    const temporary = `${this.#file(name)}.new`;
    writeFileSync(temporary, JSON.stringify(notice), { mode: 0o600 });
    renameSync(temporary, this.#file(name));
  }

  remove(name: string): void {
    unlinkSync(this.#file(name));
  }

  /** Those that there are notices of, whether or not their members live. */
  names(): string[] {
    const ending = `.${this.#ending}`;
    return readdirSync(this.directory)
      .filter((file) => file.endsWith(ending))
      .map((file) => file.slice(0, -ending.length));
  }

  #file(name: string): string {
    return join(this.directory, `${name}.${this.#ending}`);
  }
}

const QUIET = { throwIfNoEntry: false } as const;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/**
 * Whether a process has the job's control memory open. A dead process has not, whether or not its parent has collected
 * it: a zombie has no descriptors. Another process that got the same number has not, either.
 */
export function isIn({ device, inode }: Notice, { pid, fd }: Member): boolean {
  try {
    const { dev, ino } = statSync(`/proc/${pid}/fd/${fd}`);
    return dev === device && ino === inode;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return false;
    // Members are processes of this user. Another user's process has this number by now, so the member is dead.
    if ((code === 'EACCES' || code === 'EPERM') && statSync(`/proc/${pid}`, QUIET)?.uid !== process.getuid!())
      return false;
    throw new RmaError('ERR_COMM', `init: this process cannot look at the file descriptors of process ${pid}`, {
      cause,
    });
  }
}

function checked(notice: Notice | null): Notice {
  const whole = (number: unknown): boolean => Number.isSafeInteger(number);
  const { version, size, device, inode, members } = notice ?? ({} as Partial<Notice>);
  const fits =
    typeof version === 'string' &&
    [size, device, inode].every(whole) &&
    Array.isArray(members) &&
    members.length > 0 &&
    members.every((member: Partial<Member> | null) => whole(member?.pid) && whole(member?.fd));
  if (!fits) throw new Error('a field is missing or has the wrong type');
  return notice!;
}

/**
 * The directory, made if it is not there. In a folder for temporary files, any user could make another user's directory
 * first, and that other user would then have no named jobs. So such a folder is the last resort, behind two that are
 * the user's own. A runtime directory that is not there is refused, and not made: a process with a misspelt one would
 * be alone in it.
 *
 * @param lasts for notices that outlive a login: whether a directory can be locked. The runtime directory of logins is
 * removed with the last of them. Processes that a login has begun (pm2) go on, and still have its name in their
 * environment; those begun at boot have never had it. So it comes second then, and need not be there.
 */
function privateDirectory(call: string, lasts: ((directory: string) => boolean) | undefined): string {
  const uid = process.getuid!();
  const name = `onesided-${uid}`;
  const ofLogins = `/run/user/${uid}`;
  // Set to nothing counts as not set.
  let given = process.env['XDG_RUNTIME_DIR'];
  const cacheFirst = lasts !== undefined && (!given || resolve(given) === ofLogins);
  if (cacheFirst) given = undefined;
  if (given) refuseMissing(call, given);
  const runtime = given || ofLogins;
  const lasting = cacheFirst ? cacheDirectory(call, uid) : undefined;
  if (lasting !== undefined && lasts?.(lasting)) return lasting;
  if (given || statSync(runtime, QUIET)?.uid === uid) return made(call, join(runtime, name), uid);
  return lasting ?? cacheDirectory(call, uid) ?? made(call, join(tmpdir(), name), uid);
}

/** `undefined` for a home that cannot be written to, or is another user's. */
function cacheDirectory(call: string, uid: number): string | undefined {
  const cache = userCacheFolder();
  if (cache === undefined) return undefined;
  try {
    // Several hosts can share a home, and know nothing of each other's processes.
    return made(call, join(cache, `jobs-${hostname().replace(/[^\w.-]/g, '_')}`), uid);
  } catch {
    return undefined;
  }
}

function refuseMissing(call: string, runtime: string): void {
  let why: string | undefined;
  try {
    if (!isAbsolute(runtime)) why = 'is not absolute';
    else if (!statSync(runtime).isDirectory()) why = 'is no directory';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    why = code === 'ENOENT' ? 'does not exist' : `cannot be looked at (${message})`;
  }
  if (why === undefined) return;
  throw new RmaError(
    'ERR_COMM',
    `${call}: the environment variable XDG_RUNTIME_DIR says ${show(runtime)}, which ${why}; ` +
      'correct it, make that directory, or unset the variable',
  );
}

function made(call: string, directory: string, uid: number): string {
  const refused = (why: string, cause?: unknown): RmaError =>
    new RmaError(
      'ERR_COMM',
      `${call}: names need a directory that only this user can access, but ${directory} ` +
        `${why}; set XDG_RUNTIME_DIR to a directory of your own, for all processes`,
      { cause },
    );
  let status: Stats;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    status = lstatSync(directory);
  } catch (cause) {
    throw refused(`cannot be created (${(cause as Error).message})`, cause);
  }
  if (status.uid !== uid) throw refused(`belongs to user ${status.uid}, and this user is ${uid}`);
  if (!status.isDirectory()) throw refused('is no directory');
  const mode = status.mode & 0o777;
  if ((mode & 0o077) !== 0) throw refused(`has mode ${mode.toString(8)}, not 700`);
  return directory;
}
