/**
 * Memory of a process that other processes of the same user on the same host can map.
 *
 * It is one memory file, which grows and is never reused: an allocation takes the next range of file offsets, and
 * freeing punches its pages out. So an offset names the same memory for ever, fresh memory is zero, and whoever still maps freed
 * memory disturbs nobody. Holes cost nothing, and 2^53 bytes of offsets do not run out.
 *
 *     page 0                     MAGIC, KEY
 *     then for each allocation   a page with its length, and its pages; the handle is the offset of the latter
 *
 * The length's page is not mapped by anybody: it is written and read through descriptors, and vanishes with the pages that it describes. A
 * peer opens the heap as /proc/PID/fd/N, which the kernel allows to the same user only, for as long as it takes to map.
 */
import { randomInt } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { totalmem } from 'node:os';
import { argumentRangeError, RmaError, show } from '../errors.ts';
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

export class ProcessHeap {
  readonly address: HeapAddress;
  readonly #native: Native;
  /** Where the next allocation's length page goes. */
  #end: number;
  /** Bytes given out and not freed. */
  #inUse = 0;
  readonly #live = new Map<number, Allocation>();
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
    const page = this.#native.pageBytes;
    if (!Number.isInteger(byteLength) || byteLength < 1) {
      throw argumentRangeError(`allocate: a number of bytes of at least 1 is needed, not ${show(byteLength)}`);
    }
    // Memory files are not limited by the kernel: without this, touching the last page that the machine does not have would kill somebody.
    if (this.#inUse + byteLength > totalmem() || byteLength > this.#native.maxMapBytes) {
      throw new RmaError(
        'ERR_VERBS',
        `allocate: ${byteLength} bytes are too many: this rank uses ${this.#inUse} already, the machine has ${totalmem()}, and one piece may have ${this.#native.maxMapBytes}`,
      );
    }
    const handle = this.#end + page;
    const end = handle + Math.ceil(byteLength / page) * page;
    let buffer: ArrayBuffer;
    try {
      this.#native.memoryResize(this.address.fd, end);
      this.#end = end;
      writeSync(this.address.fd, Float64Array.of(byteLength), 0, 8, handle - page);
      buffer = this.#native.memoryMap(this.address.fd, handle, byteLength);
    } catch (cause) {
      throw new RmaError('ERR_VERBS', `allocate: no memory of ${byteLength} bytes: ${(cause as Error).message}`, {
        cause,
      });
    }
    this.#inUse += byteLength;
    const allocation: Allocation = { buffer, handle, byteLength };
    this.#live.set(handle, allocation);
    return allocation;
  }

  free(allocation: Allocation): void {
    if (this.#closed || !this.#live.delete(allocation.handle)) return;
    const { handle, byteLength, buffer } = allocation;
    this.#inUse -= byteLength;
    const page = this.#native.pageBytes;
    // Whole pages: of a part of one the kernel would clear the bytes and keep the page.
    this.#native.memoryPunch(this.address.fd, handle - page, (1 + Math.ceil(byteLength / page)) * page);
    this.#native.memoryUnmap(buffer as ArrayBuffer);
  }

  /** Maps the whole of what `handle` names in the heap of member `lid`, which is at `peer`. */
  attach(lid: number, peer: HeapAddress, handle: number, byteLength: number): Attachment {
    const heap = openHeap(lid, peer);
    try {
      const length = new Float64Array(1);
      const page = this.#native.pageBytes;
      const known =
        Number.isSafeInteger(handle) &&
        handle >= 2 * page &&
        handle % page === 0 &&
        readSync(heap, length, 0, 8, handle - page) === 8;
      if (!known || length[0] !== byteLength || byteLength < 1) {
        throw new RmaError(
          'ERR_VERBS',
          `attach: member ${lid} has no memory ${show(handle)} of ${show(byteLength)} bytes (any more)`,
        );
      }
      const buffer = this.#native.memoryMap(heap, handle, byteLength);
      return { buffer, release: () => this.#native.memoryUnmap(buffer) };
    } finally {
      closeSync(heap);
    }
  }

  /** Unmaps what is left. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
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
        ? `process ${pid} is gone`
        : `process ${pid} does not let this one open ${name} (${code}); ranks must belong to one user and see each other's /proc`;
    throw new RmaError('ERR_VERBS', `attach: the memory of member ${lid} cannot be reached: ${why}`, { cause });
  }
  const head = new Int32Array(2);
  if (!fstatSync(heap).isFile() || readSync(heap, head, 0, 8, 0) !== 8 || head[0] !== MAGIC || head[1] !== key) {
    closeSync(heap);
    throw new RmaError(
      'ERR_VERBS',
      `attach: ${name} is not the memory of member ${lid}: its process is gone, and another took its number`,
    );
  }
  return heap;
}
