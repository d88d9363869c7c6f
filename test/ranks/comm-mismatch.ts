/**
 * Runs each mismatch of as many ranks as there are (support/mismatches.ts), and collectives that lose a buffer
 * (support/given-away.ts), and prints how they ended at this rank.
 */
import { init } from 'onesided';
import { giveAway } from './support/given-away.ts';
import { BARRIER_MISMATCHES, ending, FENCE_MISMATCHES, MISMATCHES, type Mismatch } from './support/mismatches.ts';

const world = await init();
const endings: Record<string, string> = {};
/** Ranks that are not needed have a communicator of their own, and nothing to do. */
async function run(mismatch: Mismatch): Promise<() => Promise<void>> {
  const comm = await world.split(world.rank < mismatch.size ? 0 : 1);
  return async () => {
    endings[mismatch.name] = world.rank < mismatch.size ? await ending(mismatch, comm!) : 'done';
  };
}

const [blocking, waiting] = [true, false].map((kind) =>
  FENCE_MISMATCHES.filter(({ blocks }) => (blocks ?? false) === kind),
);
for (const mismatch of [...MISMATCHES, ...BARRIER_MISMATCHES, ...blocking]) {
  if (mismatch.size > world.size) continue;
  await (await run(mismatch))();
  await world.barrier();
}
// Each is told after a second: those that do not keep the others waiting are told together.
const together = [];
for (const mismatch of waiting) together.push(await run(mismatch));
await Promise.all(together.map((go) => go()));
await world.barrier();
console.log(JSON.stringify({ endings, givenAway: await giveAway(world) }));
await world.finalize();
