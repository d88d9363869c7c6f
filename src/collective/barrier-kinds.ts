/**
 * The family of barriers: how each goes, what it needs of a device, and how the ranks of a communicator agree on one.
 * What asks for a barrier (communicators, windows by requests) takes it from here.
 *
 * Where memory is loaded and stored, what a rank has stored before it enters is seen by all that have left, whichever
 * it is: words are stored and loaded with sequential consistency, and the emulator publishes what it moves behind all
 * stores before (`publish`), and looks at rings and awaited words by `Atomics.load`.
 */
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { AUTOMATIC_BARRIER, type BarrierChoice } from '../job/barrier-choice.ts';
import type { Job } from '../job/job.ts';
import type { Channel } from '../message/message-channel.ts';
import { unknownName } from '../options.ts';
import type { AdapterBarrier } from '../verbs/adapter-barrier.ts';
import type { Capabilities } from '../verbs/device.ts';
import { algorithmBits, barrierSchedule, isOneAlgorithm } from './barrier-algorithms.ts';
import { FirmwareBarrier } from './firmware-barrier.ts';
import { MessageBarrier } from './message-barrier.ts';
import { WaitingBarrier } from './waiting-barrier.ts';
import type { BarrierState } from './word-barrier.ts';

/** What a barrier without words of memory is made of. */
export interface BarrierMaterials {
  readonly job: Job;
  /** Its number names the group. Nothing else goes through it. */
  readonly channel: Channel & { readonly space: number };
  /** The contexts of all ranks. */
  readonly members: readonly number[];
  /** Who tells whom, where adapters do. */
  readonly algorithm: string;
  /** Is given what gives back what was made. */
  undo(release: () => void): void;
  /** Throws if this rank has failed before: then it only takes part, so that the others need not wait for it. */
  mayBegin(): void;
}

/** What one of the family says of itself. */
interface BarrierScheme<N extends string = string> {
  /** Its value of the option `barrier`. */
  readonly name: N;
  /** Whether a device has what it needs; every one has if it is not said. */
  offeredBy?(capabilities: Capabilities): boolean;
  /** Adapters tell each other that their ranks have come, by an algorithm, while these compute. */
  readonly byAdapters?: true;
  /**
   * Collective: makes it; `undefined` if another rank could not. Absent if it is words where there are some, and
   * messages elsewhere.
   */
  setUp?(materials: BarrierMaterials): Generator<void, BarrierState | undefined>;
}

function scheme<const N extends string>(one: BarrierScheme<N>): BarrierScheme<N> {
  return one;
}

/** Their order gives the bits by which ranks compare their wishes. */
const BARRIERS = [
  scheme({ name: 'auto' }),
  // Memory that all ranks load and store (word-barrier.ts).
  scheme({ name: 'words', offeredBy: ({ loadStore }) => loadStore }),
  // Empty messages, by the ranks' processors.
  scheme({ name: 'messages' }),
  // Writes behind requests that wait, by adapters.
  scheme({
    name: 'waits',
    offeredBy: ({ waits }) => waits,
    byAdapters: true,
    setUp: ({ job, channel, members, algorithm, undo, mayBegin }) =>
      WaitingBarrier.setUp(job.context, job.pd, channel, members, algorithm, undo, mayBegin),
  }),
  // The adapters' own protocol.
  scheme({
    name: 'adapter',
    offeredBy: ({ barrier }) => barrier,
    byAdapters: true,
    setUp({ job, channel, members, algorithm, undo, mayBegin }) {
      const { rank, size, space } = channel;
      const { nackAfter } = job.barrier;
      const schedule = barrierSchedule(algorithm, rank, size);
      const make = (): AdapterBarrier => {
        mayBegin();
        const barrier = job.context.makeBarrier!({ group: space, members, rank, schedule, nackAfter });
        undo(() => barrier.close());
        return barrier;
      };
      return FirmwareBarrier.setUp(make, schedule, channel, job.tasks !== undefined);
    },
  }),
] as const;

/** How a barrier goes from rank to rank; `auto` is words where memory is loaded and stored, and messages elsewhere. */
export type BarrierKind = (typeof BARRIERS)[number]['name'];

/** The first one is the default. */
export const BARRIER_KINDS: readonly BarrierKind[] = BARRIERS.map(({ name }) => name);

function schemeOf(kind: string): BarrierScheme {
  return BARRIERS.find(({ name }) => name === kind)!;
}

/** Whether adapters tell each other of its barriers, beside all messages. */
export function byAdapters(kind: BarrierKind): boolean {
  return schemeOf(kind).byAdapters === true;
}

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
  if (!BARRIER_KINDS.includes(kind as BarrierKind))
    throw argumentRangeError(`${call}: barrier: ${unknownName(kind, BARRIER_KINDS)}`);
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
  return BARRIER_KINDS.filter((kind) => schemeOf(kind).offeredBy?.(capabilities) !== false);
}

/**
 * What a rank says of itself before the ranks make a barrier: the bitwise OR of what all say tells all of them the
 * same.
 */
export function wishes({ barrier: { kind, algorithm }, oversubscribed, context }: Job): number {
  const { name, offeredBy, byAdapters } = schemeOf(kind);
  const lacks = offeredBy?.(context.capabilities) === false;
  const wish = (oversubscribed ? CROWDED : 0) | bitOf(name as BarrierKind) | (lacks ? LACKS : 0);
  return byAdapters ? wish | (algorithmBits(algorithm) << FIRST_OF_ALGORITHM) : wish;
}

const bitOf = (kind: BarrierKind): number => 1 << (FIRST_KIND + BARRIER_KINDS.indexOf(kind));

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
export interface BarrierWish {
  readonly kind: BarrierKind;
  readonly algorithm: string;
}

/** What was asked for; `undefined` for `auto`, which is a barrier as the communicator's. */
export function barrierWish(kind: BarrierKind, algorithm: string): BarrierWish | undefined {
  return kind === 'auto' ? undefined : { kind, algorithm };
}

/** Whether it needs no words that all ranks load and store. */
export function isWithoutWords(wish: BarrierWish | undefined): wish is BarrierWish {
  return wish !== undefined && wish.kind !== 'words';
}

/**
 * Collective: makes one of the barriers that need no words of memory.
 * @returns `undefined` if another rank could not, which that one says then
 * Errors: `ERR_VERBS`, and what `mayBegin` throws.
 */
export function* makeBarrierWithoutWords(
  kind: BarrierKind,
  materials: BarrierMaterials,
): Generator<void, BarrierState | undefined> {
  const made = schemeOf(kind).setUp?.(materials);
  return made === undefined ? new MessageBarrier(materials.channel) : yield* made;
}
