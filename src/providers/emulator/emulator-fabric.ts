/**
 * What connects the emulated devices of one job: shared memory that any of them can attach, and a bell for each.
 *
 * The direct emulator is written against this interface and knows nothing of processes or threads. There are three
 * fabrics: processes (memory files handed over as descriptors, futexes), worker threads (`SharedArrayBuffer`,
 * `Atomics.wait`), and local (several contexts in one thread: a world of one, and tests).
 */
import type { Parking } from '../../verbs/device.ts';

/** Memory of this member that others may attach. Zeroed when allocated. */
export interface Allocation {
  readonly buffer: ArrayBufferLike;
  /** Names it to the other members of the fabric, together with this member's number: an integer below 2^53. */
  readonly handle: number;
  readonly byteLength: number;
}

/** Memory of another member (or one's own), mapped here a second time. */
export interface Attachment {
  readonly buffer: ArrayBufferLike;
  /** Unmaps it; `buffer` is detached where the platform can do so. Idempotent. */
  release(): void;
}

export interface EmulatorFabric {
  /** This member: 0 … size − 1. */
  readonly member: number;
  readonly size: number;
  readonly parking: Parking;

  allocate(byteLength: number): Allocation;
  /**
   * Lets others attach memory that was not allocated here, if it can be shared where it is. `free` ends that, once for
   * each call.
   * @param bytes how much of it is wanted: to share a lot for a little can be refused
   */
  adopt?(buffer: ArrayBufferLike, bytes: number): Allocation | undefined;
  /**
   * Gives memory back. Its `buffer` is detached where the platform can; attachments of others stay mapped until
   * released.
   */
  free(allocation: Allocation): void;
  /** Maps all that `handle` names at `member`. Throws `ERR_VERBS` if there is no such memory, or it was freed. */
  attach(member: number, handle: number, byteLength: number): Attachment;

  /** Makes one allocation findable without being told: where the emulator keeps its tables. */
  publishRoot(allocation: Allocation): void;
  /** Another member's root, or `undefined` as long as it has published none. */
  root(member: number): { readonly handle: number; readonly byteLength: number } | undefined;

  /** Wakes the member if it is parked; one atomic load if it is not. */
  wake(member: number): void;
  close(): void;
}
