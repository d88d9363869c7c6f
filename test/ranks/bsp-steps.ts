/**
 * Supersteps whose relations are known, for reports and traces: a registration; process 0 puts 300 words to process 1
 * and 7 to itself; all get 100 words of process 0; all send nine words and a tag of one to process 0. With `die`,
 * process 1 exits before the third one ends; with `--parts`, each half of the processes computes by itself, too.
 */
import { init } from 'onesided';
import { begin } from 'onesided/bsp';

const [what] = process.argv.slice(2);
const world = await init();
const bsp = await begin(world);
const x = new Float64Array(400);
bsp.pushReg(x);
bsp.setTagsize(8);
await bsp.sync();
if (bsp.pid === 0) {
  bsp.put(1 % bsp.nprocs, new Float64Array(300), x);
  bsp.put(0, new Float64Array(7), x);
}
await bsp.sync();
bsp.get(0, x, 0, new Float64Array(100));
if (what === 'die' && bsp.pid === 1) process.exit(3);
await bsp.sync();
bsp.send(0, Float64Array.of(1), new Float64Array(9));
bsp.syncSync();
await bsp.end();
if (what === 'parts') {
  const part = (await world.split(world.rank % 2))!;
  const own = await begin(part);
  for (let i = 0; i < 3; i++) await own.sync();
  await own.end();
}
await world.finalize();
