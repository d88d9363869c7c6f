/**
 * Memory of a process that other processes of the same user on the same host can map.
 *
 * It is one memory file, which grows and is never reused: an allocation takes the next range of file offsets, and
 * freeing punches its pages out. So an offset names the same memory for ever, fresh memory is zero, and whoever still maps freed
 * memory disturbs nobody. Holes cost nothing, and 2^53 bytes of offsets do not run out.
 *
 *     page 0                     MAGIC, KEY
 *     then for each allocation   a page that says how long it is, and where it begins in the following pages, which have it; the handle is the offset of those
 *
 * Large memory of the program's own can be lent: its pages are exchanged for such a range, below its `ArrayBuffer`, until that is freed (native/lent_memory.cc).
 *
 * The length's page is not mapped by anybody: it is written and read through descriptors, and vanishes with the pages that it describes. A
 * peer opens the heap as /proc/PID/fd/N, which the kernel allows to the same user only, for as long as it takes to map.
 */
import { randomInt } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { totalmem } from 'node:os';
import { argumentRangeError, RmaError, show } from '../errors.ts';
import { bytesIn } from '../intrinsics.ts';
import type { Native } from '../native.ts';
import type { Allocation, Attachment } from './emulator/fabric.ts';

const MAGIC = 0x70616568;

/** What a peer needs to find a heap. */
export interface HeapAddress {
  readonly pid: number;
  /** Its descriptor in that process. */
  readonly fd: number;
  /** Random; also stands at the start of the heap: another process's file that took over PID and descriptor is recognised. */
  readonly key: number;
}

/** For trying the other ways to memory of a program's own. */
const NEVER_LEND = process.env['ONESIDED_NO_LENDING'] === '1';

/** Lending copies the whole buffer, so at least this much of it must be wanted. */
const LEND_FROM = 1 / 4;

/** Memory that was not allocated here. */
interface Lent {
  readonly allocation: Allocation;
  /** For `memoryReclaim`. */
  readonly number: number;
  /** Of all its pages. */
  readonly pageBytes: number;
  /** How many times it is lent. */
  users: number;
}

export class ProcessHeap {
  readonly address: HeapAddress;
  readonly #native: Native;
  /** Where the next allocation's length page goes. */
  #end: number;
  /** Bytes given out and not freed. */
  #inUse = 0;
  readonly #live = new Map<number, Allocation>();
  readonly #lent = new Map<ArrayBuffer, Lent>();
  #closed = false;

  /** @param name for /proc/PID/maps */
  constructor(native: Native, name: string) {
    this.#native = native;
    this.#end = native.pageBytes;
    const fd = native.memoryCreate(name);
    native.memoryResize(fd, this.#end);
    const key = randomInt(1, 2 ** 31);
    writeSync(fd, Int32Array.of(MAGIC, key), 0, 8, 0);
    this.address = { pid: process.pid, fd, key };
  }

  allocate(byteLength: number): Allocation {
    if (!Number.isInteger(byteLength) || byteLength < 1) {
      throw argumentRangeError(`allocate: byteLength must be an integer of at least 1, not ${show(byteLength)}`);
    }
    if (!this.#hasRoom(byteLength)) {
      throw new RmaError(
        'ERR_VERBS',
        `allocate: cannot allocate ${byteLength} bytes: this rank already uses ${this.#inUse}, the machine has ${totalmem()}, and one allocation can have at most ${this.#native.maxMapBytes}`,
      );
    }
    let handle: number;
    let buffer: ArrayBuffer;
    try {
      handle = this.#takeRange(byteLength, byteLength, 0);
      buffer = this.#native.memoryMap(this.address.fd, handle, byteLength);
    } catch (cause) {
      throw new RmaError('ERR_VERBS', `allocate: cannot allocate ${byteLength} bytes: ${(cause as Error).message}`, {
        cause,
      });
    }
    this.#inUse += byteLength;
    const allocation: Allocation = { buffer, handle, byteLength };
    this.#live.set(handle, allocation);
    return allocation;
  }

  /** Memory files are not limited by the kernel: without this, touching the last page that the machine does not have would kill somebody. */
  #hasRoom(byteLength: number): boolean {
    return this.#inUse + byteLength <= totalmem() && byteLength <= this.#native.maxMapBytes;
  }

