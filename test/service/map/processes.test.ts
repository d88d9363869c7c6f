/**
 * Writers that are processes of their own, stopped and killed by the kernel at any instruction. What the memory of a
 * stopped process is, is what it would be had the process been killed there: so a copy of it is as good as a death, and
 * a thousand of them take seconds. `ONESIDED_KILLS` says how many.
 */
import { readFileSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { loadNative } from '../../../src/native.ts';
import { SharedMap } from '../../../src/service/map/index.ts';
import { type Child, startProgram } from '../../support/children.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { memoryBytes, openMap, optionsOf, sequenceOf, TestLock, Watch } from './support.ts';

const PROGRAM = new URL('programs/map-writer.ts', import.meta.url);
const KEYS = 200;
/** Entries are evicted all the time; or none is. */
const TIGHT = 128 << 10;
const WIDE = 1 << 20;
const KILLS = Number(process.env['ONESIDED_KILLS'] ?? 300);
/** Ends hangs. */
const DEADLINE = { timeout: 180_000 + 100 * KILLS };
const native = loadNative();

const started: Child[] = [];
afterEach(async () => {
  // Also what a test that failed has left, stopped or not.
  await Promise.all(started.splice(0).map(kill));
});

/** Memory of a file: the map, what was acknowledged, the dead places. */
function scene(bytes: number, kept: number) {
  const options = { bytes, codec: 'bytes' } as const;
  const page = native!.pageBytes;
  const mapped = Math.ceil((memoryBytes(options) + 4 * KEYS + 256) / page) * page;
  const fd = native!.memoryCreate('onesided-map-test');
  native!.memoryResize(fd, mapped);
  const memory = native!.memoryMap(fd, 0, mapped);
  const dead = new Int32Array(memory, mapped - 256, 64);
  const lock = new TestLock(memory, 1, dead);
  const map = SharedMap.create<Uint8Array>('test', { buffer: memory, byteOffset: 0 }, lock, optionsOf(options));
  const seed = seedOfRun();
  const start = async (place: number, round: number): Promise<Child> => {
    dead[place] = 0;
    const args = [bytes, mapped, place, seed + round, KEYS, kept, 1 + round * 10_000_000];
    const child = startProgram(PROGRAM, args.map(String), [fd]);
    started.push(child);
    await child.said('writing');
    return child;
  };
  return { map, memory, mapped, dead, options, start, below: randomBelow(seed) };
}

type Scene = ReturnType<typeof scene>;

async function kill(child: Child): Promise<void> {
  child.process.kill('SIGKILL');
  await child.ended;
}

/** Stops a process, and waits until it stands. */
function stop(child: Child): void {
  child.process.kill('SIGSTOP');
  while (!/\) [Tt] /.test(readFileSync(`/proc/${child.process.pid}/stat`, 'latin1')));
}

/** The map as it would be had all writers died now. */
function asIfKilled({ memory, mapped, options }: Scene): { map: SharedMap<Uint8Array>; acknowledged: Int32Array } {
  const copy = memory.slice(0);
  const dead = new Int32Array(copy, mapped - 256, 64).fill(1);
  const acknowledged = new Int32Array(copy, mapped - 256 - 4 * KEYS, KEYS);
  return { map: openMap<Uint8Array>(copy, 40, dead, options).map, acknowledged };
}

/** Has all shards recovered that need it. */
function touchAll(map: SharedMap<Uint8Array>): void {
  for (let i = 0; i < 100; i++) map.delete(`other ${i}`);
}

function wait(below: (n: number) => number): void {
  const until = performance.now() + below(100) / 50;
  while (performance.now() < until);
}

it.skipIf(native === undefined)(
  'a writer that is killed at any instruction leaves all entries whole',
  DEADLINE,
  async () => {
    const here = scene(TIGHT, 0);
    const children = [await start(here, 2), await start(here, 3)];
    const sequences = new Uint32Array(KEYS);
    let recovered = 0;
    for (let round = 0; round < KILLS; round++) {
      wait(here.below);
      for (const child of children) stop(child);
      const { map } = asIfKilled(here);
      for (const child of children) child.process.kill('SIGCONT');
      // Before anybody recovers, and after.
      for (let turn = 0; turn < 2; turn++) {
        for (let key = 0; key < KEYS; key++) {
          const value = map.get(`key ${key}`);
          if (value === undefined) continue;
          const sequence = sequenceOf(key, value);
          expect(sequence, `key ${key}`).toBeGreaterThanOrEqual(sequences[key]);
          sequences[key] = sequence;
        }
        if (turn === 0) touchAll(map);
      }
      expect(map.size).toBe([...map.keys()].length);
      for (let i = 0; i < 50; i++) map.set(`more ${i}`, new Uint8Array(100));
      recovered += map.statistics().recovered;
    }
    for (const child of children) await kill(child);
    expect(recovered).toBeGreaterThan(KILLS / 20);
  },
);

it.skipIf(native === undefined)('what was acknowledged is there, or what came after it', DEADLINE, async () => {
  const kept = 60;
  const here = scene(WIDE, kept);
  const children = [await start(here, 2), await start(here, 3)];
  for (let round = 0; round < KILLS / 3; round++) {
    wait(here.below);
    for (const child of children) stop(child);
    const { map, acknowledged } = asIfKilled(here);
    for (const child of children) child.process.kill('SIGCONT');
    touchAll(map);
    for (let key = 0; key < kept; key++) {
      if (acknowledged[key] === 0) continue;
      const value = map.get(`key ${key}`);
      expect(value, `key ${key}`).toBeDefined();
      expect(sequenceOf(key, value!)).toBeGreaterThanOrEqual(acknowledged[key]);
    }
    expect(map.statistics().evicted).toBe(0);
  }
  for (const child of children) await kill(child);
});

it.skipIf(native === undefined)('writers that are killed and started again share one map', async () => {
  const here = scene(TIGHT, 0);
  const { map, dead, below } = here;
  const watch = new Watch(map, KEYS);
  for (let round = 0; round < 4; round++) {
    const child = await start(here, 2, round);
    const until = performance.now() + below(30);
    while (performance.now() < until) watch.read(below(KEYS));
    await kill(child);
    dead[2] = 1;
    watch.walk();
    touchAll(map);
    expect(map.size).toBe([...map.keys()].length);
  }
  expect(watch.found).toBeGreaterThan(100);
});

it.skipIf(native === undefined)('readers do not wait for a stopped writer', async () => {
  const here = scene(TIGHT, 0);
  const child = await start(here, 2);
  const watch = new Watch(here.map, KEYS);
  let held = 0;
  for (let round = 0; round < 100; round++) {
    wait(here.below);
    stop(child);
    const { map } = asIfKilled(here);
    touchAll(map);
    held += map.statistics().recovered - here.map.statistics().recovered;
    for (let key = 0; key < KEYS; key++) watch.read(key);
    watch.walk();
    child.process.kill('SIGCONT');
  }
  await kill(child);
  expect(watch.found).toBeGreaterThan(1000);
  expect(held).toBeGreaterThan(0);
});

function start(here: Scene, place: number, round = 0): Promise<Child> {
  return here.start(place, round);
}
