/**
 * What windows leave behind when they are freed, forgotten, or made by the thousand. `--many=N` is how many of the
 * latter. Needs `--expose-gc`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import { type Communicator, Lock, Op, type RmaError, Window } from 'onesided';
import { argument, runCases } from './support/cases.ts';

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return (error as RmaError).code;
  }
  return 'none';
}

async function collect(): Promise<void> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc!();
    await sleep(5);
  }
}

interface Holdings {
  readonly descriptors: number;
  /** Of memory files of the library; the others come and go with V8's heap. */
  readonly mappings: number;
  /** Bytes: of shared memory files, all, and what this rank's JavaScript still refers to. */
  readonly shared: number;
  readonly resident: number;
  readonly heap: number;
}

/** What this process holds. (Thread ranks share one: whatever any of them holds.) */
async function holdings(): Promise<Holdings> {
  await collect();
  const status = readFileSync('/proc/self/status', 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]);
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    mappings: readFileSync('/proc/self/maps', 'utf8').split('memfd:onesided').length - 1,
    shared: kilobytes('RssShmem') * 1024,
    resident: kilobytes('VmRSS') * 1024,
    heap: process.memoryUsage().heapUsed,
  };
}

/** What a thread may have freed before its collector is interested. All threads of a job count together here. */
const UNCOLLECTED = 2 ** 28;

/** Does something `times` times, after some to warm up, and checks that nothing is held for it any more. */
async function leavesNothing(world: Communicator, what: string, times: number, once: (i: number) => unknown) {
  for (let i = 0; i < times / 10; i++) await once(i);
  await world.barrier();
  const before = await holdings();
  await world.barrier();
  for (let i = 0; i < times; i++) await once(i);
  await world.barrier();
  const after = await holdings();
  await world.barrier();
  console.log(`${times} ${what}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`);
  check(
    after.descriptors <= before.descriptors + 2,
    `${what}: ${before.descriptors} descriptors became ${after.descriptors}`,
  );
  // Each rank may have made another part of its tables meanwhile, once and for all, and the others have mapped it.
  const parts = world.size;
  check(after.mappings <= before.mappings + 2 + parts, `${what}: ${before.mappings} mappings became ${after.mappings}`);
  // The keys of regions are random, so in time every page of the regions' tables (2 MB a rank) has been touched.
  check(
    after.shared <= before.shared + 8 * 2 ** 20,
    `${what}: ${before.shared} bytes of shared memory became ${after.shared}`,
  );
  check(after.heap <= before.heap + 2 ** 21, `${what}: ${before.heap} bytes of the heap became ${after.heap}`);
  // What glibc's allocator keeps, though nothing in it is used, is tens of megabytes by itself.
  check(
    after.resident <= before.resident + (isMainThread ? 2 ** 26 : UNCOLLECTED * (world.size + 1)),
    `${what}: ${before.resident} resident bytes became ${after.resident}`,
  );
}

