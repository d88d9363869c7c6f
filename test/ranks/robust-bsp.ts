/**
 * A process that dies before it comes to the end of a superstep: `--delivery=`, `--counts=`, `--victim=`, `--what=`,
 * `--pacing=` (JSON); with `--sends` it dies while it ends it, too.
 */
import { init } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import { argument } from './support/cases.ts';

const world = await init();
const counts = argument('counts');
const bsp = await begin(world, {
  delivery: argument('delivery'),
  ...(counts !== undefined && { counts }),
  pacing: JSON.parse(argument('pacing') ?? '"none"'),
} as BspOptions);
const x = new Float64Array(5000);
bsp.pushReg(x);
await bsp.sync();
const victim = Number(argument('victim') ?? bsp.nprocs - 1);
for (let pid = 0; pid < bsp.nprocs; pid++) {
  if (argument('what') === 'put') bsp.put(pid, new Float64Array(1000).fill(bsp.pid), x, 1000 * bsp.pid);
  else bsp.get(pid, x, 0, new Float64Array(1000));
}
// The others have left the first superstep by then: it would be there that they learn of it.
if (bsp.pid === victim) {
  if (process.argv.includes('--sends')) void bsp.sync();
  await new Promise((resolve) => setTimeout(resolve, 1000)).then(() => process.exit(3));
}
const codes: unknown[] = [];
for (let i = 0; i < 2; i++) {
  try {
    await bsp.sync();
    codes.push('none');
  } catch (error) {
    codes.push((error as { code?: string }).code);
  }
}
console.log(JSON.stringify({ rank: bsp.pid, codes }));
