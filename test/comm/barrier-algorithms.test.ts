/**
 * Schedules of barriers, without anything that carries them out: whom each rank tells and waits for; that each exit
 * depends on each entry; and what a message may be triggered by, if the barrier is to be one.
 */
import { describe, expect, test } from 'vitest';
import { BARRIER_TAGS, barrierSchedule } from '../../src/collective/barrier-algorithms.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import type { BarrierSchedule } from '../../src/verbs/adapter-barrier.ts';

const SIZES = Array.from({ length: 130 }, (_, i) => i + 1);
const ALGORITHMS = ['dissemination', 'pairwise', 'gather-broadcast:2', 'gather-broadcast:4', 'gather-broadcast:32'];

const schedulesOf = (algorithm: string, size: number): BarrierSchedule[] =>
  Array.from({ length: size }, (_, rank) => barrierSchedule(algorithm, rank, size));

/**
 * Executes the schedules, a step of some rank at a time. @returns for each rank, whose entries its exit depends on;
 * `undefined` if some rank waits for ever
 */
function knownAtExit(schedules: readonly BarrierSchedule[]): Set<number>[] | undefined {
  const known = schedules.map((_, rank) => new Set([rank]));
  const at = schedules.map(() => 0);
  const sent = new Map<string, Set<number>>();
  for (let goesOn = true; goesOn; ) {
    goesOn = false;
    for (const [rank, steps] of schedules.entries()) {
      for (; at[rank] < steps.length; at[rank]++) {
        const { sends, peer, tag } = steps[at[rank]];
        if (sends) sent.set(`${rank} ${peer} ${tag}`, new Set(known[rank]));
        else {
          const came = sent.get(`${peer} ${rank} ${tag}`);
          if (came === undefined) break;
          for (const one of came) known[rank].add(one);
        }
        goesOn = true;
      }
    }
  }
  return at.every((step, rank) => step === schedules[rank].length) ? known : undefined;
}

describe.each(ALGORITHMS)('%s', (algorithm) => {
  test('each message that is sent is waited for, once', () => {
    for (const size of SIZES) {
      const sent: string[] = [];
      const awaited: string[] = [];
      for (const [rank, steps] of schedulesOf(algorithm, size).entries()) {
        for (const { sends, peer, tag } of steps) {
          expect(peer >= 0 && peer < size && peer !== rank && tag < BARRIER_TAGS).toBe(true);
          if (sends) sent.push(`${rank} ${peer} ${tag}`);
          else awaited.push(`${peer} ${rank} ${tag}`);
        }
      }
      expect(new Set(sent).size).toBe(sent.length);
      expect(sent.sort()).toEqual(awaited.sort());
    }
  });

  test('each exit depends on each entry', () => {
    for (const size of SIZES) {
      const known = knownAtExit(schedulesOf(algorithm, size));
      expect(known?.every((ranks) => ranks.size === size)).toBe(true);
    }
  });
});

test('messages and steps are as many as the report says', () => {
  const count = (algorithm: string, size: number): { readonly messages: number; readonly rounds: number } => {
    const sends = schedulesOf(algorithm, size).map((steps) => steps.filter((step) => step.sends).length);
    return { messages: sends.reduce((a, b) => a + b, 0), rounds: Math.max(...sends) };
  };
  for (const size of SIZES) {
    const rounds = Math.ceil(Math.log2(size));
    expect(count('dissemination', size)).toEqual({ messages: size * rounds, rounds });
    const exchanged = 2 ** Math.floor(Math.log2(size));
    const others = size - exchanged;
    expect(count('pairwise', size).messages).toBe(exchanged * Math.log2(exchanged) + 2 * others);
    for (const degree of [2, 4]) expect(count(`gather-broadcast:${degree}`, size).messages).toBe(2 * (size - 1));
  }
});

test.each(['tree', '', 'gather-broadcast', 'gather-broadcast:1', 'gather-broadcast:33', 'gather-broadcast:4 '])(
  'there is no algorithm %j',
  (name) => {
    expect(() => barrierSchedule(name, 0, 4)).toThrow(/there is no barrier algorithm/);
  },
);

