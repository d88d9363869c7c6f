/**
 * Barriers that adapters carry out by themselves (`barrier: 'adapter'`), between ranks that are processes: on a device.
 * A rank that computes only looks at what its adapter has done, and makes no call that waits.
 */
import assert from 'node:assert/strict';
import { type Communicator, Lock, Op, Window } from 'onesided';
import { argument, runCases } from './support/cases.ts';

/** Whether adapters lose packets (`ONESIDED_DEBUG=drop:P`). */
const lossy = argument('lossy') !== undefined;
const ROUNDS = Number(argument('rounds') ?? 30);

function adapterOf(comm: Communicator): { barriers: number; packets: number; nacks: number; resent: number } {
  const { barrier, adapter } = comm.statistics();
  assert.equal(barrier, 'adapter');
  return adapter!;
}

const algorithm = process.env['ONESIDED_BARRIER_ALGORITHM'] ?? 'dissemination';

/** Messages of a barrier, of all ranks together. */
function messagesOf(size: number): number {
  const rounds = Math.floor(Math.log2(size));
  if (algorithm === 'dissemination') return size * Math.ceil(Math.log2(size));
  // Those that are no part of the exchange tell one that is, and are told.
  if (algorithm === 'pairwise') return 2 ** rounds * rounds + 2 * (size - 2 ** rounds);
  return 2 * (size - 1);
}

/** Enters many barriers, and looks after each whether all ranks have entered. */
async function enterAndCount(comm: Communicator, rounds: number): Promise<void> {
  const win = await Window.allocate(comm, Int32Array, 1);
  const entered = new Int32Array(1);
  await win.lockAll();
  for (let round = 1; round <= rounds; round++) {
    win.fetchAndOp(Int32Array.of(1), entered, 0, 0, Op.SUM);
    win.flushSync(0);
    if (round % 2 === 0) await comm.barrier();
    else comm.barrierSync();
    win.get(entered, 0, 0);
    win.flushSync(0);
    assert.ok(entered[0] >= round * comm.size, `barrier ${round}: ${entered[0]} entries of ${round * comm.size}`);
    await comm.barrier();
  }
  await win.unlockAll();
  await win.free();
}

await runCases({
  async 'no rank leaves before all have entered'(world) {
    await enterAndCount(world, ROUNDS);
  },

  async 'groups go on beside each other'(world) {
    const half = (await world.split(world.rank % 2, world.rank))!;
    const same = await world.dup();
    for (let round = 0; round < ROUNDS; round++) {
      const waits = [world, half, same].map((comm) => comm.barrier());
      await Promise.all(waits);
    }
    await enterAndCount(half, 5);
    await half.free();
    await same.free();
    // Their numbers are used again.
    for (let i = 0; i < 5; i++) {
      const next = await world.dup();
      await next.barrier();
      next.barrierSync();
      await next.free();
    }
  },

  async 'a barrier goes on while its ranks compute'(world) {
    for (let round = 0; round < 5; round++) {
      await world.barrier();
      const before = adapterOf(world).barriers;
      const going = world.barrier();
      // Without a call that waits, and without a turn of the event loop.
      const deadline = performance.now() + 100_000;
      while (adapterOf(world).barriers === before && performance.now() < deadline);
      assert.equal(adapterOf(world).barriers, before + 1);
      await going;
    }
  },

  async 'a wait that ends early is gone on with'(world) {
    for (let round = 0; round < 5; round++) {
      if (world.rank === round % world.size) await new Promise((resolve) => setTimeout(resolve, 20));
      // What is left is what the next call waits for.
      await world.barrier({ timeout: 1 }).catch(() => world.barrier());
    }
  },

  async 'fences of windows by requests close with it'(world) {
    const win = await Window.allocate(world, Float64Array, world.size);
    const value = new Float64Array(1);
    for (let round = 0; round < 10; round++) {
      await win.fence();
      value[0] = 100 * round + world.rank;
      win.put(value, (world.rank + 1) % world.size, world.rank);
      await win.fence();
      const source = (world.rank + world.size - 1) % world.size;
      assert.equal(win.local[source], 100 * round + source);
    }
    await win.free();
    const counted = await Window.allocate(world, Int32Array, 1);
    await counted.lock(0, Lock.EXCLUSIVE);
    await counted.unlock(0);
    await counted.free();
  },

  async 'what leaves is the schedule, and what was lost again'(world) {
    await world.barrier();
    const { barriers, packets, nacks, resent } = adapterOf(world);
    const [sent, asked, again] = [new Int32Array(1), new Int32Array(1), new Int32Array(1)];
    await world.allreduce(Int32Array.of(packets - nacks - resent), sent, Op.SUM);
    await world.allreduce(Int32Array.of(nacks), asked, Op.SUM);
    await world.allreduce(Int32Array.of(resent), again, Op.SUM);
    assert.ok(barriers > 0);
    assert.equal(sent[0], barriers * messagesOf(world.size));
    // Without losses, too, ranks may come apart by more than the time after which they ask.
    if (lossy) assert.ok(asked[0] > 0 && again[0] > 0, `${asked[0]} Nacks, ${again[0]} messages again`);
  },
});
