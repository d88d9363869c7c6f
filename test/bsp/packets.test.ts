/** Chunks as packets, and the slots in which these leave: without ranks. */
import { describe, expect, test } from 'vitest';
import { CHUNK_BYTES, type Chunk } from '../../src/bsp/chunks.ts';
import { PacedByRule, PacedByTrial, type Pacer } from '../../src/bsp/delivery/pace-choices.ts';
import { Assembly, Line, type PacketSize, packetsFor } from '../../src/bsp/delivery/packets.ts';
import { type Pace, Slots, UNPACED, WHOLE } from '../../src/bsp/delivery/slots.ts';
import type { Totals } from '../../src/bsp/delivery/totals.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const KIND = 3;

function chunkOf(random: Random, bytes: number, step: number): Chunk {
  const i32 = new Int32Array(CHUNK_BYTES / 2);
  const at = 8 * random.below(200);
  const u8 = new Uint8Array(i32.buffer);
  for (let i = 0; i < bytes; i++) u8[4 * at + i] = random.bits();
  i32[at] = step;
  i32[at + 1] = KIND;
  return { i32, u8, at, id: 0 };
}

const contents = ({ u8, at }: Chunk, bytes: number): Uint8Array => u8.slice(4 * at, 4 * at + bytes);
const randomBytes = (random: Random): number => 8 + 4 * random.below(random.below(3) === 0 ? 20 : CHUNK_BYTES / 4 - 1);

/** All packets of a line, as bytes. */
function packetsOf(line: Line, size: PacketSize): Uint8Array[] {
  const packets: Uint8Array[] = [];
  while (!line.isEmpty) {
    const pieces = line.take(size);
    expect(pieces.length).toBeLessThanOrEqual(size.pieces);
    packets.push(
      Uint8Array.from(pieces.flatMap(({ chunk, from, bytes }) => [...contents(chunk, from + bytes).subarray(from)])),
    );
  }
  return packets;
}

