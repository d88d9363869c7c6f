/**
 * The family of barriers: how each goes, what it needs of a device, and how the ranks of a communicator agree on one.
 * What asks for a barrier (communicators, windows by requests) takes it from here.
 *
 *     words      memory that all ranks load and store (word-barrier.ts)
 *     messages   empty messages, by the ranks' processors (message-barrier.ts)
 *     waits      writes behind requests that wait, by adapters (waiting-barrier.ts)
 *     adapter    the adapters' own protocol (firmware-barrier.ts)
 *
 * Where memory is loaded and stored, what a rank has stored before it enters is seen by all that have left, whichever
 * it is: words are stored and loaded with sequential consistency, and the emulator publishes what it moves behind all
 * stores before (`publish`), and looks at rings and awaited words by `Atomics.load`.
 */
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { AUTOMATIC_BARRIER, type BarrierChoice, type BarrierKind } from '../job/barrier-choice.ts';
import type { Job } from '../job/job.ts';
import type { Channel } from '../message/message-channel.ts';
import { unknownName } from '../options.ts';
import type { Capabilities } from '../verbs/device.ts';
import { algorithmBits, barrierSchedule, isOneAlgorithm } from './barrier-algorithms.ts';
import { FirmwareBarrier } from './firmware-barrier.ts';
import { MessageBarrier } from './message-barrier.ts';
import { WaitingBarrier } from './waiting-barrier.ts';
import type { BarrierState } from './word-barrier.ts';

/** Options that choose the barriers of a job. All ranks must give the same. */
export interface BarrierOptions {
  /**
   * How barriers go: `'words'` through memory that all ranks load and store, `'messages'` by the ranks' processors,
   * `'waits'` by adapters whose requests wait for words of memory (`capabilities.waits`), `'adapter'` by a protocol of
   * the adapters (`capabilities.barrier`). With the last two, a barrier goes on while its ranks compute. What a device
   * does not offer becomes `'messages'`. Default `'auto'`: words where memory is mapped, and messages elsewhere.
   */
  readonly barrier?: BarrierKind;
  /**
   * Who tells whom in barriers of kind `'waits'` and `'adapter'`: `'dissemination'` (default), `'pairwise'`, or
   * `'gather-broadcast:d'`, a tree whose ranks have 2 to 32 children.
   */
  readonly barrierAlgorithm?: string;
  /**
   * Milliseconds after which an adapter asks for a message of a barrier of kind `'adapter'` that has not come (default:
   * 10). More than ranks usually come apart: a message that is late is asked for in vain.
   */
  readonly barrierNackAfter?: number;
}

export const BARRIER_OPTIONS = [
  'barrier',
  'barrierAlgorithm',
  'barrierNackAfter',
] as const satisfies readonly (keyof BarrierOptions)[];

/** The first one is the default. */
export const BARRIER_KINDS = [
  'auto',
  'words',
  'messages',
  'waits',
  'adapter',
] as const satisfies readonly BarrierKind[];
/** A microsecond, in which no adapter sends one, and an hour. */
const LEAST_NACK_AFTER = 0.001;
const MOST_NACK_AFTER = 3_600_000;

/** Reads the options of a call. Errors: `TypeError`, `RangeError`, `ERR_ARG` (the algorithm). */
export function readBarrier(call: string, options: BarrierOptions): BarrierChoice {
  const given = reading(call, 'the options', () => ({
    kind: options.barrier ?? AUTOMATIC_BARRIER.kind,
    algorithm: options.barrierAlgorithm ?? AUTOMATIC_BARRIER.algorithm,
    nackAfter: options.barrierNackAfter ?? AUTOMATIC_BARRIER.nackAfter,
  }));
  const { kind, algorithm, nackAfter } = given;
  if (typeof kind !== 'string') throw argumentTypeError(`${call}: barrier must be a string, not ${show(kind)}`);
  if (!BARRIER_KINDS.includes(kind)) throw argumentRangeError(`${call}: barrier: ${unknownName(kind, BARRIER_KINDS)}`);
  if (typeof algorithm !== 'string')
    throw argumentTypeError(`${call}: barrierAlgorithm must be a string, not ${show(algorithm)}`);
  barrierSchedule(algorithm, 0, 1);
  if (typeof nackAfter !== 'number')
    throw argumentTypeError(`${call}: barrierNackAfter must be a number, not ${show(nackAfter)}`);
  if (!(nackAfter >= LEAST_NACK_AFTER && nackAfter <= MOST_NACK_AFTER)) {
    throw argumentRangeError(
      `${call}: barrierNackAfter must be from ${LEAST_NACK_AFTER} to ${MOST_NACK_AFTER} milliseconds, ` +
        `not ${show(nackAfter)}`,
    );
  }
  return given;
}

