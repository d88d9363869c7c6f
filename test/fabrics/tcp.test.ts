/** TCP over a wire that carries each segment in 100 µs: windows, acknowledgements and timeouts, by hand-computed times. */
import { describe, expect, test } from 'vitest';
import { Ethernet } from '../../src/providers/modelled/ethernet/ethernet.ts';
import type { TcpNumbers } from '../../src/providers/modelled/ethernet/ethernet-numbers.ts';
import type { Frame } from '../../src/providers/modelled/ethernet/medium.ts';
import { MovableTimer } from '../../src/providers/modelled/ethernet/movable-timer.ts';
import { ReceivedRanges } from '../../src/providers/modelled/ethernet/received-ranges.ts';
import { connectTcp, type TcpEnd } from '../../src/providers/modelled/ethernet/tcp-connection.ts';
import type { Segment } from '../../src/providers/modelled/ethernet/tcp-segment.ts';
import { tcpVariants } from '../../src/providers/modelled/ethernet/tcp-variants.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { at, BARE, bus10, NO_FAULTS, NotedWrite, runAll, Wire } from '../support/ethernet.ts';

const WIRE = 100;
const MSS = 1460;
const BASE: TcpNumbers = bus10.tcp;

interface Pair {
  readonly simulator: Simulator;
  readonly wire: Wire;
  readonly a: TcpEnd;
  readonly b: TcpEnd;
  /** Segments with data, then those without, as [sender, when, first byte or acknowledgement, bytes]. */
  data(from?: number): readonly (readonly number[])[];
  alone(from?: number): readonly (readonly number[])[];
}

function pair(tcp: Partial<TcpNumbers> = {}, loses?: (segment: Segment, number: number) => boolean): Pair {
  const simulator = new Simulator(2, 1, false);
  const wire = new Wire(simulator, WIRE, loses as (frame: Frame, number: number) => boolean);
  const [a, b] = connectTcp({ agenda: simulator, medium: wire, ethernet: BARE, tcp: { ...BASE, ...tcp } }, 0, 1);
  const segments = (from: number, withData: boolean): Segment[] =>
    wire.carried.map(({ frame }) => frame as Segment).filter((s) => s.from === from && s.length > 0 === withData);
  const timeOf = (segment: Segment): number => wire.carried.find(({ frame }) => frame === segment)!.time;
  return {
    ...{ simulator, wire, a, b },
    data: (from = 0) => segments(from, true).map((s) => [timeOf(s), s.sequence, s.length]),
    alone: (from = 1) => segments(from, false).map((s) => [timeOf(s), s.acknowledgement]),
  };
}

test('two queue pairs have one connection, also when one end of an earlier one is forgotten late', () => {
  const simulator = new Simulator(2, 1, false);
  const ethernet = Ethernet.of(bus10, simulator, NO_FAULTS, { nodeOf: (member) => member }, 2)!;
  const ends = (): [TcpEnd, TcpEnd] => [ethernet.connect(0, 5, 1, 6), ethernet.connect(1, 6, 0, 5)];
  const [a, b] = ends();
  expect(a.peer).toBe(b);
  a.forget();
  const next = ethernet.connect(0, 5, 1, 6);
  expect(next).not.toBe(a);
  b.forget();
  expect(ethernet.connect(1, 6, 0, 5)).toBe(next.peer);
  next.forget();
  expect(ends()[0]).not.toBe(next);
});

describe('writes', () => {
  test('are segments of their own while the window allows', () => {
    const { simulator, a, data } = pair();
    const writes = [100, 200, 1418].map((bytes) => {
      const write = new NotedWrite(simulator);
      a.write(bytes, write);
      return write;
    });
    runAll(simulator);
    expect(data()).toEqual([
      [0, 0, 100],
      [0, 100, 200],
      [0, 300, 1418],
    ]);
    expect(writes.map(({ deliveredAt }) => deliveredAt)).toEqual([100, 100, 100]);
  });

  test('longer than a segment are cut, and have come with their last byte', () => {
    const { simulator, a, data } = pair();
    const write = new NotedWrite(simulator);
    a.write(2 * MSS + 1, write);
    runAll(simulator);
    expect(data().map(([, , length]) => length)).toEqual([MSS, MSS, 1]);
    expect(write.deliveredAt).toBe(100);
  });

  test('wait for the window, and are joined meanwhile', () => {
    const { simulator, a, data } = pair({ window: 2 * MSS, window0: 2 * MSS, segments: 0 });
    for (let i = 0; i < 6; i++) a.write(1000, new NotedWrite(simulator));
    runAll(simulator);
    // Two fit. Each acknowledgement comes after 200 µs, and makes room for a full segment of what has gathered.
    expect(data()).toEqual([
      [0, 0, 1000],
      [0, 1000, 1000],
      [200, 2000, MSS],
      [200, 3460, MSS],
      [400, 4920, 1080],
    ]);
  });
});

