/** The locks of a service's window that a member holds: which, and that it takes none twice. */
import { argumentTypeError, RmaError, show } from '../../errors.ts';
import { type Lock, LockBit } from '../../sync/lock/lock-scheme.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import { Waiting } from '../../wait/waiting.ts';
import { NOBODY, PATIENCE_MS } from '../robust-lock.ts';
import type { Members } from '../service-members.ts';
import type { RobustPartLock } from './robust-part-lock.ts';

/** What came of a lock. */
export interface WindowHold {
  /** The place of a member that died while it held the lock: what it did to the part may be half done. */
  readonly abandoned: number | undefined;
  /** Calls `unlockSync`, at the end of a block with `using`; does nothing if the lock was given back before. */
  [Symbol.dispose](): void;
}

/** What came of `lockAll`. */
export interface WindowHoldAll {
  /** Of each part whose lock a dead member held: the part, and the place of that member. */
  readonly abandoned: readonly { readonly target: number; readonly place: number }[];
  /** Calls `unlockAllSync`, at the end of a block with `using`; does nothing if they were given back before. */
  [Symbol.dispose](): void;
}

/** What the locks need of their window. */
export interface Locked {
  readonly members: Members;
  readonly places: number;
  /** A call with the window, for messages. */
  named(call: string): string;
  /** Errors: `ERR_RANK`, `ERR_SERVICE_LEFT`. */
  lockOf(call: string, target: number): RobustPartLock;
}

/** What a member has of a lock: one of these for each time that it asks. */
interface Held {
  readonly state: 'waits' | 'shared' | 'exclusive';
}

export class WindowLocks {
  readonly #window: Locked;
  readonly #held = new Map<number, Held>();
  #all: Held | undefined;

  constructor(window: Locked) {
    this.#window = window;
  }

