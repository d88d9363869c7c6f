/** Rank 0 puts a megabyte to rank 1, and says what comes of it. */
import { init, type RmaError, Window } from 'onesided';

const ELEMENTS = 131_072;

const world = await init();
const win = await Window.allocate(world, Float64Array, ELEMENTS);
await win.lockAll();
if (world.rank === 0) {
  try {
    win.put(new Float64Array(ELEMENTS), 1, 0);
    await win.flush(1);
    console.log('complete');
  } catch (error) {
    const { code, message } = error as RmaError;
    console.log(`${code}: ${message}`);
    process.exit(0);
  }
}
await win.unlockAll();
await world.barrier();
await world.finalize();
