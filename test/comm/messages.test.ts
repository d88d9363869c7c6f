/** Messages between two ranks that are on one thread, of all lengths around the chunks that they are cut into. */
import { afterEach, describe, expect, test } from 'vitest';
import { type MessageMemory, Messenger, type Rendezvous } from '../../src/comm/messages.ts';
import { openEmulator } from '../../src/providers/emulator/context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import type { Context } from '../../src/verbs/device.ts';

const contexts: Context[] = [];

afterEach(() => {
  for (const context of contexts.splice(0)) context.close();
});

/** Two ranks that can talk at once. */
function pair(memory: MessageMemory): readonly [Messenger, Messenger] {
  const published = new Map<string, { qpNumber: number; ready: boolean }>();
  const meet = (rank: number): Rendezvous => ({
    publish: (peer, qpNumber, ready) => void published.set(`${rank}:${peer}`, { qpNumber, ready }),
    lookUp: (peer) => published.get(`${peer}:${rank}`),
    callers: () => [1 - rank],
    hasLeft: () => false,
  });
  const messengers = createLocalFabric(2).map((fabric, rank) => {
    const context = openEmulator(fabric);
    contexts.push(context);
    return new Messenger(context, context.allocPd(), rank, 2, meet(rank), memory);
  });
  return messengers as [Messenger, Messenger];
}

const CHUNK = 64;

describe('messages', () => {
  const lengths = [0, 1, 39, 40, 41, 47, 48, 55, 56, 57, 96, 104, 105, 1000, 5000];

  // Messages of 4 GiB and more are written as long ones; here others are.
  for (const [words, long] of [
    ['whose length takes 32 bits', undefined],
    ['whose length takes 64 bits', 0],
    ['of both kinds', 100],
  ] as const) {
    test(`${words} arrive as they were sent, in order`, () => {
      const [a, b] = pair({ chunk: CHUNK, receives: 4, sends: 2, ...(long === undefined ? {} : { long }) });
      for (const head of [new Uint8Array(0), Uint8Array.from({ length: 16 }, (_, i) => 200 + i)]) {
        for (const length of lengths)
          a.send(
            1,
            7,
            Uint8Array.from({ length }, (_, i) => i + length),
            head,
          );
        const arrived: Uint8Array[] = [];
        while (arrived.length < lengths.length) {
          a.poll();
          b.poll();
          for (let next = b.receive(0, 7); next !== undefined; next = b.receive(0, 7)) arrived.push(next);
        }
        expect(arrived).toEqual(
          lengths.map((length) => Uint8Array.from([...head, ...Uint8Array.from({ length }, (_, i) => i + length)])),
        );
        while (!a.drained) a.poll();
        expect(a.idle).toBe(true);
      }
    });
  }
});
