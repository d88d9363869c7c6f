/**
 * Supersteps whose counts come by multicast: each rank reports how many did, and how many it had to ask for.
 *
 *     --nackAfter=MS  when it asks (default: 2000)
 *     --deaf          the last rank leaves the multicast group before it ends every third superstep, and enters it
 *                     again afterwards: those datagrams are lost on their way to it, by the device
 */
import { init } from 'onesided';
import { begin } from 'onesided/bsp';
import type { ProtectionDomain } from '../../src/verbs/memory.ts';
import type { QueuePair } from '../../src/verbs/queue-pair.ts';
import { argument } from './support/cases.ts';

const STEPS = 50;
const world = await init();
const isDeaf = process.argv.includes('--deaf') && world.rank === world.size - 1;

/** The queue pair of the computation's group, and how it is attached to it. */
let attached: { readonly qp: QueuePair; readonly gid: string; readonly lid: number } | undefined;
if (isDeaf) {
  const { pd } = (world as unknown as { job: { pd: ProtectionDomain } }).job;
  const create = pd.createQueuePair.bind(pd);
  pd.createQueuePair = (options) => {
    const qp = create(options);
    const attach = qp.attachMulticast.bind(qp);
    qp.attachMulticast = (gid, lid) => {
      attach(gid, lid);
      attached = { qp, gid, lid };
    };
    return qp;
  };
}

const bsp = await begin(world, {
  counts: 'multicast',
  delivery: 'packed',
  nackAfter: Number(argument('nackAfter') ?? 2000),
});
if (isDeaf && attached === undefined) throw new Error('this rank has no multicast group');
const x = new Float64Array(bsp.nprocs);
bsp.pushReg(x);
await bsp.sync();
let lost = 0;
for (let step = 0; step < STEPS; step++) {
  bsp.put((bsp.pid + 1) % bsp.nprocs, Float64Array.of(step), x, bsp.pid);
  // Process 0 sends the datagram when all have ended the superstep, so not before this one has left.
  const leaves = isDeaf && step % 3 === 0;
  if (leaves) {
    attached!.qp.detachMulticast(attached!.gid, attached!.lid);
    lost++;
  }
  await bsp.sync();
  if (leaves) attached!.qp.attachMulticast(attached!.gid, attached!.lid);
  if (x[(bsp.pid + bsp.nprocs - 1) % bsp.nprocs] !== step) throw new Error(`superstep ${step}: ${x}`);
}
console.log(JSON.stringify({ ...bsp.statistics(), lost }));
await bsp.end();
await world.finalize();
