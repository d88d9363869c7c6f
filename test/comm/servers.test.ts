/** What a rank looks at whenever it is about to sleep: of many windows by requests, those that have something to do. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { sideAt } from '../../src/datatype/layout.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { Origins } from '../../src/job/origins.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { regionsBy } from '../../src/transfer/requests/regions.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import { Access } from '../../src/verbs/memory.ts';
import type { Concerned } from '../../src/wait/concerned.ts';
import { Servers } from '../../src/wait/servers.ts';

const NOTED: unknown[] = [];
const CONCERNED = { note: (error: unknown) => NOTED.push(error) } as unknown as Concerned;

/** Two ranks with so many windows each; `looks()` are those that rank `rank` looks at next, by their number. */
function windows(count: number) {
  const contexts = createLocalFabric(2).map((fabric) => openEmulatorAsDevice(fabric, 1));
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const servers = contexts.map((context) => new Servers(() => context.news));
  const looked: number[] = [];
  const ranks = contexts.map((context) => {
    const pd = context.allocPd();
    const memory = context.allocateMemory(64);
    const region = pd.registerMemory(memory, 0, 64, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    const make = () => new RequestTransfer(context, pd, new Origins(context, pd), 2, true);
    return { region, transfers: Array.from({ length: count }, make) };
  });
  const regions = regionsBy((rank) => ranks[rank].region);
  const ends: (() => void)[][] = [[], []];
  for (const [rank, { transfers }] of ranks.entries()) {
    for (const [i, transfer] of transfers.entries()) {
      const numbers = ranks.map((peer) => peer.transfers[i].queuePairFor(rank));
      transfer.connect([0, 1], numbers, regions);
      const look = (): number => {
        looked.push(i);
        transfer.poll();
        return i;
      };
      const stirred = servers[rank].addQuiet(look, () => transfer.isQuiet, CONCERNED);
      transfer.whenBusy(stirred.stir);
      ends[rank].push(stirred.end);
    }
  }
  const looks = (rank: number): number[] => {
    looked.length = 0;
    servers[rank].run();
    return [...looked];
  };
  return { origins: ranks[0].transfers, targets: ranks[1].transfers, looks, ends, servers };
}

const SIDE = sideAt(TypeCode.BYTE, 1, undefined);

describe('of a hundred windows, a rank looks at', () => {
  test('each once, and at none while nothing happens', () => {
    const { looks } = windows(100);
    expect(looks(0).length).toBe(100);
    expect(looks(0)).toEqual([]);
  });

  test('those where it has begun something, until that is complete', () => {
    const { origins, looks } = windows(100);
    looks(0);
    origins[7].put(Uint8Array.of(1), SIDE, 1, 0, SIDE, false);
    origins[50].notifications.signal(1);
    expect(looks(0)).toEqual([7, 50]);
    expect(looks(0)).toEqual([]);
    origins[7].begin(
      1,
      (function* () {
        for (let i = 0; i < 3; i++) yield;
      })(),
    );
    let waits = 0;
    while (looks(0).length > 0) waits++;
    expect(waits).toBeGreaterThan(1);
    expect(looks(0)).toEqual([]);
  });

  test('those where something has come, also while it was not looking', () => {
    const { origins, targets, looks } = windows(100);
    looks(1);
    for (let i = 0; i < 3; i++) origins[33].notifications.signal(1);
    origins[99].notifications.signal(1);
    expect(looks(1)).toEqual([33, 99]);
    expect(targets[33].notifications.arrivals.signals).toBe(3);
    expect(looks(1)).toEqual([]);
    // What its own wait has taken in is no news to it.
    origins[33].notifications.signal(1);
    targets[33].poll();
    expect(looks(1)).toEqual([]);
    origins[33].notifications.signal(1);
    expect(looks(1)).toEqual([33]);
    expect(targets[33].notifications.arrivals.signals).toBe(5);
  });

  test('no window that was freed, and is told when the next is due', () => {
    const { origins, looks, ends, servers } = windows(10);
    looks(0);
    for (const i of [4, 6]) origins[i].put(Uint8Array.of(1), SIDE, 1, 0, SIDE, false);
    ends[0][4]();
    expect(servers[0].run()).toBe(6);
  });
});

test('what others throw is noted for those whom it concerns, and the rest is looked at', () => {
  const servers = new Servers(() => 0);
  const error = new Error('lost');
  servers.add(() => {
    throw error;
  }, CONCERNED);
  let looks = 0;
  servers.add(() => ++looks, CONCERNED);
  expect(servers.run()).toBe(1);
  expect([NOTED, looks]).toEqual([[error], 1]);
});

test('where a device does not say what is new, everything is looked at each time', () => {
  const servers = new Servers(() => undefined);
  let looks = 0;
  const stirred = servers.addQuiet(
    () => ++looks,
    () => true,
    CONCERNED,
  );
  for (let i = 0; i < 3; i++) servers.run();
  expect(looks).toBe(3);
  stirred.end();
  servers.run();
  expect(looks).toBe(3);
});
