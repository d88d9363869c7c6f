/**
 * Memory that is registered once, for long messages that are written in place or read where they have arrived: making,
 * registering and freeing memory for each message takes longer than copying some tens of kilobytes.
 *
 * It is made when it is first needed, and lasts as long as the rank's messages. At most `PIECES` messages of at most
 * `PIECE` bytes lie in it, out and in together, 544 KiB in all; others get memory of their own.
 */
import { RmaError } from '../errors.ts';
import type { Context } from '../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';
import { allocateRegistered, freeRegistered } from './registered-memory.ts';

/** A chunk of packed bytes with its layout (transfer/layouts/pack.ts); whole pages. */
const PIECE = 68 * 1024;
const PIECES = 8;

/** Registered memory that a message under way lies in. */
export interface RegisteredPlace {
  readonly lkey: number;
  readonly rkey: number;
  readonly address: number;
  readonly length: number;
  /** It is not needed any more. */
  release(): void;
}

/** A place here. It begins at a multiple of 8. */
export interface Staged extends RegisteredPlace {
  readonly memory: Uint8Array;
  /** Its first byte in `memory`. */
  readonly at: number;
}

export class Staging {
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  #region: MemoryRegion | undefined;
  #bytes: Uint8Array | undefined;
  #refused = false;
  readonly #free: number[] = [];

  constructor(context: Context, pd: ProtectionDomain) {
    this.#context = context;
    this.#pd = pd;
  }

  /** @returns undefined if there is no room for it */
  take(length: number): Staged | undefined {
    if (length > PIECE || this.#refused) return undefined;
    if (this.#region === undefined) this.#make();
    const [region, memory, piece] = [this.#region, this.#bytes, this.#free.pop()];
    if (region === undefined || memory === undefined || piece === undefined) return undefined;
    const at = piece * PIECE;
    const { lkey, rkey } = region;
    const release = (): void => void this.#free.push(piece);
    return { lkey, rkey, address: region.address + at, length, release, memory, at };
  }

  #make(): void {
    const access = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ;
    try {
      this.#region = allocateRegistered(this.#context, this.#pd, PIECES * PIECE, access);
      this.#bytes = new Uint8Array(this.#region.memory.buffer);
      for (let piece = PIECES - 1; piece >= 0; piece--) this.#free.push(piece);
    } catch (error) {
      if (!(error instanceof RmaError)) throw error;
      this.#refused = true;
    }
  }

  close(): void {
    if (this.#region !== undefined) freeRegistered(this.#region);
    this.#region = undefined;
    this.#free.length = 0;
  }
}
