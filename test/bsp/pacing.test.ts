/** The option `pacing` of BSP computations: when packets leave, and that everything comes all the same. */
import { type BspOptions, type BspStatistics, begin, type CountExchange, type PacingOption } from 'onesided/bsp';
import { runTasks, type TaskOptions } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import { CHUNK_BYTES, type Chunk } from '../../src/bsp/chunks.ts';
import type { PacketCarrier } from '../../src/bsp/delivery/carrier.ts';
import type { CarrierUser } from '../../src/bsp/delivery/carrier-user.ts';
import { FixedPace } from '../../src/bsp/delivery/pace-choices.ts';
import { PacedCarrier } from '../../src/bsp/delivery/paced-carrier.ts';
import type { Piece } from '../../src/bsp/delivery/packets.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const COUNTS: readonly CountExchange[] = ['all-to-all', 'tree', 'multicast'];
const CHUNK_HEAD = 2;

/** A packet that has left. */
interface Left {
  readonly pid: number;
  readonly at: number;
  readonly pieces: readonly Piece[];
}

/** A paced carrier of process 0 on a network that only writes down what leaves. */
class Desk {
  time = 1000;
  readonly left: Left[] = [];
  /** Processes that can take nothing. */
  readonly blocked = new Set<number>();
  readonly carrier: PacedCarrier;

  constructor(slot: number, slots: number | undefined, packet: number, seeds: readonly number[], isVirtual = true) {
    const processor = { isVirtual, copy: () => {} };
    const comm = { rank: 0, now: () => this.time, job: { processor } } as unknown as Communicator;
    const below = {
      mostPieces: 4,
      headBytes: 0,
      expect: () => {},
      isReady: (pid: number) => !this.blocked.has(pid),
      sendPacket: (pid: number, pieces: readonly Piece[]) => void this.left.push({ pid, at: this.time, pieces }),
      poll: () => {},
      isSilent: true,
    } as unknown as PacketCarrier;
    const user: CarrierUser = { tell: () => {}, arrived: () => {} };
    const pacing = { pacer: new FixedPace(slot, slots), packet, seeds };
    this.carrier = new PacedCarrier(comm, user, () => below, pacing);
  }

  /** Begins a superstep. @param chunks bytes of chunks for each process */
  begin(chunks: readonly (readonly number[])[], senders: number): void {
    const load = this.carrier.announce(chunks.map((line) => (line.length === 0 ? undefined : line)));
    this.carrier.expect(0, { senders, packets: load.packets, most: load.packets, longest: 0 });
    for (const [pid, line] of chunks.entries()) for (const bytes of line) this.carrier.send(pid, chunkOf(), bytes);
  }

  /** Lets time pass until all has left, as a wait does. */
  run(late: () => number = () => 0): void {
    for (let looks = 0; !this.carrier.isSilent; looks++) {
      if (looks > 1e6) throw new Error('it never ends');
      this.carrier.poll();
      const polling = this.carrier.isPolling();
      this.time += (typeof polling === 'number' ? 1000 * polling : 0) + late();
    }
  }
}

const chunkOf = (): Chunk => ({ i32: new Int32Array(CHUNK_HEAD), u8: new Uint8Array(0), at: 0, id: 0 });

/** Chunks for each of some processes, process 0 excepted. */
function drawnChunks(random: Random): number[][] {
  const processes = 2 + random.below(6);
  return Array.from({ length: processes }, (_, pid) =>
    pid === 0 || random.below(4) === 0
      ? []
      : Array.from({ length: 1 + random.below(3) }, () => 8 + 4 * random.below(CHUNK_BYTES / 4 - 1)),
  );
}

const totalOf = (chunks: readonly (readonly number[])[]): number => chunks.flat().reduce((sum, one) => sum + one, 0);

