/**
 * What the compiler says of services: `npm run check` reads this file, and nobody runs it. Each `@ts-expect-error` is a
 * line that must not compile.
 */
import Keyv from 'keyv';
import { Lock, Op } from 'onesided';
import {
  KeyvStore,
  type Service,
  type ServiceQueue,
  type ServiceWindow,
  type SharedMap,
  type SharedMapOptions,
} from 'onesided/service';

interface Session {
  readonly seen: number;
}

const bytes = 1 << 20;

export async function maps(service: Service, options: SharedMapOptions<Session>): Promise<void> {
  const sessions = await service.map<Session>('sessions', { bytes, ttl: 1000 });
  sessions.update('ann', (before) => ({ seen: (before?.seen ?? 0) + 1 }))?.seen.toFixed();
  for (const { seen } of sessions.values()) seen.toFixed();
  for (const [key, { seen }] of sessions) key.padEnd(seen);
  await (await service.map('sessions', options)).promises.set('ann', { seen: 1 }, { ttl: 5 });
  // @ts-expect-error no session
  sessions.set('ann', { sen: 1 });
  // @ts-expect-error without bytes
  await service.map<Session>('sessions', { ttl: 1000 });
  // @ts-expect-error a session is no text
  await service.map<Session>('sessions', { bytes, codec: 'string' });
  // @ts-expect-error a session is not bytes
  await service.map<Session>('sessions', { bytes, codec: 'bytes' });

  // The codec says what the values are.
  const texts = await service.map('texts', { bytes, codec: 'string' });
  texts.get('a')?.toUpperCase();
  // @ts-expect-error a number is no text
  texts.set('a', 1);
  const blocks = await service.map('blocks', { bytes, codec: 'bytes' });
  blocks.get('a')?.subarray(1);
  // @ts-expect-error an array is no bytes
  blocks.set('a', [1]);
  const sizes = await service.map('sizes', {
    bytes,
    codec: { encode: (size: number) => Uint8Array.of(size), decode: ([size]) => size! },
  });
  sizes.get('a')?.toFixed();
  const states: SharedMap<'on' | 'off'> = await service.map<'on' | 'off'>('states', { bytes, codec: 'string' });
  states.set('lamp', 'on');
  const clones = await service.map<Map<string, Date>>('clones', { bytes, codec: 'structured' });
  clones.get('a')?.get('b')?.getTime();
  const unknown: SharedMap<unknown> = await service.map('any', { bytes });
  unknown.set('a', [1]);

  const store = new KeyvStore(texts);
  await new Keyv({ store, namespace: 'pages' }).set('a', { b: 1 });
  new KeyvStore(await service.map('cache', { bytes, codec: 'string' }));
  // @ts-expect-error a store needs texts
  new KeyvStore(blocks);
}

export async function others(service: Service): Promise<void> {
  const win = await service.window('w', Float64Array, 8);
  win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
  (await win.lock(0, Lock.EXCLUSIVE, 0, { timeout: 5 })).abandoned?.toFixed();
  // `Float64Array` in a type is one with any kind of memory.
  const named: ServiceWindow<Float64Array> = win;
  const queues: { jobs?: ServiceQueue<Int32Array> } = {};
  queues.jobs = await service.queue('q', Int32Array, 8, { length: 2 });
  named.fetchAndOp(null, new Float64Array(1), 0, 0, Op.NO_OP);
  const flags: ServiceWindow<BigUint64Array> = await service.window('flags', BigUint64Array, 8);
  flags.getAccumulate(BigUint64Array.of(1n), new BigUint64Array(1), 0, 0, Op.BOR);
  // @ts-expect-error not defined on numbers with fractions
  named.fetchAndOp(Float64Array.of(1), new Float64Array(1), 0, 0, Op.BOR);
  // @ts-expect-error other elements
  win.put(Int32Array.of(1), 0);
  // @ts-expect-error not defined on numbers with fractions
  win.accumulate(Float64Array.of(1), 0, 0, Op.BAND);
  // @ts-expect-error a lock type is one of `Lock`
  await win.lock(0, 1);
  const queue = await service.queue('q', Int32Array, 8, { length: 2 });
  const taken = await queue.take({ timeout: 5 });
  taken?.entry.subarray(taken.again ? 1 : 0);
  // @ts-expect-error other elements
  await queue.push(Float64Array.of(1));
  const jobs: ServiceQueue<Session> = await service.queue<Session>('jobs', { capacity: 8 });
  for await (const { entry, giveBack } of jobs.takes({ timeout: 5 })) if (entry.seen > 1) giveBack();
  // @ts-expect-error no session
  await jobs.push({ sen: 1 });
  // @ts-expect-error a session is no text
  await service.queue<Session>('jobs', { capacity: 8, codec: 'string' });
  // @ts-expect-error without a capacity
  await service.queue<Session>('jobs', {});
  (await (await service.queue('lines', { capacity: 8, codec: 'string' })).pop())?.toUpperCase();
  (await (await service.queue('blocks', { capacity: 8, codec: 'bytes' })).pop())?.subarray(1);
  // @ts-expect-error windows of a service have no layouts
  win.put(Float64Array.of(1), 0, 0, { target: 1 });
  await win.rget(new Float64Array(1), 0, 0).wait();
  const sum: number = await (await service.mutex('m')).withLock(async ({ abandoned }) => abandoned ?? 0);
  (await service.counter('c')).add(sum);
  await service.limiter('s', { rate: 5, per: 1000, algorithm: 'sliding-window' });
  // @ts-expect-error no such algorithm
  await service.limiter('s', { rate: 5, per: 1000, algorithm: 'sliding' });
  // @ts-expect-error a limiter needs a rate
  await service.limiter('l', { per: 5 });
  service.on('death', ({ place, pid }) => place + pid);
  // @ts-expect-error no such event
  service.on('end', () => {});
}
