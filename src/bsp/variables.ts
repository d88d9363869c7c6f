/**
 * Registered variables that the device knows, too: those of this process, so that data are read straight into them, and
 * those of the others, so that requests, or loads and stores, reach them.
 *
 * BSPlib's registration says which variables others name (BSP-IB §3.2: "the registration APIs can be used to identify
 * such regions exactly"). So they are registered for the device when a program registers them, and until it removes
 * them. All processes learn where a variable is together with its length (alike.ts). A variable is reached by chunks if
 * the device has no room for it, or if its memory can change its size.
 */
import type { Communicator } from '../collective/communicator.ts';
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import { RmaError } from '../errors.ts';
import { isResizable } from '../intrinsics.ts';
import { ALL_ACCESS } from '../verbs/checks.ts';
import { Access, type MemoryRegion, type RemotePointer } from '../verbs/memory.ts';
import type { Reach, Slot } from './slot.ts';

/** What a process says of a variable in place of a key: nothing reaches it but its owner's processor; or its device. */
const BY_CHUNKS = -1;
const BY_OWNER = 0;

/** The variable of another process. */
export interface Mapped {
  readonly pointer: RemotePointer;
  readonly u8: Uint8Array;
  /** Its doubles, if it begins where one may. */
  readonly f64: Float64Array | undefined;
}

const UNREACHED: Reach = { region: undefined, key: BY_CHUNKS, address: 0 };

/** Whether the owner's device may write what it reads from others to it. */
export function isReadInto(key: number): boolean {
  return key >= BY_OWNER;
}

/** Whether others may read and write it. */
export function isReached(key: number): boolean {
  return key > BY_OWNER;
}

/** The key for requests. */
export function rkeyOf(key: number): number {
  return key - 1;
}

/** A number of each process, or of all of them. */
export function atPid(numbers: number | Float64Array, pid: number): number {
  return typeof numbers === 'number' ? numbers : numbers[pid];
}

export class Variables {
  readonly #comm: Communicator;
  readonly #scatters: boolean;
  readonly #regions = new Set<MemoryRegion>();
  /** By variable, those of other processes. */
  readonly #mapped = new Map<Slot, (Mapped | undefined)[]>();

  /** @param scatters whether data are read into variables that only this process's device reaches */
  constructor(comm: Communicator, scatters: boolean) {
    this.#comm = comm;
    this.#scatters = scatters;
  }

  /** Registers a variable. Cost: what the device takes to register its bytes. */
  take(array: TypedArray | null): Reach {
    if (array === null) return UNREACHED;
    const { buffer, byteOffset, length } = bytesOf(array);
    if (length === 0 || isResizable(buffer)) return UNREACHED;
    const { context, pd, libraryMemory } = this.#comm.job;
    const own = libraryMemory.get(buffer);
    const isShared = own !== undefined || context.capabilities.remoteUserMemory;
    if (!isShared && !this.#scatters) return UNREACHED;
    try {
      const access = isShared ? ALL_ACCESS : Access.LOCAL_WRITE;
      const region = pd.registerMemory(own ?? context.adoptMemory(buffer), byteOffset, length, access);
      this.#regions.add(region);
      return { region, key: isShared ? 1 + region.rkey : BY_OWNER, address: region.address };
    } catch (error) {
      if (error instanceof RmaError) return UNREACHED;
      throw error;
    }
  }

  /**
   * A variable at another process, where processes load and store each other's memory; `undefined` if it cannot be
   * mapped. Errors: `ERR_VERBS`.
   */
  mappedOf(slot: Slot, pid: number): Mapped | undefined {
    const key = atPid(slot.keys, pid);
    if (!isReached(key)) return undefined;
    let mapped = this.#mapped.get(slot);
    if (mapped === undefined) this.#mapped.set(slot, (mapped = []));
    mapped[pid] ??= this.#map(slot, pid, key);
    return mapped[pid];
  }

  #map({ addresses, lengths }: Slot, pid: number, key: number): Mapped {
    const { job, group } = this.#comm;
    const [address, bytes] = [atPid(addresses, pid), atPid(lengths, pid)];
    const pointer = job.context.remotePointer(group.worldRanks[pid], rkeyOf(key), address, bytes, ALL_ACCESS);
    const { buffer, offset } = pointer;
    const f64 = offset % 8 === 0 ? new Float64Array(buffer, offset, Math.floor(bytes / 8)) : undefined;
    return { pointer, u8: new Uint8Array(buffer, offset, bytes), f64 };
  }

  /** It was removed, and no process reaches for it any more. */
  give(slot: Slot): void {
    const region = slot.reach?.region;
    if (region !== undefined && this.#regions.delete(region)) region.deregister();
    for (const one of this.#mapped.get(slot) ?? []) one?.pointer.release();
    this.#mapped.delete(slot);
  }

  close(): void {
    for (const mapped of this.#mapped.values()) for (const one of mapped) one?.pointer.release();
    this.#mapped.clear();
    for (const region of this.#regions) region.deregister();
    this.#regions.clear();
  }
}
