/**
 * The fabric of ranks that are processes of one user on one host: each has a heap that the others can map, found in its
 * row of the table.
 */
import { availableParallelism } from 'node:os';
import { RmaError, show } from '../../errors.ts';
import type { Native, Parker } from '../../native.ts';
import { ProcessHeap } from '../process-heap.ts';
import { BellParking, type BellWaiter, EVERYONE, loadRoot, Row, ring, rowOf, storeRoot } from './bells.ts';
import type { Allocation, Attachment, EmulatorFabric } from './emulator-fabric.ts';

/**
 * Joins the fabric as this `member`.
 * @param fabricTable `size` rows of shared memory, zero at first (`Control.fabric`)
 */
export function openProcessFabric(
  native: Native,
  fabricTable: Int32Array,
  member: number,
  size: number,
): EmulatorFabric {
  return new ProcessFabric(native, fabricTable, member, size);
}

class ProcessFabric implements EmulatorFabric {
  readonly member: number;
  readonly size: number;
  readonly parking: BellParking;
  readonly #native: Native;
  readonly #table: Int32Array;
  readonly #waiter: FutexWaiter;
  readonly #heap: ProcessHeap;
  #closed = false;

  constructor(native: Native, table: Int32Array, member: number, size: number) {
    this.#native = native;
    this.#table = table;
    this.member = member;
    this.size = size;
    this.#waiter = new FutexWaiter(native, table);
    // With more members than cores they sleep often, and no store is so urgent as to be plain.
    const everyCore =
      size <= availableParallelism() && native.membarrierRegister() ? () => native.membarrier() : undefined;
    this.parking = new BellParking(table, member, this.#waiter, everyCore);
    this.#heap = new ProcessHeap(native, `onesided-heap-${member}`, member);
    const { pid, fd, key } = this.#heap.address;
    const row = rowOf(member);
    Atomics.store(table, row + Row.PID, pid);
    Atomics.store(table, row + Row.HEAP_FD, fd);
    Atomics.store(table, row + Row.HEAP_KEY, key);
    Atomics.store(table, row + Row.READY, 1);
  }

  allocate(byteLength: number): Allocation {
    this.#mustBeOpen('allocate');
    return this.#heap.allocate(byteLength);
  }

  adopt(buffer: ArrayBufferLike, bytes: number): Allocation | undefined {
    this.#mustBeOpen('adopt');
    return buffer instanceof ArrayBuffer ? this.#heap.remap(buffer, bytes) : undefined;
  }

  free(allocation: Allocation): void {
    if (!this.#closed) this.#heap.free(allocation);
  }

  attach(member: number, handle: number, byteLength: number): Attachment {
    this.#mustBeOpen('attach');
    if (!Number.isInteger(member) || member < 0 || member >= this.size) {
      throw new RmaError(
        'ERR_VERBS',
        `attach: member ${show(member)} does not exist; the fabric has ${this.size} members`,
      );
    }
    const row = rowOf(member);
    if (Atomics.load(this.#table, row + Row.READY) !== 1) {
      throw new RmaError('ERR_VERBS', `attach: member ${member} has not opened its fabric, or has closed it`);
    }
    const load = (field: number): number => Atomics.load(this.#table, row + field);
    const peer = { pid: load(Row.PID), fd: load(Row.HEAP_FD), key: load(Row.HEAP_KEY) };
    return this.#heap.attach(member, peer, handle, byteLength);
  }

  publishRoot(allocation: Allocation): void {
    this.#mustBeOpen('publishRoot');
    storeRoot(this.#table, this.member, allocation.handle, allocation.byteLength);
  }

  root(member: number): { readonly handle: number; readonly byteLength: number } | undefined {
    return loadRoot(this.#table, member);
  }

  wake(member: number): void {
    ring(this.#table, member, this.#wakeWord);
  }

  readonly #wakeWord = (index: number): void => {
    this.#native.futexWake(this.#table, index, EVERYONE);
  };

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const row = rowOf(this.member);
    Atomics.store(this.#table, row + Row.READY, 0);
    Atomics.store(this.#table, row + Row.ROOT_READY, 0);
    this.#heap.close();
    this.parking.close();
    this.#waiter.close();
  }

  #mustBeOpen(call: string): void {
    if (this.#closed) throw new RmaError('ERR_VERBS', `${call}: this fabric is closed`);
  }
}

/** Sleeps with futexes; the parker's thread starts with the first asynchronous sleep. */
class FutexWaiter implements BellWaiter {
  readonly #native: Native;
  readonly #table: Int32Array;
  #parker: Parker | undefined;
  #woken: (() => void) | undefined;

  constructor(native: Native, table: Int32Array) {
    this.#native = native;
    this.#table = table;
  }

  waitSync(bell: number, token: number, timeoutMs: number): void {
    this.#native.futexWait(this.#table, bell, token, timeoutMs);
  }

  wait(bell: number, token: number, woken: () => void, keepAlive: boolean): void {
    this.#parker ??= new this.#native.Parker(() => this.#woken?.());
    this.#woken = woken;
    this.#parker.begin(this.#table, bell, token, Number.POSITIVE_INFINITY, keepAlive);
  }

  interrupt(): void {
    this.#parker?.interrupt();
  }

  close(): void {
    this.#parker?.close();
    this.#parker = undefined;
  }
}
