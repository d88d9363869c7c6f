/** Space in a heap file that was freed is used again, and nobody who still maps it is in the way. */
import { fstatSync, readSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Allocation, Attachment } from '../../src/providers/emulator/emulator-fabric.ts';
import { ProcessHeap } from '../../src/providers/process-heap.ts';
import { addon } from '../support/addon.ts';
import { seedOfRun } from '../support/ranks.ts';

const native = addon();
const PAGE = native.pageBytes;

let heap: ProcessHeap;
let peer: ProcessHeap;

beforeEach(() => {
  heap = new ProcessHeap(native, 'onesided-test-owner', 0);
  peer = new ProcessHeap(native, 'onesided-test-peer', 4095);
});

afterEach(() => {
  peer.close();
  heap.close();
});

const fileBytes = (): number => fstatSync(heap.address.fd).size;
const fileBlocks = (): number => fstatSync(heap.address.fd).blocks;
const attach = (of: Allocation): Attachment => peer.attach(0, heap.address, of.handle, of.byteLength);
const isFilledWith = (buffer: ArrayBufferLike, value: number): boolean =>
  new Uint8Array(buffer).every((byte) => byte === value);

describe('a heap file', () => {
  it('does not grow while memory comes and goes', () => {
    const kept = heap.allocate(3 * PAGE);
    heap.free(heap.allocate(2 ** 20));
    const before = fileBytes();
    for (let i = 0; i < 200; i++) heap.free(heap.allocate(2 ** 20 - i));
    expect(fileBytes()).toBe(before);
    heap.free(kept);
  });

  it('is one piece again when everything was freed', () => {
    const blocks = fileBlocks();
    const small = Array.from({ length: 64 }, (_, i) => heap.allocate(1 + i * 1000));
    for (const i of [...small.keys()].sort((a, b) => ((a * 37) % 64) - ((b * 37) % 64))) heap.free(small[i]);
    expect(fileBlocks()).toBe(blocks);
    const before = fileBytes();
    const all = heap.allocate(before - 2 * PAGE);
    expect(fileBytes()).toBe(before);
    heap.free(all);
  });

  it('goes on behind a free range at its end, and makes that longer', () => {
    heap.free(heap.allocate(4 * PAGE));
    heap.free(heap.allocate(6 * PAGE));
    expect(fileBytes()).toBe((1 + 1 + 6) * PAGE);
  });

  it('gives every allocation a handle of its own', () => {
    const handles = new Set<number>();
    for (let i = 0; i < 100; i++) {
      const allocation = heap.allocate(PAGE);
      handles.add(allocation.handle);
      heap.free(allocation);
    }
    expect(handles.size).toBe(100);
    expect(fileBytes()).toBe(3 * PAGE);
  });

  it('has no memory for the handle of an allocation that was freed, though another one is there now', () => {
    const first = heap.allocate(PAGE);
    heap.free(first);
    const second = heap.allocate(PAGE);
    new Uint8Array(second.buffer).fill(1);
    expect(() => attach(first)).toThrow(/has no memory .* or has freed it/);
    // Nor has the refusal left anything there.
    expect(isFilledWith(second.buffer, 1)).toBe(true);
    heap.free(second);
    expect(heap.allocate(PAGE).buffer.byteLength).toBe(PAGE);
    expect(fileBytes()).toBe(3 * PAGE);
  });
});

