/**
 * Small pieces of shared words for synchronization: barrier flags, lock words.
 *
 * They are cut from slabs of library memory, so that making a window costs no mapping once a slab is mapped. A block
 * lies on cache lines of its own. A peer finds a block by three numbers: its slab's key and address, and its offset in
 * it.
 */

import { ALL_ACCESS } from '../verbs/checks.ts';
import type { Context } from '../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain, RemotePointer } from '../verbs/memory.ts';
import { allocateRegistered, freeRegistered } from './registered-memory.ts';

const SLAB_BYTES = 65536;
const LINE = 128;

/** How many numbers {@link Block.place} has. */
export const PLACE_NUMBERS = 4;

export interface Block {
  readonly words: Int32Array;
  /** What a peer needs to map it: key, slab address, slab bytes, offset. */
  readonly place: readonly [rkey: number, address: number, slabBytes: number, offset: number];
  free(): void;
}

interface Slab {
  readonly region: MemoryRegion;
  /** Free ranges, by offset. */
  readonly free: { offset: number; bytes: number }[];
}

export class Blocks {
  #context: Context;
  #pd: ProtectionDomain;
  #slabs: Slab[] = [];
  #mapped = new Map<string, RemotePointer>();

  constructor(context: Context, pd: ProtectionDomain) {
    this.#context = context;
    this.#pd = pd;
  }

  /** @param words 32-bit words, zeroed */
  allocate(words: number): Block {
    const bytes = Math.ceil((4 * words) / LINE) * LINE;
    for (const slab of this.#slabs) {
      const at = slab.free.findIndex((range) => range.bytes >= bytes);
      if (at >= 0) return this.#cut(slab, at, words, bytes);
    }
    const size = Math.max(SLAB_BYTES, bytes);
    const region = allocateRegistered(this.#context, this.#pd, size);
    const slab: Slab = { region, free: [{ offset: 0, bytes: size }] };
    this.#slabs.push(slab);
    return this.#cut(slab, 0, words, bytes);
  }

  /** A peer's block, mapped here. The slab stays mapped until `close`: its owner reuses it for its next blocks. */
  map(member: number, place: ArrayLike<number>, words: number): Int32Array {
    const [rkey, address, slabBytes, offset] = [place[0], place[1], place[2], place[3]];
    const key = `${member}:${rkey}`;
    let pointer = this.#mapped.get(key);
    if (pointer === undefined) {
      const context = this.#context;
      pointer =
        context.pointerToWords?.(member, rkey, address, slabBytes, ALL_ACCESS) ??
        context.remotePointer(member, rkey, address, slabBytes, ALL_ACCESS);
      this.#mapped.set(key, pointer);
    }
    return new Int32Array(pointer.buffer, pointer.offset + offset, words);
  }

  close(): void {
    for (const pointer of this.#mapped.values()) pointer.release();
    this.#mapped.clear();
    for (const { region } of this.#slabs) freeRegistered(region);
    this.#slabs = [];
  }

  #cut(slab: Slab, at: number, words: number, bytes: number): Block {
    const range = slab.free[at];
    const { offset } = range;
    range.offset += bytes;
    range.bytes -= bytes;
    if (range.bytes === 0) slab.free.splice(at, 1);
    const view = new Int32Array(slab.region.memory.buffer, offset, words);
    view.fill(0);
    return {
      words: view,
      place: [slab.region.rkey, slab.region.address, slab.region.length, offset],
      free: () => giveBack(slab, offset, bytes),
    };
  }
}

function giveBack(slab: Slab, offset: number, bytes: number): void {
  const after = slab.free.findIndex((range) => range.offset > offset);
  const at = after < 0 ? slab.free.length : after;
  slab.free.splice(at, 0, { offset, bytes });
  for (let i = Math.min(at + 1, slab.free.length - 1); i > 0 && i >= at; i--) {
    const [left, right] = [slab.free[i - 1], slab.free[i]];
    if (left.offset + left.bytes !== right.offset) continue;
    left.bytes += right.bytes;
    slab.free.splice(i, 1);
  }
}
