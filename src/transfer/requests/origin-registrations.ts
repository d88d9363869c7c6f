/**
 * Origins of a window's transfers that are registered for the device (job/origins.ts): at most `REGISTRATIONS` and
 * `REGISTERED_BYTES` at a time. A further one takes the place of all, and so does one that has changed its size, or one
 * that the device has no room for (locked memory is limited). Then requests wait until none is outstanding
 * (`draining`), and the others are given up.
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import { bufferOf, bytesIn } from '../../intrinsics.ts';
import type { Origins } from '../../job/origins.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';

/** Origins that stay registered for the next transfer: so many, and so many bytes together. One alone may have more. */
const REGISTRATIONS = 64;
const REGISTERED_BYTES = 2 ** 28;

export class OriginRegistrations {
  readonly #origins: Origins;
  /** Whether nothing is outstanding on any connection. */
  readonly #isSilent: () => boolean;
  readonly #regions = new Map<ArrayBufferLike, MemoryRegion>();
  #bytes = 0;
  /** This rank's part, which is registered as long as the window lives: it can be an origin as well. */
  #part: { readonly buffer: ArrayBufferLike; readonly region: MemoryRegion } | undefined;
  /** A registration waits until nothing is outstanding; so does everything else. */
  #draining = false;
  /**
   * The last array of `remember`, all bytes of its buffer, and their registration, if it was needed and is still there.
   */
  #lastOrigin: TypedArray | undefined;
  #lastBytes: Uint8Array = new Uint8Array(0);
  #lastRegion: MemoryRegion | undefined;

  constructor(origins: Origins, isSilent: () => boolean) {
    this.#origins = origins;
    this.#isSilent = isSilent;
    origins.join(this);
  }

  /** Nothing is posted until all that is outstanding is complete. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Nothing is outstanding any more. */
  drained(): void {
    this.#drop();
    this.#draining = false;
  }

  /** Of a buffer that was registered last. */
  regionOf(buffer: ArrayBufferLike): MemoryRegion {
    return this.#regions.get(buffer)!;
  }

  /**
   * Programs transfer from and to the same array again and again, and to ask one for its buffer takes longer than to
   * build a request. @returns all bytes of its buffer
   */
  remember(origin: TypedArray): Uint8Array {
    if (origin === this.#lastOrigin) return this.#lastBytes;
    this.#lastBytes = new Uint8Array(bufferOf(origin));
    this.#lastRegion = undefined;
    this.#lastOrigin = origin;
    return this.#lastBytes;
  }

  /** That of the array that was remembered last. @returns undefined if the registration has to wait */
  regionOfLast(): MemoryRegion | undefined {
    const bytes = this.#lastBytes;
    // A buffer can have grown since.
    if (this.#lastRegion?.length === bytes.byteLength) return this.#lastRegion;
    if (!this.register(bytes.buffer)) return undefined;
    this.#lastRegion = this.#regions.get(bytes.buffer);
    return this.#lastRegion;
  }

  /**
   * Sees to it that the device may access an origin.
   * @returns whether it may; otherwise, when nothing is outstanding any more
   * Errors: the device's, which may have no room for it.
   */
  register(origin: ArrayBufferLike | undefined): boolean {
    if (origin === undefined) return true;
    const known = this.#regions.get(origin);
    const bytes = bytesIn(origin);
    if (known?.length === bytes) return true;
    const many = this.#regions.size >= REGISTRATIONS;
    const large = this.#bytes > 0 && this.#bytes + bytes > REGISTERED_BYTES;
    if ((known !== undefined || many || large) && !this.#makeRoom()) return false;
    try {
      this.#add(origin);
    } catch (error) {
      if (this.#bytes === 0) throw error;
      if (!this.#makeRoom()) return false;
      this.#add(origin);
    }
    return true;
  }

  /** The part is an origin without a registration of its own, if its region is the whole of its buffer. */
  keepPart(buffer: ArrayBufferLike, region: MemoryRegion): void {
    this.#part = { buffer, region };
    this.#keepPart();
  }

  /** Lets an origin's registration go, if nothing is outstanding. */
  forget(buffer: ArrayBufferLike): void {
    const region = this.#regions.get(buffer);
    if (region === undefined || region === this.#part?.region || !this.#isSilent()) return;
    this.#regions.delete(buffer);
    this.#bytes -= region.length;
    this.#lastRegion = undefined;
    this.#origins.give(buffer, region);
  }

  /** The window's connections are gone. */
  close(): void {
    this.#drop();
    this.#origins.leave(this);
  }

  /** Gives all others up, or begins to wait until that can be done. */
  #makeRoom(): boolean {
    if (!this.#isSilent()) {
      this.#draining = true;
      return false;
    }
    this.#drop();
    return true;
  }

  #add(origin: ArrayBufferLike): void {
    this.#regions.set(origin, this.#origins.take(origin));
    this.#bytes += bytesIn(origin);
  }

  #drop(): void {
    for (const [buffer, region] of this.#regions) if (region !== this.#part?.region) this.#origins.give(buffer, region);
    this.#regions.clear();
    this.#bytes = 0;
    this.#lastRegion = undefined;
    this.#keepPart();
  }

  #keepPart(): void {
    if (this.#part === undefined) return;
    const { buffer, region } = this.#part;
    if (region.length === bytesIn(buffer)) this.#regions.set(buffer, region);
  }
}
