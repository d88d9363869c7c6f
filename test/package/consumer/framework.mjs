// What the test below every test framework does: a window of one rank, and eight on a modelled fabric.
import { init, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';

export async function alone() {
  const world = await init();
  const win = await Window.allocate(world, Int32Array, 2);
  await win.fence();
  win.put(Int32Array.of(42), 0, 1);
  await win.fence();
  const found = win.local[1];
  await win.free();
  await world.finalize();
  return found;
}

export async function tasks() {
  let largest = 0;
  const main = async (world) => {
    const highest = new Int32Array(1);
    await world.allreduce(Int32Array.of(world.rank), highest, (await import('onesided')).Op.MAX);
    largest = highest[0];
  };
  await runTasks(8, main, { fabric: 'infinihost-64' });
  return largest;
}
