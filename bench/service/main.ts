/**
 * `npm run bench -- --filter service`: counter, mutex, queue and map of a service, beside LMDB (without sync, and with
 * durable writes), Redis on this host, the workers' parent (`process.send`), and a `Map` that is not shared, all in one
 * run; then an HTTP server that keeps its sessions in these (`service/http`).
 *
 *     npm run bench -- --filter service [--quick] [--json FILE]
 *     npm run bench -- --filter service/map-get [--workers 1,2,4]
 *     npm run bench -- --filter service/http --json docs/figures/services-http.json
 *     npm run figures:services       draws that file for the guide
 *
 * Nanoseconds of all workers together: how long it takes until one more operation is done. Redis, the parent and LMDB's
 * durable writes answer 16 questions of each worker at a time, as they would in a server; the others are calls. A peer
 * that is missing leaves its column empty: `npm install --no-save lmdb` (or in the folder that ONESIDED_BENCH_PEERS
 * names), `apt-get install redis-server`. The HTTP rows are requests a second, and the time (ms) that 99 of 100 took at
 * most; autocannon asks on this machine, too, by 32 connections.
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
import { beside, heard } from './children.ts';
import { HTTP_STORES, type HttpPlan, type HttpResult, measureHttp } from './http-rows.ts';
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
    const hasHttp = 'http'.includes(part);
    const all = [...ROWS.map(({ id }) => id), 'http'];
    if (rows.length === 0 && !hasHttp)
      oneOf('--filter', values.filter, ['service', ...all.map((id) => `service/${id}`)]);
    return { ...values, counts, rows, hasHttp };
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
  // Reads are the same with and without sync.
  'lmdb-durable': ['mutex', 'queue', 'map-get-bytes', 'map-get-json'],
  Map: ['mutex', 'queue'],
  near: ['counter', 'mutex', 'queue', 'map-set-bytes', 'map-set-json'],
};

const folder = mkdtempSync(join(tmpdir(), 'onesided-bench-'));
const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
const hasLmdb = findLmdb() !== undefined;
const isThere = (name: StoreName): boolean => (name.startsWith('lmdb') ? hasLmdb : name !== 'redis' || hasRedis);
const stores = STORES.filter(isThere);
const answer = parentStore();

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
  return name.startsWith('lmdb') ? join(folder, name) : place;
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
const http: HttpResult[] = [];
const setting = (workers: number, busy: boolean): string => `${workers}${busy ? ' busy' : ''}`;
const server = await startRedis();
// The memory stays between one number of workers and the next.
const services = [];
for (const name of [place, `${place}.near`, `${place}.http`]) services.push(await Service.join(name));
const machine = `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores; Node ${process.version}`;
console.log(machine);

/** One store after the other, so that none is beside the workers of another. */
async function measureRows(workers: number): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const name of stores) {
    const group = await startWorkers(name, placeOf(name, place), workers);
    for (const { id } of args.rows) {
      if (CANNOT[name]?.includes(id) === true) continue;
      await group.run(id, WARM_MS);
      const samples: number[] = [];
      for (let i = 0; i < SAMPLES; i++) samples.push((1e6 * MS) / (await group.run(id, MS)));
      found.set(`${name} ${id}`, samples.sort((a, b) => a - b)[SAMPLES >> 1]);
    }
    group.stop();
  }
  return found;
}

async function calls(workers: number, busy: boolean): Promise<void> {
  const found = await beside(busy, () => measureRows(workers));
  for (const { id } of args.rows) {
    const ns = Object.fromEntries(stores.map((name) => [name, found.get(`${name} ${id}`)]));
    results.push({ id, workers, busy, ns });
    const cells = STORES.map((name) => (ns[name] === undefined ? '' : digits(ns[name])));
    console.log(line([`service/${id}`, setting(workers, busy), ...cells]));
  }
}

async function httpRows(): Promise<void> {
  const plan: HttpPlan = {
    stores: HTTP_STORES.filter(isThere),
    placeOf: (name) => placeOf(name, `${place}.http`),
    ...(args.quick ? { rounds: 1, warmSeconds: 1, seconds: 1 } : { rounds: 9, warmSeconds: 2, seconds: 1 }),
  };
  console.log(`\nrequests a second, and the time of 99 of 100 at most (ms)\n`);
  console.log(line(['row', 'workers', ...HTTP_STORES]));
  for (const workers of args.counts) {
    for (const busy of [false, true]) {
      const result = await measureHttp(workers, busy, plan);
      http.push(result);
      const cells = HTTP_STORES.map((name) => {
        const one = result.found[name];
        return one === undefined ? '' : `${digits(one.perSecond)} ${digits(one.p99)}`;
      });
      console.log(line(['service/http', setting(workers, busy), ...cells]));
    }
  }
}

try {
  if (args.rows.length > 0) {
    console.log(`nanoseconds an operation, all workers together\n`);
    console.log(line(['row', 'workers', ...STORES]));
    for (const workers of args.counts) for (const busy of [false, true]) await calls(workers, busy);
  }
  if (args.hasHttp) await httpRows();
} finally {
  server?.kill();
  for (const service of services) await service.leave();
  rmSync(folder, { recursive: true, force: true });
}
if (!hasLmdb) console.log('lmdb is not installed: npm install --no-save lmdb');
if (!hasRedis) console.log('redis-server is not installed: apt-get install redis-server');
if (args.json !== undefined) writeFileSync(args.json, `${JSON.stringify({ machine, results, http }, undefined, 2)}\n`);
process.exit();