describe('a process that is in time', () => {
  test('sends each packet once, one in each cycle, at the beginning of a slot, for random totals', () => {
    const random = new Random(seedOfRun());
    for (let round = 0; round < 60; round++) {
      const [slots, slot, packet] = [1 + random.below(9), 1 + random.below(3000), 64 + random.below(3000)];
      const desk = new Desk(slot, undefined, packet, [round]);
      let sent = 0;
      for (let step = 0; step < 3; step++) {
        const chunks = drawnChunks(random);
        desk.left.length = 0;
        const began = desk.time;
        desk.begin(chunks, slots);
        desk.run();
        const bytes = desk.left.flatMap(({ pieces }) => pieces).reduce((sum, piece) => sum + piece.bytes, 0);
        expect(bytes).toBe(totalOf(chunks));
        for (const [pid, line] of chunks.entries()) {
          const to = desk.left.filter((one) => one.pid === pid).flatMap(({ pieces }) => pieces);
          // In the order of the chunks, without a gap.
          const rebuilt: number[] = [];
          for (const { from, bytes: taken } of to) {
            if (from === 0) rebuilt.push(0);
            expect(from).toBe(rebuilt.at(-1));
            rebuilt[rebuilt.length - 1] += taken;
          }
          expect(rebuilt).toEqual(line);
        }
        for (const [cycle, { at, pieces }] of desk.left.entries()) {
          expect(pieces.reduce((sum, piece) => sum + piece.bytes, 0)).toBeLessThanOrEqual(packet);
          const place = (at - began) / slot;
          expect(Math.abs(place - Math.round(place))).toBeLessThan(1e-4);
          expect(Math.floor((Math.round(place) + 0.5) / slots)).toBe(cycle);
        }
        sent += desk.left.length;
      }
      expect(desk.carrier.statistics).toMatchObject({ packets: sent, cycles: sent, kept: sent, late: 0, bursts: 0 });
    }
  });

  test('sends one packet of each target in turn, those that can take none passed over', () => {
    const desk = new Desk(100, 1, 1000, []);
    desk.begin([[], [3000], [2000], [4000]], 1);
    desk.run();
    expect(desk.left.map(({ pid }) => pid)).toEqual([1, 2, 3, 1, 2, 3, 1, 3, 3]);
    const other = new Desk(100, 1, 1000, []);
    other.blocked.add(1);
    other.begin([[], [2000], [2000]], 1);
    for (let i = 0; i < 3; i++) {
      other.carrier.poll();
      other.time += 100;
    }
    expect(other.left.map(({ pid }) => pid)).toEqual([2, 2]);
    // Nothing can leave: something rings when it can.
    expect(other.carrier.isPolling()).toBe(false);
    other.blocked.clear();
    other.run();
    expect(other.left.map(({ pid }) => pid)).toEqual([2, 2, 1, 1]);
  });

  test('a real rank wakes up before its slot; in virtual time, in it', () => {
    for (const isVirtual of [true, false]) {
      const desk = new Desk(5000, 1, 1000, [], isVirtual);
      desk.begin([[], [2000]], 1);
      desk.carrier.poll();
      expect(desk.left.length).toBe(1);
      expect(desk.carrier.isPolling()).toBeCloseTo(isVirtual ? 5 : 4.9, 6);
      desk.time += 4950;
      desk.carrier.poll();
      expect(desk.left.length).toBe(1);
      expect(desk.carrier.isPolling()).toBeCloseTo(isVirtual ? 0.05 : 0, 6);
    }
  });
});

