/**
 * Runs each mismatch of as many ranks as there are (support/mismatches.ts), and collectives that lose a buffer
 * (support/given-away.ts), and prints how they ended at this rank.
 */
import { init } from 'onesided';
import { giveAway } from './support/given-away.ts';
import { BARRIER_MISMATCHES, ending, MISMATCHES } from './support/mismatches.ts';

const world = await init();
const endings: Record<string, string> = {};
for (const mismatch of [...MISMATCHES, ...BARRIER_MISMATCHES]) {
  if (mismatch.size > world.size) continue;
  // Ranks that are not needed have a communicator of their own, and nothing to do.
  const comm = await world.split(world.rank < mismatch.size ? 0 : 1);
  endings[mismatch.name] = world.rank < mismatch.size ? await ending(mismatch, comm!) : 'done';
  await world.barrier();
}
console.log(JSON.stringify({ endings, givenAway: await giveAway(world) }));
await world.finalize();