describe('an acknowledgement', () => {
  test('is delayed by 50 milliseconds', () => {
    const { simulator, a, alone } = pair();
    const write = new NotedWrite(simulator);
    a.write(100, write);
    runAll(simulator);
    expect(alone()).toEqual([[50_100, 100]]);
    expect(write.acknowledgedAt).toBe(50_200);
  });

  test('covers what has come meanwhile, and its delay begins with the first segment', () => {
    const { simulator, a, alone } = pair();
    a.write(100, new NotedWrite(simulator));
    at(simulator, 30_000, 0, () => a.write(100, new NotedWrite(simulator)));
    at(simulator, 60_000, 0, () => a.write(100, new NotedWrite(simulator)));
    runAll(simulator);
    expect(alone()).toEqual([
      [50_100, 200],
      [110_100, 300],
    ]);
  });

  test('goes when eight full segments wait for it; shorter ones count by their bytes', () => {
    const full = pair();
    for (let i = 0; i < 8; i++) full.a.write(MSS, new NotedWrite(full.simulator));
    runAll(full.simulator);
    expect(full.alone()).toEqual([[100, 8 * MSS]]);
    const short = pair();
    for (let i = 0; i < 9; i++) short.a.write(1418, new NotedWrite(short.simulator));
    runAll(short.simulator);
    // The ninth brings them above 8 · 1460.
    expect(short.alone()).toEqual([[100, 9 * 1418]]);
    const counted = pair({ counted: 1 });
    for (let i = 0; i < 9; i++) counted.a.write(1418, new NotedWrite(counted.simulator));
    runAll(counted.simulator);
    expect(counted.alone()).toEqual([
      [100, 8 * 1418],
      [50_100, 9 * 1418],
    ]);
  });

  test('goes at a tick that all connections share, with BSD', () => {
    const { simulator, a, alone } = pair(tcpVariants.bsd);
    at(simulator, 199_850, 0, () => a.write(100, new NotedWrite(simulator)));
    at(simulator, 300_000, 0, () => a.write(100, new NotedWrite(simulator)));
    runAll(simulator);
    expect(alone()).toEqual([
      [200_000, 100],
      [400_000, 200],
    ]);
  });

  test('is not delayed by a clock without a period: it goes at once', () => {
    const { simulator, a, alone } = pair({ ...tcpVariants.bsd, delay: 0 });
    const write = new NotedWrite(simulator);
    a.write(100, write);
    runAll(simulator);
    expect(alone()).toEqual([[100, 100]]);
    expect(write.acknowledgedAt).toBe(200);
  });

  test('goes with data of the other way, and none without', () => {
    const { simulator, a, b, data, alone } = pair();
    const question = new NotedWrite(simulator, () => b.write(50, new NotedWrite(simulator)));
    a.write(100, question);
    runAll(simulator);
    expect(data(1)).toEqual([[100, 0, 50]]);
    expect(question.acknowledgedAt).toBe(200);
    // Of the answer only.
    expect(alone(1)).toEqual([]);
    expect(alone(0)).toEqual([[50_200, 50]]);
  });

  test('that went with data leaves no delay behind: that of the next segment is its own', () => {
    const { simulator, a, b, alone } = pair();
    a.write(100, new NotedWrite(simulator));
    at(simulator, 20_000, 1, () => b.write(50, new NotedWrite(simulator)));
    at(simulator, 40_000, 0, () => a.write(100, new NotedWrite(simulator)));
    runAll(simulator);
    expect(alone(1)).toEqual([[90_100, 200]]);
  });

  test('that comes with data says nothing of a loss', () => {
    const { simulator, a, b } = pair({ delay: 1_000_000 }, ({ from, length }) => from === 0 && length === 100);
    a.write(100, new NotedWrite(simulator));
    at(simulator, 10, 1, () => {
      for (let i = 0; i < 10; i++) b.write(50, new NotedWrite(simulator));
    });
    runAll(simulator, () => simulator.now > 400_000);
    expect(a.sender.retransmissions).toBe(0);
  });

  test('takes no frame if it is silent', () => {
    const { simulator, a, wire } = pair(tcpVariants.silent);
    const write = new NotedWrite(simulator);
    a.write(100, write);
    runAll(simulator);
    expect(wire.carried.length).toBe(1);
    expect(write.acknowledgedAt).toBe(50_105);
  });

  test('goes at once, for each segment, where none is delayed', () => {
    const { simulator, a, alone } = pair(tcpVariants.immediate);
    for (let i = 0; i < 3; i++) a.write(100, new NotedWrite(simulator));
    runAll(simulator);
    expect(alone().map(([time]) => time)).toEqual([100, 100, 100]);
  });
});

