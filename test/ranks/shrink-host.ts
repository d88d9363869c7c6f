/** Ranks that compute together until some fail, and then a while without them; each says who it is, and who is left. */
import { init, Op, Window } from 'onesided';

const AFTERWARDS = 50;
const world = await init();
console.log(JSON.stringify({ pid: process.pid }));
let comm = world;
for (;;) {
  try {
    const win = await Window.allocate(comm, Float64Array, comm.size);
    await win.fence();
    const isOver = Float64Array.of(0);
    for (let step = 1; isOver[0] === 0; step++) {
      for (let target = 0; target < comm.size; target++) win.accumulate(Float64Array.of(1), target, comm.rank, Op.SUM);
      await win.fence();
      if (win.local.some((count) => count !== step)) throw new Error(`after ${step} steps: ${win.local}`);
      await comm.allreduce(Float64Array.of(comm !== world && step >= AFTERWARDS ? 1 : 0), isOver, Op.SUM);
    }
    await win.free();
    break;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_RMA_RANK_FAILED') throw error;
    comm = await comm.shrink();
  }
}
console.log(JSON.stringify({ ranks: [...comm.group.worldRanks] }));
await comm.finalize();
await world.finalize();
