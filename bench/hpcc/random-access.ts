/**
 * HPC Challenge's RandomAccess on a window: how many random words of a table spread over all ranks can be updated in a
 * second.
 *
 *   onesided run -n 2 build/programs/bench/hpcc/random-access.js -- [--variant aggregated] [--words 2^24] [--json FILE]
 *   [--quiet]
 *
 * The rules are HPCC's: the table has a power of two of 64-bit words, word i holds i; four updates a word, each of
 * which takes the next number r of the random stream and replaces T[r mod words] by T[…] xor r; every rank does its
 * share of the stream and looks at most 1,024 updates ahead. Afterwards the updates are undone, and at most 1 % of the
 * words may be wrong (none where updates are atomic). The time is from barrier to barrier; filling the table and
 * verifying it are not part of it.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Communicator, init, Lock, Op, Window } from 'onesided';
import { wholeNumber } from '../options.ts';
import { Progress } from '../progress.ts';
import { LOW } from './bins.ts';
import { Distribution } from './distribution.ts';
import { startOf } from './random-stream.ts';
import { describe, type Result, resultOf } from './result.ts';
import { VARIANTS, type Variant } from './variants.ts';
import { UPDATES_PER_WORD, Verification } from './verify.ts';

/** Updates between two looks at the progress: some milliseconds. */
const PIECE = 1 << 17;

async function randomAccess(world: Communicator, name: string, words: number, shown: boolean): Promise<Result> {
  const variant = VARIANTS[name];
  const distribution = new Distribution(words, world.size);
  await using window = await Window.allocate(world, BigUint64Array, distribution.length(world.rank));
  const part = window.local;
  fill(part, distribution.first(world.rank));

  const seconds = await update(world, window, variant, distribution, shown);

  window.lockSync(world.rank, Lock.EXCLUSIVE);
  const verification = new Verification(part, distribution, world.rank, variant.update);
  const progress = new Progress('verifying', verification.updates, shown);
  while (verification.done < verification.updates) {
    verification.advance(PIECE);
    progress.update(verification.done);
  }
  progress.stop();
  window.unlockSync(world.rank);
  const total = new Float64Array(1);
  await world.allreduce(Float64Array.of(verification.wrong()), total, Op.SUM);

  return resultOf(name, variant, { ranks: world.size, words, seconds, errors: total[0] });
}

/** Every word holds its number. */
function fill(part: BigUint64Array, first: number): void {
  const halves = new Int32Array(part.buffer, part.byteOffset, 2 * part.length);
  for (let i = 0; i < part.length; i++) {
    halves[2 * i + LOW] = first + i;
    halves[2 * i + 1 - LOW] = 0;
  }
}

/** Carries out this rank's updates. @returns the seconds that all ranks together took */
async function update(
  world: Communicator,
  window: Window,
  variant: Variant,
  distribution: Distribution,
  shown: boolean,
): Promise<number> {
  const stream = startOf(UPDATES_PER_WORD * distribution.first(world.rank));
  const count = UPDATES_PER_WORD * distribution.length(world.rank);
  const updater = variant.updater(window, distribution);
  const progress = new Progress('updating', count, shown);
  window.lockAllSync();
  world.barrierSync();
  const start = performance.now();
  for (let done = 0; done < count; ) {
    const piece = Math.min(PIECE, count - done);
    updater.take(stream, piece);
    done += piece;
    progress.update(done);
  }
  updater.finish();
  world.barrierSync();
  const seconds = (performance.now() - start) / 1e3;
  window.unlockAllSync();
  progress.stop();
  // Nobody's part is read before all have ended their epochs.
  await world.barrier();
  return seconds;
}

const { values } = parseArgs({
  options: {
    variant: { type: 'string', default: 'aggregated' },
    words: { type: 'string', default: '2^24' },
    json: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
});
if (!Object.hasOwn(VARIANTS, values.variant)) {
  console.error(`--variant is one of these, not '${values.variant}':`);
  for (const [name, { summary }] of Object.entries(VARIANTS)) console.error(`  ${name.padEnd(16)}${summary}`);
  process.exit(2);
}
const world = await init();
const speaks = world.rank === 0;
const result = await randomAccess(world, values.variant, wholeNumber(values.words), speaks && !values.quiet);
if (speaks) {
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result)}\n`);
  console.log(describe(result));
}
await world.finalize();
if (!result.verified) process.exitCode = 1;
