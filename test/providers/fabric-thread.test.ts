import { once } from 'node:events';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROW_WORDS, Row, rowOf, wakeAll } from '../../src/providers/emulator/bells.ts';
import type { EmulatorFabric } from '../../src/providers/emulator/emulator-fabric.ts';
import { Broker, openThreadFabric } from '../../src/providers/emulator/thread-fabric.ts';
import { startWorker, workerEnded } from '../support/children.ts';

const MEMBER = new URL('./programs/thread-member.ts', import.meta.url);
const verbsError = expect.objectContaining({ name: 'RmaError', code: 'ERR_VERBS' });

let table: Int32Array;
let broker: Broker;
const workers: Worker[] = [];

beforeEach(() => {
  table = new Int32Array(new SharedArrayBuffer(4 * 2 * ROW_WORDS));
  broker = new Broker();
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
});

function start(member: number, task: string, rounds = 0): Worker {
  const port = broker.connect(member);
  const worker = startWorker(MEMBER, { table, member, broker: port, task, rounds }, [port]);
  workers.push(worker);
  return worker;
}

/**
 * Member 0 in this thread, which is the broker's too: it cannot wait for an answer, so it only does what needs none.
 */
function here(): EmulatorFabric {
  return openThreadFabric(table, 0, 2, broker.connect(0));
}

async function rootOf(member: number): Promise<number> {
  const fabric = here();
  for (;;) {
    const root = fabric.root(member);
    if (root !== undefined) return root.handle;
    await new Promise(setImmediate);
  }
}

