// Strict TypeScript, checked with module resolution `nodenext` and `bundler`, and with library checks on.
import { type Communicator, Datatype, init, Lock, Op, RmaError, Window } from 'onesided';
import { type Bsp, run } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { Counter } from 'onesided/sync';

export async function sum(world: Communicator): Promise<number> {
  const win: Window<Float64Array> = await Window.allocate(world, Float64Array, 4);
  await win.lock(0, Lock.SHARED);
  win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
  await win.unlock(0);
  await world.barrier();
  const total: number = win.local[0]!;
  await win.free();
  return total;
}

export const main = (): Promise<number> => run((bsp: Bsp) => bsp.sync().then(() => bsp.superstep));

const column = Datatype.vector(4, 1, 8, Datatype.FLOAT64);
const world = await init();
try {
  console.log(world.rank, await sum(world), column.extent);
} catch (error) {
  if (error instanceof RmaError && error.code === 'ERR_RMA_RANGE') console.log(error.message);
  throw error;
}
const counter = await Counter.create(world);
await counter.free();
await world.finalize();
await runTasks(2, async (each) => void (await sum(each)), { fabric: 'infinihost-64' });
