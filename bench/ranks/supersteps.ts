/**
 * Supersteps between hosts (../device/supersteps.ts): `--options JSON` is a shift of ../figures/shifts.ts. Rank 0
 * prints what all ranks have found, as one line of JSON.
 */
import { parseArgs } from 'node:util';
import { init } from 'onesided';
import { type Measured, type Shift, shifted } from '../figures/shifts.ts';

const { values } = parseArgs({ options: { options: { type: 'string' } } });
const world = await init();
const mine = new TextEncoder().encode(JSON.stringify(await shifted(world, JSON.parse(values.options!) as Shift)));
const lengths = new Float64Array(world.size);
await world.allgather(Float64Array.of(mine.length), lengths);
if (world.rank === 0) {
  const all: Measured[][] = [];
  for (const [rank, length] of lengths.entries()) {
    const bytes = rank === 0 ? mine : new Uint8Array(length);
    if (rank !== 0) await world.receive(bytes, rank);
    all.push(JSON.parse(new TextDecoder().decode(bytes)) as Measured[]);
  }
  console.log(`supersteps: ${JSON.stringify(all)}`);
} else {
  await world.send(mine, 0);
}
await world.finalize();
