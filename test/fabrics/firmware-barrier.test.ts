/**
 * The barrier protocol of adapters, packet by packet, without ranks: members of a group that enter barriers again and
 * again, and packets that are lost on purpose.
 */
import { describe, expect, test } from 'vitest';
import { barrierSchedule } from '../../src/collective/barrier-algorithms.ts';
import { Faults } from '../../src/providers/modelled/faults.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import type { AdapterBarrier, BarrierSchedule } from '../../src/verbs/adapter-barrier.ts';
import { seedOfRun } from '../support/ranks.ts';

const FABRIC = loadFabric('myrinet-lanai-xp');
const ALGORITHMS = ['dissemination', 'pairwise', 'gather-broadcast:2', 'gather-broadcast:4'] as const;
/** Microseconds. */
const NACK_AFTER = 60;

interface Run {
  readonly size: number;
  readonly algorithm: string | ((rank: number, size: number) => BarrierSchedule);
  readonly barriers: number;
  readonly seed?: number;
  /** Whether the packet with this number is lost, in the order in which packets leave. */
  lost?(packet: number): boolean;
  /** A share of packets that is lost, and by how much they are delayed at most. */
  readonly loss?: number;
  readonly delay?: number;
  /** Members enter up to so many microseconds apart. */
  readonly skew?: number;
}

interface Outcome {
  /** Members that left before all had entered. */
  readonly early: number;
  /** Barriers that some member did not leave. */
  readonly unfinished: number;
  readonly time: number;
  readonly packets: number;
  readonly nacks: number;
  readonly resent: number;
  readonly futile: number;
  readonly duplicates: number;
  readonly barriers: number;
}

function run({ size, algorithm, barriers, seed = 1, lost, loss = 0, delay = 0, skew = 0 }: Run): Outcome {
  const simulator = new Simulator(size, seed, false);
  simulator.observer = { idle: () => {}, stuck: () => simulator.stop(), failed: () => {} };
  const faults = new Faults('test', { loss, delay }, size, seed);
  let packets = 0;
  if (lost !== undefined) faults.drawLoss = () => lost(packets++);
  const fabric = new ModelledFabric(FABRIC, simulator, faults, size);
  const random = new Random(seed, 9);
  const members = Array.from({ length: size }, (_, rank) => rank);
  const contexts = members.map((rank) => fabric.open(rank));
  const groups: AdapterBarrier[] = contexts.map((context, rank) =>
    context.makeBarrier({
      ...{ group: 7, members, rank },
      schedule: typeof algorithm === 'string' ? barrierSchedule(algorithm, rank, size) : algorithm(rank, size),
      nackAfter: NACK_AFTER / 1000,
    }),
  );
  const entered = new Array<number>(size).fill(0);
  const left = new Array<number>(size).fill(0);
  let early = 0;
  const enter = (rank: number): void => {
    entered[rank]++;
    groups[rank].enter();
  };
  for (const rank of members) {
    const { cpu } = contexts[rank];
    cpu.watchFor({
      notice: () => {
        if (groups[rank].complete() === left[rank]) return;
        left[rank]++;
        if (entered.some((count) => count < left[rank])) early++;
        if (left[rank] < barriers)
          simulator.at(cpu.time + skew * random.fraction(), rank, { happen: () => enter(rank) });
      },
    });
    simulator.at(skew * random.fraction(), rank, { happen: () => enter(rank) });
  }
  const done = (): boolean => left.every((count) => count === barriers);
  let steps = 0;
  simulator.drain(() => done() || steps++ > 1_000_000);
  const sum = (name: keyof AdapterBarrier['statistics']): number =>
    groups.reduce((all, { statistics }) => all + statistics[name], 0);
  return {
    ...{ early, unfinished: left.reduce((all, count) => all + barriers - count, 0), time: simulator.now },
    ...{ packets: sum('packets'), nacks: sum('nacks'), resent: sum('resent'), futile: sum('futile') },
    ...{ duplicates: sum('duplicates'), barriers: sum('barriers') },
  };
}

