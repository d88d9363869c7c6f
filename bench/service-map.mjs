/**
 * How fast the map of onesided/service is in one process, beside a plain `Map` and LMDB (noSync), if that is installed.
 *
 *     node --import ./test/support/types.mjs bench/service-map.mjs [--keys N] [--codec bytes|string|json] [--rounds N]
 *         [--near N] [--bytes N]
 *
 * Values of 200 bytes. Hot: 1,000 keys; else N (1,000,000). The map has 16 MiB, or 512 bytes a key if that is more:
 * sets go through all of it, so a smaller one stays in the processor's caches. A number is the best of some blocks, in
 * nanoseconds a call; the middle one tells how much other work the machine had.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values: args } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000000' },
    codec: { type: 'string', default: 'bytes' },
    rounds: { type: 'string', default: '30' },
    near: { type: 'string', default: '0' },
    bytes: { type: 'string', default: '16777216' },
  },
});
const BLOCK = 20_000;
const VALUE_BYTES = 200;
const ours = new URL('../src/service/map/index.ts', import.meta.url).href;
const { memoryOf, readMapOptions, SharedMap } = await import(ours);
/** As a lock costs that nobody else wants. */
function ownLock(words) {
  return {
    tryAcquire: (word) => (Atomics.compareExchange(words, word, 0, 1) === 0 ? -1 : undefined),
    release: (word) => Atomics.store(words, word, 0),
  };
}

const text = JSON.stringify({ user: 12345, name: 'somebody', roles: ['a', 'b'], text: 'x'.repeat(200) }).slice(0, 198);
const VALUES = {
  bytes: () => Uint8Array.from({ length: VALUE_BYTES }, (_, i) => i),
  string: () => text.padEnd(VALUE_BYTES, 'y'),
  json: () => ({ user: 12345, name: 'somebody', roles: ['admin', 'user'], since: 1700000000, text: 'x'.repeat(117) }),
};

async function lmdbStore(codec) {
  let open;
  try {
    ({ open } = await import('lmdb'));
  } catch {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'onesided-lmdb-'));
  const encoding = { bytes: 'binary', string: 'string', json: 'json' }[codec];
  const database = open({ path: join(folder, 'map'), noSync: true, encoding, cache: false, mapSize: 2 ** 31 });
  return {
    name: 'lmdb',
    get: (key) => database.get(key),
    set: (key, value) => database.putSync(key, value),
    fill: async (keys, value) => {
      for (let i = 0; i < keys.length; i += 1000)
        await database.batch(() => {
          for (const key of keys.slice(i, i + 1000)) database.put(key, value);
        });
    },
    refresh: () => database.resetReadTxn?.(),
    close: async () => {
      await database.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function mapStore() {
  const map = new Map();
  return { name: 'Map', get: (key) => map.get(key), set: (key, value) => map.set(key, value), close() {} };
}

function ourStore(codec, keys) {
  const given = { bytes: Math.max(Number(args.bytes), 512 * keys), codec, near: Number(args.near) };
  const options = readMapOptions('bench', given);
  const bytes = memoryOf(options.geometry);
  const buffer = new SharedArrayBuffer(bytes);
  const map = SharedMap.create('bench', { buffer, byteOffset: 0 }, ownLock(new Int32Array(buffer)), options);
  return {
    name: 'SharedMap',
    get: (key) => map.get(key),
    set: (key, value) => map.set(key, value),
    statistics: () => map.statistics(),
    close() {},
  };
}

/** The best and the middle of some blocks. */
function measure(rounds, block) {
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const begun = performance.now();
    block(i);
    times.push((1e6 * (performance.now() - begun)) / BLOCK);
  }
  times.sort((a, b) => a - b);
  return { best: times[0], middle: times[times.length >> 1] };
}

const rounds = Number(args.rounds);
for (const count of [1000, Number(args.keys)]) {
  const keys = Array.from({ length: count }, (_, i) => `session:${String(i).padStart(12, '0')}`);
  const order = Int32Array.from({ length: BLOCK }, () => Math.floor(Math.random() * count));
  const value = VALUES[args.codec]();
  const stores = [mapStore(), ourStore(args.codec, count)];
  const lmdb = await lmdbStore(args.codec);
  if (lmdb !== undefined) stores.push(lmdb);
  for (const store of stores) {
    if (store.fill) await store.fill(keys, value);
    else for (const key of keys) store.set(key, value);
    let found = 0;
    const few = store.name === 'lmdb' ? Math.min(rounds, 10) : rounds;
    const get = measure(few, (i) => {
      store.refresh?.();
      for (let j = 0; j < BLOCK; j++) if (store.get(keys[(order[j] + 7919 * i) % count]) !== undefined) found++;
    });
    const set = measure(store.name === 'lmdb' ? 3 : rounds, (i) => {
      for (let j = 0; j < BLOCK; j++) store.set(keys[(order[j] + 7919 * i) % count], value);
    });
    const shown = ({ best, middle }) => `${best.toFixed(0)} (middle ${middle.toFixed(0)})`;
    console.log(
      `${args.codec} ${count} keys ${store.name.padEnd(10)} get ${shown(get)} ns, set ${shown(set)} ns, ` +
        `found ${((100 * found) / (few * BLOCK)).toFixed(1)} %`,
    );
    if (store.statistics) console.log('   ', JSON.stringify(store.statistics()));
    await store.close();
  }
}
