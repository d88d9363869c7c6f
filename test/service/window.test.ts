/** Windows of a service: what they do, and what becomes of locks, stripes and parts when members die. */
import { describe, expect, it } from 'vitest';
import { Op } from '../../src/datatype/op.ts';
import { loadNative } from '../../src/native.ts';
import type { Service } from '../../src/service/service.ts';
import type { ServiceWindow } from '../../src/service/window/service-window.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Request } from '../../src/window/calls/window-request.ts';
import { endMembersAfterEach, fresh, join, killed, member } from './members.ts';

endMembersAfterEach();

const { EXCLUSIVE, SHARED } = Lock;

type Floats = ServiceWindow<Float64Array<ArrayBuffer>>;

async function two(): Promise<[Service, Service, Floats, Floats]> {
  const name = fresh();
  const [one, other] = [await join(name, 4), await join(name)];
  return [one, other, await one.window('w', Float64Array, 1000), await other.window('w', Float64Array, 1000)];
}

describe.skipIf(loadNative() === undefined)('a window of a service', () => {
  it('has a part for each place, which all members read and write', async () => {
    const [one, , a, b] = await two();
    expect([a.places, a.length, a.local.length]).toEqual([4, 1000, 1000]);
    expect(await one.window('w', Float64Array, 1000)).toBe(a);
    const values = Float64Array.from({ length: 100 }, (_, i) => i + 0.25);
    b.put(values, 0, 900);
    expect(a.local.slice(900)).toEqual(values);
    a.local[3] = 4;
    const found = new Float64Array(5);
    b.get(found, 0, 1);
    expect(found).toEqual(Float64Array.of(0, 0, 4, 0, 0));
    const many = new Float64Array(100);
    b.get(many, 0, 900);
    expect(many).toEqual(values);
    // The part of a place that nobody has.
    a.put(Float64Array.of(9), 3);
    expect(b.sharedQuery(3)[0]).toBe(9);
  });

  it('updates elements as windows of a job do', async () => {
    const [one, other, a, b] = await two();
    a.accumulate(Float64Array.of(1, 2, 3), 1, 10, Op.SUM);
    b.accumulate(
      Float64Array.from({ length: 20 }, () => 0.5),
      1,
      5,
      Op.SUM,
    );
    expect(b.local.slice(9, 14)).toEqual(Float64Array.of(0.5, 1.5, 2.5, 3.5, 0.5));
    const before = new Float64Array(3);
    a.getAccumulate(Float64Array.of(2, 1, 9), before, 1, 10, Op.MAX);
    expect([...before, ...b.local.slice(10, 13)]).toEqual([1.5, 2.5, 3.5, 2, 2.5, 9]);
    const single = new Float64Array(1);
    b.fetchAndOp(null, single, 1, 12, Op.NO_OP);
    expect(single[0]).toBe(9);
    for (const type of [Int8Array, Uint16Array, Int32Array, Float32Array]) {
      const like = type as unknown as Int32ArrayConstructor;
      const [x, y] = [await one.window(type.name, like, 50), await other.window(type.name, like, 50)];
      const twos = new like(50).fill(2);
      for (let i = 0; i < 3; i++) for (const w of [x, y]) w.accumulate(twos, 2, 0, Op.SUM);
      expect(y.sharedQuery(2)).toEqual(new like(50).fill(12));
      const was = new like(1);
      y.fetchAndOp(like.of(3), was, 2, 7, Op.REPLACE);
      expect([was[0], x.sharedQuery(2)[7]]).toEqual([12, 3]);
    }
    const longs = await one.window('longs', BigInt64Array, 10);
    const was = new BigInt64Array(1);
    longs.fetchAndOp(BigInt64Array.of(2n ** 40n), was, 0, 3, Op.SUM);
    longs.compareAndSwap(BigInt64Array.of(7n), BigInt64Array.of(2n ** 40n), was, 0, 3);
    expect([was[0], longs.local[3]]).toEqual([2n ** 40n, 7n]);
  });

  it('refuses collective calls by name, and what does not fit', async () => {
    const [one, , a] = await two();
    for (const call of ['fence', 'start', 'complete', 'post', 'wait', 'test', 'free'] as const)
      expect(() => a[call]()).toThrow(
        expect.objectContaining({
          code: 'ERR_SERVICE',
          message: expect.stringMatching(`ServiceWindow.${call} of .*use `),
        }),
      );
    const onlyOfJobs = 'fenceSync freeSync fenced startedSync postedSync locked lockedAllSync aggregate attach detach';
    for (const call of onlyOfJobs.split(' '))
      expect(() => (a as never as Record<string, () => void>)[call]!()).toThrow(
        expect.objectContaining({
          code: 'ERR_SERVICE',
          message: expect.stringMatching(`ServiceWindow.${call} of .*use `),
        }),
      );
    for (const call of ['barrier', 'split', 'barrierSync', 'dup', 'splitTypeSync', 'shrink', 'agree'])
      expect(() => (one as never as Record<string, () => void>)[call]!()).toThrow(
        expect.objectContaining({
          code: 'ERR_SERVICE',
          message: expect.stringMatching(`^Service.${call}: a service has no collective calls`),
        }),
      );
    // Programs without types.
    const untyped = one.constructor as new (name: string) => Service;
    expect(() => new untyped('x')).toThrow(/await Service.join\(name\)/);
    expect(() => a.lockSync(0, EXCLUSIVE, { timeout: 5 } as never)).toThrow(/options come behind it/);
    const one1 = new Float64Array(1);
    const wrong: [() => unknown, string][] = [
      [() => a.put(one1, 4), 'ERR_RANK'],
      [() => a.put(one1, -1), 'ERR_RANK'],
      [() => a.put(one1, 0, 1000), 'ERR_RMA_RANGE'],
      [() => a.get(new Float64Array(2), 0, 999), 'ERR_RMA_RANGE'],
      [() => a.put(one1, 0, 0.5), 'ERR_DISP'],
      [() => a.put(new Int32Array(1) as never, 0), 'ERR_TYPE'],
      [() => a.put([1] as never, 0), 'ERR_TYPE'],
      [() => a.accumulate(one1, 0, 0, 'sum' as never), 'ERR_OP'],
      [() => a.accumulate(one1, 0, 0, Op.BAND as never), 'ERR_OP'],
      [() => a.fetchAndOp(new Float64Array(2), new Float64Array(2), 0, 0, Op.SUM), 'ERR_BUFFER'],
      [() => a.getAccumulate(one1, one1.subarray(0), 0, 0, Op.SUM), 'ERR_BUFFER'],
      [() => a.compareAndSwap(one1, one1, one1, 0, 0), 'ERR_TYPE'],
      [() => a.lockSync(0, 7 as never), 'ERR_LOCKTYPE'],
      [() => a.unlockSync(0), 'ERR_RMA_SYNC'],
      [() => a.unlockAllSync(), 'ERR_RMA_SYNC'],
      [() => a.testNotify(0), 'ERR_ARG'],
    ];
    for (const [call, code] of wrong) expect(call).toThrow(expect.objectContaining({ code }));
    await expect(one.window('x', Uint8ClampedArray, 1)).rejects.toMatchObject({ code: 'ERR_TYPE' });
    await expect(one.window('x', Int8Array, 0)).rejects.toMatchObject({ code: 'ERR_SIZE' });
    await expect(one.window('w', Float32Array, 1000)).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(/window with elements of Float64Array.*elements of Float32Array/),
    });
  });

  it('refuses layouts instead of ignoring them', async () => {
    const [, , a] = await two();
    const [values, was] = [Float64Array.of(1, 2), new Float64Array(2)];
    const layout = { target: 4 } as never;
    for (const call of [
      () => a.put(values, 0, 0, layout),
      () => a.get(values, 0, 0, layout),
      () => a.putNotify(values, 0, 0, layout),
      () => a.accumulate(values, 0, 0, Op.SUM, layout),
      () => a.getAccumulate(values, was, 0, 0, Op.SUM, layout),
      () => a.rput(values, 0, 0, layout),
      () => a.rget(values, 0, 0, layout),
      () => a.raccumulate(values, 0, 0, Op.SUM, layout),
      () => a.rgetAccumulate(values, was, 0, 0, Op.SUM, layout),
    ])
      expect(call, String(call)).toThrow(
        expect.objectContaining({ code: 'ERR_SERVICE', message: expect.stringMatching(/no layouts.*use a call for/) }),
      );
    expect([...a.local.subarray(0, 2), a.testNotify()]).toEqual([0, 0, false]);
  });

  it('has requests, which are complete', async () => {
    const [, , a, b] = await two();
    const found = new Float64Array(3);
    const was = new Float64Array(3);
    const requests = [
      b.rput(Float64Array.of(1, 2, 3), 0, 4),
      b.raccumulate(Float64Array.of(10, 10, 10), 0, 4, Op.SUM),
      b.rgetAccumulate(Float64Array.of(5, 5, 5), was, 0, 4, Op.SUM),
      b.rget(found, 0, 4),
    ];
    expect([...was, ...found]).toEqual([11, 12, 13, 16, 17, 18]);
    expect(Request.testAll(requests)).toBe(true);
    expect(await Request.waitAny(requests)).toBe(0);
    await Request.waitAll(requests);
    for (const request of requests) {
      await request.waitRemote();
      request.waitSync();
    }
    await b.flushLocal(0);
    b.flushLocalSync(0);
    await b.flushLocalAll();
    b.flushLocalAllSync();
    expect(a.local.subarray(4, 7)).toEqual(found);
    expect(() => b.rput(Float64Array.of(1), 9, 0)).toThrow(expect.objectContaining({ code: 'ERR_RANK' }));
    await expect(b.flushLocal(9)).rejects.toMatchObject({ code: 'ERR_RANK' });
  });

  it('has locks, exclusive and shared, that say who holds them', async () => {
    const [, , a, b] = await two();
    expect((await a.lock(0, EXCLUSIVE)).abandoned).toBeUndefined();
    await expect(a.lock(0, SHARED)).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
    await expect(a.lockAll()).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
    for (const type of [EXCLUSIVE, SHARED]) {
      expect(() => b.lockSync(0, type, 0, { timeout: 20 })).toThrow(
        /the part of place 0 of the window "w" .*: place 0 /,
      );
      await expect(b.lock(0, type, 0, { timeout: 20 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    }
    await expect(b.lockAll(0, { timeout: 20 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    const waits = b.lock(0, SHARED);
    await expect(b.unlock(0)).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
    await a.unlock(0);
    expect((await waits).abandoned).toBeUndefined();
    a.lockSync(0, SHARED);
    a.unlockSync(0);
    await expect(a.lock(0, EXCLUSIVE, 0, { timeout: 20 })).rejects.toThrow(/place 1 holds it, shared/);
    await b.unlock(0);
    {
      using all = await b.lockAll();
      expect(all.abandoned).toEqual([]);
      expect(() => a.lockSync(3, EXCLUSIVE, 0, { timeout: 20 })).toThrow(/place 1 holds it, shared/);
      a.lockAllSync()[Symbol.dispose]();
    }
    const ended = a.lockSync(3, EXCLUSIVE);
    for (let i = 0; i < 2; i++) ended[Symbol.dispose]();
    // What another call holds now is not this one's.
    a.lockSync(3, EXCLUSIVE);
    ended[Symbol.dispose]();
    a.unlockSync(3);
    const quits = new AbortController();
    a.lockSync(1, EXCLUSIVE);
    const aborted = expect(b.lock(1, EXCLUSIVE, 0, { signal: quits.signal })).rejects.toThrow('enough');
    quits.abort(new Error('enough'));
    await aborted;
    a.unlockSync(1);
    b.lockSync(1, EXCLUSIVE);
  });

  it.each(['exclusive', 'shared', 'all'])('tells once of a dead member that held a lock (%s)', async (how) => {
    const name = fresh();
    const service = await join(name, 4);
    const win = await service.window('w', Float64Array, 1000);
    const child = await member(name, how);
    await expect(win.lock(0, EXCLUSIVE, 0, { timeout: 30 })).rejects.toThrow(/place 1 holds it/);
    await killed(child);
    expect((await win.lock(0, EXCLUSIVE)).abandoned).toBe(1);
    expect(win.local[1]).toBe(1.5);
    await win.unlock(0);
    expect(win.lockSync(0, EXCLUSIVE).abandoned).toBeUndefined();
    win.unlockSync(0);
    expect((await win.lockAll()).abandoned).toEqual([]);
    await win.unlockAll();
    // Its part is as it left it, for whoever comes to its place.
    const next = await join(name);
    expect(next.place).toBe(1);
    const itsOwn = await next.window('w', Float64Array, 1000);
    expect(itsOwn.local[0]).toBe(7);
    const dead = how === 'all' ? [2, 3, 0] : [];
    for (const target of dead) expect(itsOwn.lockSync(target, SHARED).abandoned).toBe(target === 0 ? undefined : 1);
  });

  it('tells of a dead holder the next one that gets the lock, also when another has given up before', async () => {
    const name = fresh();
    const [service, other] = [await join(name, 4), await join(name)];
    const [win, second] = [await service.window('w', Float64Array, 1000), await other.window('w', Float64Array, 1000)];
    const child = await member(name, 'exclusive');
    await killed(child);
    // The shared lock of `second` is what `win` waits for in vain, behind the dead member's.
    expect(second.lockSync(0, SHARED).abandoned).toBe(2);
    second.unlockSync(0);
    const again = await member(name, 'all');
    second.lockSync(1, SHARED);
    await killed(again);
    await expect(win.lock(1, EXCLUSIVE, 0, { timeout: 60 })).rejects.toThrow(/place 1 holds it, shared/);
    second.unlockSync(1);
    expect((await win.lock(1, EXCLUSIVE)).abandoned).toBe(2);
    await win.unlock(1);
    const third = await member(name, 'exclusive');
    await killed(third);
    second.lockSync(3, EXCLUSIVE);
    // It has taken over the lock of part 0, and gives it back.
    await expect(win.lockAll(0, { timeout: 60 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    expect((await win.lock(0, EXCLUSIVE)).abandoned).toBe(2);
    await win.unlock(0);
    expect((await win.lock(0, EXCLUSIVE)).abandoned).toBeUndefined();
  });

  it('notifies a place, and its next member of what the last one has not taken', async () => {
    const name = fresh();
    const service = await join(name, 4);
    const win = await service.window('w', Float64Array, 1000);
    const child = await member(name, 'notified');
    win.putNotify(Float64Array.of(5), 1);
    expect(win.testNotify()).toBe(false);
    const waits = win.waitNotify();
    win.putNotify(Float64Array.of(6), 1);
    await waits;
    expect(win.local[0]).toBe(6);
    expect(() => win.waitNotifySync(1, { timeout: 20 })).toThrow(/1 notifications of the window "w".*0 are there/);
    await killed(child);
    for (let i = 0; i < 3; i++) win.putNotify(Float64Array.of(8), 1);
    const next = await (await join(name)).window('w', Float64Array, 1000);
    await next.waitNotify(2);
    expect([next.testNotify(), next.testNotify(), next.local[0]]).toEqual([true, false, 8]);
  });

  it('gives back the stripes of the dead, and says which elements may be half updated', async () => {
    const name = fresh();
    const service = await join(name, 4);
    const length = 1 << 16;
    const win = await service.window('sums', Float64Array, length);
    let told = win.interrupted(0);
    // It holds a stripe nearly all the time.
    for (let attempt = 0; told.length === 0 && attempt < 50; attempt++) {
      const child = await member(name, 'accumulate');
      while (win.local[length - 1] < 2 * attempt) await new Promise((resolve) => setTimeout(resolve, 1));
      await killed(child);
      win.accumulate(new Float64Array(length), 0, 0, Op.SUM);
      told = win.interrupted(0);
    }
    expect(told).toHaveLength(1);
    expect(told[0].place).toBe(1);
    expect(win.interrupted(0)).toEqual([]);
    // An element has been added to as often as its neighbours, or once less.
    const [most, least] = [Math.max(...win.local.subarray(0, 512)), Math.min(...win.local.subarray(length - 512))];
    expect(most - least).toBeLessThanOrEqual(51);
    const { elements } = told[0];
    expect(elements).toHaveLength(length / 512 / 32);
    for (const { begin, end } of elements) expect([begin % 512, end - begin]).toEqual([0, 512]);
    const blocks = Array.from({ length: length / 512 }, (_, i) => win.local.subarray(512 * i, 512 * i + 512));
    const mixed = blocks.flatMap((block, i) => (block.some((value) => value !== block[0]) ? [512 * i] : []));
    // Earlier children may have been killed between two stripes, but not in one.
    expect(mixed.filter((begin) => !elements.some((range) => range.begin === begin))).toEqual([]);
    expect(mixed.length).toBeLessThanOrEqual(1);
  });

  it('is refused after its member has left, and what it held goes on', async () => {
    const [one, , a, b] = await two();
    const held = a.lockSync(0, EXCLUSIVE);
    a.lockSync(2, SHARED);
    const waits = expect(a.waitNotify()).rejects.toMatchObject({ code: 'ERR_SERVICE_LEFT' });
    await one.leave();
    await waits;
    held[Symbol.dispose]();
    expect((await b.lock(0, EXCLUSIVE)).abandoned).toBe(0);
    expect((await b.lock(2, EXCLUSIVE)).abandoned).toBe(0);
    const values = new Float64Array(1);
    for (const call of [
      () => a.put(values, 0),
      () => a.get(values, 0),
      () => a.local,
      () => a.accumulate(values, 0, 0, Op.SUM),
      () => a.unlockSync(0),
      () => a.lockSync(1, SHARED),
      () => a.lockAllSync(),
      () => a.unlockAllSync(),
      () => a.flushSync(0),
      () => a.flushAllSync(),
      () => a.testNotify(),
      () => a.interrupted(0),
    ])
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_SERVICE_LEFT' }));
  });
});