describe('a lost segment', () => {
  /** Loses the segments with data whose numbers are given, counted among those with data. */
  const losing = (...numbers: readonly number[]): ((segment: Segment) => boolean) => {
    let n = 0;
    return ({ length }) => length > 0 && numbers.includes(n++);
  };

  test('is sent again after the third acknowledgement of the same byte, and arrives in order', () => {
    const { simulator, a, data, alone } = pair({}, losing(1));
    const writes = Array.from({ length: 6 }, () => {
      const write = new NotedWrite(simulator);
      a.write(1000, write);
      return write;
    });
    runAll(simulator);
    // Four segments behind the gap come at 100: each has the same byte acknowledged; three of them are enough.
    expect(alone().slice(0, 4)).toEqual(Array.from({ length: 4 }, () => [100, 1000]));
    expect(data().slice(6)).toEqual([[200, 1000, MSS]]);
    expect(writes.map(({ deliveredAt }) => deliveredAt)).toEqual([100, 300, 300, 300, 300, 300]);
    expect(a.sender).toMatchObject({ retransmissions: 1, timeouts: 0 });
  });

  test('of several in one window each is sent again as the acknowledgements show it, without a timeout', () => {
    const { simulator, a, data } = pair({}, losing(1, 3, 5));
    const last = new NotedWrite(simulator);
    for (let i = 0; i < 9; i++) a.write(MSS, new NotedWrite(simulator));
    a.write(MSS, last);
    runAll(simulator);
    expect(
      data()
        .slice(10)
        .map(([time, sequence]) => [time, sequence / MSS]),
    ).toEqual([
      [200, 1],
      [400, 3],
      [600, 5],
    ]);
    expect(last.deliveredAt).toBe(700);
    expect(a.sender.timeouts).toBe(0);
  });

  test('with nothing behind it is sent again after the first timeout, then after twice and four times that', () => {
    const { simulator, a, data } = pair({}, losing(0, 1, 2));
    const write = new NotedWrite(simulator);
    a.write(100, write);
    runAll(simulator);
    expect(data().map(([time]) => time)).toEqual([0, 500_000, 1_500_000, 3_500_000]);
    expect(write.deliveredAt).toBe(3_500_100);
    expect(a.sender.timeouts).toBe(3);
  });

  test('after a measured round trip waits for the least timeout, or mean and deviations', () => {
    const { simulator, a, b, data } = pair({}, losing(2));
    // 0: a question; 1: its answer, so that the round trip is 200 µs; 2: what is lost.
    a.write(100, new NotedWrite(simulator, () => b.write(50, new NotedWrite(simulator))));
    at(simulator, 1000, 0, () => a.write(100, new NotedWrite(simulator)));
    runAll(simulator);
    expect(data().map(([time]) => time)).toEqual([0, 1000, 201_000]);
  });

  test('is never measured: nobody can tell which of the two was acknowledged', () => {
    const { simulator, a, data } = pair({ segments: 0 }, losing(0, 2));
    a.write(100, new NotedWrite(simulator));
    at(simulator, 600_000, 0, () => a.write(100, new NotedWrite(simulator)));
    runAll(simulator);
    // The second loss waits for the first timeout again, not for 200 ms.
    expect(data().map(([time]) => time)).toEqual([0, 500_000, 600_000, 1_100_000]);
  });

  test('makes the congestion window one segment after a timeout, which grows again by slow start', () => {
    // All segments of the first window are lost.
    const { simulator, a, data } = pair({ segments: 0 }, losing(...Array.from({ length: 17 }, (_, i) => i)));
    for (let i = 0; i < 17; i++) a.write(MSS, new NotedWrite(simulator));
    runAll(simulator);
    const rounds = new Map<number, number>();
    for (const [time] of data().slice(17)) rounds.set(time, (rounds.get(time) ?? 0) + 1);
    expect([...rounds].slice(0, 4)).toEqual([
      [500_000, 1],
      [500_200, 2],
      [500_400, 4],
      [500_600, 8],
    ]);
  });

  test('that is lost again and again ends the connection: what was not delivered fails', () => {
    const { simulator, a, b } = pair({ retries: 2 }, () => true);
    const write = new NotedWrite(simulator);
    a.write(100, write);
    runAll(simulator);
    expect(write.failedAt).toBe(500_000 + 1_000_000 + 2_000_000);
    expect(write.deliveredAt).toBeNaN();
    for (const end of [a, b]) {
      const late = new NotedWrite(simulator);
      end.write(1, late);
      simulator.drain(() => false);
      expect(late.failedAt).toBe(3_500_000);
    }
  });
});

