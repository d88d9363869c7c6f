/** How ranks begin a barrier of adapters together (`meetPeers`): also where one of them cannot. */
import { describe, expect, test } from 'vitest';
import { barrierSchedule } from '../../src/collective/barrier-algorithms.ts';
import { meetPeers } from '../../src/collective/barrier-peers.ts';
import type { Channel } from '../../src/message/message-channel.ts';

/** Channels of ranks in this thread. */
function channels(size: number): Channel[] {
  const boxes = new Map<string, Uint8Array[]>();
  const box = (from: number, to: number): Uint8Array[] => {
    const name = `${from} ${to}`;
    if (!boxes.has(name)) boxes.set(name, []);
    return boxes.get(name)!;
  };
  return Array.from({ length: size }, (_, rank) => ({
    ...{ rank, size, awaited: -1 },
    send: (to: number, bytes: Uint8Array) => void box(rank, to).push(bytes.slice()),
    receive: (from: number) => box(from, rank).shift(),
  })) as unknown as Channel[];
}

type Where = 'make' | 'tell' | 'hear';

/** What each rank gets: what it has made, `undefined`, or the text of its error. None waits for ever. */
function meet(size: number, algorithm: string, failing = -1, where: Where = 'make'): unknown[] {
  const heard: string[] = [];
  const generators = channels(size).map((channel, rank) => {
    const fails = (here: Where): void => {
      if (rank === failing && here === where) throw new Error(`rank ${rank} cannot ${here}`);
    };
    return meetPeers(barrierSchedule(algorithm, rank, size), channel, {
      make() {
        fails('make');
        return `of ${rank}`;
      },
      tell(made, peer) {
        fails('tell');
        return new TextEncoder().encode(`${made} for ${peer}`);
      },
      hear(made, peer, told) {
        fails('hear');
        heard.push(`${made}: ${new TextDecoder().decode(told)}`);
        expect(new TextDecoder().decode(told)).toBe(`of ${peer} for ${rank}`);
      },
    });
  });
  const results: unknown[] = new Array(size).fill('waits');
  for (let turn = 0; turn < 100; turn++) {
    for (const [rank, generator] of generators.entries()) {
      if (results[rank] !== 'waits') continue;
      try {
        const { done, value } = generator.next();
        if (done === true) results[rank] = value;
      } catch (error) {
        results[rank] = (error as Error).message;
      }
    }
  }
  return results;
}

describe.each(['dissemination', 'pairwise', 'gather-broadcast:2', 'gather-broadcast:5'])('by %s', (algorithm) => {
  test('all make their part, and hear of those that they have steps with', () => {
    for (const size of [1, 2, 3, 4, 7, 8, 13])
      expect(meet(size, algorithm)).toEqual(Array.from({ length: size }, (_, rank) => `of ${rank}`));
  });

  test.each<Where>(['make', 'tell', 'hear'])('one that cannot %s says why, and no other waits for it', (where) => {
    for (const size of [2, 3, 4, 7, 8, 13]) {
      for (let failing = 0; failing < size; failing++) {
        const expected = new Array<unknown>(size).fill(undefined);
        expected[failing] = `rank ${failing} cannot ${where}`;
        expect(meet(size, algorithm, failing, where), `${size} ranks, ${failing}`).toEqual(expected);
      }
    }
  });
});
