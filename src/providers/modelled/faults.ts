/** What goes wrong on a modelled fabric, or merely goes differently from one run to the next: drawn from the seed. */
import { argumentRangeError, argumentTypeError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import { Random } from './random.ts';

/** Faults that `runTasks` injects at random, drawn from its seed. */
export interface FaultOptions {
  /**
   * Delays each message by a random time up to this number of microseconds. Messages of one queue pair stay in order;
   * others can overtake each other.
   */
  readonly delay?: number;
  /**
   * Places the data of writes in memory a random time after their completion, up to this number of microseconds:
   * InfiniBand guarantees that a processor sees them only after a later message of the same connection. Reads and
   * atomics find the data on every connection.
   */
  readonly placement?: number;
  /**
   * Loses this share of messages, 0 … 1. They are sent again after the fabric's `retry.timeout`; datagrams are not, and
   * each copy of one for a multicast group is lost by itself.
   */
  readonly loss?: number;
  /** Loses this share of datagrams, 0 … 1, instead of `loss`: a connection whose messages are lost often breaks. */
  readonly datagramLoss?: number;
  /**
   * Each rank's device refuses (`ERR_VERBS`) to register more than this number of bytes at one time of memory that the
   * library has not allocated: as a real one does where locked memory is limited.
   */
  readonly registration?: number;
  /** Ranks that die, and the time of their death in virtual microseconds. */
  readonly deaths?: readonly {
    /** The rank that dies. */
    readonly rank: number;
    /** Virtual microseconds. */
    readonly time: number;
  }[];
}

const KNOWN = [
  'delay',
  'placement',
  'loss',
  'datagramLoss',
  'registration',
  'deaths',
] as const satisfies readonly (keyof FaultOptions)[];

export class Faults {
  readonly delay: number;
  readonly placement: number;
  readonly loss: number;
  readonly datagramLoss: number;
  /** Bytes of programs' memory that a rank can have registered. */
  readonly registration: number;
  readonly deaths: readonly { readonly rank: number; readonly time: number }[];
  readonly #random: Random;

  constructor(call: string, options: FaultOptions | undefined, ranks: number, seed: number) {
    const given = options === undefined ? {} : read(call, options);
    const {
      delay = 0,
      placement = 0,
      loss = 0,
      datagramLoss = loss,
      registration = Number.POSITIVE_INFINITY,
      deaths = [],
    } = given;
    for (const [name, value, most] of [
      ['delay', delay, 1e9],
      ['placement', placement, 1e9],
      ['loss', loss, 1],
      ['datagramLoss', datagramLoss, 1],
      ['registration', registration, Number.POSITIVE_INFINITY],
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
        throw argumentRangeError(
          `${call}: faults.deaths: ${show(rank)} is not a rank from 0 to ${ranks - 1}`,
          'ERR_RANK',
        );
      }
      if (!(time >= 0 && time < Number.POSITIVE_INFINITY)) {
        throw argumentRangeError(
          `${call}: faults.deaths: the time of rank ${rank} must be 0 or more microseconds, not ${show(time)}`,
        );
      }
    }
    this.delay = delay;
    this.placement = placement;
    this.loss = loss;
    this.datagramLoss = datagramLoss;
    this.registration = registration;
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

  /** Whether the next datagram is. */
  drawDatagramLoss(): boolean {
    return this.datagramLoss > 0 && this.#random.fraction() < this.datagramLoss;
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
    ...(options.datagramLoss !== undefined && { datagramLoss: options.datagramLoss }),
    ...(options.registration !== undefined && { registration: options.registration }),
    ...(options.deaths !== undefined && { deaths: options.deaths.map(({ rank, time }) => ({ rank, time })) }),
  }));
}
