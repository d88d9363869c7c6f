// The same by `require`: the package is ES modules, and Node loads those so from 20.19 on.
const { init, Window } = require('onesided');

async function main() {
  const world = await init();
  const win = await Window.allocate(world, Float64Array, 1);
  await win.fence();
  win.put(Float64Array.of(world.rank), (world.rank + 1) % world.size, 0);
  await win.fence();
  console.log(`rank ${world.rank} of ${world.size} was given ${win.local[0]}`);
  await win.free();
  await world.finalize();
}

main();
