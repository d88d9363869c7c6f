/**
 * What the kernel refuses a member: memory, descriptors, room for a file. Its errors are told as those of the call,
 * with what can be done.
 *
 * Memory itself is given page by page when it is first touched. A member that then exceeds the limit of its cgroup is
 * killed, and the others see its death. So what is used as a whole is refused before it is made, where it cannot fit.
 */
import { totalmem } from 'node:os';
import { RmaError } from '../errors.ts';

const CURES: Readonly<Record<string, string>> = {
  EDQUOT: 'make room there, or set XDG_RUNTIME_DIR to another folder, for all members',
  EFBIG: 'raise that limit, or ask for less',
  EMFILE: 'raise the limit on open files (ulimit -n)',
  ENFILE: 'close files, or raise the limit of the machine',
  ENOMEM: 'ask for less, or raise the limit on memory (ulimit -v)',
  ENOSPC: 'make room there, or set XDG_RUNTIME_DIR to another folder, for all members',
};

/** @returns the kernel's refusal as an error of the call; any other error as it is */
export function scarcity(error: unknown, call: string, what: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof RmaError || !(error instanceof Error) || !/^E[A-Z0-9]+$/.test(code ?? '')) return error;
  const cure = Object.hasOwn(CURES, code!) ? `; ${CURES[code!]}` : '';
  return new RmaError('ERR_SERVICE', `${call}: ${what}: ${message}${cure}`, { cause: error });
}

/** Calls `act`, which asks the kernel for something. */
export function asking<T>(call: string, what: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw scarcity(error, call, what);
  }
}

/** Bytes that this process can have at most: its cgroup's limit, or the machine's memory. */
export function mostMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
