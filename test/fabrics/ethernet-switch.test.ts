/** A switch, by times that were computed by hand: at 100 Mbit/s a frame of 1,500 bytes takes 122.08 µs, the gap 0.96. */
import { describe, expect, test } from 'vitest';
import type { EthernetNumbers } from '../../src/providers/modelled/ethernet/ethernet-numbers.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import { at, makeSwitch, NO_FAULTS, NotedFrame, runAll, switch100 } from '../support/ethernet.ts';

const FRAME = 122.08;
const NUMBERS: EthernetNumbers = { ...switch100.ethernet, driver: 0, propagation: 0.5, forward: 10, room: 3 };

describe('a switch', () => {
  test('stores a frame as a whole, and forwards it', () => {
    const { simulator, medium } = makeSwitch(2, NUMBERS);
    const frame = new NotedFrame(simulator, 0, 1);
    medium.carry(frame);
    runAll(simulator);
    expect(frame.leftAt).toBeCloseTo(FRAME, 9);
    expect(frame.came).toEqual([[1, expect.closeTo(FRAME + 0.5 + 10 + FRAME + 0.5, 9)]]);
  });

  test('has frames of different ports pass at the same time, both ways', () => {
    const { simulator, medium } = makeSwitch(4, NUMBERS);
    const frames = [0, 1, 2, 3].map((from) => new NotedFrame(simulator, from, from ^ 1));
    for (const frame of frames) medium.carry(frame);
    runAll(simulator);
    for (const { came } of frames) expect(came[0][1]).toBeCloseTo(2 * FRAME + 11, 9);
  });

  test('sends frames for one station one after the other, in the order of their coming', () => {
    const { simulator, medium } = makeSwitch(4, NUMBERS);
    const frames = [2, 1].map((from) => new NotedFrame(simulator, from, 0));
    medium.carry(frames[0]);
    at(simulator, 20, 1, () => medium.carry(frames[1]));
    runAll(simulator);
    expect(frames[0].came[0][1]).toBeCloseTo(2 * FRAME + 11, 9);
    expect(frames[1].came[0][1]).toBeCloseTo(3 * FRAME + 11 + 0.96, 9);
  });

  test('loses what comes to a port that is full, and has room again when a frame has left', () => {
    const { simulator, medium } = makeSwitch(6, NUMBERS);
    const frames = [1, 2, 3, 4, 5].map((from) => new NotedFrame(simulator, from, 0));
    for (const frame of frames.slice(0, 4)) medium.carry(frame);
    // It comes to the switch just after the first one has left it.
    at(simulator, FRAME + 0.1, 5, () => medium.carry(frames[4]));
    runAll(simulator);
    expect(frames.map(({ came }) => came.length)).toEqual([1, 1, 1, 0, 1]);
    expect(frames[3].lostAt).toEqual([[0, expect.closeTo(FRAME + 10.5, 9)]]);
    expect(medium.statistics.overflowed).toBe(1);
  });

  test('copies a frame for several stations to each of their ports', () => {
    const { simulator, medium } = makeSwitch(4, NUMBERS);
    const frame = new NotedFrame(simulator, 0, [1, 2, 3]);
    medium.carry(frame);
    runAll(simulator);
    expect(frame.came.map(([station, time]) => [station, Math.round(time)])).toEqual([1, 2, 3].map((to) => [to, 255]));
  });

  test('has frames overtake each other when they are delayed; a bus would keep their order', () => {
    const random = new Random(3);
    const { simulator, medium } = makeSwitch(
      3,
      { ...NUMBERS, room: 100 },
      {
        ...NO_FAULTS,
        drawDelay: () => 1000 * random.fraction(),
      },
    );
    const order: number[] = [];
    for (let i = 0; i < 50; i++) {
      const frame = new NotedFrame(simulator, 0, 1, 100);
      frame.arrived = () => void order.push(i);
      medium.carry(frame);
    }
    runAll(simulator);
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(order).not.toEqual(order.toSorted((a, b) => a - b));
  });
});

test('eight links at once carry what one carries: 93 Mbit/s of 1,400-byte packets on BSP clusters', () => {
  const packets = 200;
  const { simulator, medium } = makeSwitch(8, switch100.ethernet);
  let last = 0;
  for (let from = 0; from < 8; from++) {
    for (let i = 0; i < packets; i++) {
      const frame = new NotedFrame(simulator, from, (from + 1) % 8, 1400 + 28);
      frame.arrived = () => void (last = simulator.now);
      medium.carry(frame);
    }
  }
  runAll(simulator);
  const megabits = (packets * 1400 * 8) / last;
  expect(megabits).toBeGreaterThan(0.97 * 93);
  expect(megabits).toBeLessThan(1.03 * 93);
});
