/**
 * Supersteps in datagrams, some of which are lost, asks and answers among them: each rank reports what became of them.
 *
 *     --nackAfter=MS  when it asks (default: 20)
 *     --lose=N        every Nth datagram that leaves a rank has another key, so that no device takes it (default: 0)
 *     --pacing=JSON   how packets are paced
 */
import { init } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import type { ProtectionDomain } from '../../src/verbs/memory.ts';
import { argument } from './support/cases.ts';

const STEPS = 12;
const WORDS = 1500;
/** `QpType.UD`. */
const UD = 4;
const world = await init();
const every = Number(argument('lose') ?? 0);
let sent = 0;
let lost = 0;
if (every > 0) {
  const { pd } = (world as unknown as { job: { pd: ProtectionDomain } }).job;
  const create = pd.createQueuePair.bind(pd);
  pd.createQueuePair = (options) => {
    const qp = create(options);
    if (options.qpType !== UD) return qp;
    const address = qp.wrSetUdAddr.bind(qp);
    qp.wrSetUdAddr = (handle, number, key) => {
      const isLost = ++sent % every === 0;
      if (isLost) lost++;
      address(handle, number, isLost ? key ^ 1 : key);
    };
    return qp;
  };
}

const pacing = argument('pacing');
const options: BspOptions = {
  delivery: 'datagrams',
  nackAfter: Number(argument('nackAfter') ?? 20),
  ...(pacing !== undefined && { pacing: JSON.parse(pacing) as NonNullable<BspOptions['pacing']> }),
};
const bsp = await begin(world, options);
const { pid, nprocs } = bsp;
const x = new Float64Array(nprocs * WORDS);
const right = (pid + 1) % nprocs;
const got = new Float64Array(1);
bsp.pushReg(x);
await bsp.sync();
for (let step = 1; step <= STEPS; step++) {
  for (let k = 1; k < nprocs; k++) {
    bsp.put((pid + k) % nprocs, new Float64Array(WORDS).fill(100 * step + pid), x, WORDS * pid);
  }
  bsp.get(right, x, WORDS * ((right + 1) % nprocs), got);
  // The last one ends with the computation.
  if (step === STEPS) await bsp.end();
  else if (step % 2 === 0) bsp.syncSync();
  else await bsp.sync();
  for (const [i, value] of x.entries()) {
    const from = Math.floor(i / WORDS);
    if (value !== (from === pid ? 0 : 100 * step + from)) throw new Error(`superstep ${step}, element ${i}: ${value}`);
  }
  const before = step === 1 ? 0 : 100 * (step - 1) + ((right + 1) % nprocs);
  if (got[0] !== before) throw new Error(`superstep ${step}: got ${got[0]}, not ${before}`);
}
console.log(JSON.stringify({ ...bsp.statistics().datagrams, lost }));
await world.finalize();
