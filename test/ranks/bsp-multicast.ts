/** Supersteps whose counts come by multicast: each rank reports how many did, and how many it had to ask for. */
import { run } from 'onesided/bsp';

await run(
  async (bsp) => {
    const x = new Float64Array(bsp.nprocs);
    bsp.pushReg(x);
    await bsp.sync();
    for (let step = 0; step < 50; step++) {
      bsp.put((bsp.pid + 1) % bsp.nprocs, Float64Array.of(step), x, bsp.pid);
      await bsp.sync();
      if (x[(bsp.pid + bsp.nprocs - 1) % bsp.nprocs] !== step) throw new Error(`superstep ${step}: ${x}`);
    }
    console.log(JSON.stringify(bsp.statistics()));
  },
  { counts: 'multicast', delivery: 'packed', nackAfter: 2000 },
);