await runCases({
  async 'a window that is freed twice is freed once'(world) {
    const window = await Window.allocate(world, Float64Array, 100);
    await window.free();
    await window.free();
    window.freeSync();
    const other = Window.allocateSync(world, Float64Array, 100);
    await Promise.all([other.free(), other.free()]);
  },

  async 'views of freed windows reach nobody’s memory'(world) {
    const window = await Window.allocate(world, Float64Array, 100);
    await window.fence();
    window.put(new Float64Array(100).fill(7), (world.rank + 1) % world.size, 0);
    await window.fence();
    const { local } = window;
    const { buffer } = local;
    const view = new Uint8Array(buffer);
    const part = new Float64Array(buffer, 8, 10);
    check(part[9] === 7, 'the put has arrived');
    await window.free();
    if (buffer instanceof SharedArrayBuffer) check(local.length === 100, 'a SharedArrayBuffer cannot be detached');
    else {
      check(
        window.local.length === 0 && local.length === 0 && view.length === 0 && part.length === 0,
        'views have length 0',
      );
      check(buffer.byteLength === 0, 'the buffer is detached');
    }
    // None of these reaches memory that somebody else may have by now.
    local[3] = 1;
    view[800] = 1;
    part[0] = 9;
    if (isMainThread) {
      check(part[0] === undefined, 'a stale view gives nothing');
      for (const bulk of [() => part.fill(9), () => view.set([1])])
        check(codeOf(bulk) === undefined, 'JavaScript refuses');
    }
    const next = await Window.allocate(world, Float64Array, 100);
    check(
      next.local.every((value) => value === 0),
      'fresh memory is zero',
    );
    await next.free();
  },

  async 'calls on freed windows are refused'(world) {
    const window = await Window.allocate(world, Float64Array, 100);
    const one = new Float64Array(1);
    await window.free();
    const calls: Record<string, () => unknown> = {
      put: () => window.put(one, 0, 0),
      get: () => window.get(one, 0, 0),
      accumulate: () => window.accumulate(one, 0, 0, Op.SUM),
      fetchAndOp: () => window.fetchAndOp(one, new Float64Array(1), 0, 0, Op.SUM),
      compareAndSwap: () =>
        (window as Window).compareAndSwap(new Int8Array(1), new Int8Array(1), new Int8Array(1), 0, 0),
      fenceSync: () => window.fenceSync(),
      lockSync: () => window.lockSync(0, Lock.SHARED),
      unlockSync: () => window.unlockSync(0),
      lockAllSync: () => window.lockAllSync(),
      unlockAllSync: () => window.unlockAllSync(),
      flushSync: () => window.flushSync(0),
      flushAllSync: () => window.flushAllSync(),
      sync: () => window.sync(),
    };
    for (const [name, call] of Object.entries(calls)) check(codeOf(call) === 'ERR_WIN', `${name}: ${codeOf(call)}`);
    for (const call of [
      () => window.fence(),
      () => window.lock(0, Lock.SHARED),
      () => window.unlock(0),
      () => window.lockAll(),
      () => window.flush(0),
    ]) {
      const code = await call().then(
        () => 'none',
        (error: RmaError) => error.code,
      );
      check(code === 'ERR_WIN', `${call}: ${code}`);
    }
  },

  /** One rank forgets its windows and the collector takes them; the others' still work, on its memory too. */
  async 'a window that one rank forgets stays for the others'(world) {
    const kept: Window[] = [];
    for (let i = 0; i < 20; i++) {
      const window = await Window.allocate(world, Float64Array, 10_000);
      if (world.rank !== 1) kept.push(window);
    }
    await collect();
    await world.barrier();
    const values = new Float64Array(10_000).fill(3);
    const back = new Float64Array(10_000);
    for (const window of kept) {
      window.lockSync(1, Lock.EXCLUSIVE);
      window.put(values, 1, 0);
      window.flushSync(1);
      window.get(back, 1, 0);
      window.unlockSync(1);
      check(back[9_999] === 3, 'the memory of a forgotten window is there until the job ends');
    }
    await world.barrier();
    await collect();
  },

  async 'windows that all ranks forget leave nothing'(world) {
    for (let i = 0; i < 20; i++) {
      const window = await Window.allocate(world, Float64Array, 1000);
      await window.lock((world.rank + 1) % world.size, Lock.SHARED);
      window.put(new Float64Array(1000), (world.rank + 1) % world.size, 0);
      await window.unlock((world.rank + 1) % world.size);
    }
    await collect();
    await world.barrier();
  },

  async 'memory that is forgotten leaves nothing'(world) {
    for (let i = 0; i < 50; i++) world.allocMem(Float64Array, 1000);
    await collect();
    const memory = world.allocMem(Float64Array, 1000);
    const window = await Window.create(world, memory);
    await window.fence();
    await window.free();
    check(memory.length === 1000, 'memory of the caller outlives the window');
    world.freeMem(memory);
    check(codeOf(() => world.freeMem(memory)) === 'ERR_BUFFER', 'freed twice');
  },

  'windows in a row leave nothing': (world) =>
    leavesNothing(world, 'windows allocated and freed', Number(argument('many')), (i) => {
      const window = Window.allocateSync(world, Float64Array, 1 + (i % 1000));
      if (i % 10 === 0) {
        window.fenceSync();
        window.put(Float64Array.of(i), (world.rank + 1) % world.size, 0);
        window.fenceSync();
      } else if (i % 10 === 1) {
        window.lockSync(0, Lock.EXCLUSIVE);
        window.put(Float64Array.of(i), 0, 0);
        window.unlockSync(0);
      }
      window.freeSync();
    }),

  'large windows in a row leave nothing': (world) =>
    leavesNothing(world, 'windows of 8 MB', 100, async () => {
      const window = await Window.allocate(world, Uint8Array, 2 ** 23);
      window.local.fill(1);
      await window.fence();
      window.put(new Uint8Array(4096), (world.rank + 1) % world.size, 2 ** 22);
      await window.fence();
      await window.free();
    }),

  'windows with notifications in a row leave nothing': (world) =>
    leavesNothing(world, 'windows with queue pairs', 200, async () => {
      const window = await Window.allocate(world, Float64Array, 100, { info: { fence: 'remote-notify' } });
      await window.fence();
      window.put(new Float64Array(50), (world.rank + 1) % world.size, 0);
      await window.fence();
      await window.free();
    }),

  'pieces of memory in a row leave nothing': (world) =>
    leavesNothing(world, 'pieces of memory and windows over them', 500, async () => {
      const memory = world.allocMem(Float64Array, 1000);
      const window = await Window.create(world, memory.subarray(0, 500));
      await window.free();
      world.freeMem(memory);
    }),

  'communicators in a row leave nothing': (world) =>
    leavesNothing(world, 'communicators', 500, async () => {
      const half = (await world.split(world.rank % 2))!;
      await half.barrier();
      await half.finalize();
    }),
});