  async lock(target: number, type: Lock, assert: number, options: WaitOptions | undefined): Promise<WindowHold> {
    const lock = this.#check('lock', target, type, assert);
    const exclusive = isExclusive(type);
    const waiting = new Waiting(this.#window.named('lock'), options);
    this.#held.set(target, { state: 'waits' });
    try {
      return this.#hold(target, exclusive, await lock.acquireLater(exclusive, waiting));
    } catch (error) {
      this.#held.delete(target);
      throw error;
    }
  }

  lockSync(target: number, type: Lock, assert: number, options: WaitOptions | undefined): WindowHold {
    const lock = this.#check('lockSync', target, type, assert);
    const exclusive = isExclusive(type);
    const waiting = new Waiting(this.#window.named('lockSync'), options, PATIENCE_MS);
    return this.#hold(target, exclusive, lock.acquire(exclusive, waiting, options?.timeout === undefined));
  }

  unlock(call: string, target: number): void {
    const lock = this.#window.lockOf(call, target);
    const state = this.#held.get(target)?.state;
    if (state === undefined || state === 'waits')
      throw new RmaError('ERR_RMA_SYNC', `${this.#window.named(call)}: this member holds no lock of place ${target}`);
    this.#held.delete(target);
    lock.release(state === 'exclusive');
  }

  async lockAll(assert: number, options: WaitOptions | undefined): Promise<WindowHoldAll> {
    const call = 'lockAll';
    this.#checkAll(call, assert);
    const waiting = new Waiting(this.#window.named(call), options);
    this.#all = { state: 'waits' };
    const dead: number[] = [];
    try {
      while (dead.length < this.#window.places)
        dead.push(await this.#window.lockOf(call, dead.length).acquireLater(false, waiting));
    } catch (error) {
      this.#giveUpAll(dead);
      throw error;
    }
    return this.#holdAll(dead);
  }

  lockAllSync(assert: number, options: WaitOptions | undefined): WindowHoldAll {
    const call = 'lockAllSync';
    this.#checkAll(call, assert);
    const waiting = new Waiting(this.#window.named(call), options, PATIENCE_MS);
    const prompt = options?.timeout === undefined;
    const dead: number[] = [];
    try {
      while (dead.length < this.#window.places)
        dead.push(this.#window.lockOf(call, dead.length).acquire(false, waiting, prompt));
    } catch (error) {
      this.#giveUpAll(dead);
      throw error;
    }
    return this.#holdAll(dead);
  }

  unlockAll(call: string): void {
    this.#window.members.checkIn(this.#window.named(call));
    if (this.#all?.state !== 'shared')
      throw new RmaError('ERR_RMA_SYNC', `${this.#window.named(call)}: this member does not hold the locks of lockAll`);
    this.#releaseAll(this.#window.places);
  }

  #hold(target: number, exclusive: boolean, dead: number): WindowHold {
    const held: Held = { state: exclusive ? 'exclusive' : 'shared' };
    this.#held.set(target, held);
    const dispose = (): void => {
      if (this.#held.get(target) === held && !this.#window.members.isLeft) this.unlock('unlock', target);
    };
    return { abandoned: dead === NOBODY ? undefined : dead, [Symbol.dispose]: dispose };
  }

  /** @param dead of each part, the place of a dead member that held it, or `NOBODY` */
  #holdAll(dead: readonly number[]): WindowHoldAll {
    const held: Held = { state: 'shared' };
    this.#all = held;
    const abandoned = dead.flatMap((place, target) => (place === NOBODY ? [] : { target, place }));
    const dispose = (): void => {
      if (this.#all === held && !this.#window.members.isLeft) this.unlockAll('unlockAll');
    };
    return { abandoned, [Symbol.dispose]: dispose };
  }

  /** @param dead as in `#holdAll`, of the first parts, whose locks it gives back */
  #giveUpAll(dead: readonly number[]): void {
    if (!this.#window.members.isLeft)
      for (const [target, place] of dead.entries()) this.#window.lockOf('lockAll', target).leaveUntold(place);
    this.#releaseAll(dead.length);
  }

  /** Gives back the locks of the first parts. */
  #releaseAll(count: number): void {
    this.#all = undefined;
    // Of a member that has left, others take them over.
    if (this.#window.members.isLeft) return;
    for (let target = 0; target < count; target++) this.#window.lockOf('unlockAll', target).release(false);
  }

  #check(call: string, target: number, type: Lock, assert: number): RobustPartLock {
    const lock = this.#window.lockOf(call, target);
    const bit = type as unknown as number;
    if (bit !== LockBit.EXCLUSIVE && bit !== LockBit.SHARED) {
      const rule = `${this.#window.named(call)}: the type must be Lock.EXCLUSIVE or Lock.SHARED`;
      throw argumentTypeError(`${rule}, not ${show(type)}`, 'ERR_LOCKTYPE');
    }
    this.#checkAssert(call, assert);
    if (this.#held.has(target) || this.#all !== undefined) throw this.#already(call, target);
    return lock;
  }

  #checkAll(call: string, assert: number): void {
    this.#window.members.checkIn(this.#window.named(call));
    this.#checkAssert(call, assert);
    const [target] = this.#held.keys();
    if (target !== undefined || this.#all !== undefined) throw this.#already(call, target);
  }

  #checkAssert(call: string, assert: number): void {
    if (Number.isInteger(assert) && assert >= 0) return;
    const rule = 'assert must be 0 or assertions (options come behind it)';
    throw argumentTypeError(`${this.#window.named(call)}: ${rule}, not ${show(assert)}`, 'ERR_ASSERT');
  }

  #already(call: string, target: number | undefined): RmaError {
    const what = target === undefined || this.#all !== undefined ? 'all locks, by lockAll' : `that of place ${target}`;
    return new RmaError(
      'ERR_RMA_SYNC',
      `${this.#window.named(call)}: this member holds ${what}, or waits for it; unlock first ` +
        '(a mutex of the service serves calls of one member one after the other)',
    );
  }
}

function isExclusive(type: Lock): boolean {
  return (type as unknown as number) === LockBit.EXCLUSIVE;
}
