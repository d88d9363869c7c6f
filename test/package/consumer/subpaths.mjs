// Every entry of the package, and that the simulator is behind its own.
import * as onesided from 'onesided';
import { loadFabric, runTasks } from 'onesided/fabrics';
import fabric from 'onesided/fabrics/infinihost-64.json' with { type: 'json' };
import { version } from 'onesided/package.json' with { type: 'json' };
import { Counter } from 'onesided/sync';
import * as verbs from 'onesided/verbs';

let sum = 0;
await runTasks(
  8,
  async (world) => {
    const counter = await Counter.create(world);
    await counter.add(world.rank);
    await world.barrier();
    if (world.rank === 0) sum = await counter.read();
    await counter.free();
  },
  { fabric },
);
const named = loadFabric('infinihost-64').name ?? 'infinihost-64';
console.log([sum, 'runTasks' in onesided, typeof verbs, named.length > 0, version].join(' '));
