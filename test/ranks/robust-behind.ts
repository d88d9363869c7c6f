/**
 * Rank 1 exits. Rank 2 learns of that, and ends without `finalize()`. Rank 0 waits for rank 2 alone, and prints what it
 * is told.
 */
import { init, type RmaError } from 'onesided';

const world = await init();
const half = (await world.split(world.rank % 2))!;
await world.barrier();
if (world.rank === 1) process.exit(3);
const waits = world.rank === 0 ? half.barrier() : world.barrier();
await waits.catch(({ code, message }: RmaError) => {
  if (world.rank === 0) console.log(`[0] ${JSON.stringify({ code, message })}`);
});
if (world.rank === 0) await world.finalize().catch(() => {});