describe('a process that comes late', () => {
  test('sends 4 packets in a turn at most, says how late they were, and catches up', () => {
    const desk = new Desk(10, 1, 1000, []);
    desk.begin([[], [11_000]], 1);
    desk.time += 65;
    const turns: number[] = [];
    while (!desk.carrier.isSilent) {
      const before = desk.left.length;
      desk.carrier.poll();
      turns.push(desk.left.length - before);
      const polling = desk.carrier.isPolling();
      if (desk.left.length < 7) expect(polling).toBe(0);
      if (typeof polling === 'number') desk.time += 1000 * polling;
    }
    // Seven were due; then each in its slot.
    expect(turns).toEqual([4, 3, 1, 1, 1, 1]);
    const { late, lateness, bursts, kept, cycles } = desk.carrier.statistics!;
    expect({ late, lateness, bursts, kept, cycles }).toEqual({ late: 2, lateness: 65, bursts: 2, kept: 5, cycles: 11 });
  });

  test('never sends more, however late it comes, and nothing before its slot', () => {
    const random = new Random(seedOfRun(), 2);
    for (let round = 0; round < 40; round++) {
      const desk = new Desk(1 + random.below(50), 1 + random.below(5), 64 + random.below(1000), [round]);
      desk.begin(drawnChunks(random), 3);
      let before = 0;
      let turns = 0;
      desk.run(() => {
        expect(desk.left.length - before).toBeLessThanOrEqual(4);
        if (desk.left.length - before > 1) turns++;
        before = desk.left.length;
        return random.below(3) === 0 ? random.below(400) : 0;
      });
      expect(desk.carrier.statistics!.bursts).toBe(turns);
    }
  });
});

interface Outcome {
  readonly errors: number;
  readonly statistics: BspStatistics;
  readonly times: readonly number[];
}

/**
 * In each superstep, those for whom `bytesFor` says so put to their neighbour.
 * @param bytesFor of a process, in a superstep
 */
function shifted(
  size: number,
  options: BspOptions,
  bytesFor: (pid: number, step: number) => number,
  steps = 3,
  others: Partial<TaskOptions> = {},
): Promise<Outcome[]> {
  return runTasks(
    size,
    async (world) => {
      const bsp = await begin(world, { delivery: 'packed', ...options });
      const x = new Uint8Array(120_000);
      bsp.pushReg(x);
      await bsp.sync();
      const times: number[] = [];
      let errors = 0;
      for (let step = 0; step < steps; step++) {
        const bytes = bytesFor(bsp.pid, step);
        const began = world.now();
        bsp.put((bsp.pid + 1) % size, new Uint8Array(bytes).fill(bsp.pid + 10 * step), x);
        await bsp.sync();
        times.push(world.now() - began);
        const left = (bsp.pid + size - 1) % size;
        const came = x.subarray(0, bytesFor(left, step));
        if (!came.every((value) => value === ((left + 10 * step) & 255))) errors++;
      }
      const statistics = bsp.statistics();
      await bsp.end();
      return { errors, statistics, times };
    },
    { fabric: 'infinihost-64', seed: seedOfRun(), ...others },
  );
}

describe.each(COUNTS)('with counts by %s', (counts) => {
  test.each([1, 2, 5, 8])('%i processes know how many send, and what the busiest does', async (size) => {
    const random = new Random(seedOfRun(), size);
    const bytes = Array.from({ length: 4 }, () =>
      Array.from({ length: size }, () => (random.below(3) === 0 ? 0 : random.below(20_000))),
    );
    for (let steps = 1; steps <= bytes.length; steps++) {
      const pacing = { slot: 3, packet: 500 };
      const outcomes = await shifted(size, { pacing, counts }, (pid, step) => bytes[step][pid], steps);
      // What goes to itself is not sent.
      const sending = size === 1 ? [0] : bytes[steps - 1];
      const senders = sending.filter((one) => one > 0).length;
      const most = Math.max(...sending);
      for (const { errors, statistics } of outcomes) {
        expect(errors).toBe(0);
        const { pacing: paced } = statistics;
        expect(paced!.senders).toBe(senders);
        expect(paced!.most).toBeGreaterThanOrEqual(Math.ceil(most / 500));
        expect(paced!.most).toBeLessThanOrEqual(most === 0 ? 0 : Math.ceil((most + 60) / 500));
        expect(paced!.slots).toBe(senders);
      }
    }
  });

  test('25,000 words are 71 packets, 8,333 words 24, and each has its slot', async () => {
    for (const [bytes, packets] of [
      [100_000, 71],
      [33_332, 24],
    ]) {
      for (const { errors, statistics } of await shifted(4, { pacing: { slot: 50 }, counts }, () => bytes, 2)) {
        expect(errors).toBe(0);
        const all = 2 * packets;
        expect(statistics.pacing).toMatchObject({ packets: all, cycles: all, kept: all, late: 0, most: packets });
      }
    }
  });
});

