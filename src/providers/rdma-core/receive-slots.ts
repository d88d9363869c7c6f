/** Receives that are posted to one queue: their wrIds, while the device knows them by the number of their slot. */
import { RmaError } from '../../errors.ts';
import type { RdmaContext } from '../../native.ts';
import { checkReceiveEntry, checkReceiveId, type ReceiveSource } from '../core/receives.ts';

/** Words of the posting function: native/rdma_data_path.cc, receiver. */
const OWNER = 0;
const COUNT = 1;
const ENTRIES = 2;
const ERRNO = 3;
const WORDS = 4;

export class ReceiveSlots implements ReceiveSource {
  readonly capacity: number;
  readonly maxSge: number;
  /** Posted, and their completions not yet polled. */
  posted = 0;
  readonly #words = new Uint32Array(new ArrayBuffer(4 * WORDS));
  readonly #post: () => void;
  readonly #wrIds: Float64Array;
  readonly #free: Int32Array;
  readonly #entries: Float64Array;
  #building = 0;

  /** @param shared whether `queue` is the number of a shared receive queue, or of a queue pair */
  constructor(device: RdmaContext, shared: boolean, queue: number, capacity: number, maxSge: number) {
    this.capacity = capacity;
    this.maxSge = maxSge;
    this.#wrIds = new Float64Array(capacity);
    this.#free = Int32Array.from({ length: capacity }, (_, i) => capacity - 1 - i);
    this.#entries = new Float64Array(new ArrayBuffer(24 * maxSge));
    this.#post = device.receiver(shared, queue, this.#entries, this.#words);
  }

  get building(): number {
    return this.#building;
  }

  /** Forgets the receive being built. */
  abort(): void {
    this.#building = 0;
  }

  add(lkey: number, address: number, length: number): void {
    checkReceiveEntry(this, address, length);
    const at = 3 * this.#building++;
    this.#entries[at] = address;
    this.#entries[at + 1] = length;
    this.#entries[at + 2] = lkey;
  }

  /** @param owner what completions name this queue by */
  post(owner: number, wrId: number, lkey: number, address: number, length: number): void {
    checkReceiveId(this, wrId);
    this.add(lkey, address, length);
    // An entry of no bytes needs no region, and some devices look at its key all the same.
    const entries = this.#building === 1 && length === 0 ? 0 : this.#building;
    this.#building = 0;
    const slot = this.#free[this.capacity - 1 - this.posted];
    const words = this.#words;
    words[OWNER] = owner;
    words[COUNT] = slot;
    words[ENTRIES] = entries;
    this.#post();
    const error = words[ERRNO];
    if (error !== 0) throw new RmaError('ERR_VERBS', `post receive: the device refused the receive (errno ${error})`);
    this.#wrIds[slot] = wrId;
    this.posted++;
  }

  /** Checks a receive that will not be posted. @returns its wrId */
  refuse(wrId: number, lkey: number, address: number, length: number): number {
    checkReceiveId(this, wrId);
    this.add(lkey, address, length);
    this.#building = 0;
    return wrId;
  }

  /** The receive in this slot is complete. @returns its wrId */
  take(slot: number): number {
    this.posted--;
    this.#free[this.capacity - 1 - this.posted] = slot;
    return this.#wrIds[slot];
  }

  clear(): void {
    this.posted = 0;
    this.#building = 0;
    for (let i = 0; i < this.capacity; i++) this.#free[i] = this.capacity - 1 - i;
  }
}