  /**
   * Pages of the file, and the page before them that says what is in them.
   * @param byteLength of the memory, which begins `before` bytes into the range
   * @returns the handle
   */
  #takeRange(rangeBytes: number, byteLength: number, before: number): number {
    const page = this.#native.pageBytes;
    const handle = this.#end + page;
    const end = handle + Math.ceil(rangeBytes / page) * page;
    this.#native.memoryResize(this.address.fd, end);
    this.#end = end;
    writeSync(this.address.fd, Float64Array.of(byteLength, before), 0, 16, handle - page);
    return handle;
  }

  /** Of a range that `#takeRange` gave. */
  #giveBack(handle: number, rangeBytes: number): void {
    const page = this.#native.pageBytes;
    // Whole pages: of a part of one the kernel would clear the bytes and keep the page.
    this.#native.memoryPunch(this.address.fd, handle - page, (1 + Math.ceil(rangeBytes / page)) * page);
  }

  /** Lets others map memory of the program's own, where it stands; `undefined` if its pages cannot be lent, or only `bytes` of many are wanted. `free` ends that, once for each call. */
  lend(buffer: ArrayBuffer, bytes: number): Allocation | undefined {
    const known = this.#lent.get(buffer);
    if (known !== undefined) {
      known.users++;
      return known.allocation;
    }
    const byteLength = bytesIn(buffer);
    if (NEVER_LEND || bytes < LEND_FROM * byteLength || !this.#hasRoom(byteLength)) return undefined;
    const lendable = this.#native.memoryLendable(buffer);
    if (lendable === undefined) return undefined;
    const [pageBytes, before] = lendable;
    let handle: number | undefined;
    let number: number;
    try {
      handle = this.#takeRange(pageBytes, byteLength, before);
      number = this.#native.memoryLend(this.address.fd, handle, buffer);
    } catch {
      // No room for a copy: there are other ways to this memory. The range is empty, or its pages are the buffer's; what was said about it goes.
      if (handle !== undefined) this.#giveBack(handle, 0);
      return undefined;
    }
    this.#inUse += byteLength;
    const allocation: Allocation = { buffer, handle, byteLength };
    this.#lent.set(buffer, { allocation, number, pageBytes, users: 1 });
    return allocation;
  }

  free(allocation: Allocation): void {
    if (this.#closed) return;
    const { handle, byteLength, buffer } = allocation;
    const lent = this.#lent.get(buffer as ArrayBuffer);
    if (lent?.allocation === allocation) {
      if (--lent.users === 0) this.#reclaim(lent);
    } else if (this.#live.delete(handle)) {
      this.#inUse -= byteLength;
      this.#giveBack(handle, byteLength);
      this.#native.memoryUnmap(buffer as ArrayBuffer);
    }
  }

  #reclaim({ allocation, number, pageBytes }: Lent): void {
    const { handle, byteLength, buffer } = allocation;
    this.#lent.delete(buffer as ArrayBuffer);
    // If it could not be exchanged, the file's pages are still its memory.
    if (!this.#native.memoryReclaim(number)) return;
    this.#inUse -= byteLength;
    this.#giveBack(handle, pageBytes);
  }

  /** Maps the whole of what `handle` names in the heap of member `lid`, which is at `peer`. */
  attach(lid: number, peer: HeapAddress, handle: number, byteLength: number): Attachment {
    const heap = openHeap(lid, peer);
    try {
      const numbers = new Float64Array(2);
      const page = this.#native.pageBytes;
      const known =
        Number.isSafeInteger(handle) &&
        handle >= 2 * page &&
        handle % page === 0 &&
        readSync(heap, numbers, 0, 16, handle - page) === 16;
      const [length, before] = numbers;
      if (!known || length !== byteLength || byteLength < 1) {
        throw new RmaError(
          'ERR_VERBS',
          `attach: member ${lid} has no memory ${show(handle)} of ${show(byteLength)} bytes, or has freed it`,
        );
      }
      const buffer = this.#native.memoryMap(heap, handle, before + byteLength, before);
      return { buffer, release: () => this.#native.memoryUnmap(buffer) };
    } finally {
      closeSync(heap);
    }
  }

  /** Unmaps what is left. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const lent of this.#lent.values()) this.#reclaim(lent);
    for (const { buffer } of this.#live.values()) this.#native.memoryUnmap(buffer as ArrayBuffer);
    this.#live.clear();
    closeSync(this.address.fd);
  }
}

/** A descriptor of the heap, checked to be that; the caller closes it. */
function openHeap(lid: number, { pid, fd, key }: HeapAddress): number {
  const name = `/proc/${pid}/fd/${fd}`;
  let heap: number;
  try {
    heap = openSync(name, 'r+');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === 'ENOENT'
        ? `process ${pid} no longer exists`
        : `cannot open ${name} (${code}); run all ranks as one user, and let them see each other in /proc (one PID namespace)`;
    throw new RmaError('ERR_VERBS', `attach: cannot map the memory of member ${lid}: ${why}`, { cause });
  }
  const head = new Int32Array(2);
  if (!fstatSync(heap).isFile() || readSync(heap, head, 0, 8, 0) !== 8 || head[0] !== MAGIC || head[1] !== key) {
    closeSync(heap);
    throw new RmaError(
      'ERR_VERBS',
      `attach: ${name} is not the memory of member ${lid}: its process has ended, and another process now has its PID`,
    );
  }
  return heap;
}
