/** What goes wrong on a modelled fabric, or only differently from one run to the next: drawn from the seed. */
import { argumentRangeError, argumentTypeError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import { Random } from './random.ts';

export interface FaultOptions {
  /** Messages take up to so many microseconds longer, at random. Those of one queue pair keep their order; others overtake each other. */
  readonly delay?: number;
  /**
   * The data of writes come into memory up to so many microseconds after their completion, at random: InfiniBand lets a processor see them only when something later of the same
   * connection has come. Reads and atomics find them, whatever the connection.
   */
  readonly placement?: number;
  /** The share of messages that are lost, 0 … 1. They are sent again after the fabric's `retry.timeout`. */
  readonly loss?: number;
  /** Ranks that die, and when: virtual microseconds. */
  readonly deaths?: readonly { readonly rank: number; readonly time: number }[];
}

const KNOWN = ['delay', 'placement', 'loss', 'deaths'] as const satisfies readonly (keyof FaultOptions)[];

export class Faults {
  readonly delay: number;
  readonly placement: number;
  readonly loss: number;
  readonly deaths: readonly { readonly rank: number; readonly time: number }[];
  readonly #random: Random;

  constructor(call: string, options: FaultOptions | undefined, ranks: number, seed: number) {
    const { delay = 0, placement = 0, loss = 0, deaths = [] } = options === undefined ? {} : read(call, options);
    for (const [name, value, most] of [
      ['delay', delay, 1e9],
      ['placement', placement, 1e9],
      ['loss', loss, 1],
    ] as const) {
      if (typeof value !== 'number')
        throw argumentTypeError(`${call}: faults.${name} must be a number, not ${show(value)}`);
      if (!(value >= 0 && value <= most)) {
        throw argumentRangeError(`${call}: faults.${name} must be from 0 to ${most}, not ${show(value)}`);
      }
    }
    if (!Array.isArray(deaths)) throw argumentTypeError(`${call}: faults.deaths must be an array, not ${show(deaths)}`);
    for (const { rank, time } of deaths) {
      if (!Number.isInteger(rank) || rank < 0 || rank >= ranks) {
        throw argumentRangeError(`${call}: faults.deaths: ${show(rank)} is no rank of ${ranks}`, 'ERR_RANK');
      }
      if (!(time >= 0 && time < Number.POSITIVE_INFINITY)) {
        throw argumentRangeError(`${call}: faults.deaths: rank ${rank} cannot die at ${show(time)} microseconds`);
      }
    }
    this.delay = delay;
    this.placement = placement;
    this.loss = loss;
    this.deaths = deaths;
    this.#random = new Random(seed, 2);
  }

  /** How much longer the next message takes. */
  drawDelay(): number {
    return this.delay === 0 ? 0 : this.delay * this.#random.fraction();
  }

  /** How much later than its completion the next write is in memory. */
  drawPlacement(): number {
    return this.placement * this.#random.fraction();
  }

  /** Whether the next message is lost. */
  drawLoss(): boolean {
    return this.loss > 0 && this.#random.fraction() < this.loss;
  }
}

function read(call: string, options: FaultOptions): FaultOptions {
  if (typeof options !== 'object' || options === null) {
    throw argumentTypeError(`${call}: faults must be an object, not ${show(options)}`);
  }
  refuseUnknown(call, 'faults', options, KNOWN);
  return reading(call, 'faults', () => ({
    ...(options.delay !== undefined && { delay: options.delay }),
    ...(options.placement !== undefined && { placement: options.placement }),
    ...(options.loss !== undefined && { loss: options.loss }),
    ...(options.deaths !== undefined && { deaths: options.deaths.map(({ rank, time }) => ({ rank, time })) }),
  }));
}