describe('packets', () => {
  test('lines of chunks are cut into as many as were announced, and put together again, whatever their lengths', () => {
    const random = new Random(seedOfRun());
    for (let round = 0; round < 60; round++) {
      const size = { bytes: 64 + random.below(4000), pieces: 1 + random.below(4) };
      const lengths = Array.from({ length: 1 + random.below(6) }, () => randomBytes(random));
      const chunks = lengths.map((bytes) => chunkOf(random, bytes, round));
      const before = chunks.map((chunk, i) => contents(chunk, lengths[i]));
      const line = new Line(0);
      for (const [i, chunk] of chunks.entries()) line.add(chunk, lengths[i]);
      const packets = packetsOf(line, size);
      expect(packets.length).toBe(packetsFor(lengths, size));
      for (const packet of packets) expect(packet.length).toBeLessThanOrEqual(size.bytes);
      const assembly = new Assembly(lengths.length);
      for (const packet of packets) expect(assembly.add(7, packet, 0)).toBe(packet.length);
      const whole = assembly.whole.map(({ pid, buffer, bytes }) => ({ pid, bytes: [...buffer.u8.subarray(0, bytes)] }));
      expect(whole).toEqual(before.map((bytes) => ({ pid: 7, bytes: [...bytes] })));
    }
  });

  test('100,000 bytes are 71 packets of 1,418 bytes, and 33,332 are 24, with all headers', () => {
    const size = { bytes: 1418, pieces: 4 };
    const lengths = (data: number): number[] => {
      const chunks: number[] = [];
      for (let left = data; left > 0; ) {
        const bytes = Math.min(left, CHUNK_BYTES - 20);
        chunks.push(bytes + 20);
        left -= bytes;
      }
      return chunks;
    };
    expect(packetsFor(lengths(100_000), size)).toBe(71);
    expect(packetsFor(lengths(33_332), size)).toBe(24);
    expect(packetsFor([], size)).toBe(0);
  });

  test('no chunk is begun while as many as are allowed wait; those that have begun are completed', () => {
    const random = new Random(seedOfRun(), 1);
    const sources = 5;
    const most = 3;
    const queues = Array.from({ length: sources }, (_, pid) => {
      const line = new Line(pid);
      for (let i = 0; i < 4; i++) line.add(chunkOf(random, 2000, i), 2000);
      return packetsOf(line, { bytes: 300, pieces: 4 }).map((packet) => ({ packet, from: 0 }));
    });
    const assembly = new Assembly(most);
    let kept = 0;
    let whole = 0;
    while (queues.some((queue) => queue.length > 0)) {
      let moved = false;
      for (const [pid, queue] of queues.entries()) {
        const [first] = queue;
        if (first === undefined) continue;
        const to = assembly.add(pid, first.packet, first.from);
        moved ||= to > first.from;
        first.from = to;
        if (to === first.packet.length) queue.shift();
      }
      kept += assembly.whole.length;
      expect(kept).toBeLessThanOrEqual(most + sources - 1);
      for (const { buffer } of assembly.whole.splice(0)) {
        whole++;
        if (random.below(2) === 0) continue;
        assembly.release(buffer);
        kept--;
      }
      if (moved || kept === 0) continue;
      // All wait for room.
      break;
    }
    expect(kept >= most || whole === 4 * sources).toBe(true);
    expect(assembly.bytes).toBeLessThanOrEqual((most + sources) * CHUNK_BYTES);
  });

  test.each([0, 4, 7, 9, 1001, CHUNK_BYTES + 4, 2 ** 24 - 1])(
    'a chunk that says %i bytes is refused, each time',
    (bytes) => {
      const head = new Uint8Array(new Int32Array([5, (bytes << 8) | KIND]).buffer);
      const assembly = new Assembly(2);
      expect(assembly.add(7, head.subarray(0, 3), 0)).toBe(3);
      const rest = Uint8Array.from([...head.subarray(3), ...new Uint8Array(1400)]);
      for (let i = 0; i < 3; i++) {
        expect(() => assembly.add(7, rest, 0)).toThrow(
          expect.objectContaining({
            code: 'ERR_VERBS',
            message: expect.stringContaining(`process 7 has ${bytes} bytes`),
          }),
        );
        expect(assembly.whole).toEqual([]);
      }
      // Others are not concerned.
      const good = new Uint8Array(new Int32Array([5, (8 << 8) | KIND]).buffer);
      expect(assembly.add(6, good, 0)).toBe(8);
      expect(assembly.whole.map(({ pid, bytes: length }) => [pid, length])).toEqual([[6, 8]]);
    },
  );

  test.each([8, CHUNK_BYTES])('a chunk that says %i bytes is not', (bytes) => {
    const assembly = new Assembly(1);
    const chunk = new Int32Array(bytes / 4);
    chunk.set([5, (bytes << 8) | KIND]);
    expect(assembly.add(7, new Uint8Array(chunk.buffer), 0)).toBe(bytes);
    expect(assembly.whole.map(({ buffer, bytes: length }) => [length, buffer.i32[1]])).toEqual([[bytes, KIND]]);
  });
});

/** Critical values of χ² at 1 %, by degrees of freedom. */
const CRITICAL: Readonly<Record<number, number>> = { 1: 6.63, 3: 11.34, 4: 13.28, 7: 18.48, 15: 30.58 };

describe('slots', () => {
  test.each([2, 4, 5, 8, 16])('of %i slots, each is drawn as often as the others', (slots) => {
    const drawn = new Array<number>(slots).fill(0);
    const schedule = new Slots();
    const [processes, packets] = [8, 500];
    for (let pid = 0; pid < processes; pid++) {
      schedule.begin(1e6, { slots, slot: 1500, whole: false }, 5, pid, 3);
      for (let cycle = 0; cycle < packets; cycle++) {
        const place = (schedule.due - 1e6) / 1500;
        expect(Number.isInteger(place)).toBe(true);
        // In its cycle.
        expect(Math.floor(place / slots)).toBe(cycle);
        drawn[place % slots]++;
        schedule.next();
      }
    }
    const expected = (processes * packets) / slots;
    const chi = drawn.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(chi).toBeLessThan(CRITICAL[slots - 1]);
  });

  test('the same numbers give the same slots; another process, superstep or seed others', () => {
    const drawn = (...numbers: number[]): number[] => {
      const schedule = new Slots();
      schedule.begin(0, { slots: 8, slot: 1, whole: false }, ...numbers);
      return Array.from({ length: 40 }, () => {
        const { due } = schedule;
        schedule.next();
        return due;
      });
    };
    const first = drawn(1, 2, 3);
    expect(drawn(1, 2, 3)).toEqual(first);
    for (const numbers of [
      [1, 2, 4],
      [1, 3, 3],
      [2, 2, 3],
      [1 + 2 ** 32, 2, 3],
    ])
      expect(drawn(...numbers)).not.toEqual(first);
  });
});

