/**
 * The benchmark's bulk-synchronous rows, superstep for superstep those of bench/peers/bsp.c, whose rules hold here,
 * too. LPF's put does not buffer, nor does the `hpput` of `bsp-g/2`, to memory of the library's; `bsp-g-put/2` and the
 * transform have the buffered put of BSPlib.
 *
 *   onesided run -n 2 build/programs/bench/ranks/bsp.js -- ROW SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON from rank 0: { row, unit, samples: [...] }.
 */
import { type Communicator, init } from 'onesided';
import { type Bsp, begin } from 'onesided/bsp';
import { fft } from '../bsp/fft.ts';
import { realMachine } from '../patterns/machine.ts';
import { type Loop, measure } from './samples.ts';

const PUTS = 1_000_000;
/** Transforms before those that are timed: compiled in the background, which takes long on a busy machine. */
const WARM = 300;

interface Measured {
  readonly unit: 'ns' | 'ms';
  readonly samples: readonly number[];
}

/** Nanoseconds of a part of an iteration. */
async function inBlocks(bsp: Bsp, loop: Loop, parts: number, samples: number, block: number): Promise<Measured> {
  const { seconds } = await measure(loop, samples, block, bsp.comm);
  return { unit: 'ns', samples: seconds.map((one) => (1e9 * one) / parts) };
}

/** Puts of one word each. */
async function wordByWord(
  world: Communicator,
  call: 'put' | 'hpput',
  samples: number,
  block: number,
): Promise<Measured> {
  const bsp = await begin(world);
  const other = 1 - bsp.pid;
  const variable = world.allocMem(Float64Array, PUTS);
  const source = Float64Array.from({ length: PUTS }, (_, i) => bsp.pid + i);
  bsp.pushReg(variable);
  bsp.syncSync();
  const loops: Readonly<Record<typeof call, () => void>> = {
    put: () => {
      for (let k = 0; k < PUTS; k++) bsp.put(other, source, variable, k, 1, k);
    },
    hpput: () => {
      for (let k = 0; k < PUTS; k++) bsp.hpput(other, source, variable, k, 1, k);
    },
  };
  const puts = (iterations: number): void => {
    for (let i = 0; i < iterations; i++) {
      loops[call]();
      bsp.syncSync();
    }
  };
  const measured = await inBlocks(bsp, puts, PUTS, samples, block);
  const wrong = variable.findIndex((value, i) => value !== other + i);
  if (wrong >= 0) throw new Error(`word ${wrong} is wrong`);
  await bsp.end();
  world.freeMem(variable);
  return measured;
}

const ROWS: Readonly<Record<string, (world: Communicator, samples: number, block: number) => Promise<Measured>>> = {
  async 'bsp-l/2'(world, samples, block) {
    const bsp = await begin(world);
    const empty = (iterations: number): void => {
      for (let i = 0; i < iterations; i++) bsp.syncSync();
    };
    const measured = await inBlocks(bsp, empty, 1, samples, block);
    await bsp.end();
    return measured;
  },

  'bsp-g/2': (world, samples, block) => wordByWord(world, 'hpput', samples, block),
  'bsp-g-put/2': (world, samples, block) => wordByWord(world, 'put', samples, block),

  async 'bsp-fft/2^18'(world, samples) {
    const machine = realMachine('sync');
    const options = { log2n: 18, mflops: 1 };
    const { errors, samples: microseconds } = await fft(world, { ...options, samples: WARM + samples }, machine);
    if (errors > 0) throw new Error('the transform is wrong');
    return { unit: 'ms', samples: microseconds.slice(WARM).map((one) => one / 1e3) };
  },
};

const [id = '', samples = '5', milliseconds = '20'] = process.argv.slice(2);
const world = await init();
const row = ROWS[id];
if (row === undefined || world.size !== 2) {
  throw new Error(`the row is one of ${Object.keys(ROWS).join(', ')}, not '${id}', on 2 ranks, not ${world.size}`);
}
const measured = await row(world, Number(samples), Number(milliseconds) / 1e3);
if (world.rank === 0) console.log(JSON.stringify({ row: id, ...measured }));
await world.finalize();
