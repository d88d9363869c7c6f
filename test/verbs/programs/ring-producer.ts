/** A worker that takes receives from one ring and completes them in another, without the rest of the emulator. */
import { workerData } from 'node:worker_threads';
import { CompletionRing } from '../../../src/providers/emulator/completion-ring.ts';
import { NO_RECEIVE, ReceiveRing } from '../../../src/providers/emulator/receive-ring.ts';

const { completions, receives, capacity, producer, each } = workerData as {
  completions: SharedArrayBuffer;
  receives: SharedArrayBuffer;
  capacity: number;
  producer: number;
  each: number;
};
const ring = new CompletionRing(completions, capacity);
const posted = new ReceiveRing(receives, capacity, 1);
const nap = new Int32Array(new SharedArrayBuffer(4));

for (let i = 0; i < each; ) {
  if (posted.consume() === NO_RECEIVE) {
    Atomics.wait(nap, 0, 0, 0.05);
    continue;
  }
  const { wrId } = posted;
  if (posted.lkeys[0] !== wrId || posted.addresses[0] !== 8 * wrId) throw new Error(`receive ${wrId} is mixed`);
  if (!ring.push(wrId, 0, 0, 0, posted.lengths[0], i++, producer)) throw new Error('overrun');
}
