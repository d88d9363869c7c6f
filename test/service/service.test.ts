/** Services: who may join, what stands behind a name, and what becomes of it when members leave and die. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import type { MemberEvent } from '../../src/service/membership-news.ts';
import { Service } from '../../src/service/service.ts';
import type { Member } from '../../src/service/service-members.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { endMembersAfterEach, fresh, join, killed, member, PROGRAM } from './members.ts';

endMembersAfterEach();

function next(service: Service, event: MemberEvent): Promise<Member> {
  return new Promise((resolve) => service.once(event, resolve));
}

/** A program whose listeners do something that they should not; it ends by itself. */
async function ran(does: string, name: string): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [LISTENER, does, name]);
}

/** The processes that a process has started and that run, by the kernel's list. */
function childrenOf(pid: number): string {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
}

const LISTENER = fileURLToPath(new URL('../../build/programs/test/ranks/service-listener.js', import.meta.url));

describe.skipIf(loadNative() === undefined)('a service', () => {
  it('gives each member the lowest place that is free, and tells the others', async () => {
    const name = fresh();
    const first = await join(name, 3);
    const told: string[] = [];
    for (const event of ['join', 'leave', 'death'] as const)
      first.on(event, ({ place }) => told.push(`${event} ${place}`));
    const second = await join(name);
    const third = await join(name, 3);
    expect([first.place, second.place, third.place, second.places]).toEqual([0, 1, 2, 3]);
    await expect(join(name)).rejects.toMatchObject({ code: 'ERR_SERVICE_FULL' });
    // Of a member that comes and leaves between two looks, nothing is told.
    while (told.length < 2) await next(first, 'join');
    await second.leave();
    await second.leave();
    expect((await join(name)).place).toBe(1);
    while (told.length < 4) await next(first, 'join');
    expect(told).toEqual(['join 1', 'join 2', 'leave 1', 'join 1']);
    expect(first.members().map(({ place }) => place)).toEqual([0, 1, 2]);
  });

  it('goes on telling after a listener has thrown, whose error is an uncaught one', async () => {
    const out = await ran('throw', fresh());
    expect(out.stderr).toBe('');
    expect(out.stdout).toBe('uncaught: mine\nleave 1\n');
  });

  it('lets a listener leave, and tells it no more', async () => {
    const out = await ran('leave', fresh());
    expect(out).toEqual({ stdout: 'join 1\nleft\n', stderr: '' });
  });

  it('refuses another number of places, and names that are none', async () => {
    const name = fresh();
    await join(name, 3);
    const service = await join(name);
    await expect(Service.join(name, { places: 4 })).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(/has 3 places.*asks for 4/),
    });
    for (const wrong of ['', 'a/b', '../x', 'x'.repeat(101), 7, null, undefined]) {
      const refused = { name: 'TypeError', code: 'ERR_ARG' };
      await expect(Service.join(wrong as string)).rejects.toMatchObject(refused);
      await expect(service.counter(wrong as string)).rejects.toMatchObject(refused);
    }
    for (const places of [0, 1001, 1.5, Number.NaN, '3'])
      await expect(Service.join(name, { places: places as number })).rejects.toMatchObject({ code: 'ERR_ARG' });
    await expect(Service.join(name, { place: 3 } as object)).rejects.toThrow(/did you mean "places"/);
  });

  it('goes with its last member, and begins anew', async () => {
    const name = fresh();
    const first = await join(name, 3);
    (await first.counter('hits')).add(7);
    const second = await join(name);
    await first.leave();
    expect((await second.counter('hits')).value).toBe(7);
    await second.leave();
    const third = await join(name, 5);
    expect((await third.counter('hits')).value).toBe(0);
    expect(() => second.members()).toThrow(expect.objectContaining({ code: 'ERR_SERVICE_LEFT' }));
  });

  it('outlives its members that are killed, and tells of them', async () => {
    const name = fresh();
    const child = await member(name, 'hold');
    const service = await join(name);
    expect(service.place).toBe(1);
    expect((await service.counter('hits')).value).toBe(3);
    const died = next(service, 'death');
    child.kill('SIGKILL');
    expect(await died).toEqual({ place: 0, pid: child.pid });
    const held = await (await service.mutex('log')).lock();
    expect(held.abandoned).toBe(0);
    held.release();
    expect((await (await service.mutex('log')).lock()).abandoned).toBeUndefined();
    // What its place was is free for the next.
    expect((await join(name)).place).toBe(0);
  });

  it('keeps its memory for as long as its last member has asked for', async () => {
    const name = fresh();
    const keeping = await Service.join(name, { places: 5, keep: 0.5 });
    (await keeping.counter('hits')).add(7);
    await keeping.leave();
    const next = await Service.join(name);
    expect([next.place, next.places, (await next.counter('hits')).value]).toEqual([0, 5, 7]);
    await next.leave();
    // That of the first one goes, then.
    const deadline = performance.now() + 60_000;
    for (let hits = 7; hits !== 0; await new Promise((resolve) => setTimeout(resolve, 100))) {
      expect(performance.now()).toBeLessThan(deadline);
      const later = await Service.join(name);
      hits = (await later.counter('hits')).value;
      await later.leave();
    }
    for (const keep of [-1, Number.NaN, Number.POSITIVE_INFINITY, '1'])
      await expect(Service.join(name, { keep: keep as number })).rejects.toMatchObject({ code: 'ERR_ARG' });
  });

  it('keeps its memory when its last member is ended with all of its children, as pm2 does', async () => {
    const name = fresh();
    const child = await member(name, 'kept');
    // What started the process that keeps it may be ending still.
    await expect.poll(() => childrenOf(child.pid!), { timeout: 30_000 }).toEqual('');
    await killed(child);
    const next = await join(name);
    expect([next.place, (await next.counter('hits')).value]).toEqual([0, 3]);
  });

  it('does not take a stopped process for dead', async () => {
    const name = fresh();
    const service = await join(name);
    const child = await member(name, 'hold');
    child.kill('SIGSTOP');
    const mutex = await service.mutex('log');
    await expect(mutex.lock({ timeout: 300 })).rejects.toMatchObject({
      code: 'ERR_RMA_TIMEOUT',
      message: expect.stringContaining('place 1 holds it'),
    });
    expect(service.members()).toHaveLength(2);
    await killed(child);
    expect((await mutex.lock()).abandoned).toBe(1);
  });

  it('counts a process that ends by itself as one that leaves', async () => {
    const name = fresh();
    const service = await join(name);
    const left = next(service, 'leave');
    const child = await member(name, 'end');
    expect(await left).toEqual({ place: 1, pid: child.pid });
  });

  it('takes nothing from others when a member that has left goes on', async () => {
    const name = fresh();
    const [one, two, three] = [await join(name), await join(name), await join(name)];
    const [ofOne, ofTwo, ofThree] = [await one.mutex('m'), await two.mutex('m'), await three.mutex('m')];
    const [hits, queue, map] = [
      await one.counter('hits'),
      await one.queue('q', Int32Array, 4),
      await one.map<number>('map', { bytes: 1 << 20, near: 10 }),
    ];
    map.set('a', 1).set('b', 2).get('a');
    const walk = map.entries();
    walk.next();
    const left = { code: 'ERR_SERVICE_LEFT', message: expect.stringContaining(name) };
    const held = await ofOne.lock();
    const waits = [ofOne.lock(), ofOne.lock(), queue.pop(), queue.take()].map((wait) =>
      expect(wait).rejects.toMatchObject(left),
    );
    await one.leave();
    await Promise.all(waits);
    const taken = ofTwo.tryLock()!;
    expect(taken.abandoned).toBe(0);
    held.release();
    expect(ofThree.tryLock()).toBeUndefined();
    taken.release();
    expect(ofThree.tryLock()).toBeDefined();
    await expect(ofOne.lock()).rejects.toMatchObject(left);
    await expect(queue.push(Int32Array.of(1))).rejects.toMatchObject(left);
    await expect(map.promises.set('a', 1)).rejects.toMatchObject(left);
    await expect(map.promises.clear()).rejects.toMatchObject(left);
    for (const call of [
      () => ofOne.tryLock(),
      () => ofOne.lockSync(),
      () => hits.add(),
      () => hits.value,
      () => hits.exchange(1),
      () => queue.tryPush(Int32Array.of(1)),
      () => queue.tryPop(),
      () => queue.popSync(),
      () => queue.close(),
      () => queue.length,
      () => queue.closed,
      () => map.set('a', 1),
      () => map.delete('a'),
      () => map.update('a', () => 1),
      () => map.increment('a'),
      () => map.compareAndSet('a', 1, 2),
      () => map.get('a'),
      () => map.has('a'),
      () => map.size,
      () => map.clear(),
      () => map.statistics(),
      () => [...map],
      () => [...map.keys()],
      () => walk.next(),
    ])
      expect(call).toThrow(expect.objectContaining(left));
  });

  it('has threads as members, and notices when one is terminated', async () => {
    const name = fresh();
    const service = await join(name);
    const worker = new Worker(PROGRAM, { argv: [name, 'hold'], stdout: true });
    await next(service, 'join');
    const mutex = await service.mutex('log');
    // It says so when it holds the mutex.
    await once(worker.stdout, 'data');
    await expect(mutex.lock({ timeout: 100 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    const died = next(service, 'death');
    await worker.terminate();
    expect(await died).toEqual({ place: 1, pid: process.pid });
    expect((await mutex.lock()).abandoned).toBe(1);
  });

  it('has one thing behind a name, for all who ask alike', async () => {
    const name = fresh();
    const [one, two] = [await join(name), await join(name)];
    await one.counter('x');
    expect(await one.counter('x')).toBe(await one.counter('x'));
    await expect(two.mutex('x')).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(/"x" of the service ".*" was made as a counter.*a mutex/),
    });
    await one.queue('q', Int32Array, 5);
    await expect(two.queue('q', Int32Array, 6)).rejects.toThrow(/capacity 5.*capacity 6/);
    await expect(two.queue('q', Float32Array, 5)).rejects.toMatchObject({ code: 'ERR_SERVICE_MISMATCH' });
    await expect(two.counter('a b')).rejects.toMatchObject({ code: 'ERR_ARG' });
  });
});

