/** Readers beside writers in other threads: values are whole, and never go back, whatever becomes of the writer. */
import type { Worker } from 'node:worker_threads';
import { afterEach, expect, it } from 'vitest';
import { startWorker } from '../../support/children.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import type { WriterData } from './programs/map-writer.ts';
import { checkedValue, newMap, sequenceOf, Watch } from './support.ts';

const PROGRAM = new URL('programs/map-writer.ts', import.meta.url);
const KEYS = 200;
/** Memory is used again every few hundred writes. */
const BYTES = 128 << 10;
const workers: Worker[] = [];

afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.terminate();
});

async function start(data: WriterData, word: string): Promise<Worker> {
  const worker = startWorker(PROGRAM, data);
  workers.push(worker);
  await new Promise<void>((resolve, reject) => {
    worker.on('message', (said) => said === word && resolve());
    worker.on('error', reject);
  });
  return worker;
}

function scene() {
  const made = newMap<Uint8Array>({ bytes: BYTES, codec: 'bytes' }, {}, true);
  const { memory, dead, map } = made;
  const seed = seedOfRun();
  const data = (place: number, sequence: number): WriterData => {
    return { memory, dead, place, seed: seed + place, bytes: BYTES, keys: KEYS, sequence };
  };
  return { ...made, data, below: randomBelow(seed), watch: new Watch(map, KEYS) };
}

it('values are whole and never go back while two writers write', async () => {
  const { map, data, below, watch } = scene();
  await start(data(2, 1), 'writing');
  await start(data(3, 1), 'writing');
  for (let i = 0; i < 40_000; i++) {
    watch.read(below(KEYS));
    if (i % 1000 === 0) watch.walk();
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  expect(watch.found).toBeGreaterThan(1000);
  expect(map.statistics().evicted).toBeGreaterThan(0);
});

it('a key that is there all the time is always found', async () => {
  const bytes = 1 << 20;
  const { map, memory, dead } = newMap<Uint8Array>({ bytes, codec: 'bytes' }, {}, true);
  const kept = 60;
  for (let key = 0; key < kept; key++) map.set(`key ${key}`, checkedValue(key, 1, 100));
  for (const place of [2, 3])
    await start({ memory, dead, place, seed: seedOfRun() + place, bytes, keys: KEYS, kept, sequence: 2 }, 'writing');
  // Until writers that have had little of a processor have moved enough, too.
  for (let i = 0; i < 60_000 || map.statistics().moved < 1000; i++) {
    const key = i % kept;
    expect(map.has(`key ${key}`)).toBe(true);
    sequenceOf(key, map.get(`key ${key}`)!);
    if (i % 2000 === 0) {
      const met = [...map.keys()].filter((name) => Number(name.slice(4)) < kept);
      expect(met.length).toBe(kept);
      expect(new Set(met).size).toBe(kept);
    }
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  expect(map.statistics()).toMatchObject({ evicted: 0 });
});

it('readers go on while a writer is stopped inside the lock, and another one takes over when it is dead', async () => {
  const { map, data, dead, watch } = scene();
  for (let key = 0; key < 20; key++) map.set(`key ${key}`, checkedValue(key, 1, 100));
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = await start({ ...data(2, 2), gate }, 'inside');
  for (let round = 0; round < 100; round++) {
    for (let key = 0; key < 20; key++) watch.read(key);
    watch.walk();
  }
  expect(watch.found).toBe(100 * 40);
  expect(sequenceOf(0, map.get('key 0')!)).toBe(1);
  await worker.terminate();
  dead[2] = 1;
  map.set('key 0', checkedValue(0, 3, 5));
  expect(map.statistics()).toMatchObject({ recovered: 1, entries: 20 });
  watch.walk();
});

it('a writer that is ended at random moments leaves a map that works', async () => {
  const { map, data, dead, below, watch } = scene();
  for (let round = 0; round < 12; round++) {
    dead[2] = 0;
    const worker = await start(data(2, 1 + round * 10_000_000), 'writing');
    const until = performance.now() + below(20);
    while (performance.now() < until) watch.read(below(KEYS));
    await worker.terminate();
    dead[2] = 1;
    watch.walk();
    // All shards: some of them recover.
    for (let i = 0; i < 100; i++) map.delete(`other ${i}`);
    expect(map.size).toBe([...map.keys()].length);
  }
  expect(watch.found).toBeGreaterThan(1000);
});
