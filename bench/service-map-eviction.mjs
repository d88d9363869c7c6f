/**
 * How good the map's eviction is: hit rates beside exact LRU of as many entries as the map held on average.
 *
 *     node --import ./test/support/types.mjs bench/service-map-eviction.mjs [--accesses N] [--keys N]
 *
 * Each access gets a key, and sets it if the map did not have it, as a cache is used. Traces: Zipf's distribution, with
 * exponents from 0.9 to 1.1, which those of public caches lie around (Yang, Yue and Rashmi, OSDI 2020); the same with
 * scans over keys that come once; and one whose popular keys change all the time. Values have 20 to 500 bytes.
 */
import { parseArgs } from 'node:util';

const { values: args } = parseArgs({
  options: { accesses: { type: 'string', default: '600000' }, keys: { type: 'string', default: '100000' } },
});
const ACCESSES = Number(args.accesses);
const KEYS = Number(args.keys);
const { memoryOf, readMapOptions, SharedMap } = await import(
  new URL('../src/service/map/index.ts', import.meta.url).href
);
const noLock = { tryAcquire: () => -1, release() {} };

let state = 12345;
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 0) / 2 ** 32;
}

/** Draws numbers 0 … KEYS − 1, of which number i has the weight (i + 1)^−exponent. */
function zipf(exponent) {
  const sums = new Float64Array(KEYS);
  let sum = 0;
  for (let i = 0; i < KEYS; i++) sums[i] = sum += (i + 1) ** -exponent;
  return () => {
    const at = random() * sum;
    let low = 0;
    let high = KEYS - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

const TRACES = {
  ...Object.fromEntries([0.9, 1, 1.1].map((exponent) => [`zipf ${exponent}`, () => zipf(exponent)])),
  'zipf 1 with scans': () => {
    const draw = zipf(1);
    let once = KEYS;
    let turn = 0;
    // A tenth of all accesses, in scans as long as half the cache.
    return () => (turn++ % 50_000 < 5000 ? once++ : draw());
  },
  'zipf 1, moving': () => {
    const draw = zipf(1);
    let turn = 0;
    return () => (draw() + Math.floor(turn++ / 50)) % KEYS;
  },
  'loop over more than fits': () => {
    let turn = 0;
    return () => turn++ % 20_000;
  },
};

class Lru {
  #map = new Map();
  #most;
  constructor(most) {
    this.#most = most;
  }
  hit(key) {
    const there = this.#map.delete(key);
    this.#map.set(key, true);
    if (this.#map.size > this.#most) this.#map.delete(this.#map.keys().next().value);
    return there;
  }
}

const VALUE = Buffer.alloc(500);
/** The same key has the same length always. */
const lengthOf = (key) => 20 + ((Math.imul(key, 0x9e3779b1) >>> 0) % 480);

for (const bytes of [1 << 20, 4 << 20, 8 << 20]) {
  for (const [name, make] of Object.entries(TRACES)) {
    const options = readMapOptions('bench', { bytes, codec: 'bytes' });
    const map = SharedMap.create(
      'bench',
      { buffer: new ArrayBuffer(memoryOf(options.geometry)), byteOffset: 0 },
      noLock,
      options,
    );
    const trace = Int32Array.from({ length: ACCESSES }, make());
    let hits = 0;
    let sizes = 0;
    const half = ACCESSES >> 1;
    for (let i = 0; i < ACCESSES; i++) {
      const key = `key:${trace[i]}`;
      if (map.get(key) !== undefined) hits += i < half ? 0 : 1;
      else map.set(key, VALUE.subarray(0, lengthOf(trace[i])));
      if (i >= half) sizes += i % 100 === 0 ? map.size : 0;
    }
    const entries = Math.round((100 * sizes) / half);
    const lru = new Lru(entries);
    let lruHits = 0;
    for (let i = 0; i < ACCESSES; i++) lruHits += lru.hit(trace[i]) && i >= half ? 1 : 0;
    const { moved, evicted } = map.statistics();
    const percent = (part) => ((100 * part) / half).toFixed(2).padStart(6);
    console.log(
      `${String(bytes >> 20).padStart(2)} MiB, ${name.padEnd(25)} ${String(entries).padStart(6)} entries: ` +
        `hits ${percent(hits)} %, exact LRU ${percent(lruHits)} %; ${(moved / evicted).toFixed(2)} moved an eviction`,
    );
  }
}