test('a superstep lasts as long as its cycles, whose slots the seed gives', async () => {
  const run = (seed: number) => shifted(4, { pacing: { slot: 40, Q: 6 } }, () => 33_332, 2, { seed });
  const [first, again, other] = [await run(5), await run(5), await run(6)];
  expect(again).toEqual(first);
  expect(other.map(({ times }) => times)).not.toEqual(first.map(({ times }) => times));
  for (const { times } of [...first, ...other]) {
    for (const time of times) {
      expect(time).toBeGreaterThan(23 * 6 * 40);
      expect(time).toBeLessThan(24 * 6 * 40 + 400);
    }
  }
});

test('a wait that ends early leaves packets to the next one, which sends what is due in bursts', async () => {
  const size = 3;
  const outcomes = await runTasks(
    size,
    async (world) => {
      const bsp = await begin(world, { delivery: 'packed', pacing: { slot: 300 } });
      const x = new Uint8Array(20_000);
      bsp.pushReg(x);
      await bsp.sync();
      bsp.put((bsp.pid + 1) % size, new Uint8Array(20_000).fill(bsp.pid + 1), x);
      const code = await bsp.sync({ timeout: 3 }).then(
        () => 'none',
        (error: { code: string }) => error.code,
      );
      const { packets } = bsp.statistics().pacing!;
      // Its slots pass.
      await world.compute(5000);
      await bsp.sync();
      const isRight = x.every((value) => value === 1 + ((bsp.pid + size - 1) % size));
      const { pacing } = bsp.statistics();
      await bsp.end();
      return { code, packets, isRight, pacing };
    },
    { fabric: 'infinihost-64', seed: seedOfRun() },
  );
  for (const { code, packets, isRight, pacing } of outcomes) {
    expect(code).toBe('ERR_RMA_TIMEOUT');
    expect(packets).toBeGreaterThan(0);
    expect(packets).toBeLessThan(6);
    expect(isRight).toBe(true);
    expect(pacing!.packets).toBe(15);
    expect(pacing!.bursts).toBeGreaterThan(0);
    expect(pacing!.lateness).toBeGreaterThan(3000);
  }
});

test('without pacing nothing takes another time, and nothing is counted', async () => {
  for (const counts of COUNTS) {
    const [unsaid, none] = [
      await shifted(5, { counts }, () => 50_000, 3, { seed: 4 }),
      await shifted(5, { counts, pacing: 'none' }, () => 50_000, 3, { seed: 4 }),
    ];
    expect(none).toEqual(unsaid);
    for (const { statistics } of none) expect('pacing' in statistics).toBe(false);
  }
});

test('chunks for which there is no room wait at their senders, while gets are answered', async () => {
  const [puts, gets] = [700_000, 700_000];
  /** Bytes by which the memory of process 0 grows, to which puts come while it answers gets. */
  const grown = async (pacing: PacingOption): Promise<number> => {
    const all = await runTasks(
      3,
      async (world) => {
        const bsp = await begin(world, { delivery: 'packed', pacing });
        const x = new Float64Array(bsp.pid === 0 ? puts : 1);
        bsp.pushReg(x);
        await bsp.sync();
        const before = bsp.bufferBytes;
        const got = new Float64Array(gets).fill(-1);
        if (bsp.pid === 1) bsp.put(0, new Float64Array(puts).fill(7), x);
        if (bsp.pid === 2) for (let i = 0; i < gets; i++) bsp.get(0, x, i, got, 1, i);
        await bsp.sync();
        if (bsp.pid === 0) expect(x.every((value) => value === 7)).toBe(true);
        if (bsp.pid === 2) expect(got.every((value) => value === 0)).toBe(true);
        const bytes = bsp.bufferBytes - before;
        await bsp.end();
        return bytes;
      },
      { fabric: 'infinihost-64', seed: 1 },
    );
    return all[0];
  };
  // Of 343 that come, 64 wait to be placed, and one for each process may have begun.
  const more = (await grown({ slot: 0, packet: 2048 })) - (await grown('none'));
  expect(more).toBeGreaterThanOrEqual(64 * CHUNK_BYTES);
  expect(more).toBeLessThanOrEqual((64 + 3) * CHUNK_BYTES);
});

