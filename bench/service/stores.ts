/** The stores of the service rows: ours, LMDB, Redis, the parent of the workers, and a `Map` in each worker. */
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Service } from 'onesided/service';
import type { Store, StoreName } from './operations.ts';
import { RedisClient } from './redis-client.ts';

/** Answers that a worker waits for at a time: as an HTTP server with so many requests under way. */
const UNDER_WAY = 16;
const MAP_BYTES = 64 << 20;

async function ours(name: string, near: number): Promise<Store> {
  const service = await Service.join(name);
  const counter = await service.counter('counter');
  const mutex = await service.mutex('mutex');
  const queue = await service.queue('queue', Int32Array, 1024);
  const entry = Int32Array.of(1);
  const map = await service.map('json', { bytes: MAP_BYTES, near });
  const ofBytes = await service.map<Uint8Array>('bytes', { bytes: MAP_BYTES, codec: 'bytes', near });
  return {
    concurrency: 1,
    add: () => counter.add(),
    lockAndRelease: () => mutex.lockSync().release(),
    pushAndPop() {
      queue.tryPush(entry);
      queue.tryPop();
    },
    get: (key) => map.get(key),
    set: (key, value) => map.set(key, value),
    getBytes: (key) => ofBytes.get(key),
    setBytes: (key, value) => ofBytes.set(key, value),
    close: () => service.leave(),
  };
}

/** Where the package `lmdb` is, from here or from the folder that `ONESIDED_BENCH_PEERS` names. */
export function findLmdb(): string | undefined {
  const folders = [import.meta.url, process.env['ONESIDED_BENCH_PEERS'] ?? ''].filter((folder) => folder !== '');
  for (const folder of folders) {
    const from = folder.startsWith('file:') ? folder : pathToFileURL(join(folder, 'index.js')).href;
    try {
      return createRequire(from).resolve('lmdb');
    } catch {
      // Perhaps in the next one.
    }
  }
  return undefined;
}

interface LmdbDatabase {
  get(key: string): unknown;
  put(key: string, value: unknown): Promise<unknown>;
  putSync(key: string, value: unknown): unknown;
  getBinary(key: string): unknown;
  resetReadTxn?(): void;
  transaction(act: () => void): Promise<void>;
  transactionSync(act: () => void): void;
  close(): Promise<void>;
}

/**
 * @param durable each promise is kept only when what it wrote is on the disk
 * @param later writes give promises, and those under way share a commit
 */
async function lmdb(path: string, durable: boolean, later: boolean): Promise<Store> {
  const { open } = createRequire(import.meta.url)(findLmdb()!) as { open(options: object): LmdbDatabase };
  // `overlappingSync` would say so before the disk does.
  const options = { noSync: !durable, overlappingSync: false, cache: false };
  const json = open({ ...options, path: join(path, 'json'), encoding: 'json' });
  const binary = open({ ...options, path: join(path, 'bytes'), encoding: 'binary' });
  const none = (): never => {
    throw new Error('LMDB has no such thing');
  };
  const count = (): void => void json.putSync('counter', ((json.get('counter') as number) ?? 0) + 1);
  return {
    concurrency: later ? UNDER_WAY : 1,
    add: () => (later ? json.transaction(count) : json.transactionSync(count)),
    lockAndRelease: none,
    pushAndPop: none,
    get: (key) => json.get(key),
    set: (key, value) => (later ? json.put(key, value) : json.putSync(key, value)),
    getBytes: (key) => binary.getBinary(key),
    setBytes: (key, value) => (later ? binary.put(key, Buffer.from(value)) : binary.putSync(key, Buffer.from(value))),
    refresh() {
      json.resetReadTxn?.();
      binary.resetReadTxn?.();
    },
    async close() {
      await json.close();
      await binary.close();
    },
  };
}

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

