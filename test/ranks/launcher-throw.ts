/**
 * `--victim=R`: that rank throws, as programs do, while all others wait for it. `--how=throw|collective|wrap|handle`:
 * the others do nothing about it, in a barrier or in another collective, throw an error of their own that it caused, or
 * print it and leave. Each has written something to both streams before, and writes something as it exits.
 */
import { init } from 'onesided';
import { argument } from './support/cases.ts';

const world = await init();
const how = argument('how');
console.log(`out of ${world.rank}`);
process.stderr.write(`err of ${world.rank}${how === 'throw' ? '\n' : ', no line: '}`);
process.on('exit', () => process.stderr.write(`exit of ${world.rank}\n`));
await world.barrier();
if (world.rank === Number(argument('victim'))) {
  throw new RangeError('Ä cause\nof two lines', { cause: new Error('what was behind it') });
}
try {
  if (how === 'collective') await world.allgather(Int32Array.of(1), new Int32Array(world.size));
  else await world.barrier();
} catch (cause) {
  if (how === 'wrap') throw new Error(`rank ${world.rank} could not go on`, { cause });
  if (how !== 'handle') throw cause;
  console.error(`handled ${(cause as Error).stack}`);
  process.exitCode = 3;
}