describe.skipIf(loadNative() === undefined)('a counter of a service', () => {
  it('has 64 bits', async () => {
    const name = fresh();
    const [one, two] = [await (await join(name)).counter('x'), await (await join(name)).counter('x')];
    expect(one.add(2 ** 40)).toBe(0);
    expect(two.add(-1)).toBe(2 ** 40);
    expect(one.exchange(-(2 ** 50))).toBe(2 ** 40 - 1);
    expect(two.value).toBe(-(2 ** 50));
    for (const wrong of [1.5, 2 ** 53, Number.NaN, '1', 2n ** 63n, -(2n ** 63n) - 1n]) {
      expect(() => one.add(wrong as number)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
      expect(() => one.exchange(wrong as number)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    }
    expect(one.exchange(2n ** 62n + 1n)).toBe(-(2n ** 50n));
    expect(two.add(2n)).toBe(2n ** 62n + 1n);
    expect([two.exactValue, two.value]).toEqual([2n ** 62n + 3n, 2 ** 62]);
    expect(one.exchange(2n ** 63n - 1n)).toBe(2n ** 62n + 3n);
    one.add(1n);
    expect(two.exactValue).toBe(-(2n ** 63n));
  });
});

describe.skipIf(loadNative() === undefined)('a map of a service', () => {
  it('is one for all members, and refuses other options', async () => {
    const name = fresh();
    const [first, second] = [await join(name), await join(name)];
    const one = await first.map<{ n: number }>('m', { bytes: 1 << 20, ttl: 60_000 });
    const two = await second.map<{ n: number }>('m', { bytes: 1 << 20, ttl: 60_000 });
    one.set('a', { n: 1 });
    expect(two.get('a')).toEqual({ n: 1 });
    two.update('a', (value) => ({ n: value!.n + 1 }));
    expect([...one.entries()]).toEqual([['a', { n: 2 }]]);
    await expect(second.map('m', { bytes: 2 << 20, ttl: 60_000 })).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
    });
    const third = await join(name);
    await first.leave();
    await second.leave();
    expect((await third.map('m', { bytes: 1 << 20, ttl: 60_000 })).get('a')).toEqual({ n: 2 });
  });
});

