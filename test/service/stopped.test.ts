/**
 * A member that is stopped in the middle of a change. It is not dead: nobody takes its lock. But reads go on, calls
 * with promises leave the event loop free, and calls that block say who is stopped instead of waiting for it.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { queueShape } from '../../src/service/queue-shape.ts';
import { RobustLock } from '../../src/service/robust-lock.ts';
import { Members, takePlace } from '../../src/service/service-members.ts';
import { createMemory } from '../../src/service/service-memory.ts';
import { ServiceQueue } from '../../src/service/service-queue.ts';
import { endMembersAfterEach, fresh, join, killed, member } from './members.ts';

endMembersAfterEach();

const native = loadNative();

async function untilStopped(child: ChildProcess): Promise<void> {
  while (!/\) [Tt]/.test(readFileSync(`/proc/${child.pid}/stat`, 'latin1'))) await sleep(1);
}

/** Whether a promise waits while timers of the event loop are served. */
async function waits(promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  const end = (): void => void (over = true);
  promise.then(end, end);
  for (let turn = 0; turn < 30; turn++) await sleep(2);
  return !over;
}

describe.skipIf(native === undefined)('a member that is stopped while it changes a map', () => {
  it('stops no reader, no other part, no event loop; and calls that block say so', async () => {
    const name = fresh();
    const service = await join(name);
    const map = await service.map<number>('numbers', { bytes: 1 << 20 });
    map.set('stopped', 1);
    const keys = Array.from({ length: 200 }, (_, i) => `key ${i}`);
    for (const key of keys) map.set(key, 0);
    const child = await member(name, 'stop');
    await untilStopped(child);
    expect(map.get('stopped')).toBe(1);
    const refused = {
      code: 'ERR_RMA_TIMEOUT',
      message: expect.stringMatching(
        `did not wait for the part that has the key "stopped" of the map "numbers" of the service "${name}": ` +
          `place 1 holds it \\(process ${child.pid}, which is stopped\\)`,
      ),
    };
    for (const call of [
      () => map.set('stopped', 5),
      () => map.update('stopped', () => 5),
      () => map.increment('stopped'),
      () => map.delete('stopped'),
      () => map.compareAndSet('stopped', 1, 5),
    ])
      expect(call).toThrow(expect.objectContaining(refused));
    expect(() => map.set('stopped', 5, { timeout: 50 })).toThrow(
      /waited 50 ms for the part that has the key "stopped"/,
    );
    // Other parts can be written, and a `clear` empties them.
    const written = keys.filter((key) => {
      try {
        map.set(key, 1);
        return true;
      } catch {
        return false;
      }
    });
    expect(written.length).toBeGreaterThan(keys.length / 2);
    expect(() => map.clear()).toThrow(expect.objectContaining({ code: 'ERR_RMA_TIMEOUT' }));
    expect(written.filter((key) => map.has(key))).toEqual([]);
    expect(map.get('stopped')).toBe(1);

    await expect(map.promises.set('stopped', 5, { timeout: 30 })).rejects.toMatchObject({
      code: 'ERR_RMA_TIMEOUT',
      message: expect.stringMatching(/^SharedMap.promises.set: waited 30 ms for the part .* place 1 holds it/),
    });
    const quits = new AbortController();
    const aborted = expect(map.promises.delete('stopped', { signal: quits.signal })).rejects.toThrow('enough');
    const sum = map.promises.increment('stopped', 10);
    const cleared = map.promises.clear();
    expect(await waits(sum)).toBe(true);
    quits.abort(new Error('enough'));
    await aborted;
    child.kill('SIGCONT');
    await cleared;
    // Its own change came first; what `clear` has emptied before counts from nothing.
    expect([12, 10]).toContain(await sum);
    await killed(child);
  });

  it('leaves its part to the others when it is killed', async () => {
    const name = fresh();
    const map = await (await join(name)).map<number>('numbers', { bytes: 1 << 20 });
    map.set('stopped', 1);
    const child = await member(name, 'stop');
    await untilStopped(child);
    const set = map.promises.increment('stopped');
    expect(await waits(set)).toBe(true);
    await killed(child);
    expect(await set).toBe(2);
    expect(map.increment('stopped')).toBe(3);
  });
});

describe.skipIf(native === undefined)('a queue whose lock another member has', () => {
  const open: number[] = [];
  afterEach(() => {
    for (const fd of open.splice(0)) closeSync(fd);
  });

  it('lets the event loop go on', async () => {
    const made = createMemory(native!, 2);
    open.push(made.fd);
    const [one, two] = [0, 1].map(() => {
      const fd = openSync(`/proc/self/fd/${made.fd}`, 'r+');
      open.push(fd);
      const memory = { ...made, fd };
      return new Members('test', memory, takePlace(memory)!);
    }) as [Members, Members];
    const shape = queueShape(2, Int32Array, 4, undefined);
    const memory = new ArrayBuffer(shape.shape.bytes);
    const queue = new ServiceQueue(one, memory, 'the queue "q"', shape);
    const lock = new RobustLock(new Int32Array(memory), 0, two);
    lock.acquire('test', 'the lock');
    const pushed = queue.push(Int32Array.of(7));
    const popped = queue.pop();
    expect(await waits(Promise.race([pushed, popped]))).toBe(true);
    await expect(queue.pop({ timeout: 20 })).rejects.toThrow(/waited 20 ms for the queue "q": place 1 holds it/);
    lock.release();
    await pushed;
    expect(await popped).toEqual(Int32Array.of(7));
    queue.left();
  });
});
