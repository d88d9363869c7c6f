/**
 * Memory of a process that other processes of the same user on the same host can map.
 *
 * It is one memory file. An allocation takes a range of it, and freeing punches the range's pages out, which gives the
 * memory back and makes it read as zeros. The range is given out again when no process maps it any more (heap-pages.ts
 * says how that is known), so the file is about as long as what was in use at one time, and not as long as all that was
 * ever allocated: `ulimit -f` limits its length.
 *
 *     page 0                     what it is, and which members are about to map something
 *     then for each allocation   a page that says what it is and which members map it, and the pages of its memory
 *
 * A handle names an allocation: the page where its memory begins, and a serial number, so that the next allocation in
 * the same range has another handle. What a peer has read about a queue pair or a region before it was destroyed leads
 * nowhere afterwards.
 *
 * Large memory of the program's own can be remapped: its pages are exchanged for such a range, below its `ArrayBuffer`,
 * until that is freed (native/remapped_memory.cc).
 *
 * A peer opens the heap as /proc/PID/fd/N, which the kernel allows to the same user only, for as long as it takes to
 * map or to say that it has unmapped.
 */
import { randomInt } from 'node:crypto';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { totalmem } from 'node:os';
import { argumentRangeError, RmaError, show } from '../errors.ts';
import { bytesIn } from '../intrinsics.ts';
import type { Native } from '../native.ts';
import type { Allocation, Attachment } from './emulator/emulator-fabric.ts';
import { FreeRanges } from './free-ranges.ts';
import {
  describeAllocation,
  enterAllocation,
  hasHeapKey,
  isMapped,
  leaveAllocation,
  SERIALS,
  withdrawAllocation,
  writeHeapKey,
} from './heap-pages.ts';

/**
 * A handle is a page of the file plus this times a serial number: an integer below 2^53. Files have up to 2^33 pages,
 * 32 TiB.
 */
const PAGES = 2 ** 33;

/** Asked for once: it takes a system call that reads a file. */
const TOTAL_BYTES = totalmem();

/** How many ranges that were mapped when they were freed are looked at again with each allocation. */
const LOOKS = 64;

/** What a peer needs to find a heap. */
export interface HeapAddress {
  readonly pid: number;
  /** Its descriptor in that process. */
  readonly fd: number;
  /**
   * Random. The key also stands at the start of the heap, so that a file of another process that took over PID and
   * descriptor is recognised.
   */
  readonly key: number;
}

/** For trying the other ways to memory of a program's own. */
const NEVER_REMAP = process.env['ONESIDED_NO_REMAPPING'] === '1';

/** Remapping copies the whole buffer, so at least this much of it must be wanted. */
const REMAP_FROM = 1 / 4;

/** Memory that was not allocated here. */
interface Remapped {
  readonly allocation: Allocation;
  /** For `memoryReclaim`. */
  readonly number: number;
  /** Of all its pages. */
  readonly pageBytes: number;
  /** How many windows and regions use it. */
  users: number;
}

/** Pages of the file: those of an allocation and the one before them. */
interface Range {
  readonly start: number;
  readonly pages: number;
}

export class ProcessHeap {
  readonly address: HeapAddress;
  readonly #native: Native;
  readonly #member: number;
  /** Pages of the file. */
  #end = 1;
  readonly #free = new FreeRanges();
  /**
   * Freed, and still mapped by others when they were looked at last; the one that was looked at longest ago comes
   * first.
   */
  #mapped: Range[] = [];
  #lastSerial = -1;
  /** Bytes given out and not freed. */
  #inUse = 0;
  /** How many attachments this process has of an allocation, by member and handle. */
  readonly #attachments = new Map<string, number>();
  readonly #live = new Map<number, Allocation>();
  readonly #remapped = new Map<ArrayBuffer, Remapped>();
  #closed = false;

