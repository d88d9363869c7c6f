/** The lock of one rank's part, without an epoch: for structures that are nothing but a lock. */
import type { Operation } from '../../wait/operation.ts';

/** The method of a window that gives one. No name of a program's can be the same. */
export const PART_LOCK = Symbol('partLock');

/** Always exclusive. A rank asks for it once at a time. The window cannot be freed while it is held or waited for. */
export interface PartLock {
  /** What messages call it. */
  readonly name: string;
  /** Errors: `ERR_WIN`, `ERR_COMM`: it can no longer be used. */
  checkAlive(call: string): void;
  /** Whether it could be taken without waiting for other ranks. Errors: of a device. */
  tryAcquire(): boolean;
  /** Waits in line. Abandoned, it leaves the line. */
  acquire(): Operation;
  /** Everything that this rank has written before is visible to the next holder. Errors: `ERR_WIN`, `ERR_COMM`. */
  release(call: string): void;
}