describe('memory', () => {
  it('of one thread is attached by another, in the middle of its synchronous work', async () => {
    const allocator = start(0, 'allocate-often', 2000);
    const attacher = start(1, 'attach-at-once', 500);
    const ended = workerEnded(attacher);
    await Promise.all([once(allocator, 'message'), once(attacher, 'message')]);
    expect(await ended).toBe(0);
  });

  it('is kept by the broker until it is freed', async () => {
    const worker = start(1, 'publish');
    await once(worker, 'message');
    await rootOf(1);
    while (broker.bytesOf(1) === 0) await new Promise(setImmediate);
    expect(broker.bytesOf(1)).toBe(10_000);
    worker.postMessage('free');
    await once(worker, 'message');
    while (broker.bytesOf(1) !== 0) await new Promise(setImmediate);
  });

  it.each(['close', 'exit'])('is dropped when its thread is through (%s)', async (manner) => {
    const worker = start(1, 'publish');
    await once(worker, 'message');
    while (broker.bytesOf(1) === 0) await new Promise(setImmediate);
    worker.postMessage(manner);
    while (broker.bytesOf(1) !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('is dropped when its thread is terminated, or disconnected', async () => {
    const worker = start(1, 'publish');
    await once(worker, 'message');
    while (broker.bytesOf(1) === 0) await new Promise(setImmediate);
    await worker.terminate();
    while (broker.bytesOf(1) !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const next = start(1, 'publish');
    await once(next, 'message');
    while (broker.bytesOf(1) === 0) await new Promise(setImmediate);
    broker.disconnect(1);
    broker.disconnect(1);
    expect(broker.bytesOf(1)).toBe(0);
  });

  it('comes and goes 10,000 times and leaves nothing behind', async () => {
    const worker = start(1, 'churn', 10_000);
    await once(worker, 'message');
    while (broker.bytesOf(1) !== 8) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('is zero at first, and its own attachment is the same memory', () => {
    const fabric = here();
    const allocation = fabric.allocate(5000);
    const bytes = new Uint8Array(allocation.buffer);
    expect(bytes.every((byte) => byte === 0)).toBe(true);
    bytes[4999] = 4;
    const attachment = fabric.attach(0, allocation.handle, 5000);
    expect(new Uint8Array(attachment.buffer)[4999]).toBe(4);
    attachment.release();
    fabric.free(allocation);
    fabric.free(allocation);
    expect(() => fabric.attach(0, allocation.handle, 5000)).toThrow(verbsError);
    expect(fabric.allocate(5000).handle).not.toBe(allocation.handle);
    fabric.close();
  });

  it('of a size that cannot be is refused', () => {
    const fabric = here();
    expect(() => fabric.allocate(2 ** 52)).toThrow(verbsError);
    for (const bytes of [0, -1, 1.5, Number.NaN, Infinity, '8', undefined]) {
      expect(() => fabric.allocate(bytes as number), String(bytes)).toThrow(
        expect.objectContaining({ code: 'ERR_ARG' }),
      );
    }
    fabric.close();
  });
});

describe('attach', () => {
  /** Answers as the broker does, from a thread of its own: only a worker can wait for it. */
  async function attachIn(worker: Worker): Promise<unknown> {
    const [error] = await once(worker, 'error');
    return error;
  }

  it('refuses members that are dead or never came, and handles that name nothing', async () => {
    const fabric = here();
    const { handle } = fabric.allocate(4096);
    for (const member of [-1, 2, 0.5, Number.NaN, undefined]) {
      expect(() => fabric.attach(member as number, handle, 4096), String(member)).toThrow(verbsError);
    }
    for (const other of [0, -1, handle + 1, 0.5, Number.NaN])
      expect(() => fabric.attach(0, other, 4096)).toThrow(verbsError);
    for (const length of [4095, 4097, 0, Number.NaN])
      expect(() => fabric.attach(0, handle, length)).toThrow(verbsError);
    // A root that nobody has announced to the broker, as a dead member leaves it.
    fabric.publishRoot({ handle: 77, byteLength: 4096, buffer: new ArrayBuffer(0) });
    expect(await attachIn(start(1, 'attach-at-once', 1))).toMatchObject({
      code: 'ERR_VERBS',
      message: 'attach: member 0 has no memory 77 of 4096 bytes, or has freed it',
    });
    fabric.close();
  });

  it('refuses everything once the fabric is closed', () => {
    const fabric = here();
    const allocation = fabric.allocate(8);
    fabric.publishRoot(allocation);
    fabric.close();
    fabric.close();
    expect(fabric.root(0)).toBeUndefined();
    for (const call of [
      () => fabric.allocate(1),
      () => fabric.attach(0, allocation.handle, 8),
      () => fabric.publishRoot(allocation),
    ]) {
      expect(call).toThrow(verbsError);
    }
    fabric.free(allocation);
  });
});

describe('the broker', () => {
  it('does not keep the event loop alive, and needs no addon', async () => {
    const { runProgram } = await import('../support/children.ts');
    const program = new URL('./programs/broker-alone.ts', import.meta.url);
    expect(await runProgram(program)).toEqual({ code: 0, signal: null, stdout: 'connected\n', stderr: '' });
  });
});

describe('parking', () => {
  it.each(['echo-sync', 'echo'])('loses no wake-up between threads (%s)', async (task) => {
    const both = [start(1, task, 3000), start(0, 'ping', 3000)];
    // Without end: a wake-up that is lost would hang here.
    expect(await Promise.all(both.map(workerEnded))).toEqual([0, 0]);
    expect(Atomics.load(table, rowOf(0) + Row.SLEEPERS)).toBe(0);
    expect(Atomics.load(table, rowOf(1) + Row.SLEEPERS)).toBe(0);
  });

  it('keeps a thread alive and uses hardly any CPU, until wakeAll', async () => {
    const worker = start(1, 'park');
    const ended = workerEnded(worker);
    await once(worker, 'message');
    const before = worker.performance.eventLoopUtilization();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(worker.performance.eventLoopUtilization(before).utilization).toBeLessThan(0.1);
    expect(worker.threadId).toBeGreaterThan(0);
    wakeAll(table, 2, undefined);
    expect(await once(worker, 'message')).toEqual(['woken']);
    expect(await ended).toBe(0);
  });

  it('ends at its deadline, or at once when the bell has rung', async () => {
    const fabric = here();
    const { parking } = fabric;
    const token = parking.arm();
    const began = performance.now();
    parking.sleepSync(token, 20);
    await parking.sleep(token, 20);
    // Again on the wait that is still under way.
    await parking.sleep(token, 20);
    expect(performance.now() - began).toBeGreaterThanOrEqual(57);
    const sleep = parking.sleep(token, Number.POSITIVE_INFINITY);
    fabric.wake(0);
    await sleep;
    parking.sleepSync(token, Number.POSITIVE_INFINITY);
    await parking.sleep(token, Number.POSITIVE_INFINITY);
    parking.disarm();
    fabric.close();
  });

  it('has many sleepers in one thread, each with its own deadline', async () => {
    const fabric = here();
    const { parking } = fabric;
    const token = parking.arm();
    const order: string[] = [];
    const first = parking.sleep(token, Number.POSITIVE_INFINITY).then(() => order.push('first'));
    await parking.sleep(token, 10).then(() => order.push('deadline'));
    fabric.wake(0);
    const second = parking.sleep(parking.arm(), 5000).then(() => order.push('second'));
    await first;
    fabric.wake(0);
    await second;
    expect(order).toEqual(['deadline', 'first', 'second']);
    const last = parking.sleep(parking.arm(), Number.POSITIVE_INFINITY);
    fabric.close();
    await last;
  });

  it('costs the waker no call when nobody sleeps', () => {
    const fabric = here();
    fabric.wake(1);
    expect(Atomics.load(table, rowOf(1) + Row.BELL)).toBe(0);
    Atomics.add(table, rowOf(1) + Row.SLEEPERS, 1);
    fabric.wake(1);
    expect(Atomics.load(table, rowOf(1) + Row.BELL)).toBe(1);
    fabric.close();
  });
});

describe('a broker that does not answer', () => {
  it('is told apart from memory that does not exist', async () => {
    // Nobody listens at the other end of this port.
    const { port2 } = new MessageChannel();
    const worker = startWorker(
      MEMBER,
      { table, member: 1, broker: port2, task: 'attach-at-once', rounds: 1, answerWithin: 100 },
      [port2],
    );
    workers.push(worker);
    here().publishRoot({ handle: 1, byteLength: 8, buffer: new ArrayBuffer(0) });
    const [error] = await once(worker, 'error');
    expect(error).toMatchObject({
      code: 'ERR_VERBS',
      message: expect.stringContaining('did not answer within 100 ms'),
    });
  });
});