  /**
   * @param name for /proc/PID/maps
   * @param member which one of those that map each other's heaps this is, at most 4,095
   */
  constructor(native: Native, name: string, member: number) {
    this.#native = native;
    this.#member = member;
    const fd = native.memoryCreate(name);
    native.memoryResize(fd, native.pageBytes);
    const key = randomInt(1, 2 ** 31);
    writeHeapKey(native, fd, key);
    this.address = { pid: process.pid, fd, key };
  }

  allocate(byteLength: number): Allocation {
    if (!Number.isInteger(byteLength) || byteLength < 1) {
      throw argumentRangeError(`allocate: byteLength must be an integer of at least 1, not ${show(byteLength)}`);
    }
    if (!this.#hasRoom(byteLength)) {
      throw new RmaError(
        'ERR_VERBS',
        `allocate: cannot allocate ${byteLength} bytes: this rank already uses ${this.#inUse}, ` +
          `the machine has ${TOTAL_BYTES}, and one allocation can have at most ${this.#native.maxMapBytes}`,
      );
    }
    let handle: number | undefined;
    let buffer: ArrayBuffer;
    try {
      handle = this.#takeRange(byteLength, byteLength, 0);
      buffer = this.#native.memoryMap(this.address.fd, this.#offsetOf(handle), byteLength);
    } catch (cause) {
      if (handle !== undefined) this.#giveBack(handle, byteLength);
      throw new RmaError('ERR_VERBS', `allocate: cannot allocate ${byteLength} bytes: ${(cause as Error).message}`, {
        cause,
      });
    }
    this.#inUse += byteLength;
    const allocation: Allocation = { buffer, handle, byteLength };
    this.#live.set(handle, allocation);
    return allocation;
  }

