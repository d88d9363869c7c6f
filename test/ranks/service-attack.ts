/**
 * What a member of a service can do wrong, by seed: hostile calls, or garbage written over the memory that all share.
 * Each call gives something or an error with a code, and none crashes or hangs; after hostile calls another member
 * finds everything in order.
 *
 *     service-attack.js calls|garbage NAME SEED COUNT
 */
import assert from 'node:assert/strict';
import { fstatSync, openSync, readdirSync, readlinkSync, writeSync } from 'node:fs';
import { Lock, Op } from 'onesided';
import { KeyvStore, Service } from 'onesided/service';
import { explosive, noAsserts, noBuffers, noIndices, noOps } from './support/hostile.ts';

const [mode, name, seed, count] = process.argv.slice(2) as [string, string, string, string];
let state = Number(seed) | 0;
function random(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 8) % n;
}
const pick = <T>(list: readonly T[]): T => list[random(list.length)];

async function open(service: Service) {
  return {
    service,
    counter: await service.counter('counter'),
    mutex: await service.mutex('mutex'),
    queue: await service.queue('queue', Int32Array, 16),
    map: await service.map('map', { bytes: 1 << 20 }),
    texts: await service.map<string>('texts', { bytes: 1 << 20, codec: 'string', near: 5 }),
    limiter: await service.limiter('limiter', { rate: 10, per: 1000 }),
    window: await service.window('window', Int32Array, 100),
    doubles: await service.window('doubles', Float64Array, 10_000),
  };
}

type Things = Awaited<ReturnType<typeof open>>;

/** An error that a call may give: the library's, or one of the argument's own code. */
function check(call: string, error: unknown): void {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && code.startsWith('ERR_')) return;
  if (typeof message === 'string' && /has run|own function/.test(message)) return;
  throw new Error(`${call}: ${(error as Error)?.stack ?? String(error)}`, { cause: error });
}

/** Calls that block without a timeout, and where their options are. */
const BLOCKING: Readonly<Record<string, number>> = {
  lockSync: 0,
  popSync: 0,
  pushSync: 1,
  waitNotifySync: 1,
  lockAllSync: 1,
};

function hostile(): unknown {
  switch (random(9)) {
    case 0:
      return explosive();
    case 1:
      return pick(noIndices(4))[1];
    case 2:
      return pick(noBuffers(new Int32Array(1)))[1];
    case 3:
      return pick(noOps())[1];
    case 4:
      return pick(noAsserts())[1];
    case 5:
      return pick([
        { timeout: 1 },
        { ttl: 5 },
        { timeout: -1 },
        { tiemout: 1 },
        { signal: 7 },
        { signal: AbortSignal.abort(new Error('own function')) },
      ]);
    case 6:
      return pick([
        () => {
          throw new Error('own function');
        },
        async () => 1,
        () => undefined,
        (value: unknown) => value,
      ]);
    case 7:
      return pick([
        'key',
        '',
        'x'.repeat(200_000),
        '\ud800',
        'a b',
        '__proto__',
        { toString: 1 },
        [1, [2]],
        new Date(0),
        10n,
      ]);
    default:
      return pick([0, 1, 2, Int32Array.of(1), new Float64Array(10), Op.SUM, Lock.SHARED, Lock.EXCLUSIVE, null]);
  }
}

const HOSTILE_MAPS = [
  ...[-1, 0, 1.5, 2 ** 34, 65_536, 8 * 2 ** 30, Number.NaN].map((bytes) => ({ bytes })),
  ...['jsn', 5, null, { encode: () => 5, decode: () => 5 }].map((codec) => ({ bytes: 70_000, codec })),
  ...[0, -1, Number.NaN, '5'].map((ttl) => ({ bytes: 70_000, ttl })),
];

