/**
 * Ranks that fail one after the other, at random moments, and those that go on without them: until one is left, or none
 * fails any more. Each prints which ranks it went on with.
 *
 *     shrink.js SEED LIVING
 *
 * LIVING ranks stay until the end.
 */
import assert from 'node:assert/strict';
import { isMainThread } from 'node:worker_threads';
import { type Communicator, init, Op, Window } from 'onesided';

const [seed, living] = process.argv.slice(2).map(Number);
const world = await init();
/** World ranks: the next to die, the same at all ranks. */
const order = Array.from({ length: world.size }, (_, rank) => rank);
let state = seed | 0;
function random(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 8) % n;
}
for (let i = order.length - 1; i > 0; i--) {
  const j = random(i + 1);
  [order[i], order[j]] = [order[j], order[i]];
}
const dying = order.slice(living);
const mine = dying.indexOf(world.rank);

function die(): never {
  if (isMainThread) process.kill(process.pid, 'SIGKILL');
  process.exit(3);
}

/** Uses all of a communicator, until something fails. */
async function work(comm: Communicator, round: number): Promise<void> {
  const win = await Window.allocate(comm, Float64Array, comm.size);
  await win.fence();
  const one = Float64Array.of(1);
  for (let step = 0; ; step++) {
    if (mine === round && step === 3) setTimeout(die, random(4));
    for (let target = 0; target < comm.size; target++) win.accumulate(one, target, comm.rank, Op.SUM);
    await win.fence();
    assert.equal(win.local[0], step + 1);
    const sum = Float64Array.of(0);
    await comm.allreduce(Float64Array.of(comm.rank), sum, Op.SUM);
    assert.equal(sum[0], (comm.size * (comm.size - 1)) / 2);
    await comm.barrier();
    if (round === dying.length && step === 5) {
      await win.free();
      return;
    }
  }
}

const failures: string[] = [];
let comm: Communicator = world;
for (;;) {
  try {
    await work(comm, world.size - comm.size);
    break;
  } catch (error) {
    const { code } = error as { code?: string };
    assert.equal(code, 'ERR_RMA_RANK_FAILED', `${error}`);
    failures.push(code);
  }
  // Some die in here, too.
  if (mine > 0 && mine === world.size - comm.size + 1 && random(2) === 0) setTimeout(die, random(3));
  const before = comm;
  comm = await before.shrink();
  assert.ok(before.failed.length > 0);
  // A barrier whose wait a failure has ended goes on in the next one, and perhaps all had come to it.
  const isRefused = (): Promise<boolean> =>
    before.barrier().then(
      () => false,
      ({ code }) => code === 'ERR_RMA_RANK_FAILED',
    );
  assert.ok((await isRefused()) || (await isRefused()));
  // Another one may have died meanwhile.
  const flags = await comm.agree((1 << comm.rank) | -65536);
  assert.equal(flags & ~((1 << comm.rank) | -65536), 0);
  assert.equal(await comm.agree(true), true);
}
console.log(JSON.stringify({ ranks: [...comm.group.worldRanks], failures: failures.length }));
await comm.finalize();
await world.finalize();
