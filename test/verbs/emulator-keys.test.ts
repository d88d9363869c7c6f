/** A key that is drawn a second time names the second region, also for those who have mapped the first. */
import { expect, test, vi } from 'vitest';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { ALL_ACCESS } from '../../src/verbs/checks.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { connect, End, pollSuccess } from './conformance/harness.ts';

const draws = vi.hoisted(() => ({ next: 0x2345, same: false }));

vi.mock('node:crypto', async (original) => ({
  ...(await original<typeof import('node:crypto')>()),
  randomFillSync: (words: Uint32Array) => {
    words.set(words.map(() => (draws.same ? draws.next : draws.next++)));
  },
}));

/** Until the next batch of keys. */
function drawAlwaysTheSame(end: End): void {
  draws.same = true;
  for (let i = 0; i < 64; i++) end.pd.registerMemory(end.memory, 0, 8, ALL_ACCESS).deregister();
}

async function write(from: End, key: number, address: number): Promise<void> {
  from.qp.wrStart();
  from.qp.wrRdmaWrite(1, SendFlag.SIGNALED, key, address);
  from.qp.wrSetInlineData(Uint8Array.of(99), 0, 1);
  from.qp.wrComplete();
  await pollSuccess(from.sendCq);
}

test('a key that comes again names the region that has it now', async () => {
  const contexts = createLocalFabric(2).map((fabric) => openEmulator(fabric));
  const [a, b] = contexts.map((context) => new End(context));
  connect(a, b);
  drawAlwaysTheSame(b);
  // `b.region` keeps the memory mapped, and with it what is known of its other regions.
  const held = a.context.remotePointer(1, b.region.rkey, b.at(0), 8, ALL_ACCESS);
  const first = b.pd.registerMemory(b.memory, 0, 16, ALL_ACCESS);
  const before = a.context.remotePointer(1, first.rkey, first.address, 16, ALL_ACCESS);
  await write(a, first.rkey, first.address);
  expect(b.bytes[0]).toBe(99);

  first.deregister();
  const second = b.pd.registerMemory(b.memory, 64, 16, ALL_ACCESS);
  expect(second.rkey).toBe(first.rkey);
  const after = a.context.remotePointer(1, second.rkey, second.address, 16, ALL_ACCESS);
  expect(after.offset).toBe(before.offset + 64);
  await write(a, second.rkey, second.address);
  expect(b.bytes[64]).toBe(99);

  for (const pointer of [held, before, after]) pointer.release();
  for (const context of contexts) context.close();
});
