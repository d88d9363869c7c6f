/** The row `service/http`: an HTTP server of several workers under `node:cluster`, which autocannon asks. */
import { execFile } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beside, heard } from './children.ts';
import type { StoreName } from './operations.ts';

/** Those that a server would use for sessions, and a `Map` in each worker, which shares nothing, as the limit. */
export const HTTP_STORES = ['onesided', 'lmdb', 'lmdb-durable', 'redis', 'Map'] as const satisfies readonly StoreName[];
export type HttpStore = (typeof HTTP_STORES)[number];

const WORKER = fileURLToPath(new URL('./http-worker.js', import.meta.url));
const LOAD = fileURLToPath(new URL('./http-load.js', import.meta.url));
const run = promisify(execFile);

interface Loaded {
  readonly perSecond: number;
  /** ms */
  readonly p99: number;
}

export interface HttpResult {
  readonly workers: number;
  readonly busy: boolean;
  /** Medians of the rounds. */
  readonly found: Partial<Record<HttpStore, Loaded>>;
}

export interface HttpPlan {
  readonly stores: readonly HttpStore[];
  /** Where a store is: the name of a service, a folder, a socket. */
  readonly placeOf: (store: HttpStore) => string;
  readonly rounds: number;
  /** How long autocannon asks a server before it counts, and in each round. */
  readonly warmSeconds: number;
  readonly seconds: number;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

interface Server {
  readonly store: HttpStore;
  load(seconds: number): Promise<Loaded>;
  stop(): Promise<void>;
}

async function startServer(store: HttpStore, workers: number, place: string): Promise<Server> {
  // One that the workers choose would be the same for all servers of this process.
  const port = await freePort();
  cluster.setupPrimary({ exec: WORKER, args: [store, place, String(port)] });
  const started: Worker[] = [];
  for (let i = 0; i < workers; i++) {
    // The first one fills what they share.
    const worker = cluster.fork(i === 0 ? { ONESIDED_BENCH_FIRST: '1' } : {});
    started.push(worker);
    await heard(worker.process, 'listens');
  }
  return {
    store,
    async load(seconds) {
      const { stdout } = await run(process.execPath, [LOAD, String(port), String(seconds)]);
      return JSON.parse(stdout) as Loaded;
    },
    async stop() {
      for (const worker of started) worker.send({ stop: true });
      await Promise.all(started.map((worker) => once(worker, 'exit')));
    },
  };
}

const middle = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

/** One setting: servers of all stores, which are asked by turns, as many times as there are rounds. */
export async function measureHttp(workers: number, busy: boolean, plan: HttpPlan): Promise<HttpResult> {
  const servers: Server[] = [];
  try {
    for (const store of plan.stores) servers.push(await startServer(store, workers, plan.placeOf(store)));
    return await beside(busy, async () => {
      for (const server of servers) await server.load(plan.warmSeconds);
      const all = servers.map((server) => ({ server, rounds: [] as Loaded[] }));
      for (let i = 0; i < plan.rounds; i++) for (const one of all) one.rounds.push(await one.server.load(plan.seconds));
      const found = all.map(({ server, rounds }) => [
        server.store,
        { perSecond: middle(rounds.map(({ perSecond }) => perSecond)), p99: middle(rounds.map(({ p99 }) => p99)) },
      ]);
      return { workers, busy, found: Object.fromEntries(found) as HttpResult['found'] };
    });
  } finally {
    for (const server of servers) await server.stop();
  }
}
