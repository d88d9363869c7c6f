/** Who handles events of the adapter while a rank computes (`host.helper`). */
import { Assert, type Communicator, Window } from 'onesided';
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const SENDERS = 15;
const PUTS = 200;
const COMPUTE = 2000;

interface Seen {
  /** Microseconds of the computation at rank 0. */
  readonly computed: number;
  readonly refused: number;
  readonly refills: number;
  readonly right: boolean;
}

/** More notified puts to rank 0 than receives are posted in the beginning, while it computes. */
async function flood(world: Communicator): Promise<Seen> {
  const win = await Window.allocate(world, Int32Array, world.size, { info: { fence: 'remote-notify' } });
  await win.fence();
  if (world.rank > 0) for (let i = 1; i <= PUTS; i++) win.put(Int32Array.of(i), 0, world.rank);
  const begun = world.now();
  if (world.rank === 0) await world.compute(COMPUTE);
  const computed = world.now() - begun;
  const { refused = -1, refills } = win.statistics();
  await win.fence(Assert.NO_SUCCEED);
  const right = world.rank !== 0 || win.local.every((value, rank) => value === (rank === 0 ? 0 : PUTS));
  await win.free();
  return { computed, refused, refills, right };
}

async function withHelper(helper: number, interrupt = 5): Promise<Seen> {
  const fabric = loadFabric('infinihost-64');
  const changed = { ...fabric, host: { ...fabric.host, helper, interrupt } };
  const [seen] = await runTasks(SENDERS + 1, flood, { fabric: changed, seed: 1 });
  return seen;
}

describe('receives that run low while the target computes', () => {
  test('run out where nobody is there; the puts arrive later', async () => {
    const seen = await withHelper(0);
    expect(seen).toMatchObject({ right: true, refills: 0, computed: COMPUTE });
    expect(seen.refused).toBeGreaterThan(0);
  });

  test('are posted by an interrupt, which takes its time from the computation', async () => {
    const seen = await withHelper(1);
    expect(seen).toMatchObject({ right: true, refused: 0 });
    expect(seen.refills).toBeGreaterThan(0);
    expect(seen.computed).toBeGreaterThan(COMPUTE + 5);
    const longer = await withHelper(1, 10);
    expect(longer.computed - seen.computed).toBeGreaterThanOrEqual(5);
  });

  test('are posted by another core, beside the computation', async () => {
    const seen = await withHelper(2);
    expect(seen).toMatchObject({ right: true, refused: 0, computed: COMPUTE });
    expect(seen.refills).toBeGreaterThan(0);
  });

  test('run out all the same if the handler comes too late', async () => {
    expect((await withHelper(2, 1000)).refused).toBeGreaterThan(0);
  });
});
