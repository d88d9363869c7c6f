/**
 * A member that writes garbage over the map's memory. Calls give some value or an error that says so; none crashes,
 * hangs or touches other memory. `clear` makes the map whole again.
 */
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { RmaError } from '../../../src/errors.ts';
import { type CodecName, SharedMap } from '../../../src/service/map/index.ts';
import { HEADER_BYTES } from '../../../src/service/map/map-layout.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { memoryBytes, optionsOf } from './support.ts';

/** Garbage in the words of a lock is the lock's matter. */
const noLock = { tryAcquire: () => -1, tryBriefly: () => -1, acquire: () => -1, describe: () => '', release: () => {} };
const KEYS = 50;
const CANARY = 4096;

function scene(codec: CodecName, shared = false) {
  const options = { bytes: 64 << 10, codec };
  const bytes = memoryBytes(options);
  const buffer = shared ? new SharedArrayBuffer(bytes + 2 * CANARY) : new ArrayBuffer(bytes + 2 * CANARY);
  const all = new Uint8Array(buffer).fill(0xa5);
  all.fill(0, CANARY, CANARY + bytes);
  const map = SharedMap.create<unknown>('garbage', { buffer, byteOffset: CANARY }, noLock, optionsOf(options));
  const memory = all.subarray(CANARY + HEADER_BYTES, CANARY + bytes);
  const outsideIsWhole = (): boolean =>
    all.subarray(0, CANARY).every((byte) => byte === 0xa5) &&
    all.subarray(CANARY + bytes).every((byte) => byte === 0xa5);
  return { map, memory, outsideIsWhole };
}

function valueFor(codec: CodecName, below: (n: number) => number): unknown {
  const text = 'value '.repeat(below(60));
  return codec === 'bytes' ? Buffer.from(text) : codec === 'string' ? text : { text, list: [1, new Date(0)] };
}

/** One random call. Errors: those that are not the map's. */
function call(map: SharedMap<unknown>, codec: CodecName, below: (n: number) => number): void {
  const key = `key ${below(KEYS)}`;
  try {
    switch (below(9)) {
      case 0:
        map.get(key);
        map.has(key);
        break;
      case 1:
        map.delete(key);
        break;
      case 2:
        map.update(key, () => valueFor(codec, below));
        break;
      case 3:
        map.compareAndSet(key, undefined, valueFor(codec, below));
        break;
      case 4:
        for (const _ of map);
        break;
      case 5:
        void map.size;
        map.statistics();
        break;
      default:
        map.set(key, valueFor(codec, below), below(4) === 0 ? { ttl: 1 + below(10) } : undefined);
        map.get(key);
    }
  } catch (error) {
    if (!(error instanceof RmaError) || error.code !== 'ERR_DAMAGED') throw error;
  }
}

/** After `clear` everything is as in a new map. */
function checkCleared(map: SharedMap<unknown>, codec: CodecName, below: (n: number) => number): void {
  map.clear();
  expect([...map]).toEqual([]);
  expect(map.size).toBe(0);
  const put = new Map<string, unknown>();
  for (let i = 0; i < 20; i++) {
    const value = valueFor(codec, below);
    map.set(`new ${i}`, value);
    put.set(`new ${i}`, value);
  }
  for (const [key, value] of put) {
    const found = map.get(key);
    if (codec === 'bytes') expect(Buffer.compare(found as Uint8Array, value as Uint8Array)).toBe(0);
    else expect(found).toEqual(codec === 'json' ? JSON.parse(JSON.stringify(value)) : value);
  }
}

for (const codec of ['bytes', 'string', 'json', 'structured'] as const) {
  it(`calls end, and clear makes the map whole: ${codec}`, () => {
    const below = randomBelow(seedOfRun());
    const { map, memory, outsideIsWhole } = scene(codec);
    for (let round = 0; round < 150; round++) {
      for (let i = 0; i < 30; i++) map.set(`key ${below(KEYS)}`, valueFor(codec, below));
      // All of it, a piece, or some words.
      if (round % 3 === 0) for (let at = 0; at < memory.length; at++) memory[at] = below(256);
      else if (round % 3 === 1) memory.fill(below(256), below(memory.length));
      else for (let i = below(40); i >= 0; i--) memory[below(memory.length)] = below(256);
      for (let i = 0; i < 40; i++) call(map, codec, below);
      checkCleared(map, codec, below);
    }
    expect(outsideIsWhole()).toBe(true);
  });
}

it('calls end while another thread writes garbage', async () => {
  const below = randomBelow(seedOfRun());
  const { map, memory, outsideIsWhole } = scene('structured', true);
  const program = `
    const { memory, begin, length } = require('node:worker_threads').workerData;
    const bytes = new Uint8Array(memory, begin, length);
    require('node:worker_threads').parentPort.postMessage('writes');
    for (;;) bytes[(Math.random() * length) | 0] = Math.random() * 256;`;
  const workerData = { memory: memory.buffer, begin: memory.byteOffset, length: memory.length };
  const worker = new Worker(program, { eval: true, workerData });
  try {
    await new Promise((resolve) => worker.once('message', resolve));
    for (let i = 0; i < 5000; i++) {
      call(map, 'structured', below);
      if (i % 100 === 0) {
        map.clear();
        await new Promise(setImmediate);
      }
    }
  } finally {
    await worker.terminate();
  }
  checkCleared(map, 'structured', below);
  expect(outsideIsWhole()).toBe(true);
});