/** Runs a pacer for some supersteps of a network. @returns the pace and the time of each */
function run(
  pacer: Pacer,
  steps: number,
  timeOf: (pace: Pace, step: number) => number,
  load = { senders: 8, most: 70 },
): { pace: Pace; time: number; tries: boolean }[] {
  const all = [];
  let longest = 0;
  for (let step = 0; step < steps; step++) {
    const totals: Totals = { ...load, packets: load.senders * load.most, longest };
    const pace = pacer.choose(totals);
    longest = timeOf(pace, step);
    all.push({ pace, time: longest, tries: pacer.isTrying });
  }
  return all;
}

/** One that is not measured, then chunks, packets, and three slots of each cycle, where the first ones were best. */
const TRIED = 1 + 3 * (2 + 3 + 3);
const MOST_TRIED = 1 + 3 * (2 + 9 + 9);
/** Supersteps of tries. */
const triesOf = (all: readonly { readonly tries: boolean }[]): number => all.filter(({ tries }) => tries).length;

describe('the choice by trial', () => {
  const [senders, most, frame] = [8, 70, 1200];
  const random = new Random(17);
  /** Unpaced, at the same times, or with slots that are too short, it takes longer, and never the same. */
  const bus = ({ slots, slot }: Pace): number => {
    const load = slots < senders ? senders : (senders * frame) / (slots * slot);
    const least = senders * most * frame;
    return load > 0.85 ? least * (1.4 + 0.004 * random.below(100)) : most * slots * slot;
  };
  const change = ({ slots, slot }: Pace): number => Math.max(most * frame, most * slots * slot) + 50;

  test('on a bus it keeps cycles of as many slots as processes send, within 5 % of the best that it tried', () => {
    const all = run(new PacedByTrial(true), 60, bus);
    const tried = triesOf(all);
    // Of the long cycle, slots of 0.49 and 0.6 of E, too.
    expect(tried).toBeGreaterThanOrEqual(TRIED);
    expect(tried).toBeLessThanOrEqual(TRIED + 6);
    const { pace } = all.at(-1)!;
    expect(pace.slots).toBe(senders);
    const best = Math.min(...all.slice(0, tried).map(({ time }) => time));
    expect(all.at(-1)!.time).toBeLessThanOrEqual(1.05 * best);
  });

  test('on a switch it keeps what costs nothing, and no try takes longer than an unpaced one', () => {
    const all = run(new PacedByTrial(true), 60, change);
    const unpaced = all[0].time;
    for (const { time } of all) expect(time).toBeLessThanOrEqual(1.001 * unpaced);
    expect(all.at(-1)!.time).toBeLessThanOrEqual(1.01 * unpaced);
    for (const { pace, tries } of all.slice(TRIED)) {
      expect(tries).toBe(false);
      expect(pace.slot === 0 || pace.slots === 1).toBe(true);
    }
  });

  test('where packets cost more than chunks it sends chunks whole, but not where they cannot be', () => {
    const packets = (pace: Pace): number => (pace.whole ? 1 : 1.15) * change(pace);
    expect(run(new PacedByTrial(true), 40, packets).at(-1)!.pace).toEqual(WHOLE);
    const cut = run(new PacedByTrial(false), 40, packets);
    expect(triesOf(cut)).toBeLessThan(40);
    expect(cut.some(({ pace }) => pace.whole)).toBe(false);
  });

  test('where unpaced packets are lost, so that E is many times too long, it comes to slots of a frame', () => {
    for (const times of [2, 5, 10]) {
      /** Packets that do not leave in cycles of one slot are lost, and so are those of slots below a frame. */
      const incast = ({ slots, slot }: Pace): number =>
        slots * slot < frame ? times * most * frame : most * slots * slot;
      const all = run(new PacedByTrial(true), 100, incast, { senders, most });
      expect(triesOf(all)).toBeLessThanOrEqual(MOST_TRIED);
      for (const { time } of all) expect(time).toBeLessThanOrEqual(1.001 * times * most * frame);
      // Between 1 and what 0.7 and 0.85 leave.
      expect(all.at(-1)!.time).toBeLessThanOrEqual(1.25 * most * frame);
    }
  });

  test('it tries again when three supersteps in a row took more than half as long again', () => {
    const worse = (pace: Pace, step: number): number => (step < TRIED + 11 ? change(pace) : 2 * change(pace));
    const all = run(new PacedByTrial(true), TRIED + 14, worse);
    expect(all.slice(TRIED).some(({ tries }) => tries)).toBe(false);
    const twice = run(new PacedByTrial(true), 100, worse);
    // The warning of the third one comes with the counts after it; connections are there already.
    expect(twice.findIndex(({ tries }, step) => step >= TRIED && tries)).toBe(TRIED + 14);
    expect(twice.filter(({ tries }) => tries).length).toBeGreaterThanOrEqual(TRIED + TRIED - 1);
    const two = (pace: Pace, step: number): number => (step % 3 === 0 ? 1 : 2) * change(pace);
    const pacer = new PacedByTrial(true);
    run(pacer, TRIED, change);
    expect(run(pacer, 30, two).some(({ tries }) => tries)).toBe(false);
  });

  test('of a short time that scatters and a longer one that does not, it keeps the second', () => {
    /** Unpaced: 0.8, 1 or 1.2 in turn; with slots as long as that took: a tenth more than the mean. */
    const time = ({ slot }: Pace, step: number): number => (slot === 0 ? 0.8 + 0.2 * (step % 3) : 1.1) * most * frame;
    const all = run(new PacedByTrial(true), 40, time, { senders, most });
    for (const { pace } of all.slice(TRIED)) expect(pace.slot).toBeGreaterThan(0);
  });

  test('a way that was lucky while it was tried is given up for one that was better', () => {
    /** Slots of some length of a long cycle take less time, until they are used. */
    const isShort = ({ slots, slot }: Pace): boolean =>
      slots === senders && slot * senders > 0.8 * frame && slot * senders < 0.9 * frame;
    const lucky = (pace: Pace, step: number): number =>
      isShort(pace) ? (step < TRIED ? 0.9 : 1.2) * most * frame : most * frame;
    const all = run(new PacedByTrial(true), 60, lucky, { senders, most });
    expect(isShort(all[TRIED].pace)).toBe(true);
    expect(all.slice(TRIED + 24).some(({ pace }) => isShort(pace))).toBe(false);
    expect(all.slice(TRIED).some(({ tries }) => tries)).toBe(false);
  });

  test('kinds of supersteps are tried apart, and supersteps in which nobody sends are none', () => {
    const pacer = new PacedByTrial(true);
    const totals = (senders: number, most: number): Totals => ({
      senders,
      most,
      packets: senders * most,
      longest: 100,
    });
    for (let i = 0; i < TRIED; i++) {
      pacer.choose(totals(4, 16));
      expect(pacer.isTrying).toBe(true);
      expect(pacer.choose(totals(0, 0))).toEqual(UNPACED);
      expect(pacer.isTrying).toBe(false);
    }
    pacer.choose(totals(5, 31));
    expect(pacer.isTrying).toBe(false);
    pacer.choose(totals(8, 31));
    expect(pacer.isTrying).toBe(true);
    pacer.choose(totals(4, 32));
    expect(pacer.isTrying).toBe(true);
  });
});

test('the choice by rule measures unpaced supersteps, and then has slots as long as they took for a packet', () => {
  const times = [5000, 900, 800, 1000];
  const all = run(new PacedByRule(), 7, (_, step) => times[step] ?? 1500, { senders: 4, most: 10 });
  expect(all.map(({ tries }) => tries)).toEqual([true, true, true, true, false, false, false]);
  expect(all.slice(0, 4).every(({ pace }) => pace.slot === 0)).toBe(true);
  for (const { pace } of all.slice(4)) expect(pace).toEqual({ whole: false, slots: 4, slot: 800 / 40 });
});
