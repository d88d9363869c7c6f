/**
 * Receives for notifications (src/transfer/requests/arrivals.ts): a shared receive queue whose low watermark makes a
 * rank post more, so that none is lost and none runs out.
 */
import { describe, expect, test } from 'vitest';
import { sideAt } from '../../src/datatype/layout.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { Origins } from '../../src/job/origins.ts';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { regionsBy } from '../../src/transfer/requests/regions.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import { Access } from '../../src/verbs/memory.ts';

function twoRanks() {
  const contexts = createLocalFabric(2).map((fabric) => openEmulator(fabric));
  const ranks = contexts.map((context) => {
    const pd = context.allocPd();
    const memory = context.allocateMemory(64);
    const region = pd.registerMemory(memory, 0, 64, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    return { context, region, requests: new RequestTransfer(context, pd, new Origins(context, pd), 2, true) };
  });
  const regions = regionsBy((rank) => ranks[rank].region);
  for (const [rank, { requests }] of ranks.entries()) {
    requests.connect(
      [0, 1],
      ranks.map((peer) => peer.requests.queuePairFor(rank)),
      regions,
    );
  }
  return { contexts, origin: ranks[0].requests, target: ranks[1].requests };
}

describe('receives for notifications', () => {
  test('run low, are posted again and more of them, and none is lost', () => {
    const { contexts, origin, target } = twoRanks();
    const side = sideAt(TypeCode.BYTE, 1, undefined);
    const put = (): void => origin.put(Uint8Array.of(1), side, 1, 0, side, true);
    const puts = 5000;
    for (let i = 0; i < puts; i++) {
      put();
      origin.poll();
    }
    // The target has not looked yet: what found no receive waits at the origin, and the watermark has raised its event.
    expect(target.notifications.received).toBe(0);
    const events = [];
    for (let event = contexts[1].pollAsyncEvent(); event !== undefined; event = contexts[1].pollAsyncEvent()) {
      events.push(event.type);
    }
    expect(events).toEqual(['SRQ_LIMIT_REACHED']);
    expect(target.notifications.arrivals.refills).toBe(0);
    for (let looks = 0; target.notifications.received < puts && looks < 1000; looks++) {
      target.poll();
      for (let i = 0; i < 200; i++) origin.poll();
    }
    expect(target.notifications.received).toBe(puts);
    expect(target.notifications.arrivals.refills).toBeGreaterThan(0);
    // A target that looks in time needs no more.
    const { refills } = target.notifications.arrivals;
    for (let i = 0; i < 2000; i++) {
      put();
      origin.poll();
      target.poll();
    }
    expect(target.notifications.received).toBe(puts + 2000);
    expect(target.notifications.arrivals.refills).toBe(refills);
    for (const context of contexts) context.close();
  });
});
