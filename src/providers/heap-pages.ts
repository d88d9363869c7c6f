/**
 * The pages of a heap file that say what is in it and which members map it: page 0, and the page before each
 * allocation. They decide when a freed range may be given out again.
 *
 *     page 0              MAGIC, KEY; from ENTERING on, a bit for each member: it is about to map something
 *     an allocation's     LIVE: its serial number plus one, or 0 once it was freed; BYTES, BEFORE: what is in the pages
 *                         behind;
 *                         from MAPPED on, a bit for each member: it maps them
 *
 * A freed range is used again only when no other member maps it. Otherwise a member that still has it mapped (it has
 * not noticed yet that a region was deregistered, or is in the middle of a copy there) would read and write another
 * allocation's memory.
 *
 *     peer, to map:     sets its ENTERING;  looks at LIVE, and ends if it is not the number that it expects;  sets its
 *                       MAPPED;
 *                       clears its ENTERING;  maps
 *     peer, to unmap:   unmaps;  clears its MAPPED
 *     owner, to free:   clears LIVE;  looks at all ENTERING and at all MAPPED of the range, and keeps it aside while
 *                       one of them is set
 *
 * Both sides store first and load second, in an order that all agree on (a peer by atomic accesses; the owner by system
 * calls, which take locks and references between the two). So if the owner has not seen a peer's ENTERING, then that
 * peer either comes later and finds LIVE cleared, or it came earlier, and its MAPPED is there to be seen. And no peer
 * writes to the page of an allocation without its ENTERING, so the page is no other memory's when MAPPED is set in it.
 *
 * Peers write these pages by mapping them for a moment, since writing to a descriptor is subject to the limit on file
 * sizes of *their* process. A member that dies leaves its bits behind: what it mapped, or everything if it was
 * entering, is not used again.
 */
import { readSync } from 'node:fs';
import type { Native } from '../native.ts';

// Page 0, in 32-bit words.
const MAGIC_WORD = 0;
const KEY_WORD = 1;
// The page of an allocation: in 32-bit words, then in 64-bit words.
const LIVE = 0;
const BYTES = 1;
const BEFORE = 2;
/** Where the bits of the members begin, in either page, and how many bytes they have: one bit for each of 4,096. */
const MEMBERS = 64;
const MEMBER_BYTES = 512;

const MAGIC = 0x70616568;

/** The numbers of allocations go up to this, and then begin again: one comes back after a million allocations. */
export const SERIALS = 2 ** 20;

export function writeHeapKey(native: Native, fd: number, key: number): void {
  withPage(native, fd, 0, (buffer) => new Int32Array(buffer).set([MAGIC, key], MAGIC_WORD));
}

/** Whether a file is the heap with this key. */
export function hasHeapKey(fd: number, key: number): boolean {
  const words = new Int32Array(2);
  return readSync(fd, words, 0, 8, 0) === 8 && words[MAGIC_WORD] === MAGIC && words[KEY_WORD] === key;
}

/** Owner: the pages behind the one at `at` are an allocation. */
export function describeAllocation(
  native: Native,
  fd: number,
  at: number,
  serial: number,
  bytes: number,
  before: number,
): void {
  withPage(native, fd, at, (buffer) => {
    const doubles = new Float64Array(buffer);
    doubles[BYTES] = bytes;
    doubles[BEFORE] = before;
    Atomics.store(new Int32Array(buffer), LIVE, serial + 1);
  });
}

/** Owner: no peer begins to map the allocation any more. */
export function withdrawAllocation(native: Native, fd: number, at: number): void {
  // Of a part of a page the kernel clears the bytes.
  native.memoryPunch(fd, at, MEMBERS);
}

const bits = new Int32Array(MEMBER_BYTES / 4);

/** Owner: whether a member maps, or is about to map, what was withdrawn. */
export function isMapped(fd: number, at: number): boolean {
  return anyMember(fd, 0) || anyMember(fd, at);
}

function anyMember(fd: number, at: number): boolean {
  return readSync(fd, bits, 0, MEMBER_BYTES, at + MEMBERS) !== MEMBER_BYTES || bits.some((word) => word !== 0);
}

/**
 * Peer: says that `member` maps the allocation.
 * @returns how many bytes stand before its memory in its pages; `undefined` if it is not there
 */
export function enterAllocation(
  native: Native,
  fd: number,
  at: number,
  serial: number,
  bytes: number,
  member: number,
): number | undefined {
  return withPage(native, fd, 0, (first) => {
    setMember(first, member, true);
    try {
      return withPage(native, fd, at, (page) => {
        if (Atomics.load(new Int32Array(page), LIVE) !== serial + 1) return undefined;
        const doubles = new Float64Array(page);
        if (doubles[BYTES] !== bytes) return undefined;
        setMember(page, member, true);
        return doubles[BEFORE];
      });
    } finally {
      setMember(first, member, false);
    }
  });
}

/** Peer: `member` does not map the allocation any more. */
export function leaveAllocation(native: Native, fd: number, at: number, member: number): void {
  withPage(native, fd, at, (page) => setMember(page, member, false));
}

function setMember(page: ArrayBuffer, member: number, value: boolean): void {
  const bytes = new Uint8Array(page);
  const bit = 1 << (member & 7);
  if (value) Atomics.or(bytes, MEMBERS + (member >>> 3), bit);
  else Atomics.and(bytes, MEMBERS + (member >>> 3), ~bit);
}

function withPage<T>(native: Native, fd: number, at: number, use: (page: ArrayBuffer) => T): T {
  const page = native.memoryMap(fd, at, native.pageBytes);
  try {
    return use(page);
  } finally {
    native.memoryUnmap(page);
  }
}
