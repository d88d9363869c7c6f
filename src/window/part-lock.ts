/** The lock of one rank's part, without an epoch: for structures that are nothing but a lock. */
import type { Operation } from '../comm/operation.ts';
import type { TargetLock } from '../sync/lock/scheme.ts';

/** The method of a window that gives one. No name of a program's can be the same. */
export const PART_LOCK = Symbol('partLock');

/** Always exclusive. A rank asks for it once at a time. */
export class PartLock {
  readonly #lock: TargetLock;
  readonly #tryAlone: (lock: TargetLock) => boolean;

  /** @param tryAlone whether a lock could be taken without waiting for other ranks */
  constructor(lock: TargetLock, tryAlone: (lock: TargetLock) => boolean) {
    this.#lock = lock;
    this.#tryAlone = tryAlone;
  }

  /** Whether it could be taken without waiting for other ranks. Errors: of a device. */
  tryAcquire(): boolean {
    return this.#tryAlone(this.#lock);
  }

  /** Waits in line. Abandoned, it leaves the line. */
  acquire(): Operation {
    return this.#lock.acquire(true);
  }

  /** Everything that this rank has written before is visible to the next holder. */
  release(): void {
    this.#lock.release(true);
  }
}
