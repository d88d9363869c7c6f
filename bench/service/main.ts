/**
 * `npm run bench -- --filter service`: counter, mutex, queue and map of a service, beside LMDB (without sync), Redis on
 * this host, the workers' parent (`process.send`), and a `Map` that is not shared, all in one run.
 *
 *     npm run bench -- --filter service [--quick] [--json FILE]
 *     npm run bench -- --filter service/map-get [--workers 1,2,4]
 *
 * Nanoseconds of all workers together: how long it takes until one more operation is done. Redis and the parent answer
 * 16 questions of each worker at a time, as they would in a server; the others are calls. A peer that is missing leaves
 * its column empty: `npm install --no-save lmdb` (or in the folder that ONESIDED_BENCH_PEERS names), `apt-get install
 * redis-server`.
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Service } from 'onesided/service';
import { oneOf, orExplain, wholeNumber } from '../options.ts';
import { digits } from '../table.ts';
import { ROWS, STORES, type StoreName } from './operations.ts';
import { findLmdb, parentStore } from './stores.ts';

const args = orExplain(
  () => {
    const { values } = parseArgs({
      options: {
        filter: { type: 'string', default: 'service' },
        workers: { type: 'string', default: '1,2,4' },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
      },
    });
    const counts = values.workers.split(',').map(wholeNumber);
    const part = values.filter.replace(/^service\/?/, '');
    const rows = ROWS.filter(({ id }) => id.includes(part));
    if (rows.length === 0) oneOf('--filter', values.filter, ['service', ...ROWS.map(({ id }) => `service/${id}`)]);
    return { ...values, counts, rows };
  },
  fileURLToPath(import.meta.url),
);

const SAMPLES = args.quick ? 1 : 3;
const MS = args.quick ? 60 : 250;
const WARM_MS = args.quick ? 60 : 400;
const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url));
/** What LMDB and a `Map` have nothing for. */
const CANNOT: Readonly<Partial<Record<StoreName, readonly string[]>>> = {
  lmdb: ['mutex', 'queue'],
  Map: ['mutex', 'queue'],
  near: ['counter', 'mutex', 'queue', 'map-set-bytes', 'map-set-json'],
};

const folder = mkdtempSync(join(tmpdir(), 'onesided-bench-'));
const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
const stores = STORES.filter((name) => (name !== 'lmdb' || findLmdb() !== undefined) && (name !== 'redis' || hasRedis));
const answer = parentStore();

function heard<T>(child: ChildProcess, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const take = (message: Record<string, T>): void => {
      if (message[what] === undefined) return;
      child.off('message', take);
      resolve(message[what]);
    };
    child.on('message', take);
    child.once('exit', (code) => reject(new Error(`a worker ended with ${code}`)));
  });
}

interface Workers {
  /** Operations of all in so many milliseconds. */
  run(row: string, ms: number): Promise<number>;
  stop(): void;
}

async function startWorkers(name: StoreName, place: string, count: number): Promise<Workers> {
  const children: ChildProcess[] = [];
  for (let i = 0; i < count; i++) {
    const child = fork(WORKER, [name, place, String(i)], { serialization: 'json' });
    child.setMaxListeners(0);
    child.on('message', (message) => answer(message, (reply) => child.send(reply)));
    children.push(child);
    // The first one fills what they share.
    await heard(child, 'ready');
  }
  return {
    async run(row, ms) {
      const answers = children.map((child) => heard<number>(child, 'done'));
      for (const child of children) child.send({ row, ms });
      return (await Promise.all(answers)).reduce((sum, done) => sum + done, 0);
    },
    stop() {
      for (const child of children) child.removeAllListeners('exit').send({ stop: true });
    },
  };
}

async function startRedis(): Promise<ChildProcess | undefined> {
  if (!hasRedis) return undefined;
  const options = ['--port', '0', '--unixsocket', join(folder, 'redis'), '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', [...options, '--dir', folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  server.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  while (!/eady to accept/.test(out)) await new Promise((resolve) => setTimeout(resolve, 10));
  return server;
}

function placeOf(name: StoreName, place: string): string {
  if (name === 'redis') return join(folder, 'redis');
  return name === 'lmdb' ? join(folder, 'lmdb') : place;
}

interface Result {
  readonly id: string;
  readonly workers: number;
  readonly busy: boolean;
  /** Nanoseconds an operation: the median of the samples. */
  readonly ns: Partial<Record<StoreName, number>>;
}

const line = (cells: readonly string[]): string =>
  cells.map((cell, i) => (i === 0 ? cell.padEnd(24) : cell.padStart(13))).join('');

const place = `bench-${process.pid}`;
const results: Result[] = [];
const server = await startRedis();
// The memory stays between one number of workers and the next.
const services = [await Service.join(place), await Service.join(`${place}.near`)];
console.log(`${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores; Node ${process.version}`);
console.log(`nanoseconds an operation, all workers together\n`);
console.log(line(['row', 'workers', ...STORES]));
try {
  for (const workers of args.counts) {
    for (const busy of [false, true]) {
      const hog = busy ? spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }) : undefined;
      const samples = new Map<string, number[]>();
      try {
        // One store after the other, so that none is beside the workers of another.
        for (const name of stores) {
          const group = await startWorkers(name, placeOf(name, place), workers);
          for (const { id } of args.rows) {
            if (CANNOT[name]?.includes(id) === true) continue;
            await group.run(id, WARM_MS);
            const found: number[] = [];
            for (let i = 0; i < SAMPLES; i++) found.push((1e6 * MS) / (await group.run(id, MS)));
            samples.set(
              `${name} ${id}`,
              found.sort((a, b) => a - b),
            );
          }
          group.stop();
        }
      } finally {
        hog?.kill('SIGKILL');
      }
      for (const { id } of args.rows) {
        const middle = (name: StoreName): number | undefined => samples.get(`${name} ${id}`)?.[SAMPLES >> 1];
        const ns = Object.fromEntries(
          stores.flatMap((name) => (middle(name) === undefined ? [] : [[name, middle(name)]])),
        );
        results.push({ id, workers, busy, ns });
        const cells = STORES.map((name) => (ns[name] === undefined ? '' : digits(ns[name])));
        console.log(line([`service/${id}`, `${workers}${busy ? ' busy' : ''}`, ...cells]));
      }
    }
  }
} finally {
  server?.kill();
  for (const service of services) await service.leave();
  rmSync(folder, { recursive: true, force: true });
}
if (findLmdb() === undefined) console.log('lmdb is not installed: npm install --no-save lmdb');
if (!hasRedis) console.log('redis-server is not installed: apt-get install redis-server');
if (args.json !== undefined) writeFileSync(args.json, `${JSON.stringify({ results }, undefined, 2)}\n`);
process.exit();
