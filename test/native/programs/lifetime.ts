/**
 * Takes memory away from under the addon, which must go on with what it has pinned: in a process of its own, since what
 * may go wrong is a signal. Needs `--expose-gc`. Prints "ended well".
 */

import { OpCode } from '../../../src/datatype/op.ts';
import { TypeCode } from '../../../src/datatype/type-codes.ts';
import type { Server } from '../../../src/native.ts';
import { addon } from '../../support/addon.ts';

const native = addon();
const collect = (globalThis as unknown as { gc: () => void }).gc;

// The slots of a server: src/transfer/served/memory-server.ts.
const LINE_WORDS = 32;
const SLOT_BYTES = 128 + 16 * 256 + 8192;
const BYTES = 4 * LINE_WORDS + SLOT_BYTES + 4 * 512;
const [BELL, SLEEPING] = [0, 1];
const [POSTED, DONE, REFUSED] = [1, 2, 3];
const [COMPARE_AND_SWAP, PUT] = [1, 2];

/** Another owner gets the memory, and forgets it. */
async function transfer(memory: ArrayBufferLike): Promise<void> {
  structuredClone(memory, { transfer: [memory as ArrayBuffer] });
  // The memory of a collected buffer is freed by another thread, in its time.
  for (let i = 0; i < 20; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Asks the only slot's thread to do something with one run of bytes. @returns DONE or REFUSED */
function ask(memory: ArrayBuffer, kind: number, type: number, address: number, bytes: number): number {
  const words = new Int32Array(memory);
  words.set([kind, OpCode.REPLACE, type, 1, 0], LINE_WORDS + 1);
  new Float64Array(memory, 4 * LINE_WORDS + 128, 2).set([address, bytes]);
  Atomics.store(words, LINE_WORDS, POSTED);
  Atomics.add(words, BELL, 1);
  if (Atomics.load(words, SLEEPING) !== 0) native.futexWake(words, BELL, 1);
  while (Atomics.load(words, LINE_WORDS) === POSTED) native.futexWait(words, LINE_WORDS, POSTED, 1000);
  return Atomics.load(words, LINE_WORDS);
}

/** A server, and another mapping of the memory where it is asked. */
function startServer(): { server: Server; words: Int32Array; memory: ArrayBuffer } {
  const fd = native.memoryCreate('onesided-lifetime');
  native.memoryResize(fd, BYTES);
  const words = new Int32Array(native.memoryMap(fd, 0, BYTES));
  return { server: new native.Server(words, 1), words, memory: native.memoryMap(fd, 0, BYTES) };
}

function mapped(): ArrayBuffer {
  const fd = native.memoryCreate('onesided-region');
  native.memoryResize(fd, 4096);
  return native.memoryMap(fd, 0, 4096);
}

function expectSame(found: unknown, wanted: unknown): void {
  if (found !== wanted) throw new Error(`${found} instead of ${wanted}`);
}

const CASES: Record<string, () => void | Promise<void>> = {
  'words unmapped'() {
    const { server, words, memory } = startServer();
    const region = new Uint8Array(64);
    server.add(region);
    native.memoryUnmap(words.buffer as ArrayBuffer);
    expectSame(ask(memory, PUT, TypeCode.BYTE, native.addressOf(region), 64), DONE);
    server.close();
  },

  async 'words transferred'() {
    const words = new Int32Array(BYTES / 4);
    const server = new native.Server(words, 1);
    await transfer(words.buffer);
    server.close();
  },

  'a region unmapped'() {
    const { server, memory } = startServer();
    const region = mapped();
    const address = native.addressOf(region);
    const number = server.add(region);
    native.memoryUnmap(region);
    expectSame(ask(memory, PUT, TypeCode.BYTE, address, 4096), DONE);
    server.remove(number);
    expectSame(ask(memory, PUT, TypeCode.BYTE, address, 4096), REFUSED);
    server.close();
  },

  async 'a region transferred'() {
    const { server, memory } = startServer();
    const region = new Uint8Array(4096);
    const address = native.addressOf(region);
    server.add(region);
    await transfer(region.buffer);
    expectSame(ask(memory, PUT, TypeCode.BYTE, address, 4096), DONE);
    server.close();
  },

  async 'plans transferred'() {
    const stripes = new Int32Array(512);
    const target = new Float64Array(8);
    native.copyPlan.fill(1);
    native.accumulatePlan.set([OpCode.SUM, TypeCode.FLOAT64, 0, 8, 0, 1]);
    await transfer(native.copyPlan.buffer);
    await transfer(native.accumulatePlan.buffer);
    // What was in them is still there.
    expectSame(native.accumulateRun(target, new Float64Array(8).fill(2), stripes, undefined), 8);
    expectSame(target[7], 2);
    native.copyNest(new Uint8Array(8), new Uint8Array(8));
  },

  'a pair swapped as one, across its alignment'() {
    const { server, memory } = startServer();
    const region = new Int32Array(8);
    server.add(region);
    const address = native.addressOf(region);
    expectSame(ask(memory, COMPARE_AND_SWAP, TypeCode.TWO_INT, address + 4, 8), REFUSED);
    expectSame(ask(memory, COMPARE_AND_SWAP, TypeCode.INT64, address + 4, 8), REFUSED);
    expectSame(ask(memory, COMPARE_AND_SWAP, TypeCode.INT64, address + 8, 8), DONE);
    server.close();
  },

  'numbers of a request that are none'() {
    const { server, memory } = startServer();
    const region = new Uint8Array(64);
    server.add(region);
    const address = native.addressOf(region);
    for (const [at, bytes] of [
      [Number.NaN, 8],
      [address, Number.NaN],
      [-1, 8],
      [address, -1],
      [Infinity, 8],
      [address, Infinity],
      [address, 65],
      [address + 60, 8],
      [2 ** 63, 8],
      [2 ** 53, 8],
    ] as const) {
      expectSame(ask(memory, PUT, TypeCode.BYTE, at, bytes), REFUSED);
    }
    for (const [kind, type] of [
      [-1, 0],
      [4, 0],
      [2 ** 31 - 1, 0],
      [PUT, -1],
      [PUT, 99],
      [0, 2 ** 31 - 1],
    ] as const) {
      expectSame(ask(memory, kind, type, address, 8), REFUSED);
    }
    server.close();
  },
};

await CASES[process.argv[2]!]!();
console.log('ended well');
