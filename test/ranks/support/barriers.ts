/**
 * What barriers promise whatever carries them out, as a random program: of several communicators, back to back, some
 * waits that end early, computations before and within, fences and collectives between. For ranks that are tasks, whose
 * entries are seen in one place.
 */
import assert from 'node:assert/strict';
import { type Communicator, Op, Window } from 'onesided';
import type { BarrierOptions } from 'onesided/fabrics';
import type { Random } from './random.ts';

/** Kinds that adapters carry out, with each algorithm. */
export const BARRIERS: readonly BarrierOptions[] = (['waits', 'adapter'] as const).flatMap((barrier) =>
  ['dissemination', 'pairwise', 'gather-broadcast:2', 'gather-broadcast:4'].map((barrierAlgorithm) => ({
    ...{ barrier, barrierAlgorithm },
    barrierNackAfter: 0.1,
  })),
);

const STEPS = 20;

/** How many ranks have entered a barrier, by communicator and number. All ranks of a run are in this thread. */
export class Entries {
  readonly #counts = new Map<string, number>();

  enter(barrier: string): void {
    this.#counts.set(barrier, this.of(barrier) + 1);
  }

  of(barrier: string): number {
    return this.#counts.get(barrier) ?? 0;
  }
}

/**
 * @param random different at each rank
 * @param agreed the same at all
 */
export async function enterMany(world: Communicator, random: Random, agreed: Random, entries: Entries): Promise<void> {
  const { rank, size } = world;
  const half = (await world.split(rank % 2, rank))!;
  const same = await world.dup();
  const comms = [
    { comm: world, name: 'world' },
    { comm: half, name: `half ${rank % 2}` },
    { comm: same, name: 'same' },
  ];
  const win = await Window.allocate(world, Int32Array, size);
  for (let step = 0; step < STEPS; step++) {
    const { comm, name } = agreed.pick(comms);
    const barrier = `${name}, step ${step}`;
    if (random.chance(0.5)) await world.compute(random.between(0, 30));
    entries.enter(barrier);
    const whole = (): Promise<void> => comm.barrier();
    // What is left goes on, and is what the next call waits for.
    const going = random.chance(0.2) ? comm.barrier({ timeout: 0.001 * random.between(1, 20) }).catch(whole) : whole();
    if (random.chance(0.3)) await world.compute(random.between(0, 40));
    await going;
    assert.equal(entries.of(barrier), comm.size, `${barrier}: rank ${rank} left before all had entered`);
    if (agreed.chance(0.3)) {
      await win.fence();
      win.put(Int32Array.of(step), (rank + 1) % size, rank);
      await win.fence();
      assert.equal(win.local[(rank + size - 1) % size], step, `${barrier}: what was put is there behind the fence`);
    }
    if (agreed.chance(0.2)) {
      const sum = new Int32Array(1);
      await world.allreduce(Int32Array.of(1), sum, Op.SUM);
      assert.equal(sum[0], size);
    }
  }
  await win.free();
  await half.free();
  await same.free();
}
