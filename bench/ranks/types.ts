/**
 * What each communication call with its flush takes, on elements of one type (bench/types.ts asks for the types in
 * turn, each in ranks of its own: the engine compiles for what it has seen).
 *
 *   onesided run -n 2 build/programs/bench/ranks/types.js -- TYPE [SAMPLES [MS [CALL]]]
 *
 * prints one line of JSON from rank 0: { row, samples: { CALL: { ARRAYS: [ns, …] } } }. ARRAYS are `same`: a call has
 * the arrays of the call before; `two`: those of the call before that; `new`: arrays that no call had. With
 * CALL, calls whose name contains it.
 */
import { init, Op, type TypedArray, type TypedArrayConstructor, Window } from 'onesided';

const TARGET = 1;
/** Operations of a block, for which new arrays are made beforehand. */
const BLOCK = 512;
/** Elements of `accumulate-1000`. */
const MANY = 1000;
/** Milliseconds of calls before any is timed. */
const WARM_UP_MS = 100;

const TYPES: Readonly<Record<string, TypedArrayConstructor>> = {
  Int32: Int32Array,
  Uint32: Uint32Array,
  Float32: Float32Array,
  BigInt64: BigInt64Array,
  BigUint64: BigUint64Array,
  Float64: Float64Array,
};

type Arrays = readonly TypedArray[];

/** Makes all calls of a block. @param mask which of the arrays there are */
type Block = (window: Window, origins: Arrays, compares: Arrays, results: Arrays, mask: number) => void;

const CALLS: Readonly<Record<string, Block>> = {
  put: (window, origins, _compares, _results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.put(origins[i & mask], TARGET, 0);
      window.flushSync(TARGET);
    }
  },
  get: (window, origins, _compares, _results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.get(origins[i & mask], TARGET, 0);
      window.flushSync(TARGET);
    }
  },
  accumulate: (window, origins, _compares, _results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.accumulate(origins[i & mask], TARGET, 0, Op.SUM);
      window.flushSync(TARGET);
    }
  },
  getAccumulate: (window, origins, _compares, results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.getAccumulate(origins[i & mask], results[i & mask], TARGET, 0, Op.SUM);
      window.flushSync(TARGET);
    }
  },
  fetchAndOp: (window, origins, _compares, results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.fetchAndOp(origins[i & mask], results[i & mask], TARGET, 0, Op.SUM);
      window.flushSync(TARGET);
    }
  },
  'atomic read': (window, _origins, _compares, results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.fetchAndOp(null, results[i & mask], TARGET, 0, Op.NO_OP);
      window.flushSync(TARGET);
    }
  },
  compareAndSwap: (window, origins, compares, results, mask) => {
    for (let i = 0; i < BLOCK; i++) {
      window.compareAndSwap(origins[i & mask], compares[i & mask], results[i & mask], TARGET, 0);
      window.flushSync(TARGET);
    }
  },
};

/** Those that are made a single time in a block, of many elements. */
const MANY_CALLS: Readonly<Record<string, Op<'move' | 'arithmetic'>>> = {
  'accumulate of 1000': Op.SUM,
  'replacing of 1000': Op.REPLACE,
};

const [name = '', samples = '5', milliseconds = '10', filter = ''] = process.argv.slice(2);
const Type = TYPES[name];
if (Type === undefined) throw new Error(`no type ${name}; the types are ${Object.keys(TYPES).join(', ')}`);
const isBig = name.startsWith('Big');
const isFloat = name.startsWith('Float');
const make = (value: number): TypedArray => {
  const array = new Type(new ArrayBuffer(Type.BYTES_PER_ELEMENT));
  array[0] = isBig ? BigInt(value) : value;
  return array;
};
/** As programs make arrays for one call: the engine keeps so few bytes beside the object. */
const makeNew = (value: number): TypedArray => {
  const array = isBig
    ? new (Type as unknown as new (n: number) => BigInt64Array)(1)
    : new (Type as unknown as new (n: number) => Int32Array)(1);
  array[0] = (isBig ? BigInt(value) : value) as never;
  return array;
};

const world = await init();
const window = (await Window.allocate(world, Type, 2 * MANY)) as Window;
window.lockAllSync();
const found: Record<string, Record<string, number[]>> = {};
if (world.rank === 0) {
  for (const [call, block] of Object.entries(CALLS)) {
    if ((isFloat && call === 'compareAndSwap') || !call.includes(filter)) continue;
    const ways: Record<string, number[]> = {};
    found[call] = ways;
    for (const way of ['same', 'two', 'new']) {
      const count = way === 'same' ? 1 : way === 'two' ? 2 : BLOCK;
      const pools = (): readonly [Arrays, Arrays, Arrays] => {
        const pool = (value: number): Arrays =>
          Array.from({ length: count }, () => (way === 'new' ? makeNew(value) : make(value)));
        return [pool(1), pool(0), pool(0)];
      };
      let arrays = pools();
      /** @returns nanoseconds a call */
      const timed = (ms: number): number => {
        let [calls, spent] = [0, 0];
        while (spent < ms) {
          if (way === 'new') arrays = pools();
          const start = performance.now();
          block(window, ...arrays, count - 1);
          spent += performance.now() - start;
          calls += BLOCK;
        }
        return (spent * 1e6) / calls;
      };
      timed(WARM_UP_MS);
      ways[way] = Array.from({ length: Number(samples) }, () => timed(Number(milliseconds)));
    }
  }
  for (const [call, op] of Object.entries(MANY_CALLS)) {
    if (!call.includes(filter)) continue;
    const origin = new Type(new ArrayBuffer(MANY * Type.BYTES_PER_ELEMENT));
    (origin as Int32Array).fill((isBig ? 1n : 1) as never);
    const timed = (ms: number): number => {
      let calls = 0;
      const start = performance.now();
      while (performance.now() - start < ms) {
        window.accumulate(origin, TARGET, 0, op);
        window.flushSync(TARGET);
        calls++;
      }
      return ((performance.now() - start) * 1e6) / calls;
    };
    timed(WARM_UP_MS);
    found[call] = { same: Array.from({ length: Number(samples) }, () => timed(Number(milliseconds))) };
  }
  console.log(JSON.stringify({ row: name, samples: found }));
}
window.unlockAllSync();
await window.free();
await world.finalize();
