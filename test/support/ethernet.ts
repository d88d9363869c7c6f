/** What tests of an Ethernet are made of: time without ranks, frames that note what becomes of them, chosen draws. */
import { CollisionBus } from '../../src/providers/modelled/ethernet/collision-bus.ts';
import type { EthernetNumbers } from '../../src/providers/modelled/ethernet/ethernet-numbers.ts';
import { EthernetSwitch } from '../../src/providers/modelled/ethernet/ethernet-switch.ts';
import {
  type Draws,
  type Frame,
  type Medium,
  type MediumFaults,
  MediumStatistics,
  Reception,
} from '../../src/providers/modelled/ethernet/medium.ts';
import type { Written } from '../../src/providers/modelled/ethernet/tcp-sender.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { Random } from '../../src/providers/modelled/random.ts';
import { Simulator } from '../../src/providers/modelled/simulator.ts';

export const bus10 = loadFabric('ethernet-10-bus') as Required<ReturnType<typeof loadFabric>>;
export const switch100 = loadFabric('ethernet-100-switch') as Required<ReturnType<typeof loadFabric>>;

/** The bus of 10 Mbit/s, without the time that stack and driver take. */
export const BARE: EthernetNumbers = { ...bus10.ethernet, driver: 0 };

export const NO_FAULTS: MediumFaults = { drawLoss: () => false, drawDatagramLoss: () => false, drawDelay: () => 0 };

/** Draws what it was given, then fails. */
export function scripted(...fractions: readonly number[]): Draws {
  let next = 0;
  return {
    fraction: () => {
      if (next === fractions.length) throw new Error('no further draw was expected');
      return fractions[next++];
    },
  };
}

/** Lets everything happen until `enough` says so, and nothing after that. */
export function runAll(simulator: Simulator, enough: () => boolean = () => false): void {
  simulator.drain(enough);
  simulator.stop();
}

export function makeBus(
  stations: number,
  numbers: EthernetNumbers = BARE,
  random: Draws = new Random(1, 3),
  faults: MediumFaults = NO_FAULTS,
): { simulator: Simulator; bus: CollisionBus } {
  const simulator = new Simulator(stations, 1, false);
  const reception = new Reception(simulator, faults, numbers, stations, true);
  return { simulator, bus: new CollisionBus(simulator, numbers, random, reception, stations) };
}

export function makeSwitch(
  stations: number,
  numbers: EthernetNumbers,
  faults: MediumFaults = NO_FAULTS,
): { simulator: Simulator; medium: EthernetSwitch } {
  const simulator = new Simulator(stations, 1, false);
  const reception = new Reception(simulator, faults, numbers, stations, false);
  return { simulator, medium: new EthernetSwitch(simulator, numbers, reception, stations) };
}

/** A frame that notes when it has left, where and when it has come, and where it was lost. */
export class NotedFrame implements Frame {
  readonly from: number;
  readonly to: number | readonly number[];
  readonly bytes: number;
  leftAt = Number.NaN;
  readonly came: [station: number, time: number][] = [];
  readonly lostAt: [station: number, time: number][] = [];
  readonly #simulator: Simulator;

  constructor(simulator: Simulator, from: number, to: number | readonly number[], bytes = 1500) {
    this.#simulator = simulator;
    this.from = from;
    this.to = to;
    this.bytes = bytes;
  }

  left(): void {
    this.leftAt = this.#simulator.now;
  }

  arrived(station: number): void {
    this.came.push([station, this.#simulator.now]);
  }

  lost(station: number): void {
    this.lostAt.push([station, this.#simulator.now]);
  }
}

/** Carries each frame in `time` microseconds, whatever else goes on, and loses those that it is told to. */
export class Wire implements Medium {
  readonly statistics = new MediumStatistics();
  readonly carried: { readonly frame: Frame; readonly time: number }[] = [];
  readonly #simulator: Simulator;
  readonly #time: number;
  readonly #loses: (frame: Frame, number: number) => boolean;

  constructor(simulator: Simulator, time: number, loses: (frame: Frame, number: number) => boolean = () => false) {
    this.#simulator = simulator;
    this.#time = time;
    this.#loses = loses;
  }

  carry(frame: Frame): void {
    const number = this.carried.push({ frame, time: this.#simulator.now });
    const to = frame.to as number;
    const happen = this.#loses(frame, number - 1) ? () => frame.lost(to) : () => frame.arrived(to);
    this.#simulator.at(this.#simulator.now + this.#time, to, { happen });
  }
}

/** A write that notes when it was delivered, acknowledged, and given up. */
export class NotedWrite implements Written {
  deliveredAt = Number.NaN;
  acknowledgedAt = Number.NaN;
  failedAt = Number.NaN;
  readonly #simulator: Simulator;
  readonly #then: (() => void) | undefined;

  constructor(simulator: Simulator, then?: () => void) {
    this.#simulator = simulator;
    this.#then = then;
  }

  delivered(): void {
    this.deliveredAt = this.#simulator.now;
    this.#then?.();
  }

  acknowledged(): void {
    this.acknowledgedAt = this.#simulator.now;
  }

  failed(): void {
    this.failedAt = this.#simulator.now;
  }
}

/** Something happens at a time, by a station. */
export function at(simulator: Simulator, time: number, station: number, happen: () => void): void {
  simulator.at(time, station, { happen });
}