/** Messages of one barrier. */
function messagesOf(algorithm: string, size: number): number {
  let sends = 0;
  for (let rank = 0; rank < size; rank++)
    sends += barrierSchedule(algorithm, rank, size).filter((step) => step.sends).length;
  return sends;
}

const GOOD = { early: 0, unfinished: 0 };

describe.each(ALGORITHMS)('%s', (algorithm) => {
  test('sends the messages of the schedule and nothing else', () => {
    for (const size of [1, 2, 3, 5, 8, 13, 32]) {
      const outcome = run({ size, algorithm, barriers: 20 });
      expect(outcome).toMatchObject({ ...GOOD, nacks: 0, resent: 0, packets: 20 * messagesOf(algorithm, size) });
      expect(outcome.barriers).toBe(20 * size);
    }
  });

  test('nobody leaves before all have entered, however far apart, and however packets are delayed', () => {
    for (let seed = seedOfRun(), last = seed + 40; seed < last; seed++) {
      const size = 2 + (seed % 12);
      const outcome = run({ size, algorithm, barriers: 10, seed, delay: 40, skew: 50 });
      expect({ seed, ...outcome }).toMatchObject(GOOD);
    }
  });

  test('each single packet may be lost', () => {
    for (const size of [2, 3, 5, 8]) {
      const all = 3 * messagesOf(algorithm, size);
      for (let lost = 0; lost < all; lost++) {
        const outcome = run({ size, algorithm, barriers: 3, lost: (packet) => packet === lost });
        expect({ size, lost, ...outcome }).toMatchObject({ ...GOOD, resent: expect.any(Number) });
      }
    }
  });

  test('each two packets may be lost, Nacks and their answers among them', () => {
    const size = 4;
    const all = 2 * messagesOf(algorithm, size) + 12;
    let nacks = 0;
    for (let one = 0; one < all; one++) {
      for (let other = one + 1; other < all; other++) {
        const outcome = run({ size, algorithm, barriers: 2, lost: (packet) => packet === one || packet === other });
        expect({ one, other, ...outcome }).toMatchObject(GOOD);
        nacks += outcome.nacks;
      }
    }
    expect(nacks).toBeGreaterThan(0);
  });

  test('losses of up to 30 % are recovered', () => {
    for (let seed = seedOfRun(), last = seed + 30; seed < last; seed++) {
      const size = 2 + (seed % 12);
      const outcome = run({ size, algorithm, barriers: 20, seed, loss: 0.3 * ((seed % 10) / 9), delay: 20, skew: 30 });
      expect({ seed, ...outcome }).toMatchObject(GOOD);
    }
  });
});

test('the last message of a barrier is sent again after its sender has left that barrier', () => {
  // Of two members, the first packet of the last barrier is the one that its receiver waits for, and its sender leaves.
  const outcome = run({ size: 2, algorithm: 'dissemination', barriers: 5, lost: (packet) => packet === 8 });
  expect(outcome).toMatchObject({ ...GOOD, resent: 1, nacks: 1 });
});

test('members that come late are asked for in vain, and no oftener than back-off lets them', () => {
  const outcome = run({ size: 8, algorithm: 'dissemination', barriers: 50, skew: 500 });
  // Some meet their message on its way, which then comes twice.
  expect(outcome).toMatchObject({ ...GOOD, resent: outcome.duplicates, nacks: outcome.futile + outcome.resent });
  expect(outcome.futile).toBeGreaterThan(100);
  // Each member waits at most 500 µs for another: it asks after 60, 180, 420 µs.
  expect(outcome.nacks).toBeLessThanOrEqual(50 * 8 * 3);
});

test('a schedule that is no barrier is found', () => {
  const without = (rank: number, size: number): BarrierSchedule =>
    barrierSchedule('dissemination', rank, size).filter(({ sends, tag }) => sends || tag !== 1);
  expect(run({ size: 8, algorithm: without, barriers: 20, skew: 50 }).early).toBeGreaterThan(0);
});