/** There are more ranks than cores. The bits above are those of kinds and algorithms. */
const CROWDED = 1;
const FIRST_KIND = 1;
/** This rank's device does not offer what its kind needs. */
const LACKS = 1 << (FIRST_KIND + BARRIER_KINDS.length);
const FIRST_OF_ALGORITHM = FIRST_KIND + BARRIER_KINDS.length + 1;

/** The barriers that a device can carry out. */
export function barriersOf(capabilities: Capabilities): readonly BarrierKind[] {
  return BARRIER_KINDS.filter((kind) => offers(capabilities, kind));
}

function offers({ loadStore, waits, barrier }: Capabilities, kind: BarrierKind): boolean {
  if (kind === 'words') return loadStore;
  return kind === 'waits' ? waits : kind === 'adapter' ? barrier : true;
}

/**
 * What a rank says of itself before the ranks make a barrier: the bitwise OR of what all say tells all of them the
 * same.
 */
export function wishes({ barrier: { kind, algorithm }, oversubscribed, context }: Job): number {
  const wish = (oversubscribed ? CROWDED : 0) | bitOf(kind) | (offers(context.capabilities, kind) ? 0 : LACKS);
  return byAdapters(kind) ? wish | (algorithmBits(algorithm) << FIRST_OF_ALGORITHM) : wish;
}

const bitOf = (kind: BarrierKind): number => 1 << (FIRST_KIND + BARRIER_KINDS.indexOf(kind));
const byAdapters = (kind: BarrierKind): boolean => kind === 'waits' || kind === 'adapter';

/** What the ranks have agreed on. */
export interface AgreedBarrier {
  /** The choice of all, or `messages` if the device of one does not offer that. */
  readonly kind: BarrierKind;
  /** Some rank has others on its core. */
  readonly crowded: boolean;
}

/**
 * @param all the bitwise OR of what the ranks have said
 * @param name of the communicator
 * Errors: `ERR_COMM` if they want different ones: at all ranks, but those that another one's end has reached before.
 */
export function agreedOf(all: number, name: string): AgreedBarrier {
  const wanted = BARRIER_KINDS.filter((kind) => (all & bitOf(kind)) !== 0);
  if (wanted.length > 1 || !isOneAlgorithm(all >>> FIRST_OF_ALGORITHM)) {
    const kinds = wanted.length > 1 ? `barriers (${wanted.join(', ')})` : `algorithms of their barrier '${wanted[0]}'`;
    throw new RmaError(
      'ERR_COMM',
      `${name}: its ranks want different ${kinds}; give all of them the same barrier and barrierAlgorithm`,
    );
  }
  return { kind: (all & LACKS) !== 0 ? 'messages' : wanted[0], crowded: (all & CROWDED) !== 0 };
}

/** A barrier of its own that something wants, other than the communicator's. */
export type BarrierWish = Pick<BarrierChoice, 'kind' | 'algorithm'>;

/** What was asked for; `undefined` for `auto`, which is a barrier as the communicator's. */
export function barrierWish(kind: BarrierKind, algorithm: string): BarrierWish | undefined {
  return kind === 'auto' ? undefined : { kind, algorithm };
}

/** Whether it needs no words that all ranks load and store. */
export function isWithoutWords(wish: BarrierWish | undefined): wish is BarrierWish {
  return wish !== undefined && wish.kind !== 'words';
}

/** What a barrier without words of memory is made of. */
export interface BarrierMaterials {
  readonly job: Job;
  /** Its number names the group. Nothing else goes through it. */
  readonly channel: Channel & { readonly space: number };
  /** The contexts of all ranks. */
  readonly members: readonly number[];
  /** Is given what gives back what was made. */
  undo(release: () => void): void;
}

/**
 * Collective: makes one of the barriers that need no words of memory. Errors: `ERR_VERBS`.
 * @param algorithm if it is another one than the job's
 */
export function* makeBarrierWithoutWords(
  kind: BarrierKind,
  materials: BarrierMaterials,
  algorithm = materials.job.barrier.algorithm,
): Generator<void, BarrierState> {
  const { job, channel, members, undo } = materials;
  const { rank, size } = channel;
  const { nackAfter } = job.barrier;
  if (kind === 'waits') return yield* WaitingBarrier.setUp(job.context, job.pd, channel, members, algorithm, undo);
  if (kind !== 'adapter') return new MessageBarrier(channel);
  const schedule = barrierSchedule(algorithm, rank, size);
  const barrier = job.context.makeBarrier!({ group: channel.space, members, rank, schedule, nackAfter });
  undo(() => barrier.close());
  return new FirmwareBarrier(barrier);
}
