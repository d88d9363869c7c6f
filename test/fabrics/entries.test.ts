/**
 * What scatter and gather entries cost on a modelled fabric: an adapter begins the next one while the bytes of those
 * before it are on their way, so it is taken for its entries or for its bytes, whichever take longer.
 */
import { describe, expect, test } from 'vitest';
import { loadFabric } from '../../src/fabrics/index.ts';
import type { Fabric } from '../../src/providers/modelled/fabric-numbers.ts';
import { Faults } from '../../src/providers/modelled/faults.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Network } from '../../src/providers/modelled/network.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { connect, End, post } from '../verbs/conformance/harness.ts';

const ENTRIES = 8;
const BYTES = 512;
const express = loadFabric('infinihost-express');

/** Round numbers, so that times can be computed by hand: packets of 1,000 bytes, 1 µs for 1,000 bytes anywhere. */
const round: Fabric = {
  ...express,
  bus: { shared: 0, fetch: 0.5, readGap: 0.001, writeGap: 0.001 },
  adapter: { ...express.adapter, send: 1, receive: 2, entry: 0.1, packet: 1000 },
  link: { latency: 0.3, outGap: 0.001, inGap: 0.001 },
  switch: { ...express.switch, latency: 0.2 },
};

/** Microseconds until a request of one end is complete there, whose memory is so many entries. */
function took(kind: 'read' | 'write', entries: number): number {
  const simulator = new Simulator(2, 1, false);
  const shared = new ModelledFabric(express, simulator, new Faults('test', {}, 2, 1), 2);
  const [a, b] = [new End(shared.open(0)), new End(shared.open(1))];
  connect(a, b, { maxSendSge: ENTRIES });
  const began = simulator.now;
  post(a, (qp) => {
    if (kind === 'read') qp.wrRdmaRead(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
    else qp.wrRdmaWrite(1, SendFlag.SIGNALED, b.region.rkey, b.at(0));
    const length = BYTES / entries;
    for (let i = 0; i < entries; i++) qp.wrAddSge(a.region.lkey, a.at(1024 + 2 * length * i), length);
  });
  // The completion is the last that happens.
  simulator.drain(() => false);
  expect(a.sendCq.poll(1)).toBe(1);
  if (kind === 'read') {
    for (let i = 0; i < BYTES; i++) {
      const length = BYTES / entries;
      expect(a.bytes[1024 + 2 * length * Math.floor(i / length) + (i % length)]).toBe(b.bytes[i]);
    }
  }
  return simulator.now - began;
}

describe('further entries of a request', () => {
  const { adapter, bus } = express;
  // Of 512 bytes they take longer than the bytes, one way and the other.
  const further = (ENTRIES - 1) * adapter.entry;

  test('that a write gathers', () => {
    expect(took('write', ENTRIES) - took('write', 1)).toBeCloseTo(further - BYTES * bus.readGap, 6);
  });

  test('that the answer of a read is scattered to', () => {
    expect(took('read', ENTRIES) - took('read', 1)).toBeCloseTo(further - BYTES * bus.writeGap, 6);
  });
});

const LONG = 10_000;

/** When its first packet has come, when the sender's adapter is free, and when the last byte is in memory. */
function run(gathered: number, scattered: number, bytes = LONG): readonly number[] {
  const network = new Network(round, 2);
  const came = network.depart(0, 0, 1, bytes, gathered);
  return [came, network.freeToSend(0, bytes), network.arrive(came, 1, bytes, scattered, gathered)];
}

function expectTimes(found: readonly number[], expected: readonly number[]): void {
  for (const [i, time] of expected.entries()) expect(found[i]).toBeCloseTo(time, 9);
}

describe('a message of 10,000 bytes', () => {
  test('of one entry takes what its bytes take', () => {
    // send 1, fetch 0.5, a packet from memory 1, on the link 0.3 + 1, switch 0.2; receive 2, a packet to memory 1, rest
    // 9.
    expectTimes(run(1, 1), [4, 11, 16]);
  });

  test('is not delayed by entries that take less than its bytes', () => {
    // 50 further entries: 5 µs for 10 µs of bytes.
    expectTimes(run(51, 1), run(1, 1));
    expectTimes(run(1, 51), run(1, 1));
    expectTimes(run(51, 51), run(1, 1));
  });

  test('goes at the pace of its entries where they take longer', () => {
    // 200 further entries take 20 µs, 2 of them for a packet. The sender: 1 + 20. Its first packet leaves 1 µs later.
    expectTimes(run(201, 1), [5, 21, 5 + 2 + 1 + 18]);
    expectTimes(run(1, 201), [4, 11, 4 + 2 + 2 + 18]);
    // Both at once: the rest comes at the pace of the slower one, not of both together.
    expectTimes(run(201, 201), [5, 21, 5 + 2 + 2 + 18]);
    expectTimes(run(201, 401), [5, 21, 5 + 2 + 4 + 36]);
  });

  test('has a receiver that is busy as long', () => {
    const behind = (scattered: number): number => {
      const network = new Network(round, 2);
      network.arrive(0, 1, LONG, scattered);
      return network.arrive(0, 1, LONG);
    };
    expect(behind(1)).toBeCloseTo(2 + 10 + 2 + 10, 9);
    expect(behind(51)).toBeCloseTo(2 + 10 + 2 + 10, 9);
    expect(behind(201)).toBeCloseTo(2 + 20 + 2 + 10, 9);
  });

  test('on a shared bus, too', () => {
    const shared = { ...round, bus: { ...round.bus, shared: 1 } };
    const last = (scattered: number): number => new Network(shared, 2).arrive(0, 1, LONG, scattered);
    expect(last(51)).toBeCloseTo(last(1), 9);
    expect(last(201)).toBeCloseTo(2 + 20, 9);
  });
});

test('a message of one packet pays for its entries at both ends', () => {
  // 200 further entries: 1 + 0.5 + 20 until it leaves, 1.5 on its way, 2 + 20 at the other end.
  expectTimes(run(201, 201, 1000), [23, 21, 45]);
  // Spread over ten packets, those of the sender and those of the receiver overlap.
  expect(run(201, 201, 1000)[2]).toBeGreaterThan(run(201, 201, LONG)[2]);
});

test('entries without bytes take their time', () => {
  const network = new Network(round, 2);
  expect(network.depart(0, 0, 1, 0, 11)).toBeCloseTo(1 + 0.5 + 1 + 0.3 + 0.2, 9);
  expect(network.arrive(0, 1, 0, 11)).toBeCloseTo(2 + 1, 9);
});