  /**
   * Memory files are not limited by the kernel: without this, touching the last page that the machine does not have
   * would kill some process.
   */
  #hasRoom(byteLength: number): boolean {
    return this.#inUse + byteLength <= TOTAL_BYTES && byteLength <= this.#native.maxMapBytes;
  }

  /**
   * Pages of the file, zero, and the page before them that says what is in them.
   * @param byteLength of the memory, which begins `before` bytes into the range
   * @returns the handle
   */
  #takeRange(rangeBytes: number, byteLength: number, before: number): number {
    const pages = this.#pagesOf(rangeBytes);
    const start = this.#takePages(pages);
    const serial = (this.#lastSerial + 1) % SERIALS;
    try {
      describeAllocation(this.#native, this.address.fd, start * this.#native.pageBytes, serial, byteLength, before);
    } catch (error) {
      this.#free.give(start, pages);
      throw error;
    }
    this.#lastSerial = serial;
    return serial * PAGES + start + 1;
  }

  #takePages(pages: number): number {
    this.#lookAtMapped(LOOKS);
    const start = this.#free.take(pages);
    if (start !== undefined) return start;
    try {
      return this.#grow(pages);
    } catch (error) {
      // Before that is the last word, all of them are looked at.
      this.#lookAtMapped(this.#mapped.length);
      const found = this.#free.take(pages);
      if (found !== undefined) return found;
      throw error;
    }
  }

  /** Lengthens the file by as many of `pages` as are not free at its end. */
  #grow(pages: number): number {
    const start = this.#free.takeLast(this.#end);
    const end = start + pages;
    try {
      if (end > PAGES) throw new Error(`a memory file has at most ${PAGES} pages`);
      this.#native.memoryResize(this.address.fd, end * this.#native.pageBytes);
    } catch (error) {
      if (start < this.#end) this.#free.give(start, this.#end - start);
      throw error;
    }
    this.#end = end;
    return start;
  }

  /** With the page before them. */
  #pagesOf(rangeBytes: number): number {
    return 1 + Math.ceil(rangeBytes / this.#native.pageBytes);
  }

  #offsetOf(handle: number): number {
    return (handle % PAGES) * this.#native.pageBytes;
  }

  /**
   * Gives back the pages of a range that `#takeRange` gave, and the range itself when no other process maps it.
   * @param reusable whether this process does not map it any more, and never will
   */
  #giveBack(handle: number, rangeBytes: number, reusable = true): void {
    const page = this.#native.pageBytes;
    const { fd } = this.address;
    const range = { start: (handle % PAGES) - 1, pages: this.#pagesOf(rangeBytes) };
    withdrawAllocation(this.#native, fd, range.start * page);
    if (reusable && !isMapped(fd, range.start * page)) {
      this.#empty(range);
      return;
    }
    // All but the page that says which members map it.
    if (range.pages > 1) this.#native.memoryPunch(fd, (range.start + 1) * page, (range.pages - 1) * page);
    if (reusable) this.#mapped.push(range);
  }

  /** For a range that no process maps: it is zero, and free. */
  #empty({ start, pages }: Range): void {
    const page = this.#native.pageBytes;
    this.#native.memoryPunch(this.address.fd, start * page, pages * page);
    this.#free.give(start, pages);
  }

  /**
   * Of the first `count` ranges, frees those that no process maps any more. The processes that mapped them may have
   * written there since the ranges were freed.
   */
  #lookAtMapped(count: number): void {
    if (this.#mapped.length === 0) return;
    const looked = this.#mapped.slice(0, count);
    const rest = this.#mapped.slice(count);
    const { fd } = this.address;
    for (const range of looked) {
      if (isMapped(fd, range.start * this.#native.pageBytes)) rest.push(range);
      else this.#empty(range);
    }
    this.#mapped = rest;
  }

  /**
   * Lets others map memory of the program's own, where it stands; `undefined` if its pages cannot be remapped, or only
   * `bytes` of many are wanted. `free` ends that, once for each call.
   */
  remap(buffer: ArrayBuffer, bytes: number): Allocation | undefined {
    const known = this.#remapped.get(buffer);
    if (known !== undefined) {
      known.users++;
      return known.allocation;
    }
    const byteLength = bytesIn(buffer);
    if (NEVER_REMAP || bytes < REMAP_FROM * byteLength || !this.#hasRoom(byteLength)) return undefined;
    const pages = this.#native.memoryRemappable(buffer);
    if (pages === undefined) return undefined;
    const [pageBytes, before] = pages;
    let handle: number | undefined;
    let number: number;
    try {
      handle = this.#takeRange(pageBytes, byteLength, before);
      number = this.#native.memoryRemap(this.address.fd, this.#offsetOf(handle), buffer);
    } catch {
      // No room for a copy: there are other ways to this memory. The range is empty, or its pages are the buffer's;
      // what was said about it goes.
      if (handle !== undefined) this.#giveBack(handle, 0, false);
      return undefined;
    }
    this.#inUse += byteLength;
    const allocation: Allocation = { buffer, handle, byteLength };
    this.#remapped.set(buffer, { allocation, number, pageBytes, users: 1 });
    return allocation;
  }

  free(allocation: Allocation): void {
    if (this.#closed) return;
    const { handle, byteLength, buffer } = allocation;
    const remapped = this.#remapped.get(buffer as ArrayBuffer);
    if (remapped?.allocation === allocation) {
      if (--remapped.users === 0) this.#reclaim(remapped);
    } else if (this.#live.delete(handle)) {
      this.#inUse -= byteLength;
      // Not if the program has transferred the buffer: then it still has the memory.
      this.#giveBack(handle, byteLength, this.#native.memoryUnmap(buffer as ArrayBuffer));
    }
  }

  #reclaim({ allocation, number, pageBytes }: Remapped): void {
    const { handle, byteLength, buffer } = allocation;
    this.#remapped.delete(buffer as ArrayBuffer);
    // If it could not be exchanged, the file's pages are still its memory.
    if (!this.#native.memoryReclaim(number)) return;
    this.#inUse -= byteLength;
    this.#giveBack(handle, pageBytes);
  }

  /** Maps the whole of what `handle` names in the heap of `member`, which is at `peer`. */
  attach(member: number, peer: HeapAddress, handle: number, byteLength: number): Attachment {
    const heap = openHeap(member, peer);
    try {
      const before = this.#enter(heap, handle, byteLength);
      if (before === undefined) {
        throw new RmaError(
          'ERR_VERBS',
          `attach: member ${member} has no memory ${show(handle)} of ${show(byteLength)} bytes, or has freed it`,
        );
      }
      const name = `${member}:${handle}`;
      this.#attachments.set(name, (this.#attachments.get(name) ?? 0) + 1);
      let buffer: ArrayBuffer;
      try {
        buffer = this.#native.memoryMap(heap, this.#offsetOf(handle), before + byteLength, before);
      } catch (error) {
        if (this.#isLast(name)) this.#leave(heap, handle);
        throw error;
      }
      let released = false;
      return {
        buffer,
        release: () => {
          if (released) return;
          released = true;
          // If the program has transferred the buffer, it can still reach the memory: this counts as mapped for ever.
          if (this.#native.memoryUnmap(buffer) && this.#isLast(name)) this.#tellUnmapped(member, peer, handle);
        },
      };
    } finally {
      closeSync(heap);
    }
  }

  /**
   * Says that this process maps it. @returns the bytes before the memory; `undefined` if there is no such allocation
   */
  #enter(heap: number, handle: number, byteLength: number): number | undefined {
    const page = this.#native.pageBytes;
    const isHandle = Number.isSafeInteger(handle) && handle % PAGES >= 2;
    const at = this.#offsetOf(handle) - page;
    if (!isHandle || at + page >= fstatSync(heap).size || !(byteLength >= 1)) return undefined;
    return enterAllocation(this.#native, heap, at, Math.floor(handle / PAGES), byteLength, this.#member);
  }

  #leave(heap: number, handle: number): void {
    leaveAllocation(this.#native, heap, this.#offsetOf(handle) - this.#native.pageBytes, this.#member);
  }

  /** One attachment fewer. @returns whether it was the last one of its allocation */
  #isLast(name: string): boolean {
    const left = this.#attachments.get(name)! - 1;
    if (left > 0) this.#attachments.set(name, left);
    else this.#attachments.delete(name);
    return left === 0;
  }

  #tellUnmapped(member: number, peer: HeapAddress, handle: number): void {
    let heap: number;
    try {
      heap = openHeap(member, peer);
    } catch {
      // Its process has ended.
      return;
    }
    try {
      this.#leave(heap, handle);
    } finally {
      closeSync(heap);
    }
  }

  /** Unmaps what is left. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const remapped of this.#remapped.values()) this.#reclaim(remapped);
    for (const { buffer } of this.#live.values()) this.#native.memoryUnmap(buffer as ArrayBuffer);
    this.#live.clear();
    closeSync(this.address.fd);
  }
}

/** A descriptor of the heap, checked to be that; the caller closes it. */
function openHeap(member: number, { pid, fd, key }: HeapAddress): number {
  const name = `/proc/${pid}/fd/${fd}`;
  let heap: number;
  try {
    heap = openSync(name, 'r+');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT'
        ? `process ${pid} no longer exists`
        : `cannot open ${name} (${code}); run all ranks as one user, ` +
          'and let them see each other in /proc (one PID namespace)';
    throw new RmaError('ERR_VERBS', `attach: cannot map the memory of member ${member}: ${why}`, { cause });
  }
  if (!fstatSync(heap).isFile() || !hasHeapKey(heap, key)) {
    closeSync(heap);
    throw new RmaError(
      'ERR_VERBS',
      `attach: ${name} is not the memory of member ${member}: its process has ended, ` +
        'and another process now has its PID',
    );
  }
  return heap;
}