describe('a range that was freed', () => {
  it('is used again when its last peer has unmapped it, and is zero then', () => {
    const first = heap.allocate(PAGE);
    const [one, two] = [attach(first), attach(first)];
    heap.free(first);
    one.release();
    one.release();
    const second = heap.allocate(PAGE);
    // In vain: a late copy of a rank that has not heard yet.
    new Uint8Array(two.buffer).fill(5);
    expect(isFilledWith(second.buffer, 0)).toBe(true);
    const end = fileBytes();
    two.release();
    const third = heap.allocate(PAGE);
    expect(isFilledWith(third.buffer, 0)).toBe(true);
    expect(fileBytes()).toBe(end);
  });

  it('is not used again while a peer is about to map something', () => {
    const first = heap.allocate(PAGE);
    writeSync(heap.address.fd, Uint8Array.of(4), 0, 1, 64);
    heap.free(first);
    heap.allocate(PAGE);
    const end = fileBytes();
    expect(end).toBe(5 * PAGE);
    writeSync(heap.address.fd, Uint8Array.of(0), 0, 1, 64);
    heap.allocate(PAGE);
    expect(fileBytes()).toBe(end);
  });

  it('is not used again if the program has transferred its buffer to another one, here or at a peer', () => {
    const [first, second] = [heap.allocate(PAGE), heap.allocate(PAGE)];
    const attached = attach(second);
    const [mine, theirs] = [transferred(first.buffer), transferred(attached.buffer)];
    heap.free(first);
    heap.free(second);
    attached.release();
    const next = [heap.allocate(PAGE), heap.allocate(PAGE)];
    new Uint8Array(mine).fill(7);
    new Uint8Array(theirs).fill(8);
    expect(next.map(({ buffer }) => isFilledWith(buffer, 0))).toEqual([true, true]);
  });

  it('of a peer that has not released it is found when nothing else is left', () => {
    // More of them than are looked at with each allocation, and the free one is the last.
    const many = Array.from({ length: 200 }, () => heap.allocate(PAGE));
    const attachments = many.map(attach);
    for (const allocation of many) heap.free(allocation);
    attachments.at(-1)!.release();
    const end = fileBytes();
    for (let i = 0; i < 4; i++) heap.allocate(3 * PAGE);
    expect(fileBytes()).toBe(end + 16 * PAGE);
    heap.allocate(PAGE);
    expect(fileBytes()).toBe(end + 16 * PAGE);
    for (const attachment of attachments) attachment.release();
  });
});

/** By the engine where it can: from Node 22 on, `structuredClone` refuses buffers that an addon has made. */
function transferred(buffer: ArrayBufferLike): ArrayBuffer {
  const given = buffer as ArrayBuffer & { transfer?: () => ArrayBuffer };
  return given.transfer?.() ?? structuredClone(given, { transfer: [given] });
}

it('in whatever order things are allocated, freed and mapped, each allocation has zeroed memory of its own', () => {
  let state = seedOfRun() | 1;
  const random = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return Math.floor(((state >>> 8) / 2 ** 24) * n);
  };
  interface Live {
    readonly allocation: Allocation;
    readonly tag: number;
  }
  const live: Live[] = [];
  const attachments: { attachment: Attachment; of: Live }[] = [];
  const limit = 60;
  for (let step = 0; step < 1500; step++) {
    const what = random(10);
    if (what < 4 && live.length < limit) {
      const allocation = heap.allocate(1 + random(random(2) === 0 ? 300 : 40_000));
      expect(isFilledWith(allocation.buffer, 0), `step ${step}`).toBe(true);
      const tag = 1 + random(254);
      new Uint8Array(allocation.buffer).fill(tag);
      live.push({ allocation, tag });
    } else if (what < 7 && live.length > 0) {
      const [{ allocation, tag }] = live.splice(random(live.length), 1);
      expect(isFilledWith(allocation.buffer, tag), `step ${step}`).toBe(true);
      heap.free(allocation);
    } else if (what < 9 && live.length > 0 && attachments.length < 20) {
      const of = live[random(live.length)];
      attachments.push({ attachment: attach(of.allocation), of });
      expect(isFilledWith(attachments.at(-1)!.attachment.buffer, of.tag), `step ${step}`).toBe(true);
    } else if (attachments.length > 0) {
      const [{ attachment, of }] = attachments.splice(random(attachments.length), 1);
      // A late writer.
      if (!live.includes(of)) new Uint8Array(attachment.buffer).fill(255);
      attachment.release();
    }
  }
  for (const { attachment } of attachments) attachment.release();
  for (const { allocation, tag } of live) {
    expect(isFilledWith(allocation.buffer, tag)).toBe(true);
    heap.free(allocation);
  }
  // What is there at one time has at most 11 pages each, and what is mapped meanwhile, too; twice that for the gaps
  // between them.
  expect(fileBytes()).toBeLessThan(2 * 11 * (limit + 20) * PAGE);
  const head = new Uint8Array(PAGE);
  readSync(heap.address.fd, head, 0, PAGE, 0);
  expect(head.subarray(64).every((byte) => byte === 0)).toBe(true);
});
