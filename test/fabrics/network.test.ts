/** What messages wait for on a modelled fabric, where they meet others. */
import { describe, expect, test } from 'vitest';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { Network } from '../../src/providers/modelled/network.ts';

const LONG = 2 ** 20;

describe('a message of one packet', () => {
  const fabric = loadFabric('infinihost-64');
  const packet = fabric.adapter.packet * fabric.link.outGap;
  /** When a message of `bytes` from rank 0 comes to rank 1, with and without a long one before it. */
  const arrivals = (bytes: number): readonly [alone: number, behind: number] => {
    const [quiet, busy] = [new Network(fabric, 2), new Network(fabric, 2)];
    busy.depart(0, 0, 1, LONG, 1);
    return [quiet.depart(0, 0, 1, bytes, 0), busy.depart(0, 0, 1, bytes, 0)];
  };

  test('waits for a packet of a longer one, not for all of it', () => {
    const [alone, behind] = arrivals(16);
    expect(behind - alone).toBeCloseTo(packet);
  });

  test('waits for others of one packet', () => {
    const network = new Network(fabric, 2);
    const [first, second] = [network.depart(0, 0, 1, 16, 0), network.depart(0, 0, 1, 16, 0)];
    expect(second - first).toBeCloseTo(fabric.adapter.send + 16 * fabric.link.outGap);
  });

  test('delays a longer one', () => {
    const network = new Network(fabric, 2);
    const alone = network.freeToSend(0, LONG);
    network.depart(0, 0, 1, LONG, 1);
    const long = network.freeToSend(0, LONG) - alone;
    network.depart(0, 0, 1, 16, 0);
    expect(network.freeToSend(0, LONG) - alone).toBeGreaterThan(long);
  });

  test('that is two packets waits for all of a longer one', () => {
    const [alone, behind] = arrivals(2 * fabric.adapter.packet);
    expect(behind - alone).toBeGreaterThan(LONG * fabric.link.outGap);
  });
});

describe('a bus for both ways', () => {
  const fabric = loadFabric('infinihost-pci-x');
  const { bus, link } = fabric;
  const lastByte = (network: Network, from: number, to: number): number =>
    network.arrive(network.depart(0, from, to, LONG, 1), to, LONG);

  test('is taken packet by packet: messages that meet there are there when it has moved both', () => {
    const alone = lastByte(new Network(fabric, 2), 0, 1);
    expect(alone).toBeLessThan(LONG * bus.readGap + 15);
    const network = new Network(fabric, 2);
    const both = [network.depart(0, 0, 1, LONG, 1), network.depart(0, 1, 0, LONG, 1)];
    for (const [i, came] of both.entries()) {
      const last = network.arrive(came, 1 - i, LONG);
      expect(last).toBeGreaterThan(LONG * (bus.readGap + bus.writeGap));
      expect(last).toBeLessThan(LONG * (bus.readGap + bus.writeGap) + 15);
    }
  });

  test('is none where each way has lanes of its own', () => {
    const express = new Network({ ...fabric, bus: { ...bus, shared: 0 } }, 2);
    const both = [express.depart(0, 0, 1, LONG, 1), express.depart(0, 1, 0, LONG, 1)];
    for (const [i, came] of both.entries())
      expect(express.arrive(came, 1 - i, LONG)).toBeLessThan(LONG * Math.max(bus.readGap, link.outGap) + 15);
  });
});
