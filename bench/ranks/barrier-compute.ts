/**
 * What is left of a barrier behind a computation: `const b = world.barrier(); compute(W); await b`, less W.
 *
 *   onesided run -n 4 build/programs/bench/ranks/barrier-compute.js -- KIND MICROSECONDS SAMPLES [MS [WARM-UP]]
 *
 * KIND is how barriers go (`init`'s option `barrier`). Prints one line of JSON from rank 0, as rma.ts does.
 */
import { parseArgs } from 'node:util';
import { type BarrierOptions, init } from 'onesided';
import { measure } from './samples.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const [kind, computation = '0', samples = '5', milliseconds = '100', warmUp] = positionals;
const barrier = kind as NonNullable<BarrierOptions['barrier']>;
const microseconds = Number(computation);
const world = await init({ barrier });
if (world.size > 1 && world.statistics().barrier !== barrier)
  throw new Error(`barriers of kind ${kind} are ${world.statistics().barrier} here`);

async function loop(iterations: number): Promise<void> {
  for (let i = 0; i < iterations; i++) {
    const going = world.barrier();
    if (microseconds > 0) await world.compute(microseconds);
    await going;
  }
}

const warmUpMs = warmUp === undefined ? undefined : Number(warmUp);
const { seconds, iterations } = await measure(loop, Number(samples), Number(milliseconds) / 1e3, world, warmUpMs);
if (world.rank === 0) {
  const row = `barrier-compute/${computation}`;
  const left = seconds.map((second) => second * 1e9 - microseconds * 1e3);
  console.log(JSON.stringify({ row, unit: 'ns', iterations, samples: left }));
}
await world.finalize();