describe.skipIf(loadNative() === undefined)('a rate limiter of a service', () => {
  it('allows as many calls as it says, over all members, and each key its own', async () => {
    const name = fresh();
    const options = { rate: 5, per: 1e6 };
    const services = [await join(name), await join(name)];
    const [one, two] = [await services[0]!.limiter('l', options), await services[1]!.limiter('l', options)];
    expect(one.take('a')).toEqual({ allowed: true, remaining: 4, retryAfter: 0 });
    expect(two.take('a', 3)).toEqual({ allowed: true, remaining: 1, retryAfter: 0 });
    expect(two.take('a', 2)).toMatchObject({ allowed: false, remaining: 1 });
    expect(one.take('a').remaining).toBe(0);
    const { allowed, retryAfter } = two.take('a');
    expect(allowed).toBe(false);
    // A fifth of the time, less what has passed.
    expect(retryAfter).toBeLessThanOrEqual(200_000);
    expect(retryAfter).toBeGreaterThan(100_000);
    expect(two.take('b').remaining).toBe(4);
    one.reset('a');
    expect(two.take('a').remaining).toBe(4);
    for (const cost of [0, 6, 1.5, '1'])
      expect(() => one.take('a', cost as number)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    expect(() => one.take(7 as never)).toThrow(/^RateLimiter\.take: key must be a string, not 7$/);
    expect(() => one.reset(null as never)).toThrow(/^RateLimiter\.reset: key must be a string, not null$/);
    await services[0]!.leave();
    expect(() => one.take('a')).toThrow(/^RateLimiter\.take: this member/);
    await expect((await join(name)).limiter('l', { rate: 6, per: 1e6 })).rejects.toThrow(/rate 5.*rate 6/);
  });

  it('gives them back by and by', async () => {
    const limiter = await (await join(fresh())).limiter('l', { rate: 1000, per: 1000 });
    let [taken, refused] = [0, 0];
    const began = performance.now();
    while (refused === 0 || performance.now() < began + 300)
      if (limiter.take().allowed) taken++;
      else refused++;
    const passed = performance.now() - began;
    // A thousand at once, and one each millisecond.
    expect(taken).toBeLessThanOrEqual(1001 + passed);
    expect(taken).toBeGreaterThanOrEqual(1000);
    for (const wrong of [{ rate: 0, per: 1 }, { rate: 1, per: 0 }, { rate: 1.5, per: 1 }, { rate: 1 }, null])
      await expect((await join(fresh())).limiter('l', wrong as never)).rejects.toMatchObject({ code: 'ERR_ARG' });
  });
});

describe.skipIf(loadNative() === undefined)('a mutex of a service', () => {
  it('has one holder, serves the calls of a member in their order, and lets them give up', async () => {
    const name = fresh();
    const [one, two] = [await (await join(name)).mutex('x'), await (await join(name)).mutex('x')];
    const held = await one.lock();
    expect(two.tryLock()).toBeUndefined();
    expect(() => two.lockSync({ timeout: 30 })).toThrow(expect.objectContaining({ code: 'ERR_RMA_TIMEOUT' }));
    expect(() => one.lockSync()).toThrow(expect.objectContaining({ code: 'ERR_RMA_WOULD_DEADLOCK' }));
    const order: number[] = [];
    const quits = new AbortController();
    const waits = [1, 2, 3].map(async (i) => {
      const mine = await two.lock(i === 2 ? { signal: quits.signal } : undefined);
      order.push(i);
      mine.release();
      mine.release();
    });
    const refused = expect(waits[1]).rejects.toThrow('enough');
    quits.abort(new Error('enough'));
    await refused;
    held.release();
    await Promise.all([waits[0], waits[2]]);
    expect(order).toEqual([1, 3]);
    const result = await two.withLock(() => {
      expect(one.tryLock()).toBeUndefined();
      return 5;
    });
    expect(result).toBe(5);
    expect(one.tryLock()).toBeDefined();
  });
});

describe.skipIf(loadNative() === undefined)('a queue of a service', () => {
  it('is first in, first out, also beyond its end, and keeps those out for whom there is no room', async () => {
    const name = fresh();
    const [one, two] = [
      await (await join(name)).queue('q', Float64Array, 3, { length: 2 }),
      await (await join(name)).queue('q', Float64Array, 3, { length: 2 }),
    ];
    for (let i = 0; i < 10; i++) {
      await one.push(Float64Array.of(i, -i));
      expect(two.tryPop()).toEqual(Float64Array.of(i, -i));
    }
    for (let i = 0; i < 3; i++) expect(one.tryPush(Float64Array.of(i, 0))).toBe(true);
    expect(one.tryPush(Float64Array.of(3, 0))).toBe(false);
    expect(() => one.pushSync(Float64Array.of(3, 0), { timeout: 20 })).toThrow(/has 3 of 3 entries/);
    const pushed = one.push(Float64Array.of(3, 0));
    expect(await two.pop()).toEqual(Float64Array.of(0, 0));
    await pushed;
    expect(two.length).toBe(3);
    expect(() => one.tryPush(Float32Array.of(1, 2) as never)).toThrow(expect.objectContaining({ code: 'ERR_TYPE' }));
    expect(() => one.tryPush(Float64Array.of(1))).toThrow(expect.objectContaining({ code: 'ERR_SIZE' }));
    two.close();
    await expect(one.push(Float64Array.of(1, 1))).rejects.toMatchObject({ code: 'ERR_SERVICE' });
    const rest: number[] = [];
    for await (const [first] of one) rest.push(first);
    expect(rest).toEqual([1, 2, 3]);
    expect(two.popSync()).toBeUndefined();
  });

  it('wakes those that wait', async () => {
    const name = fresh();
    const [one, two] = [
      await (await join(name)).queue('q', Int32Array, 8),
      await (await join(name)).queue('q', Int32Array, 8),
    ];
    const popped = [one.pop(), two.pop(), two.pop()];
    await one.push(Int32Array.of(1));
    await two.push(Int32Array.of(2));
    two.close();
    const found = (await Promise.all(popped)).map((entry) => entry?.[0]);
    expect(found.filter((value) => value !== undefined).sort()).toEqual([1, 2]);
  });

  it('gives what a member had taken when it died to another one, and not what it had done or popped', async () => {
    const name = fresh();
    const service = await join(name);
    const queue = await service.queue('q', Int32Array, 8);
    for (let i = 1; i <= 6; i++) await queue.push(Int32Array.of(i));
    const died = next(service, 'death');
    // It pops one, has taken and done another, and has taken two.
    await killed(await member(name, 'take'));
    await died;
    const first = await queue.take();
    expect([first!.entry[0], first!.again]).toEqual([3, true]);
    expect(queue.tryPop()![0]).toBe(4);
    const last = await queue.take();
    expect([last!.entry[0], last!.again]).toEqual([5, false]);
    first!.done();
    last!.done();
    expect(queue.length).toBe(1);
  });

  it('lets a member have sixteen entries at a time', async () => {
    const queue = await (await join(fresh())).queue('q', Uint8Array, 20);
    for (let i = 0; i < 20; i++) await queue.push(Uint8Array.of(i));
    const taken = [];
    for (let i = 0; i < 16; i++) taken.push(await queue.take());
    await expect(queue.take()).rejects.toMatchObject({ code: 'ERR_SERVICE' });
    taken[3]!.done();
    expect((await queue.take())!.entry[0]).toBe(16);
    // A second call is none, also if the entry's place is another one's by now.
    taken[3]!.done();
    await expect(queue.take()).rejects.toMatchObject({ code: 'ERR_SERVICE' });
    expect(queue.length).toBe(3);
  });

  it('gives a newcomer what its place and others have taken and left, though all of its hands are full', async () => {
    const name = fresh();
    const queue = await (await join(name)).queue('q', Int32Array, 40);
    for (let i = 0; i < 33; i++) await queue.push(Int32Array.of(i));
    const members = [await join(name), await join(name)];
    for (const service of members) {
      const all = await service.queue('q', Int32Array, 40);
      for (let i = 0; i < 16; i++) await all.take();
    }
    for (const service of members) await service.leave();
    await join(name);
    const newcomer = await join(name);
    expect(newcomer.place).toBe(2);
    const left = await newcomer.queue('q', Int32Array, 40);
    const found = [];
    for (let i = 0; i < 33; i++) {
      const { entry, again, done } = (await left.take({ timeout: 10_000 }))!;
      found.push([entry[0], again]);
      done();
    }
    found.sort(([a], [b]) => Number(a) - Number(b));
    expect(found).toEqual(Array.from({ length: 33 }, (_, i) => [i, i < 32]));
  });
});

describe.skipIf(loadNative() === undefined)('a signal that has aborted', () => {
  it('ends each call that could wait, before it does anything', async () => {
    const service = await join(fresh(), 2);
    const mutex = await service.mutex('log');
    const queue = await service.queue('q', Int32Array, 4);
    const map = await service.map<number>('m', { bytes: 1 << 20 });
    const win = await service.window('w', Int32Array, 4);
    const { promises } = map;
    queue.tryPush(Int32Array.of(1));
    map.set('a', 1);
    win.putNotify(Int32Array.of(1), 0);
    const over = { signal: AbortSignal.abort(new Error('enough')) };
    const calls: readonly (() => Promise<unknown>)[] = [
      () => mutex.lock(over),
      () => mutex.withLock(() => map.clear(), over),
      async () => mutex.lockSync(over),
      () => queue.push(Int32Array.of(2), over),
      () => queue.pop(over),
      () => queue.take(over),
      () => promises.set('a', 2, over),
      () => promises.update('a', () => 2, over),
      () => promises.increment('a', 1, over),
      () => promises.compareAndSet('a', 1, 2, over),
      () => promises.delete('a', over),
      () => promises.clear(over),
      () => win.lock(0, Lock.EXCLUSIVE, 0, over),
      () => win.lockAll(0, over),
      () => win.waitNotify(1, over),
    ];
    for (const call of calls) await expect(call(), String(call)).rejects.toThrow('enough');
    expect([queue.length, map.get('a'), win.testNotify()]).toEqual([1, 1, true]);
    mutex.tryLock()!.release();
    win.lockSync(0, Lock.EXCLUSIVE);
  });
});
