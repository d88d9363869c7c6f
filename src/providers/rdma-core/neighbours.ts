/** Memory for a device that ranks of the same host can map, too. */
import type { Native } from '../../native.ts';
import type { Neighbours } from '../../verbs/device.ts';
import type { Memory, RemotePointer } from '../../verbs/memory.ts';
import { type HeapAddress, ProcessHeap } from '../process-heap.ts';
import { RdmaMemory } from './rdma-memory.ts';

export class NeighbourHeap implements Neighbours {
  readonly #native: Native;
  readonly #heap: ProcessHeap;
  readonly #handles = new WeakMap<Memory, number>();
  #peers: readonly (HeapAddress | undefined)[] = [];

  /** @param rank of this process in its job: the neighbours know it by that */
  constructor(native: Native, rank: number) {
    this.#native = native;
    this.#heap = new ProcessHeap(native, 'onesided-rdma', rank);
  }

  get address(): HeapAddress {
    return this.#heap.address;
  }

  /** @param peers where the heaps of the neighbours are, by member */
  setPeers(peers: readonly (HeapAddress | undefined)[]): void {
    this.#peers = peers;
  }

  allocate(bytes: number): RdmaMemory {
    const allocation = this.#heap.allocate(bytes);
    const memory = new RdmaMemory(this.#native, allocation.buffer, () => this.#heap.free(allocation));
    this.#handles.set(memory, allocation.handle);
    return memory;
  }

  has(member: number): boolean {
    return this.#peers[member] !== undefined;
  }

  handleOf(memory: Memory): number {
    return this.#handles.get(memory) ?? 0;
  }

  map(member: number, handle: number, byteLength: number): RemotePointer {
    const { buffer, release } = this.#heap.attach(member, this.#peers[member]!, handle, byteLength);
    return { buffer, offset: 0, release };
  }

  close(): void {
    this.#heap.close();
  }
}
