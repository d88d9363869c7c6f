/** A member of a fabric of threads; `workerData` says which, and what it does. */
import { parentPort, workerData } from 'node:worker_threads';
import { openThreadFabric } from '../../../src/providers/emulator/thread-fabric.ts';

const { table, member, broker, task, rounds, answerWithin } = workerData;
const fabric = openThreadFabric(table, member, 2, broker, answerWithin);
const { parking } = fabric;

/** Words of member 1's root. */
const PING = 0;
const PONG = 16;

switch (task as string) {
  case 'publish': {
    const root = fabric.allocate(10_000);
    new Uint8Array(root.buffer).fill(7);
    fabric.publishRoot(root);
    parentPort?.postMessage('published');
    // Keeps the thread alive until it is told to end.
    parentPort?.once('message', (message) => {
      if (message === 'free') fabric.free(root);
      if (message === 'close') fabric.close();
      if (message === 'exit') process.exit(0);
      parentPort?.postMessage('done');
    });
    break;
  }
  case 'churn': {
    for (let i = 0; i < rounds; i++) fabric.free(fabric.allocate(1000));
    // What was sent before is served before the answer to this.
    const last = fabric.allocate(8);
    fabric.publishRoot(last);
    parentPort?.postMessage('done');
    parentPort?.once('message', () => {});
    break;
  }
  case 'attach-at-once': {
    // The other member allocates and publishes over and over, and never waits for the broker.
    for (let i = 0; i < rounds; ) {
      const root = fabric.root(0);
      if (root === undefined) continue;
      const words = new Int32Array(fabric.attach(0, root.handle, root.byteLength).buffer);
      if (words[0] !== root.handle) throw new Error(`memory ${root.handle} holds ${words[0]}`);
      i++;
    }
    parentPort?.postMessage('done');
    break;
  }
  case 'allocate-often': {
    for (let i = 0; i < rounds; i++) {
      const root = fabric.allocate(4096);
      new Int32Array(root.buffer)[0] = root.handle;
      fabric.publishRoot(root);
      if (i % 50 === 0) await new Promise(setImmediate);
    }
    parentPort?.postMessage('done');
    parentPort?.once('message', () => {});
    break;
  }
  case 'ping': {
    let root = fabric.root(1);
    for (; root === undefined; root = fabric.root(1)) await new Promise(setImmediate);
    const words = new Int32Array(fabric.attach(1, root.handle, root.byteLength).buffer);
    for (let round = 1; round <= rounds; round++) {
      Atomics.store(words, PING, round);
      fabric.wake(1);
      await until(() => Atomics.load(words, PONG) === round, false);
    }
    fabric.close();
    break;
  }
  case 'echo-sync':
  case 'echo': {
    const root = fabric.allocate(4096);
    const words = new Int32Array(root.buffer);
    fabric.publishRoot(root);
    for (let round = 1; round <= rounds; round++) {
      await until(() => Atomics.load(words, PING) === round, task === 'echo-sync');
      Atomics.store(words, PONG, round);
      fabric.wake(0);
    }
    break;
  }
  case 'park': {
    const token = parking.arm();
    parentPort?.postMessage('parked');
    await parking.sleep(token, Number.POSITIVE_INFINITY);
    parking.disarm();
    parentPort?.postMessage('woken');
    break;
  }
  default:
    throw new Error(`unknown task: ${task}`);
}

async function until(done: () => boolean, sync: boolean): Promise<void> {
  while (!done()) {
    const token = parking.arm();
    if (!done()) {
      if (sync) parking.sleepSync(token, Number.POSITIVE_INFINITY);
      else await parking.sleep(token, Number.POSITIVE_INFINITY);
    }
    parking.disarm();
  }
}
