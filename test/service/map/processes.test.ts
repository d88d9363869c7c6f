/**
 * Writers that are processes of their own, killed and stopped by the kernel at any instruction. `ONESIDED_KILLS` says
 * how many are killed.
 */
import { expect, it } from 'vitest';
import { loadNative } from '../../../src/native.ts';
import { SharedMap } from '../../../src/service/map/index.ts';
import { type Child, startProgram } from '../../support/children.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { TestLock, Watch } from './support.ts';

const PROGRAM = new URL('programs/map-writer.ts', import.meta.url);
const KEYS = 200;
const BYTES = 128 << 10;
const KILLS = Number(process.env['ONESIDED_KILLS'] ?? 6);
const native = loadNative();

function scene() {
  const options = { bytes: BYTES, codec: 'bytes' } as const;
  const page = native!.pageBytes;
  // The dead places stand behind the map.
  const mapped = Math.ceil((SharedMap.memoryBytes(options) + 256) / page) * page;
  const fd = native!.memoryCreate('onesided-map-test');
  native!.memoryResize(fd, mapped);
  const memory = native!.memoryMap(fd, 0, mapped);
  const dead = new Int32Array(memory, mapped - 256, 64);
  const lock = new TestLock(memory, 1, dead);
  const map = SharedMap.create<Uint8Array>('test', { buffer: memory, byteOffset: 0 }, lock, options);
  const seed = seedOfRun();
  const start = async (place: number, round: number): Promise<Child> => {
    dead[place] = 0;
    const args = [BYTES, mapped, place, seed + round, KEYS, 1 + round * 10_000_000];
    const child = startProgram(PROGRAM, args.map(String), [fd]);
    await child.said('writing');
    return child;
  };
  return { map, lock, dead, start, watch: new Watch(map, KEYS), below: randomBelow(seed) };
}

async function kill(child: Child): Promise<void> {
  child.process.kill('SIGKILL');
  await child.ended;
}

it.skipIf(native === undefined)(
  'a killed writer leaves each entry whole, none older, and a map that works',
  async () => {
    const { map, lock, dead, start, watch, below } = scene();
    for (let round = 0; round < KILLS; round++) {
      const children = [await start(2, round), await start(3, round)];
      const until = performance.now() + below(30);
      while (performance.now() < until) watch.read(below(KEYS));
      await kill(children[0]);
      dead[2] = 1;
      for (let i = 0; i < 2000; i++) watch.read(below(KEYS));
      await kill(children[1]);
      dead[3] = 1;
      watch.walk();
      // All shards: those whose lock the dead had are recovered.
      for (let i = 0; i < 100; i++) map.delete(`other ${i}`);
      expect(map.size).toBe([...map.keys()].length);
    }
    expect(watch.found).toBeGreaterThan(100 * KILLS);
    // Some die in a lock; a writer may take one over from the other.
    expect(map.statistics().recovered).toBeGreaterThanOrEqual(lock.taken);
  },
);

it.skipIf(native === undefined)('readers do not wait for a stopped writer', async () => {
  const { start, watch, below } = scene();
  const child = await start(2, 0);
  for (let round = 0; round < 20; round++) {
    const until = performance.now() + below(5);
    while (performance.now() < until) watch.read(below(KEYS));
    child.process.kill('SIGSTOP');
    for (let key = 0; key < KEYS; key++) watch.read(key);
    watch.walk();
    child.process.kill('SIGCONT');
  }
  await kill(child);
  expect(watch.found).toBeGreaterThan(1000);
});