/** What lets the message of round m > 0 go, and the rank leave behind the last one. */
type Rule = 'literal' | 'one counter' | 'own and arrival' | 'words';

/**
 * Barriers by dissemination under random delays, a fifth of them long.
 * @returns whether somebody left before all had entered
 */
function violates(rule: Rule, size: number, seed: number, barriers = 4): boolean {
  const random = new Random(seed);
  const rounds = Math.ceil(Math.log2(size));
  const events: { readonly time: number; readonly happen: () => void }[] = [];
  let now = 0;
  let broken = false;
  const after = (delay: number, happen: () => void): void => void events.push({ time: now + delay, happen });
  const ranks = Array.from({ length: size }, () => ({
    entered: 0,
    left: 0,
    /** The highest barrier that a message of each round has come of, how many messages have, and what was sent. */
    words: new Array<number>(rounds).fill(0),
    came: new Array<number>(rounds).fill(0),
    sent: new Array<number>(rounds).fill(0),
  }));
  const send = (rank: number, round: number, barrier: number): void => {
    ranks[rank].sent[round] = barrier;
    const to = (rank + 2 ** round) % size;
    after(random.fraction() * (random.fraction() < 0.2 ? 50 : 1), () => {
      ranks[to].words[round] = Math.max(ranks[to].words[round], barrier);
      ranks[to].came[round]++;
      if (rule === 'literal' && round + 1 < rounds) send(to, round + 1, barrier);
      goOn(to);
    });
  };
  /** Whether the first `n` rounds of the barrier are through. */
  const isThrough = (rank: number, n: number): boolean => {
    const { entered, words, came, sent } = ranks[rank];
    if (rule === 'words') return words.slice(0, n).every((word) => word >= entered);
    if (rule === 'one counter') return came.reduce((a, b) => a + b, 0) >= (entered - 1) * rounds + n;
    if (rule === 'own and arrival') return n === 0 || came[n - 1] + sent[n - 1] >= 2 * entered;
    return came[n - 1] >= entered;
  };
  const goOn = (rank: number): void => {
    const one = ranks[rank];
    if (one.left === one.entered) return;
    if (rule !== 'literal') {
      for (let round = 1; round < rounds; round++) {
        if (one.sent[round] >= one.entered) continue;
        if (!isThrough(rank, round)) return;
        send(rank, round, one.entered);
      }
    }
    if (!isThrough(rank, rounds)) return;
    one.left++;
    if (ranks.some(({ entered }) => entered < one.left)) broken = true;
    if (one.left < barriers) after(random.fraction() * 10, () => enter(rank));
  };
  const enter = (rank: number): void => {
    ranks[rank].entered++;
    send(rank, 0, ranks[rank].entered);
    goOn(rank);
  };
  for (let rank = 0; rank < size; rank++) after(random.fraction() * 10, () => enter(rank));
  while (events.length > 0) {
    let first = 0;
    for (let i = 1; i < events.length; i++) if (events[i].time < events[first].time) first = i;
    const [{ time, happen }] = events.splice(first, 1);
    now = time;
    happen();
  }
  expect(ranks.every(({ left }) => left === barriers)).toBe(true);
  return broken;
}

describe('dissemination whose messages are triggered', () => {
  const violations = (rule: Rule): number => {
    let count = 0;
    for (const size of [4, 5, 8, 16]) for (let seed = 0; seed < 50; seed++) if (violates(rule, size, seed)) count++;
    return count;
  };

  test('by a word for each earlier round that has reached the number of the barrier is a barrier', () => {
    expect(violations('words')).toBe(0);
  });

  test('by a counter of each round that counts arrivals and the own message, too', () => {
    expect(violations('own and arrival')).toBe(0);
  });

  test('by the arrival of the round before alone, as the report reads, is none', () => {
    expect(violations('literal')).toBeGreaterThan(190);
  });

  test('by one counter of all arrivals is none', () => {
    expect(violations('one counter')).toBeGreaterThan(140);
  });
});