async function calls(): Promise<void> {
  const service = await Service.join(name);
  const others = await open(await Service.join(name));
  const things = await open(service);
  const store = new KeyvStore(things.texts);
  const targets: [string, object][] = [...Object.entries(things), ['promises', things.map.promises], ['keyv', store]];
  const pending: Promise<unknown>[] = [];
  let [done, refused] = [0, 0];
  for (let i = 0; i < Number(count); i++) {
    const [what, target] = pick(targets);
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(target)).filter(
      (method) => !['constructor', 'left', 'leave'].includes(method),
    );
    const method = pick(methods);
    const call = `${what}.${method}`;
    const args = Array.from({ length: random(5) }, hostile);
    if (what === 'service' && method === 'map' && random(2) === 0)
      args.splice(0, 2, pick(['map', 'other']), pick(HOSTILE_MAPS));
    const at = method === 'lockSync' && what !== 'mutex' ? 3 : BLOCKING[method];
    if (at !== undefined && args[at] === undefined) {
      while (args.length < at) args.push(method === 'lockAllSync' ? 0 : hostile());
      args[at] = { timeout: 1 };
    }
    done++;
    try {
      const member = (target as Record<string, unknown>)[method];
      const result = typeof member === 'function' ? Reflect.apply(member, target, args) : member;
      if (result instanceof Promise) {
        pending.push(
          result.catch((error: unknown) => {
            refused++;
            check(call, error);
          }),
        );
      }
      if (typeof result !== 'object' || result === null) continue;
      if (Symbol.iterator in result) [...(result as Iterable<unknown>)];
      else if (Symbol.asyncIterator in result && method === 'iterator')
        for await (const _ of result as AsyncIterable<unknown>);
    } catch (error) {
      refused++;
      check(call, error);
    }
    if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await service.leave();
  // What still waits hears that its member has left.
  await Promise.all(pending);
  const { counter, mutex, map, limiter, window, doubles } = others;
  const before = counter.value;
  counter.add(2);
  assert.equal(counter.value, before + 2);
  (await mutex.lock({ timeout: 5000 })).release();
  map.set('after', { all: true });
  assert.deepEqual(map.get('after'), { all: true });
  assert.equal(typeof limiter.take('after').allowed, 'boolean');
  for (const target of [0, 1, 2]) await window.lock(target, Lock.EXCLUSIVE, 0, { timeout: 5000 });
  doubles.accumulate(new Float64Array(10_000).fill(1), 0, 0, Op.SUM);
  await others.service.leave();
  console.log(JSON.stringify({ done, refused }));
}

/** One call of each kind, none of which waits for long. */
async function useAll({
  service,
  counter,
  mutex,
  queue,
  map,
  texts,
  limiter,
  window,
  doubles,
}: Things): Promise<number> {
  let refused = 0;
  const attempt = async (call: string, act: () => unknown): Promise<void> => {
    try {
      const result = act();
      if (result instanceof Promise) await result;
    } catch (error) {
      refused++;
      check(call, error);
    }
  };
  const key = `key ${random(20)}`;
  await attempt('add', () => counter.add());
  await attempt('members', () => service.members());
  await attempt('mutex', async () => (await mutex.lock({ timeout: 20 })).release());
  await attempt('push', () => queue.tryPush(Int32Array.of(1)));
  await attempt('take', async () => (await queue.take({ timeout: 5 }))?.done());
  await attempt('get', () => map.get(key));
  await attempt('set', () => map.set(key, { key, random: random(100) }, { timeout: 20 }));
  await attempt('texts', () => texts.update(key, (text = '') => `${text}.`.slice(-50), { timeout: 20 }));
  await attempt('walk', () => [...map]);
  await attempt('limiter', () => limiter.take(key));
  await attempt('put', () => window.put(Int32Array.of(1), random(64), random(100)));
  await attempt('lock', async () => {
    await window.lock(1, Lock.EXCLUSIVE, 0, { timeout: 20 });
    await window.unlock(1);
  });
  await attempt('lockAll', async () => {
    await window.lockAll(0, { timeout: 50 });
    await window.unlockAll();
  });
  await attempt('accumulate', () => doubles.accumulate(new Float64Array(10_000), 2, 0, Op.SUM));
  await attempt('interrupted', () => doubles.interrupted(2));
  await attempt('notify', () => window.testNotify());
  if (random(20) === 0) await attempt('clear', () => map.clear({ timeout: 20 }));
  if (random(4) === 0) await attempt('new', () => service.counter(`new ${random(5)}`.replace(' ', '-')));
  if (random(8) === 0)
    await attempt('join', async () => {
      const next = await Service.join(name);
      await next.counter('counter').catch((error: unknown) => check('next', error));
      await next.leave();
    });
  return refused;
}

async function garbage(): Promise<void> {
  const things = await open(await Service.join(name));
  const fd = readdirSync('/proc/self/fd').find((number) => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`).startsWith('/memfd:onesided-service');
    } catch {
      return false;
    }
  });
  const file = openSync(`/proc/self/fd/${fd}`, 'r+');
  await useAll(things);
  let refused = 0;
  for (let round = 0; round < Number(count); round++) {
    const { size } = fstatSync(file);
    const bytes = Uint8Array.from({ length: 1 << random(14) }, () => random(256));
    if (random(3) === 0) bytes.fill(random(2) * 255);
    // Half of it where the words of the service itself are.
    writeSync(file, bytes, 0, bytes.length, Math.max(0, random(random(2) === 0 ? 300_000 : size) - bytes.length));
    refused += await useAll(things);
  }
  console.log(JSON.stringify({ done: Number(count), refused }));
  process.exit();
}

await (mode === 'calls' ? calls() : garbage());