test('what has come is kept by ranges, however it overlaps', () => {
  const random = new Random(5);
  for (let round = 0; round < 200; round++) {
    const ranges = new ReceivedRanges();
    const bytes = new Uint8Array(100);
    while (ranges.expected < 90) {
      const from = Math.floor(95 * random.fraction());
      const to = from + 1 + Math.floor(5 * random.fraction());
      const before = ranges.expected;
      bytes.fill(1, from, to);
      const moved = ranges.add(from, to);
      expect(ranges.expected).toBe(bytes.indexOf(0));
      expect(moved).toBe(ranges.expected > before);
      expect(ranges.hasGap).toBe(bytes.lastIndexOf(1) >= ranges.expected);
    }
  }
});

describe('a timer', () => {
  const make = (): { simulator: Simulator; timer: MovableTimer; ran: number[] } => {
    const simulator = new Simulator(1, 1, false);
    const ran: number[] = [];
    return { simulator, ran, timer: new MovableTimer(simulator, 0, () => void ran.push(simulator.now)) };
  };

  test('runs out once, at the time that it was set to last, whether that was sooner or later', () => {
    const { simulator, timer, ran } = make();
    for (const times of [
      [300, 500, 100, 400],
      [500, 100, 200],
      [500, 400, 100, 450],
    ]) {
      for (const time of times) timer.set(simulator.now + time);
      expect(timer.isSet).toBe(true);
      const began = simulator.now;
      simulator.drain(() => false);
      expect(ran.splice(0)).toEqual([began + times.at(-1)!]);
      expect(timer.isSet).toBe(false);
    }
  });

  test('that is clear does not move the time on, and can be set again after that', () => {
    const { simulator, timer, ran } = make();
    timer.set(100);
    timer.clear();
    at(simulator, 50, 0, () => {});
    simulator.drain(() => false);
    expect(simulator.now).toBe(50);
    at(simulator, 60, 0, () => timer.set(300));
    runAll(simulator);
    expect(ran).toEqual([300]);
  });
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])('every byte comes once and in order where a fifth is lost (seed %i)', (seed) => {
  const random = new Random(seed);
  const draw = new Random(seed, 9);
  const { simulator, a, b, wire } = pair({}, () => random.fraction() < 0.2);
  // What has really come to each end, byte by byte; a write is complete when all of it has, and not before.
  const came = [new Uint8Array(2 ** 18), new Uint8Array(2 ** 18)];
  const carry = wire.carry.bind(wire);
  wire.carry = (frame) => {
    const segment = frame as Segment;
    const arrived = segment.arrived.bind(segment);
    segment.arrived = () => {
      came[segment.to].fill(1, segment.sequence, segment.sequence + segment.length);
      arrived();
    };
    carry(segment);
  };
  const delivered: number[][] = [[], []];
  const written = [0, 0];
  let count = 0;
  for (let i = 0; i < 150; i++) {
    const [time, side, bytes] = [2000 * i, draw.fraction() < 0.3 ? 1 : 0, 1 + Math.floor(3000 * draw.fraction())];
    at(simulator, time, side, () => {
      const end = (written[side] += bytes);
      const check = (): void => {
        expect(came[1 - side].subarray(0, end).every((byte) => byte === 1)).toBe(true);
        delivered[side].push(end);
        count++;
      };
      [a, b][side].write(bytes, new NotedWrite(simulator, check));
    });
  }
  runAll(simulator);
  expect(count).toBe(150);
  for (const side of [0, 1]) {
    expect(delivered[side]).toEqual(delivered[side].toSorted((x, y) => x - y));
    expect(delivered[side].at(-1)).toBe(written[side]);
    expect(came[1 - side].indexOf(0)).toBe(written[side]);
  }
  expect(a.sender.timeouts + a.sender.retransmissions).toBeGreaterThan(0);
});

test('nobody concludes that nothing will change while what was lost is not sent again', () => {
  const stuckAt = (loses: boolean): number => {
    const { simulator, a } = pair({}, ({ length }, number) => loses && length > 0 && number === 0);
    let stuck = Number.NaN;
    const observer = { idle: () => {}, failed: () => {}, stuck: () => void (stuck = simulator.now) };
    simulator.observer = observer;
    a.write(100, new NotedWrite(simulator));
    // A rank that asks each millisecond.
    const ask = (): void => {
      simulator.askedInVain();
      at(simulator, simulator.now + 1000, 1, ask);
    };
    ask();
    runAll(simulator, () => !Number.isNaN(stuck));
    return stuck;
  };
  expect(stuckAt(false)).toBeLessThan(100_000);
  expect(stuckAt(true)).toBeGreaterThan(500_000);
});
