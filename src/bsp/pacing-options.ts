/** The option `pacing` of a BSP computation: what it may be, what it means, and whether the processes give the same. */
import type { Communicator } from '../collective/communicator.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { refuseUnknown, unknownName } from '../options.ts';
import { CHUNK_BYTES } from './chunks.ts';
import { FixedPace, PacedByRule, PacedByTrial, type Pacer } from './delivery/pace-choices.ts';

/** Slots that are given. */
export interface PacingSlots {
  /** Microseconds of a slot; 0: packets leave as soon as they can. */
  readonly slot: number;
  /** Slots of a cycle: a number, or as many as processes send in the superstep (default). */
  readonly Q?: number | 'senders';
  /** Bytes of a packet at most, from 64 on (default: 1418, or what the network takes in one piece if that is less). */
  readonly packet?: number;
}

/** How packets are paced; see `BspOptions.pacing`. */
export type PacingOption = 'none' | 'slots' | 'auto' | PacingSlots;

const WORDS = ['none', 'slots', 'auto'];

/** What was given, and defaults for the rest. */
export interface ReadPacing {
  readonly how: 'slots' | 'auto' | 'given';
  readonly slot: number;
  /** 0: as many as processes send. */
  readonly slots: number;
  readonly packet: number;
}

/** Of the paper: with headers of TCP and IP it is what Ethernet carries in a frame. */
const PACKET = 1418;
const LEAST_PACKET = 64;
/** Microseconds: a quarter of an hour. */
const LONGEST_SLOT = 1e9;
const MOST_SLOTS = 2 ** 31 - 1;
const NAMES = ['slot', 'Q', 'packet'] as const;

/** `undefined`: packets are not paced. Errors: `TypeError`, `RangeError`. */
export function readPacing(given: unknown, comm: Communicator): ReadPacing | undefined {
  if (given === undefined || given === 'none') return undefined;
  const most = mostBytes(comm);
  const packet = Math.min(PACKET, most);
  if (given === 'slots' || given === 'auto') return { how: given, slot: 0, slots: 0, packet };
  if (typeof given === 'string') throw argumentTypeError(`bsp.begin: pacing: ${unknownName(given, WORDS)}`);
  if (typeof given !== 'object' || given === null) {
    throw argumentTypeError(
      `bsp.begin: pacing must be 'none', 'slots', 'auto' or { slot, Q, packet }, not ${show(given)}`,
    );
  }
  refuseUnknown('bsp.begin', 'pacing', given, NAMES);
  const read = reading('bsp.begin', 'pacing', () => NAMES.map((name) => (given as Record<string, unknown>)[name]));
  const [slot, Q = 'senders', bytes = packet] = read;
  const slots = Q === 'senders' ? 0 : numberIn('Q', Q, 1, MOST_SLOTS, "slots, or 'senders'", true);
  return {
    how: 'given',
    slot: numberIn('slot', slot, 0, LONGEST_SLOT, 'microseconds', false),
    slots,
    packet: numberIn('packet', bytes, LEAST_PACKET, most, 'bytes here', true),
  };
}

/** What the network takes in one piece, as far as a chunk has it. */
function mostBytes({ job }: Communicator): number {
  const { mtu, maxMsgSize } = job.context.device;
  return Math.min(CHUNK_BYTES, mtu > 0 ? mtu : maxMsgSize);
}

function numberIn(name: string, value: unknown, least: number, most: number, what: string, isWhole: boolean): number {
  if (typeof value !== 'number') {
    throw argumentTypeError(`bsp.begin: pacing: ${name} must be a number of ${what}, not ${show(value)}`);
  }
  if (value >= least && value <= most && (!isWhole || Number.isInteger(value))) return value;
  throw argumentRangeError(
    `bsp.begin: pacing: ${name} must be ${isWhole ? 'a whole number ' : ''}from ${least} to ${most} ${what}, ` +
      `not ${show(value)}`,
  );
}

/** @param mayBeWhole the network takes whole chunks, too */
export function pacerOf({ how, slot, slots }: ReadPacing, mayBeWhole: boolean): Pacer {
  if (how === 'auto') return new PacedByTrial(mayBeWhole);
  if (how === 'slots') return new PacedByRule();
  return new FixedPace(slot, slots === 0 ? undefined : slots);
}

const HOW = [undefined, 'slots', 'auto', 'given'] as const;

/** A number for each way to give it, and how messages call that. */
export function numberOfPacing(pacing: ReadPacing | undefined): number {
  return HOW.indexOf(pacing?.how);
}

export function wordOfPacing(number: number): string {
  return HOW[number] === 'given' ? '{ slot }' : (HOW[number] ?? 'none');
}

/**
 * Collective, if all give a pacing: compares its numbers. Computations without it tell each other nothing of it.
 * Errors: `ERR_ARG` at all ranks.
 */
export function* comparePacing(comm: Communicator, { slot, slots, packet }: ReadPacing): Generator<void, void> {
  const mine = Float64Array.of(slot, slots, packet);
  const all = yield* comm.exchange(mine);
  const word = (i: number, value: number): string => (NAMES[i] === 'Q' && value === 0 ? 'senders' : `${value}`);
  for (let at = 0; at < all.length; at++) {
    const i = at % mine.length;
    if (all[at] === mine[i]) continue;
    throw new RmaError(
      'ERR_ARG',
      `bsp.begin: all ranks must give the same options, but rank ${Math.floor(at / mine.length)} gave pacing with ` +
        `${NAMES[i]} ${word(i, all[at])}, this rank ${word(i, mine[i])}`,
    );
  }
}
