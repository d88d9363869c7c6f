/**
 * One rank (`--rank=`, default 1) gets no more of something from some moment on. The ranks make one thing after the
 * other (`--make=…`) until that fails, and each prints how many there are, and the error.
 *
 * `--limit=file-size`: its memory file may not grow any more (processes). `memory`, `queues`: the device says
 * that there is none. `mappings`: it can map no more memory of other ranks.
 */
import { spawnSync } from 'node:child_process';
import { type Communicator, init, type RmaError, Window } from 'onesided';
import { BoundedQueue, Counter, Mutex } from 'onesided/sync';
import { argument } from './support/cases.ts';

const MOST = 2000;

const MAKE: Record<string, (world: Communicator) => Promise<{ free(): Promise<void> }>> = {
  createDynamic: (world) => Window.createDynamic(world),
  'create-null': (world) => Window.create(world, null),
  create: (world) => Window.create(world, new Float64Array(1 << 16)),
  allocate: (world) => Window.allocate(world, Float64Array, 10),
  'allocate-nothing': (world) => Window.allocate(world, Float64Array, 0),
  'remote-notify': (world) => Window.allocate(world, Float64Array, 0, { info: { fence: 'remote-notify' } }),
  allocateShared: (world) => Window.allocateShared(world, Float64Array, 10),
  counter: (world) => Counter.create(world),
  mutex: (world) => Mutex.create(world),
  queue: (world) => BoundedQueue.create(world, Float64Array, 10),
  split: async (world) => (await world.split(0))!,
  'split-in-two': async (world) => (await world.split(world.rank === 1 ? 1 : 0))!,
  dup: (world) => world.dup(),
};

function refuse(): never {
  throw new Error('nothing is left');
}

const LIMIT: Record<string, (world: Communicator) => void> = {
  'file-size': () => {
    const limit = ['--fsize=1', '--pid', String(process.pid)];
    const { status, stderr, error } = spawnSync('prlimit', limit, { encoding: 'utf8' });
    if (status !== 0) throw error ?? new Error(`prlimit: ${stderr}`);
  },
  memory: ({ job }) => {
    job.context.allocateMemory = refuse;
  },
  mappings: ({ job }) => {
    job.context.remotePointer = refuse;
  },
  queues: ({ job }) => {
    job.pd.createQueuePair = refuse;
  },
};

const world = await init();
// Connections are there.
await world.alltoall(new Int32Array(world.size), new Int32Array(world.size));
if (world.rank === Number(argument('rank') ?? 1)) LIMIT[argument('limit')!](world);
await world.barrier();
let made = 0;
let error: RmaError | undefined;
const things: { free(): Promise<void> }[] = [];
while (error === undefined && made < MOST) {
  try {
    things.push(await MAKE[argument('make')!](world));
    made++;
  } catch (thrown) {
    error = thrown as RmaError;
  }
}
// What was there before is still good.
const all = new Int32Array(world.size);
await world.allgather(Int32Array.of(made), all);
await world.barrier();
console.log(JSON.stringify({ made: [...all], code: error?.code, message: error?.message }));
for (const thing of things) await thing.free();
await world.finalize();
