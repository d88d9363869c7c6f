/**
 * A program of the figures (bench/figures/programs.ts) on real ranks, for `npm run figures -- --real`:
 * `--program NAME --options JSON --json FILE`. Rank r writes its result to FILE.r.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { init } from 'onesided';
import { PROGRAMS } from '../figures/programs.ts';

const { values } = parseArgs({
  options: { program: { type: 'string' }, options: { type: 'string' }, json: { type: 'string' } },
});
const program = PROGRAMS[values.program as keyof typeof PROGRAMS];
const world = await init();
const result = await program(world, JSON.parse(values.options!));
writeFileSync(`${values.json}.${world.rank}`, JSON.stringify(result));
await world.finalize();
