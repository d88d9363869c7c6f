/** One rank of `onesided perf`: times one operation and, on rank 0, prints what it took. */
import { init, Lock, Op, Window } from '../index.ts';

const BLOCKS = 5;
const BLOCK_NS = 20e6;
const MAX_BYTES = 1 << 20;

const [operation] = process.argv.slice(2);
const json = process.argv.includes('--json');
const world = await init();
const win = await Window.allocate(world, Float64Array, MAX_BYTES / 8);
const words = await Window.allocate(world, BigInt64Array, 1);
const origin = world.rank === 0;

interface Loop {
  /** Sizes in bytes; 8 alone where the operation has one element. */
  readonly sizes: readonly number[];
  /** Whether all ranks run the loop, or rank 0 alone. */
  readonly together: boolean;
  make(bytes: number): (n: number) => void;
}

const SIZES = [8, 64, 512, 4096, 32768, 262144, MAX_BYTES];
const one = BigInt64Array.of(1n);
const zero = BigInt64Array.of(0n);
const result = new BigInt64Array(1);

/** Operations on a window in a lockAll epoch, each followed by a flush. */
function flushed(window: Window, issue: (data: Float64Array) => void): (bytes: number) => (n: number) => void {
  return (bytes) => {
    const data = new Float64Array(bytes / 8);
    return (n) => {
      window.lockAllSync();
      for (let i = 0; i < n; i++) {
        issue(data);
        window.flushSync(1);
      }
      window.unlockAllSync();
    };
  };
}

const LOOPS: Readonly<Record<string, Loop>> = {
  put: { sizes: SIZES, together: false, make: flushed(win, (data) => win.put(data, 1, 0)) },
  get: { sizes: SIZES, together: false, make: flushed(win, (data) => win.get(data, 1, 0)) },
  accumulate: { sizes: SIZES, together: false, make: flushed(win, (data) => win.accumulate(data, 1, 0, Op.SUM)) },
  'fetch-and-op': {
    sizes: [8],
    together: false,
    make: flushed(words, () => words.fetchAndOp(one, result, 1, 0, Op.SUM)),
  },
  'compare-and-swap': {
    sizes: [8],
    together: false,
    make: flushed(words, () => words.compareAndSwap(one, zero, result, 1, 0)),
  },
  lock: {
    sizes: SIZES,
    together: false,
    make: (bytes) => {
      const data = new Float64Array(bytes / 8);
      return (n) => {
        for (let i = 0; i < n; i++) {
          win.lockSync(1, Lock.EXCLUSIVE);
          win.put(data, 1, 0);
          win.unlockSync(1);
        }
      };
    },
  },
  fence: {
    sizes: SIZES,
    together: true,
    make: (bytes) => {
      const data = new Float64Array(bytes / 8);
      return (n) => {
        for (let i = 0; i < n; i++) {
          win.fenceSync();
          if (origin) win.put(data, 1, 0);
          win.fenceSync();
        }
      };
    },
  },
  barrier: {
    sizes: [0],
    together: true,
    make: () => (n) => {
      for (let i = 0; i < n; i++) world.barrierSync();
    },
  },
};

function time(loop: (n: number) => void, n: number): number {
  const start = process.hrtime.bigint();
  loop(n);
  return Number(process.hrtime.bigint() - start);
}

const { sizes, together, make } = LOOPS[operation];
const rows: { bytes: number; ns: number; megabytesPerSecond: number; samples: number[] }[] = [];
for (const bytes of sizes) {
  const loop = make(bytes);
  const count = new Float64Array([1]);
  // Rank 0 finds a count that lasts a block; where all ranks run the loop, all follow it.
  for (let done = false; !done; ) {
    const taken = origin || together ? time(loop, count[0]) : 0;
    if (origin) count[0] = taken >= BLOCK_NS ? -count[0] : count[0] * 2;
    await world.broadcast(count, 0);
    done = count[0] < 0;
  }
  const n = -count[0];
  const samples: number[] = [];
  for (let block = 0; block < BLOCKS; block++) {
    await world.barrier();
    if (origin || together) samples.push(time(loop, n) / n);
  }
  if (!origin) continue;
  const ns = [...samples].sort((a, b) => a - b)[BLOCKS >> 1];
  rows.push({ bytes, ns, megabytesPerSecond: (bytes / ns) * 1e3, samples });
  if (!json) {
    if (rows.length === 1)
      console.log(
        `${operation}, ${world.size} ranks\n${'bytes'.padStart(10)}${'µs'.padStart(14)}${'MB/s'.padStart(12)}`,
      );
    const bandwidth = bytes > 0 ? ((bytes / ns) * 1e3).toFixed(0) : '';
    console.log(`${String(bytes).padStart(10)}${(ns / 1e3).toFixed(4).padStart(14)}${bandwidth.padStart(12)}`);
  }
}
if (origin && json) console.log(JSON.stringify({ operation, ranks: world.size, unit: 'ns', rows }, null, 2));
await win.fence(16);
await words.free();
await win.free();
await world.finalize();