async function redis(socket: string): Promise<Store> {
  const client = await RedisClient.connect(socket);
  return {
    concurrency: UNDER_WAY,
    add: () => client.call('INCR', 'counter'),
    // One call at a time: each has a token of its own, as Redis's documentation has it.
    async lockAndRelease() {
      const token = randomUUID();
      while ((await client.call('SET', 'mutex', token, 'NX', 'PX', '10000')) === null);
      await client.call('EVAL', RELEASE, '1', 'mutex', token);
    },
    async pushAndPop() {
      await client.call('LPUSH', 'queue', '1');
      await client.call('RPOP', 'queue');
    },
    get: async (key) => JSON.parse((await client.call('GET', `j:${key}`)) as string),
    set: (key, value) => client.call('SET', `j:${key}`, JSON.stringify(value)),
    getBytes: (key) => client.call('GET', `b:${key}`),
    setBytes: (key, value) => client.call('SET', `b:${key}`, Buffer.from(value)),
    close: () => client.close(),
  };
}

/** Asks the parent, which has everything in its own memory (`answer`). */
function parent(): Store {
  const waiting = new Map<number, (answer: unknown) => void>();
  let number = 0;
  process.on('message', (message: { answer?: number; value?: unknown }) => {
    if (message.answer === undefined) return;
    waiting.get(message.answer)!(message.value);
    waiting.delete(message.answer);
  });
  const ask = (call: string, key?: string, value?: unknown): Promise<unknown> =>
    new Promise((resolve) => {
      waiting.set(++number, resolve);
      process.send!({ ask: number, call, key, value });
    });
  return {
    concurrency: UNDER_WAY,
    add: () => ask('add'),
    lockAndRelease: async () => {
      await ask('lock');
      await ask('unlock');
    },
    pushAndPop: async () => {
      await ask('push', undefined, 1);
      await ask('pop');
    },
    get: (key) => ask('get', `j:${key}`),
    set: (key, value) => ask('set', `j:${key}`, value),
    getBytes: async (key) => Buffer.from((await ask('get', `b:${key}`)) as string, 'base64'),
    setBytes: (key, value) => ask('set', `b:${key}`, Buffer.from(value).toString('base64')),
    close: () => {},
  };
}

/** What the parent answers. @returns what sends the answer to a worker's message, if it is a question */
export function parentStore(): (message: unknown, reply: (answer: object) => void) => void {
  const map = new Map<string, unknown>();
  const queue: unknown[] = [];
  const line: (() => void)[] = [];
  let count = 0;
  let isLocked = false;
  return (message, reply) => {
    const { ask, call, key, value } = message as { ask?: number; call: string; key: string; value: unknown };
    if (ask === undefined) return;
    const answer = (given?: unknown): void => reply({ answer: ask, value: given });
    if (call === 'add') answer(count++);
    else if (call === 'get') answer(map.get(key));
    else if (call === 'set') answer(void map.set(key, value));
    else if (call === 'push') answer(void queue.push(value));
    else if (call === 'pop') answer(queue.shift());
    else if (call === 'lock') {
      if (isLocked) line.push(answer);
      else answer((isLocked = true));
    } else {
      const next = line.shift();
      if (next === undefined) isLocked = false;
      answer();
      next?.();
    }
  };
}

/** Shares nothing: what it costs where one process has all. */
function own(): Store {
  const map = new Map<string, unknown>();
  let count = 0;
  return {
    concurrency: 1,
    add: () => count++,
    lockAndRelease: () => {},
    pushAndPop: () => {},
    get: (key) => map.get(`j:${key}`),
    set: (key, value) => map.set(`j:${key}`, value),
    getBytes: (key) => map.get(`b:${key}`),
    setBytes: (key, value) => map.set(`b:${key}`, value),
    close: () => {},
  };
}

/**
 * @param place of the service, the databases or the socket
 * @param manyUnderWay requests that wait for answers: LMDB then writes as its documentation has it for servers
 */
export function openStore(name: StoreName, place: string, manyUnderWay = false): Promise<Store> | Store {
  switch (name) {
    case 'onesided':
      return ours(place, 0);
    case 'near':
      return ours(`${place}.near`, 2000);
    case 'lmdb':
      return lmdb(place, false, manyUnderWay);
    case 'lmdb-durable':
      return lmdb(place, true, true);
    case 'redis':
      return redis(place);
    case 'process.send':
      return parent();
    case 'Map':
      return own();
  }
}
