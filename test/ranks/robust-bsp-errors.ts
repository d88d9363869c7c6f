/**
 * Errors in a BSP computation that all processes learn of: `--how=`, and `--delivery=`. Each process prints the codes
 * of two calls of `sync`, and what the first element of its variable is.
 */
import { init } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import { argument } from './support/cases.ts';

const world = await init();
const bsp = await begin(world, { delivery: argument('delivery') } as BspOptions);
const [x, y] = [new Float64Array(8), new Float64Array(8)];
bsp.pushReg(x);
bsp.pushReg(y);
await bsp.sync();
const last = bsp.pid === bsp.nprocs - 1;
const how = argument('how');
const codes: unknown[] = [];
const codeOf = (error: unknown): unknown => (error as { code?: string }).code ?? String(error);

async function attempt(call: () => unknown): Promise<void> {
  try {
    await call();
    codes.push('none');
  } catch (error) {
    codes.push(codeOf(error));
  }
}

/** The others have done what they can do without this process: it would be what they learn of, if it went before. */
function others(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000));
}

switch (how) {
  case 'registers-more':
    if (last) bsp.pushReg(new Float64Array(1));
    break;
  case 'removes-another':
    bsp.popReg(last ? y : x);
    break;
  case 'tag-size':
    bsp.setTagsize(last ? 4 : 8);
    break;
  case 'abort':
    if (last) bsp.abort(7, 'no solution');
    break;
  case 'lost-memory':
  case 'lost-memory-caught': {
    // The variable's memory is gone at one process: it says so, and the others do not wait for ever.
    for (let pid = 0; pid < bsp.nprocs; pid++) bsp.put(pid, Float64Array.of(1), x, bsp.pid);
    if (last) structuredClone(x.buffer, { transfer: [x.buffer] });
    break;
  }
  case 'deadline': {
    // One is late: the deadline of the others ends their wait, and the next call goes on with the same superstep.
    if (last) await bsp.comm.compute(300_000);
    for (let pid = 0; pid < bsp.nprocs; pid++) bsp.put(pid, Float64Array.of(5), x, bsp.pid);
    break;
  }
  case 'returns':
    // Leaves the program without `end`: it exits, and the others wait for it.
    if (last) {
      await others();
      process.exit(0);
    }
    break;
}
if (how === 'ends' && last) await attempt(() => bsp.end());
else await attempt(() => bsp.sync(how === 'deadline' && !last ? { timeout: 50 } : undefined));
// Whoever has ended the computation has nothing more to say to it.
if (!(how === 'ends' && last)) await attempt(() => bsp.sync());
console.log(JSON.stringify({ rank: bsp.pid, codes, x: x.length === 0 ? 0 : x[0] }));
// What is broken cannot be ended together. Who exits before the others have learned of it is what they learn of.
if (codes[0] === 'ERR_COLLECTIVE' || how === 'lost-memory-caught') await world.barrier();
if (how === 'deadline' && !last) await others();
process.exit(0);
