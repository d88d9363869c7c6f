/** Counts that are handed on say the same as counts that each process tells each other one. */
import { describe, expect, test } from 'vitest';
import { COUNT_EXCHANGES, type Counts, type Exchange } from '../../src/bsp/delivery/counts.ts';
import { routedCounts } from '../../src/bsp/delivery/routed-counts.ts';
import type { Channel } from '../../src/message/message-channel.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

/** What a process has to say. */
interface Said {
  readonly puts: Int32Array;
  readonly gets: Int32Array;
  readonly to: Int32Array;
  readonly numbers: Float64Array;
  readonly microseconds: number;
}

/** Carries out an exchange of all processes, which go on in random order. */
function carriedOut(
  exchange: Exchange,
  said: readonly Said[],
  random: Random,
  late = -1,
): { all: Counts[]; messages: number } {
  const size = said.length;
  const lines = new Map<number, Uint8Array[]>();
  let messages = 0;
  const line = (from: number, to: number): Uint8Array[] => {
    const key = size * from + to;
    if (!lines.has(key)) lines.set(key, []);
    return lines.get(key)!;
  };
  const steps = said.map(({ puts, gets, to, numbers, microseconds }, rank) => {
    const channel: Channel = {
      ...{ rank, size, awaited: -1, processor: REAL_PROCESSOR },
      send: (target, payload) => {
        messages++;
        line(rank, target).push(payload.slice());
      },
      receive: (source) => line(source, rank).shift(),
    };
    const packets = to.reduce((sum, one) => sum + one, 0);
    return exchange(channel, puts, gets, numbers, { packets, microseconds, to });
  });
  const all: (Counts | undefined)[] = said.map(() => undefined);
  for (let turns = 0; all.includes(undefined); turns++) {
    if (turns > 1e6) throw new Error('it never ends');
    const rank = random.below(size);
    if (all[rank] !== undefined) continue;
    if (rank === late && turns < 1000) {
      if (all.some((one) => one !== undefined)) throw new Error('one was complete before all had begun');
      continue;
    }
    const { done, value } = steps[rank].next();
    if (done === true) all[rank] = value;
  }
  return { all: all as Counts[], messages };
}

function drawn(size: number, random: Random): Said[] {
  const speaks = random.below(2) === 0;
  return Array.from({ length: size }, (_, rank) => {
    const some = (most: number) =>
      Int32Array.from({ length: size }, (_, pid) => (pid === rank || random.below(3) > 0 ? 0 : random.below(most)));
    const numbers = new Float64Array(speaks ? random.below(4) : 0).map(() => random.below(100));
    return { puts: some(9), gets: some(5), to: some(70), numbers, microseconds: random.below(10_000) };
  });
}

describe.each([1, 2, 3, 4, 7, 8, 13, 17, 32])('%i processes', (size) => {
  test('learn what comes from whom, by ⌈log2 p⌉ messages each', () => {
    const random = new Random(seedOfRun(), size);
    for (let round = 0; round < 20; round++) {
      const said = drawn(size, random);
      const direct = carriedOut(COUNT_EXCHANGES['all-to-all'], said, random);
      const routed = carriedOut(routedCounts(true), said, random);
      expect(routed.all).toEqual(direct.all);
      const { all, messages } = carriedOut(routedCounts(false), said, random);
      for (const [pid, { puts, gets, numbers, from, totals }] of all.entries()) {
        const other = direct.all[pid];
        const told = { puts: other.puts, gets: other.gets, numbers: other.numbers, from: other.from };
        expect({ puts, gets, numbers, from }).toEqual(told);
        expect([totals!.most, totals!.longest]).toEqual([other.totals!.most, other.totals!.longest]);
        expect([...from!]).toEqual(said.map(({ to }) => to[pid]));
      }
      if (all[0].numbers === undefined) expect(messages).toBe(size * Math.ceil(Math.log2(size)));
    }
  });

  test('none has them before all have begun', () => {
    const random = new Random(seedOfRun(), size, 1);
    for (let late = 0; late < size; late++) carriedOut(routedCounts(false), drawn(size, random), random, late);
  });
});
