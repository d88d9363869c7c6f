// Every entry of the package, and that the simulator is behind its own.
import * as onesided from 'onesided';
import { begin } from 'onesided/bsp';
import { fabricNames, runTasks } from 'onesided/fabrics';
import fabric from 'onesided/fabrics/infinihost-64.json' with { type: 'json' };
import own from 'onesided/package.json' with { type: 'json' };
import { Counter } from 'onesided/sync';
import * as verbs from 'onesided/verbs';

const world = await onesided.init();
const counter = await Counter.create(world);
counter.add(2);
const bsp = await begin(world);
await bsp.sync();
await bsp.end();
let ranks = 0;
await runTasks(8, async () => void ranks++, { fabric });
console.log(
  JSON.stringify({
    count: counter.value,
    ranks,
    fabrics: fabricNames().length > 0,
    verbs: Object.keys(verbs).length > 0,
    simulator: 'runTasks' in onesided,
    version: own.version,
  }),
);
await counter.free();
await world.finalize();
