/**
 * The fabric of several contexts in one thread: a world of one, and tests of two ends in one process.
 *
 * Everything happens in one thread, so no member can wake one that blocks in `sleepSync`, which sleeps until its
 * timeout; members that await `sleep` are woken by those that run meanwhile. Memory is `SharedArrayBuffer`s, as it is
 * between threads.
 */
import { RmaError, show } from '../../errors.ts';
import type { Parking } from '../../verbs/device.ts';
import type { Allocation, Attachment, EmulatorFabric } from './emulator-fabric.ts';
import { allocateShared } from './shared-buffer.ts';

/** What the members of one local fabric share. */
interface Shared {
  readonly memory: Map<number, SharedArrayBuffer>[];
  readonly roots: ({ readonly handle: number; readonly byteLength: number } | undefined)[];
  readonly parkings: LocalParking[];
}

/** Makes a fabric of `size` members, all in this thread. */
export function createLocalFabric(size: number): EmulatorFabric[] {
  const shared: Shared = {
    memory: Array.from({ length: size }, () => new Map()),
    roots: new Array(size).fill(undefined),
    parkings: Array.from({ length: size }, () => new LocalParking()),
  };
  return Array.from({ length: size }, (_, member) => new LocalFabric(shared, member));
}

class LocalFabric implements EmulatorFabric {
  readonly member: number;
  readonly size: number;
  readonly parking: LocalParking;
  readonly #shared: Shared;
  readonly #own: Map<number, SharedArrayBuffer>;
  #nextHandle = 1;
  #closed = false;

  constructor(shared: Shared, member: number) {
    this.#shared = shared;
    this.#own = shared.memory[member];
    this.member = member;
    this.size = shared.memory.length;
    this.parking = shared.parkings[member];
  }

  allocate(byteLength: number): Allocation {
    this.#mustBeOpen('allocate');
    const buffer = allocateShared(byteLength);
    const handle = this.#nextHandle++;
    this.#own.set(handle, buffer);
    return { buffer, handle, byteLength };
  }

  free(allocation: Allocation): void {
    this.#own.delete(allocation.handle);
  }

  attach(member: number, handle: number, byteLength: number): Attachment {
    this.#mustBeOpen('attach');
    const buffer = this.#shared.memory[member]?.get(handle);
    if (buffer === undefined || buffer.byteLength !== byteLength) {
      throw new RmaError(
        'ERR_VERBS',
        `attach: member ${show(member)} has no memory ${show(handle)} of ${show(byteLength)} bytes, or has freed it`,
      );
    }
    return { buffer, release: () => {} };
  }

  publishRoot(allocation: Allocation): void {
    this.#mustBeOpen('publishRoot');
    this.#shared.roots[this.member] = { handle: allocation.handle, byteLength: allocation.byteLength };
  }

  root(member: number): { readonly handle: number; readonly byteLength: number } | undefined {
    return this.#shared.roots[member];
  }

  wake(member: number): void {
    this.#shared.parkings[member].ring();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#own.clear();
    this.#shared.roots[this.member] = undefined;
    this.parking.ring();
  }

  #mustBeOpen(call: string): void {
    if (this.#closed) throw new RmaError('ERR_VERBS', `${call}: this fabric is closed`);
  }
}

/** A word that never changes: waiting on it is sleeping. */
const QUIET = new Int32Array(new SharedArrayBuffer(4));
/** The longest time that a timer of the event loop takes: 2^31 − 1 ms. */
const MAX_TIMER_MS = 0x7fffffff;

/** One thread, so the bell is a plain number and the sleepers a plain set. */
export class LocalParking implements Parking {
  readonly seesPlainStores = false;
  #bell = 0;
  #asleep = new Set<() => void>();

  arm(): number {
    return this.#bell;
  }

  disarm(): void {}

  sleepSync(token: number, timeoutMs: number): void {
    if (this.#bell === token) Atomics.wait(QUIET, 0, 0, timeoutMs);
  }

  sleep(token: number, timeoutMs: number): Promise<void> {
    if (this.#bell !== token || timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#asleep.delete(wake);
        resolve();
      };
      // The timer also keeps the event loop alive; at its longest it wakes early, which a sleep may do.
      const timer = setTimeout(wake, Math.min(timeoutMs, MAX_TIMER_MS));
      this.#asleep.add(wake);
    });
  }

  ring(): void {
    this.#bell = (this.#bell + 1) | 0;
    for (const wake of this.#asleep) wake();
  }
}
