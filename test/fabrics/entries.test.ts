/** What scatter and gather entries cost on a modelled fabric: each further one takes its adapter `adapter.entry`. */
import { describe, expect, test } from 'vitest';
import { loadFabric } from '../../src/fabrics/index.ts';
import { Faults } from '../../src/providers/modelled/faults.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { connect, End, post } from '../verbs/conformance/harness.ts';

const ENTRIES = 8;
const BYTES = 512;

/** Microseconds until a request of one end is complete there, whose memory is so many entries. */
function took(kind: 'read' | 'write', entries: number): number {
  const fabric = loadFabric('infinihost-64');
  const simulator = new Simulator(2, 1, false);
  const shared = new ModelledFabric(fabric, simulator, new Faults('test', {}, 2, 1), 2);
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

describe('further entries', () => {
  const { entry } = loadFabric('infinihost-64').adapter;

  test('that a write gathers', () => {
    expect(took('write', ENTRIES) - took('write', 1)).toBeCloseTo((ENTRIES - 1) * entry, 6);
  });

  test('that the answer of a read is scattered to', () => {
    expect(took('read', ENTRIES) - took('read', 1)).toBeCloseTo((ENTRIES - 1) * entry, 6);
  });
});
