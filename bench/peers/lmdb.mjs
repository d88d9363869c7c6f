/**
 * The map of bench/ranks/contended.ts in an LMDB database, by the package `lmdb`: the same keys, values and mixture of
 * reads and writes, in N processes.
 *
 *   node bench/peers/lmdb.mjs N SAMPLES [MS]
 *
 * prints one line of JSON, as the other peers do. A write is a transaction of its own, and the database does not wait
 * for the disk (`noSync`): the map of ours is not on one either.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'lmdb';

const VALUES = 10_000;
const WORDS = 64;
const BATCH = 16;

/** One of the processes: works when its parent says for how long, and tells how much it has done. */
function work(path, rank) {
  const database = open({ path, noSync: true, encoding: 'binary', keyEncoding: 'uint32', cache: false });
  const value = new Int32Array(WORDS);
  const bytes = Buffer.from(value.buffer);
  let seed = 12345 + rank;
  let turn = 0;
  const once = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
    const key = (seed >>> 8) % VALUES;
    if (++turn % 10 !== 0) {
      const found = database.getBinaryFast(key);
      if (found.readInt32LE(0) !== found.readInt32LE(4 * (WORDS - 1))) throw new Error(`value ${key} is torn`);
    } else {
      value.fill(seed);
      database.putSync(key, bytes);
    }
  };
  process.on('message', async (ms) => {
    if (ms === 0) {
      await database.close();
      process.exit();
    }
    const end = performance.now() + ms;
    let operations = 0;
    while (performance.now() < end) {
      // Readers see what was written after this.
      database.resetReadTxn();
      for (let i = 0; i < BATCH; i++) once();
      operations += BATCH;
    }
    process.send(operations);
  });
  process.send('ready');
}

async function main([processes, samples = '5', ms = '400']) {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-lmdb-'));
  try {
    const path = join(folder, 'map');
    const database = open({ path, noSync: true, encoding: 'binary', keyEncoding: 'uint32', cache: false });
    for (let key = 0; key < VALUES; key++) await database.put(key, Buffer.alloc(4 * WORDS));
    await database.close();
    const children = Array.from({ length: Number(processes) }, (_, rank) =>
      fork(fileURLToPath(import.meta.url), ['--work', path, String(rank)]),
    );
    const heard = (child) =>
      new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', (code) => reject(new Error(`lmdb: a process ended with ${code}`)));
      });
    await Promise.all(children.map(heard));
    const together = async (duration) => {
      const answers = children.map(heard);
      for (const child of children) child.send(duration);
      return (await Promise.all(answers)).reduce((sum, operations) => sum + operations, 0);
    };
    let total = await together(1000);
    const found = [];
    for (let sample = 0; sample < Number(samples); sample++) {
      const operations = await together(Number(ms));
      total += operations;
      found.push((1e6 * Number(ms)) / operations);
    }
    for (const child of children) {
      child.removeAllListeners('exit');
      child.send(0);
    }
    const report = { row: 'map', library: 'lmdb', unit: 'ns', iterations: Math.round(total / found.length) };
    console.log(JSON.stringify({ ...report, samples: found }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv[2] === '--work') work(process.argv[3], Number(process.argv[4]));
else await main(process.argv.slice(2));
