/** Queues of values: what a codec says, entries that are given back, and loops that hold what they take. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import type { CustomCodec } from '../../src/service/map/index.ts';
import type { ServiceQueue } from '../../src/service/service-queue.ts';
import { endMembersAfterEach, fresh, join, killed, member, PROGRAM } from './members.ts';

endMembersAfterEach();

interface Job {
  readonly n: number;
  readonly to?: string;
}

const jobs = { capacity: 8 };

async function two(): Promise<[ServiceQueue<Job>, ServiceQueue<Job>]> {
  const name = fresh();
  return [await (await join(name)).queue<Job>('jobs', jobs), await (await join(name)).queue<Job>('jobs', jobs)];
}

describe.skipIf(loadNative() === undefined)('a queue of values', () => {
  it('has JSON, first in, first out, also beyond its end', async () => {
    const [one, other] = await two();
    expect([one.capacity, one.entryLength]).toEqual([8, 1000]);
    for (let n = 0; n < 20; n++) {
      await one.push({ n, to: 'ünï€ 😀' });
      expect(await other.pop()).toEqual({ n, to: 'ünï€ 😀' });
    }
    for (let n = 0; n < 8; n++) one.pushSync({ n });
    expect(one.tryPush({ n: 8 })).toBe(false);
    const pushed = one.push({ n: 8 });
    const popped = [other.popSync(), other.tryPop()];
    await pushed;
    other.close();
    for await (const job of one) popped.push(job);
    expect(popped).toEqual(Array.from({ length: 9 }, (_, n) => ({ n })));
    // A value that is nothing else to JSON is still one.
    const nulls = await (await join(fresh())).queue('nulls', jobs);
    await nulls.push(null);
    expect([await nulls.pop(), nulls.tryPop()]).toEqual([null, undefined]);
  });

  it('has strings, bytes, clones, and what functions of the program make', async () => {
    const service = await join(fresh());
    const text = await service.queue('text', { capacity: 2, codec: 'string' });
    await text.push('\ud800 half');
    expect(await text.pop()).toBe('\ud800 half');
    const bytes = await service.queue('bytes', { capacity: 2, codec: 'bytes', longest: 3 });
    await bytes.push(Uint8Array.of(1, 2, 3));
    await bytes.push(new Uint8Array(0));
    expect([...(await bytes.pop())!, (await bytes.pop())!.length]).toEqual([1, 2, 3, 0]);
    const clones = await service.queue<{ at: Date }>('clones', { capacity: 2, codec: 'structured' });
    await clones.push({ at: new Date(5) });
    expect(await clones.pop()).toEqual({ at: new Date(5) });
    const codec: CustomCodec<number> = {
      encode: (value) => Buffer.from(String(value)),
      decode(bytes) {
        const value = Number(Buffer.from(bytes).toString());
        if (value === 13) throw new Error('not this one');
        return value;
      },
    };
    const own = await service.queue<number>('own', { capacity: 2, codec });
    await own.push(13);
    await expect(own.take()).rejects.toThrow('not this one');
    await own.push(12);
    expect((await own.take())!.entry).toBe(12);
  });

  it('refuses what does not fit, by its limit, and has nothing of it', async () => {
    const [one] = await two();
    const cyclic: { n: number; self?: unknown } = { n: 1 };
    cyclic.self = cyclic;
    for (const [entry, code, message] of [
      [undefined, 'ERR_ARG', /must not be undefined: "pop" gives undefined once/],
      [cyclic, 'ERR_ARG', /the entry for the queue "jobs" .* cannot be written as JSON/],
      [{ n: 1n }, 'ERR_ARG', /BigInt/],
      [
        { n: 1, to: 'x'.repeat(1000) },
        'ERR_SIZE',
        /has 1015 bytes, entries of the queue "jobs" .* have 1000 at most.*`lon/,
      ],
    ] as const) {
      const refused = { code, message: expect.stringMatching(message) };
      await expect(one.push(entry as never)).rejects.toMatchObject(refused);
      for (const call of ['pushSync', 'tryPush'] as const)
        expect(() => one[call](entry as never)).toThrow(expect.objectContaining(refused));
    }
    expect(one.length).toBe(0);
    const service = await join(fresh());
    for (const [options, message] of [
      [undefined, /give the constructor of a typed array and a capacity, or { capacity, codec }/],
      [{}, /capacity must be a number, not undefined/],
      [{ capacity: 0 }, /capacity must be an integer from 1/],
      [{ capacity: 1, longest: 2 ** 27 }, /longest must be an integer from 1 to 67108864/],
      [{ capacity: 1, length: 2 }, /unknown name "length"/],
      [{ capacity: 1, codec: 'jsn' }, /did you mean "json"/],
    ] as const)
      await expect(service.queue('x', options as never)).rejects.toThrow(message);
  });

  it('gives what was given back again, first of all, and once', async () => {
    const [one, other] = await two();
    for (let n = 1; n <= 3; n++) await one.push({ n });
    const [first, second] = [(await one.take())!, (await one.take())!];
    // Another member has looked in vain whether there is something to be given again.
    expect((await other.take())!.entry.n).toBe(3);
    const waits = other.take();
    second.giveBack();
    const again = (await waits)!;
    expect([again.entry.n, again.again]).toEqual([2, true]);
    for (const over of [second, again]) {
      over.done();
      over.done();
      over.giveBack();
    }
    expect(other.tryPop()).toBeUndefined();
    first.giveBack();
    // What was taken before is over, also where this member has the same entry again.
    const mine = (await one.take())!;
    expect(mine.entry.n).toBe(1);
    first.done();
    mine.giveBack();
    expect(other.tryPop()).toEqual({ n: 1 });
    expect(one.tryPop()).toBeUndefined();
  });

  it('is over for takers when nobody has an entry that may come again', async () => {
    const [one, other] = await two();
    for (let n = 1; n <= 2; n++) await one.push({ n });
    const [mine, theirs] = [(await one.take())!, (await other.take())!];
    one.close();
    // An entry that is popped comes never again.
    expect(await one.pop()).toBeUndefined();
    await expect(one.take({ timeout: 50 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
    const waits = one.take();
    theirs.giveBack();
    const again = (await waits)!;
    expect([again.entry.n, again.again]).toEqual([2, true]);
    const last = other.take();
    again.done();
    mine.done();
    expect(await last).toBeUndefined();
    expect(await one.take()).toBeUndefined();
  });

  it('gives a member that blocks its thread what a thread that ends meanwhile had', async () => {
    const name = fresh();
    const queue = await (await join(name)).queue<Job>('jobs', jobs);
    await queue.push({ n: 1 });
    const worker = new Worker(PROGRAM, { argv: [name, 'brief'], stdout: true });
    while (queue.length > 0) await sleep(5);
    // No event loop goes on that could see it end.
    expect(queue.popSync()).toEqual({ n: 1 });
    await once(worker, 'exit');
  });

  it('has loops whose entries are done with the next one, and given back by who leaves it', async () => {
    const [one, other] = await two();
    for (let n = 1; n <= 6; n++) await one.push({ n });
    const seen: number[] = [];
    for await (const { entry } of one.takes()) {
      seen.push(entry.n);
      if (entry.n === 3) break;
    }
    const failed = (async () => {
      for await (const { entry, again } of other.takes()) {
        seen.push(entry.n);
        expect(again).toBe(entry.n === 3);
        if (entry.n === 4) throw new Error('broken');
      }
    })();
    await expect(failed).rejects.toThrow('broken');
    other.close();
    for await (const { entry, done } of one.takes()) {
      seen.push(entry.n);
      done();
      if (entry.n === 5) break;
    }
    for await (const { entry } of other.takes()) seen.push(entry.n);
    expect(seen).toEqual([1, 2, 3, 3, 4, 4, 5, 6]);
    const [empty] = await two();
    const loop = (async () => {
      for await (const _ of empty.takes({ signal: AbortSignal.timeout(20) }));
    })();
    await expect(loop).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('gives the job of a member that dies in its loop to another one', async () => {
    const name = fresh();
    const queue = await (await join(name)).queue<Job>('jobs', jobs);
    for (let n = 0; n < 5; n++) await queue.push({ n });
    await killed(await member(name, 'jobs'));
    const found: unknown[] = [];
    queue.close();
    for await (const { entry, again } of queue.takes()) found.push([entry.n, again]);
    expect(found).toEqual([
      [2, true],
      [3, false],
      [4, false],
    ]);
  });
});
