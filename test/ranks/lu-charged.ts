/**
 * LU on a clock that stands still but for arithmetic, as on a fabric that is modelled: promise forms only, and time is
 * what was charged. Each rank prints what it was charged, in operations, and the result.
 */
import { init } from 'onesided';
import { lu } from '../../bench/splash/lu.ts';

/** Operations a microsecond. */
const RATE = 1000;

const [n, block] = process.argv.slice(2).map(Number);
const world = await init();
let charged = 0;
const result = await lu(world, {
  n,
  block,
  seed: 1,
  kernel: 'wasm',
  lockType: 'exclusive',
  form: 'promise',
  samples: 1,
  now: () => charged / RATE,
  charge: async (operations) => {
    await Promise.resolve();
    charged += operations;
  },
});
console.log(JSON.stringify({ charged, result }));
await world.finalize();
