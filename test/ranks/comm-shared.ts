/**
 * `splitType('shared')`: its communicators are those of hosts, and shared windows of them can be loaded and stored.
 * `--host=N`: so many ranks share memory.
 */
import assert from 'node:assert/strict';
import { type Communicator, Lock, Op, Window } from 'onesided';
import { argument, runCases } from './support/cases.ts';

const host = Number(argument('host'));

async function hosts(world: Communicator): Promise<void> {
  const first = world.rank - (world.rank % host);
  const members = Array.from({ length: Math.min(host, world.size - first) }, (_, i) => first + i);
  const here = await world.splitType('shared');
  assert.deepEqual([...here.group.worldRanks], members);
  const reversed = world.splitTypeSync('shared', -world.rank);
  assert.deepEqual([...reversed.group.worldRanks], [...members].reverse());
  // Of part of the ranks, in another order.
  const odd = await world.split(world.rank % 2, -world.rank);
  const oddHere = await odd!.splitType('shared');
  const expected = members.filter((rank) => rank % 2 === world.rank % 2).reverse();
  assert.deepEqual([...oddHere.group.worldRanks], expected);
  for (const comm of [oddHere, odd!, reversed, here]) await comm.free();
}

async function windows(world: Communicator): Promise<void> {
  const here = await world.splitType('shared');
  const { rank, size } = here;
  const win = await Window.allocateShared(here, Float64Array, 4);
  const next = (rank + 1) % size;
  await win.fence();
  win.sharedQuery(next)[0] = 10 + rank;
  await win.fence();
  assert.equal(win.local[0], 10 + ((rank - 1 + size) % size));
  // What is stored through the query, and what calls write, is the same memory.
  await win.fence();
  win.put(Float64Array.of(5), next, 1);
  win.accumulate(Float64Array.of(1), 0, 2, Op.SUM);
  await win.fence();
  assert.equal(win.local[1], 5);
  assert.equal(win.sharedQuery(0)[2], size);
  await win.fence();
  await win.lock(0, Lock.EXCLUSIVE);
  const before = new Float64Array(1);
  win.get(before, 0, 3);
  await win.flush(0);
  win.put(Float64Array.of(before[0] + 1), 0, 3);
  await win.unlock(0);
  await here.barrier();
  assert.equal(win.sharedQuery(0)[3], size);
  await here.barrier();
  await win.free();
  await here.free();
}

/** Of ranks that do not share memory, there is no shared window; all are told why. */
async function strangers(world: Communicator): Promise<void> {
  if (host >= world.size) return;
  await assert.rejects(Window.allocateShared(world, Float64Array, 1), { code: 'ERR_RMA_SHARED', message: /splitType/ });
  await world.barrier();
}

await runCases({
  'splitType makes a communicator of each host': hosts,
  'a shared window is made on the ranks of a host': windows,
  'ranks that do not share memory are told why there is no shared window': strangers,
});
