/**
 * Memory of the library's own that requests read to and write from. It may be given up while some of them are on their
 * way: it is used again, or freed, when the last one is complete, or when the device carries out none any more.
 *
 * To map and register memory takes longer than the requests of a small accumulate, so what is given up is kept for the
 * next one: of a window at most `KEPT`, of `KEPT_BYTES` together.
 */
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import type { Context } from '../../verbs/device.ts';
import { Access, type Memory, type MemoryRegion, type ProtectionDomain } from '../../verbs/memory.ts';
import { RemotePart } from '../loads/remote-part.ts';

const KEPT = 64;
const KEPT_BYTES = 2 ** 20;
/** Nothing smaller is made: what was large enough once is large enough for most that comes. */
const LEAST_BYTES = 256;

/** Requests that are not complete. */
export interface Left {
  count: number;
  /** Called when there are none any more. */
  whenNone?: (() => void) | undefined;
}

export class Scratch {
  readonly memory: Memory;
  readonly region: MemoryRegion;
  readonly left: Left = { count: 0 };
  /** Views of all of it. */
  readonly part: RemotePart;
  readonly #giveUp: (scratch: Scratch) => void;

  /** Errors: `ERR_VERBS` */
  constructor(context: Context, pd: ProtectionDomain, bytes: number, giveUp: (scratch: Scratch) => void) {
    this.region = allocateRegistered(context, pd, bytes, Access.LOCAL_WRITE);
    this.memory = this.region.memory;
    this.part = new RemotePart(this.memory.buffer, 0, bytes);
    this.#giveUp = giveUp;
  }

  /** No task needs it any more; what is on its way may still use it. */
  free(): void {
    if (this.left.count === 0) this.#giveUp(this);
    else {
      this.left.whenNone = () => {
        this.left.whenNone = undefined;
        this.#giveUp(this);
      };
    }
  }
}

export class Scratches {
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #all = new Set<Scratch>();
  /** Those that are not in use, the last given up behind the others. */
  readonly #idle: Scratch[] = [];
  #idleBytes = 0;

  constructor(context: Context, pd: ProtectionDomain) {
    this.#context = context;
    this.#pd = pd;
  }

  /** At least so many bytes, with anything in them. Errors: `ERR_VERBS` (no memory). */
  take(bytes: number): Scratch {
    for (let i = this.#idle.length - 1; i >= 0; i--) {
      const scratch = this.#idle[i];
      if (scratch.region.length < bytes) continue;
      this.#idle.splice(i, 1);
      this.#idleBytes -= scratch.region.length;
      return scratch;
    }
    const scratch = new Scratch(this.#context, this.#pd, Math.max(LEAST_BYTES, bytes), (it) => this.#giveUp(it));
    this.#all.add(scratch);
    return scratch;
  }

  /** The device carries out no request any more. */
  close(): void {
    this.#idle.length = 0;
    this.#idleBytes = 0;
    for (const scratch of this.#all) this.#dispose(scratch);
  }

  #giveUp(scratch: Scratch): void {
    // The window's connections may be gone.
    if (!this.#all.has(scratch)) return;
    const { length } = scratch.region;
    if (this.#idle.length >= KEPT || this.#idleBytes + length > KEPT_BYTES) {
      this.#dispose(scratch);
      return;
    }
    this.#idle.push(scratch);
    this.#idleBytes += length;
  }

  #dispose(scratch: Scratch): void {
    this.#all.delete(scratch);
    freeRegistered(scratch.region);
  }
}
