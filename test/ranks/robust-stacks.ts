/**
 * What the errors of awaited calls show: rank 0 awaits one call after the other for whose end it needs rank 1, which
 * does not call the library meanwhile. Each ends at its deadline, and its stack is to contain the line of this file
 * that awaits it. Prints the stacks, by call.
 */
import { init, Lock, Op, type Request, type RmaError, Window } from 'onesided';

const IN_VAIN = { timeout: 20 };
const world = await init();
const [broken, split] = [await world.dup(), await world.dup()];
const flag = await Window.allocateShared(world, Int32Array, 2);
const plain = await Window.allocate(world, Float64Array, 4);
const posts = await Window.allocate(world, Float64Array, 4);
const starts = await Window.allocate(world, Float64Array, 4);
const queued = await Window.allocate(world, Float64Array, 4, { info: { lock: 'two-sided' } });
const locks = await Window.allocate(world, Float64Array, 4);
const one = new Float64Array(1);
const other = world.group.include([1]);
let request: Request;

const calls: Record<string, () => Promise<unknown>> = {
  async fence() {
    await plain.fence(0, IN_VAIN);
  },
  async barrier() {
    await world.barrier(IN_VAIN);
  },
  async lock() {
    await locks.lock(1, Lock.SHARED, 0, IN_VAIN);
  },
  async lockAll() {
    await locks.lockAll(0, IN_VAIN);
  },
  async locked() {
    await locks.locked(1, Lock.EXCLUSIVE, 0, IN_VAIN);
  },
  async flush() {
    await queued.flush(1, IN_VAIN);
  },
  async flushAll() {
    await queued.flushAll(IN_VAIN);
  },
  async request() {
    await request.wait(IN_VAIN);
  },
  async start() {
    await starts.start(other, 0, IN_VAIN);
  },
  async wait() {
    await posts.wait(IN_VAIN);
  },
  async waitNotify() {
    await plain.waitNotify(1, IN_VAIN);
  },
  async receive() {
    await world.receive(one, 1, IN_VAIN);
  },
  async allocate() {
    await Window.allocate(world, Float64Array, 1, IN_VAIN);
  },
  async allreduce() {
    await broken.allreduce(one, new Float64Array(1), Op.SUM, IN_VAIN);
  },
  async split() {
    await split.split(0, 0, IN_VAIN);
  },
};

const stacks: Record<string, string> = {};
if (world.rank === 1) {
  await locks.lock(1, Lock.EXCLUSIVE);
  await world.barrier();
  const words = flag.local;
  while (Atomics.load(words, 0) === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
} else {
  const go = flag.sharedQuery(1);
  await posts.post(other);
  await queued.lockAll();
  await world.barrier();
  for (const [name, call] of Object.entries(calls)) {
    if (name === 'flush') {
      queued.put(one, 1, 0);
      request = queued.rput(one, 1, 1);
    }
    try {
      await call();
      stacks[name] = 'it succeeded';
    } catch (error) {
      stacks[name] = `${(error as RmaError).code}: ${(error as Error).stack}`;
    }
  }
  Atomics.store(go, 0, 1);
}
console.log(JSON.stringify(stacks));
// What was abandoned cannot be ended in agreement.
process.exit(0);
