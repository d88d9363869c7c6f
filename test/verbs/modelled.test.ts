/**
 * The modelled fabric, with all devices driven by this thread: virtual time goes on whenever the test lets the event
 * loop turn. Once in the order of the ranks, and under schedules drawn from a seed: with delays, so that messages of
 * different queue pairs overtake each other, with losses, and with writes that are complete before they are in memory.
 */
import { loadFabric } from '../../src/fabrics/index.ts';
import { type FaultOptions, Faults } from '../../src/providers/modelled/faults.ts';
import { ModelledFabric } from '../../src/providers/modelled/modelled-context.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';
import type { Context } from '../../src/verbs/device.ts';
import { seedOfRun } from '../support/ranks.ts';
import type { Harness } from './conformance/harness.ts';
import { verbsConformance } from './conformance/index.ts';

class Modelled implements Harness {
  readonly #fabric: string;
  readonly #seed: number;
  readonly #faults: FaultOptions;
  readonly #waits: boolean;
  #simulator!: Simulator;
  readonly clock = {
    now: (): number => this.#simulator.now / 1000,
    pass: (milliseconds: number, poll: () => void): void => {
      const end = this.#simulator.now + 1000 * milliseconds;
      let reached = false;
      this.#simulator.at(end, 0, {
        happen: () => {
          reached = true;
        },
      });
      poll();
      this.#simulator.drain(() => reached);
    },
  };

  /** @param waits the adapter's requests can wait */
  constructor(fabric: string, seed: number, faults: FaultOptions, waits = true) {
    this.#fabric = fabric;
    this.#seed = seed;
    this.#faults = faults;
    this.#waits = waits;
  }

  open(count: number): Context[] {
    this.#simulator = new Simulator(count, this.#seed, Object.keys(this.#faults).length > 0);
    const faults = new Faults('test', this.#faults, count, this.#seed);
    const fabric = loadFabric(this.#fabric);
    const { adapter } = fabric;
    const whole = this.#waits ? { ...fabric, adapter: { ...adapter, step: 0.7 } } : fabric;
    const shared = new ModelledFabric(whole, this.#simulator, faults, count);
    return Array.from({ length: count }, (_, member) => shared.open(member));
  }
}

const seed = seedOfRun();
await verbsConformance('the modelled fabric', new Modelled('infinihost-64', 1, {}, false));
await verbsConformance(
  'the modelled fabric, ranks on one node, delays',
  new Modelled('connectx-16-cores', seed, { delay: 20 }),
);
await verbsConformance('the modelled fabric, losses', new Modelled('infinihost-64', seed, { delay: 2, loss: 0.02 }));
await verbsConformance(
  'the modelled fabric, losses, writes that are placed late',
  new Modelled('infinihost-64', seed, { delay: 2, loss: 0.02, placement: 20 }),
);
await verbsConformance('a bus of 10 Mbit/s', new Modelled('ethernet-10-bus', 1, {}, false));
await verbsConformance(
  'a bus of 100 Mbit/s, losses, delays, writes that are placed late',
  new Modelled('ethernet-100-bus', seed, { delay: 100, loss: 0.02, placement: 200 }),
);
await verbsConformance(
  'a switch of 100 Mbit/s, frames that overtake each other, losses',
  new Modelled('ethernet-100-switch', seed, { delay: 500, loss: 0.02 }),
);