describe("pacing: 'auto'", () => {
  test.each([...COUNTS])('keeps what costs nothing where the network is a switch, counts %s', async (counts) => {
    const steps = 80;
    const tries = 61;
    const outcomes = await shifted(4, { pacing: 'auto', counts }, () => 60_000, steps, { seed: 3 });
    const [{ times, statistics }] = outcomes;
    for (const one of outcomes) {
      expect(one.errors).toBe(0);
      // Packets have headers.
      expect(one.statistics.pacing).toMatchObject({ isTrying: false, whole: true });
      expect([one.statistics.pacing!.slots, one.statistics.pacing!.slot]).toEqual([
        statistics.pacing!.slots,
        statistics.pacing!.slot,
      ]);
    }
    const unpaced = (await shifted(4, { pacing: { slot: 0 }, counts }, () => 60_000, 8, { seed: 3 }))[0].times;
    const best = Math.min(...times.slice(1, tries));
    // The trials are bounded, and what comes after them is as good as the best of them.
    for (const time of times.slice(1)) expect(time).toBeLessThan(1.3 * unpaced.at(-1)!);
    const later = times.slice(tries);
    expect(later.reduce((sum, time) => sum + time, 0) / later.length).toBeLessThan(1.05 * best);
  });

  test("and 'slots' measures, then has as many slots as processes send", async () => {
    for (const { errors, statistics, times } of await shifted(4, { pacing: 'slots' }, () => 60_000, 8, { seed: 3 })) {
      expect(errors).toBe(0);
      expect(statistics.pacing).toMatchObject({ slots: 4, senders: 4, isTrying: false });
      // By the packets of all four, in about the time that unpaced supersteps took.
      const { slot, most } = statistics.pacing!;
      expect(4 * most * slot).toBeGreaterThan(0.7 * times[2]);
      expect(4 * most * slot).toBeLessThan(times[2]);
      // So many slots last as long as an unpaced superstep, and the last packet's way.
      expect(times.at(-1)!).toBeLessThan(1.25 * times[2]);
    }
  });
});

describe('a process that dies while packets wait for their slots', () => {
  const SIZE = 4;
  test.each(COUNTS)('all others are told, at whatever time it dies: counts %s', async (counts) => {
    const random = new Random(seedOfRun(), 9);
    for (let round = 0; round < 12; round++) {
      const victim = random.below(SIZE);
      const time = 300 + random.below(8000);
      const codes: string[] = [];
      const run = runTasks(
        SIZE,
        async (world) => {
          const bsp = await begin(world, { delivery: 'packed', pacing: { slot: 20, packet: 400 }, counts });
          const x = new Float64Array(SIZE * 1000);
          bsp.pushReg(x);
          try {
            for (let step = 0; step < 1000; step++) {
              await bsp.sync();
              for (let pid = 0; pid < SIZE; pid++) bsp.put(pid, new Float64Array(700), x, 1000 * bsp.pid);
              bsp.get((bsp.pid + 1) % SIZE, x, 0, new Float64Array(300));
            }
          } catch (error) {
            codes.push((error as { code: string }).code);
          }
        },
        { fabric: 'infinihost-64', seed: seedOfRun() + round, faults: { deaths: [{ rank: victim, time }] } },
      );
      await run.catch(() => {});
      expect(codes, `process ${victim} at ${time}`).toEqual(new Array(SIZE - 1).fill('ERR_RMA_RANK_FAILED'));
    }
  });
});
