/**
 * Where a context of a modelled fabric sleeps if no task of the fabric uses it: in a program that drives queue pairs
 * itself. Tasks wait in another way (`Cpu`), without it.
 *
 * Meanwhile, the events of the fabric happen as fast as they can: virtual time goes on as far as there are events. The
 * longest time to sleep is a time of the real clock.
 */
import type { Parking } from '../../verbs/device.ts';
import { LocalParking } from '../emulator/local-fabric.ts';
import type { Simulator } from './simulator.ts';

export class ModelledParking extends LocalParking implements Parking {
  readonly #simulator: Simulator;

  constructor(simulator: Simulator) {
    super();
    this.#simulator = simulator;
  }

  override sleepSync(token: number, timeoutMs: number): void {
    this.#simulator.drain(() => this.arm() !== token);
    super.sleepSync(token, timeoutMs);
  }
}
