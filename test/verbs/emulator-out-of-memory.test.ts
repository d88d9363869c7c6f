/** Objects of the direct emulator for which there is no memory: what was taken for them is given back. */
import { expect, test } from 'vitest';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import type { Allocation, EmulatorFabric } from '../../src/providers/emulator/emulator-fabric.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import type { Context } from '../../src/verbs/device.ts';
import type { ProtectionDomain } from '../../src/verbs/memory.ts';
import type { QueuePair } from '../../src/verbs/queue-pair.ts';

/** Rows of the table of queue pairs, and those of them that need no further memory (qp-table.ts). */
const QUEUE_PAIRS = 8192;
const FIRST_ROWS = 512;

/** A fabric that counts what is allocated, and has no memory for what is refused. */
function scarce(): { context: Context; pd: ProtectionDomain; refuse: (bytes: number) => boolean; held: () => number } {
  const [fabric] = createLocalFabric(1);
  const held = new Set<number>();
  const scarcity = { refuse: (_bytes: number): boolean => false };
  const counting: EmulatorFabric = Object.create(fabric, {
    allocate: {
      value: (bytes: number): Allocation => {
        if (scarcity.refuse(bytes)) throw new RangeError('Array buffer allocation failed');
        const allocation = fabric.allocate(bytes);
        held.add(allocation.handle);
        return allocation;
      },
    },
    free: {
      value: (allocation: Allocation): void => {
        held.delete(allocation.handle);
        fabric.free(allocation);
      },
    },
    parking: { value: fabric.parking },
    publishRoot: { value: (allocation: Allocation) => fabric.publishRoot(allocation) },
    root: { value: (member: number) => fabric.root(member) },
    close: { value: () => fabric.close() },
  });
  const context = openEmulator(counting);
  return Object.assign(scarcity, { context, pd: context.allocPd(), held: () => held.size });
}

test('a queue pair whose receives find no memory keeps no number', () => {
  const scene = scarce();
  const cq = scene.context.createCq(16);
  const make = (): QueuePair => scene.pd.createQueuePair({ sendCq: cq, recvCq: cq, maxRecvWr: 1, maxSendWr: 1 });
  scene.refuse = () => true;
  for (let i = 0; i < QUEUE_PAIRS; i++) expect(make).toThrow('allocation failed');
  scene.refuse = () => false;
  const qp = make();
  qp.destroy();
  // No queue pair that could not be made counts as a user.
  cq.destroy();
  scene.context.close();
});

test('nor does one for whose row there is no memory, and that of its receives is given back', () => {
  const scene = scarce();
  const cq = scene.context.createCq(16);
  const make = (): QueuePair => scene.pd.createQueuePair({ sendCq: cq, recvCq: cq, maxRecvWr: 1, maxSendWr: 1 });
  for (let i = 0; i < FIRST_ROWS; i++) make().destroy();
  const before = scene.held();
  // Receives take some hundred bytes.
  scene.refuse = (bytes) => bytes > 2 ** 16;
  for (let i = FIRST_ROWS; i < QUEUE_PAIRS; i++) expect(make).toThrow('allocation failed');
  expect(scene.held()).toBe(before);
  scene.refuse = () => false;
  make().destroy();
  cq.destroy();
  scene.context.close();
});
