/**
 * Looks of a task that find nothing. The other ranks are tasks of the same thread: while one task asks again and again
 * whether something has come, and awaits nothing, nothing happens on the fabric, so it would ask for ever. It gets an
 * error instead.
 *
 * Looks are counted from one event of the fabric to the next. A look takes a tenth of a microsecond or more, so the
 * error comes within a second; a program that looks once at each of so many requests at one time has other troubles.
 */
import { RmaError } from '../errors.ts';
import type { Simulator } from '../providers/modelled/simulator.ts';

const MOST_LOOKS = 1_000_000;

export class VainLooks {
  readonly #simulator: Simulator;
  /** Events that had taken place at the last look, and looks since then. */
  #happened = -1;
  #looks = 0;

  constructor(simulator: Simulator) {
    this.#simulator = simulator;
  }

  /** @param describe what was looked at. Errors: `ERR_RMA_WOULD_DEADLOCK` */
  note(describe: () => string): void {
    const { happened } = this.#simulator;
    if (happened !== this.#happened) {
      this.#happened = happened;
      this.#looks = 0;
    }
    if (++this.#looks < MOST_LOOKS) return;
    this.#looks = 0;
    throw new RmaError(
      'ERR_RMA_WOULD_DEADLOCK',
      `${describe()}: this rank has looked ${MOST_LOOKS} times, and no virtual time has passed meanwhile, since the ` +
        'other ranks are tasks of the same thread; await something between two looks, such as world.compute(1), or ' +
        'call what waits instead',
    );
  }
}
