/** Options of a BSP computation: what each may be, its default, and how the processes find out that they differ. */
import {
  algorithmNamed,
  barrierSchedule,
  DEFAULT_ALGORITHM,
  numberOfAlgorithm,
} from '../collective/barrier-algorithms.ts';
import { BARRIER_KINDS, type BarrierKind, barriersOf } from '../collective/barrier-kinds.ts';
import type { Communicator } from '../collective/communicator.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { unknownName } from '../options.ts';
import { readWait, type WaitOptions } from '../wait/operation.ts';
import { COUNT_EXCHANGE_NAMES, type CountExchange, defaultCounts } from './delivery/counts.ts';
import { DELIVERIES, type DeliveryName, goesInDatagrams, goesInPackets } from './delivery/delivery-kinds.ts';
import { numberOfPacing, type PacingOption, type ReadPacing, readPacing, wordOfPacing } from './pacing-options.ts';
import { readUnits, type Units } from './units.ts';

/** Headers of puts. */
const HEADERS = ['compressed', 'plain'] as const;
export type HeaderName = (typeof HEADERS)[number];

/** Options of a BSP computation. All processes give the same. */
export interface BspOptions extends WaitOptions {
  /**
   * How a superstep is delivered; see {@link DeliveryName}. Default: `shared` where processes can load and store each
   * other's memory, `auto` elsewhere.
   */
  readonly delivery?: DeliveryName;
  /** Headers of puts: `compressed` to 4 bytes where the numbers are small (BSP-IB §3.2; default), or `plain`, of 12. */
  readonly headers?: HeaderName;
  /**
   * How the processes learn what comes to them, where memory is not shared. `all-to-all`: each process tells each other
   * one. `tree`: by a reduction, in ⌈log2 p⌉ messages. `multicast`: all tell process 0, which sends all of it in a
   * datagram to all; a process that misses the datagram asks (BSP-IB §3.2). Where the devices have no multicast, that
   * is `tree`; so it is with `delivery: 'datagrams'`, where processes must know how much comes from whom. Default:
   * `tree` from 16 processes on.
   */
  readonly counts?: CountExchange;
  /**
   * How the barrier goes that ends supersteps of `delivery: 'shared'`: one of `BarrierOptions`, as of `init`. `auto`,
   * the default, is through words of memory. Other supersteps end when all counts have come, and have no barrier: then
   * anything but `auto` is refused, as is what the device does not offer.
   */
  readonly barrier?: BarrierKind;
  /** Who tells whom in such a barrier of the kinds `waits` and `adapter`, as of `init` (default: `dissemination`). */
  readonly barrierAlgorithm?: string;
  /**
   * With `counts: 'multicast'` or `delivery: 'datagrams'`, the milliseconds after which a process asks for what has not
   * come (default: 10). With `multicast`, it should be longer than the processes differ in when they come to the end of
   * a superstep; with `datagrams`, longer than the network delays a datagram. A shorter time makes losses cost less.
   */
  readonly nackAfter?: number;
  /**
   * With `delivery: 'packed'` or `'datagrams'`: chunks go in packets, and when these leave (BSP over TCP/IP,
   * docs/references.md). `none`, the default: no packets, or datagrams as soon as they can. `{ slot: 1500 }`: each
   * process sends a packet in each cycle of as many slots as processes send, at the beginning of a slot that it draws;
   * `Q` is another number of slots. `slots`: the same with slots of the time that the network takes for a packet, which
   * unpaced supersteps of the same kind tell first. `auto`: for each kind of supersteps what was best of all that it
   * tried. It helps where processes share a wire, and where a switch has too little room. Errors: `ERR_ARG` with
   * another delivery.
   */
  readonly pacing?: PacingOption;
  /** Keeps what each superstep does, for `Bsp.report` (default: false). Costs some 0.1 µs a superstep. */
  readonly report?: boolean;
  /**
   * The processes lie in units, which have supersteps of their own (`Bsp2`; Martin and Tiskin 1999). `hosts`: those of
   * one host are a unit, on a modelled fabric those of one node. A number: so many processes, one after the other, are.
   */
  readonly units?: Units;
}

/** What was given, and defaults for the rest. */
export interface ReadOptions {
  readonly delivery: DeliveryName;
  readonly headers: HeaderName;
  /** By the number of processes, which units have less of, if nothing was given. */
  readonly counts: CountExchange | undefined;
  readonly barrier: BarrierKind;
  readonly barrierAlgorithm: string;
  readonly report: boolean;
  readonly units: Units | undefined;
  readonly nackAfter: number;
  readonly pacing: ReadPacing | undefined;
  readonly wait: WaitOptions | undefined;
}

interface Compared<T> {
  number(value: T, comm: Communicator): number;
  word(number: number): string;
  /** It can have another value than the default; anywhere if absent. */
  isUseful?(comm: Communicator): boolean;
}

interface Option<T> {
  /** What was given, or the default. Errors: `TypeError`, `RangeError`, `ERR_RMA_SHARED`. */
  read(given: unknown, comm: Communicator): T;
  /** Of an option that all processes give alike: a number for each value, and how messages call it. */
  readonly compared?: Compared<T>;
}

const NACK_AFTER = 10;
/** Milliseconds, as timers count them. */
const MOST_NACK_AFTER = 2 ** 31 - 1;

function oneOf<const T extends string>(name: string, known: readonly T[], initial: (comm: Communicator) => T) {
  return {
    read(given: unknown, comm: Communicator): T {
      const value = given ?? initial(comm);
      if (typeof value !== 'string') throw argumentTypeError(`bsp.begin: ${name} must be a string, not ${show(value)}`);
      if (!(known as readonly string[]).includes(value)) {
        throw argumentTypeError(`bsp.begin: ${name}: ${unknownName(value, known)}`);
      }
      return value as T;
    },
    compared: { number: (value: T) => known.indexOf(value), word: (number: number): string => known[number] },
  };
}

const isShared = ({ job }: Communicator): boolean => job.context.capabilities.loadStore;
const ways = oneOf('delivery', DELIVERIES, (comm) => (isShared(comm) ? 'shared' : 'auto'));
const barriers = oneOf('barrier', BARRIER_KINDS, () => 'auto');
const exchanges = oneOf('counts', COUNT_EXCHANGE_NAMES, ({ size }) => defaultCounts(size));

/** The order is that of reading, of comparing, and of messages. */
const OPTIONS = {
  delivery: {
    ...ways,
    read(given, comm): DeliveryName {
      const name = ways.read(given, comm);
      if (goesInDatagrams(name) && !comm.job.context.capabilities.datagrams) {
        throw new RmaError(
          'ERR_ARG',
          `bsp.begin: delivery: '${name}' needs a device with datagrams, and this one has none; use 'packed'`,
        );
      }
      if (name !== 'shared' || isShared(comm)) return name;
      throw new RmaError(
        'ERR_RMA_SHARED',
        "bsp.begin: delivery: 'shared' needs processes that load and store each other's memory, and " +
          "these do not; use 'packed'",
      );
    },
  },
  headers: oneOf('headers', HEADERS, () => HEADERS[0]),
  counts: {
    read: (given, comm) => (given === undefined ? undefined : exchanges.read(given, comm)),
    compared: {
      number: (counts, { size }) => exchanges.compared.number(counts ?? defaultCounts(size)),
      word: exchanges.compared.word,
    },
  },
  barrier: { ...barriers, compared: { ...barriers.compared, isUseful: isShared } },
  barrierAlgorithm: {
    read(given): string {
      const value = given ?? DEFAULT_ALGORITHM;
      if (typeof value !== 'string')
        throw argumentTypeError(`bsp.begin: barrierAlgorithm must be a string, not ${show(value)}`);
      barrierSchedule(value, 0, 1);
      return value;
    },
    compared: { number: (value) => numberOfAlgorithm(value)!, word: algorithmNamed, isUseful: isShared },
  },
  report: {
    read(given): boolean {
      const value = given ?? false;
      if (typeof value === 'boolean') return value;
      throw argumentTypeError(`bsp.begin: report must be true or false, not ${show(given)}`);
    },
    compared: { number: Number, word: (number) => `${number === 1}` },
  },
  units: {
    read: readUnits,
    compared: {
      number: (units) => (units === undefined ? 0 : units === 'hosts' ? -1 : units),
      word: (number) => (number < 0 ? 'hosts' : number === 0 ? 'none' : `${number}`),
    },
  },
  nackAfter: {
    read(given): number {
      const value = given ?? NACK_AFTER;
      if (typeof value === 'number' && value >= 0 && value <= MOST_NACK_AFTER) return value;
      throw argumentRangeError(`bsp.begin: nackAfter must be from 0 to 2^31 - 1 milliseconds, not ${show(given)}`);
    },
  },
  // Compared with `delivery`, and by `comparePacing`.
  pacing: { read: readPacing },
} satisfies { readonly [K in Exclude<keyof ReadOptions, 'wait'>]: Option<ReadOptions[K]> };

const NAMES = Object.keys(OPTIONS) as (keyof typeof OPTIONS)[];
const COMPARED = (Object.entries(OPTIONS) as [keyof typeof OPTIONS, Option<unknown>][]).flatMap(
  ([name, { compared }]) => (compared === undefined ? [] : [{ name, ...compared }]),
);

/** Errors: `TypeError`, `RangeError`, `ERR_RMA_SHARED`. */
export function readOptions(comm: Communicator, options: BspOptions | undefined): ReadOptions {
  const wait = readWait('bsp.begin', options, NAMES);
  const given = reading('bsp.begin', 'the options', () => NAMES.map((name) => [name, options?.[name]] as const));
  const read = given.map(([name, value]) => [name, OPTIONS[name].read(value as never, comm)]);
  const all = { ...Object.fromEntries(read), wait } as ReadOptions;
  refuseBarrier(comm, all);
  refusePacing(all);
  return all;
}

/** Errors: `ERR_ARG` if what the superstep has does not go in packets. */
function refusePacing({ delivery, pacing }: ReadOptions): void {
  if (pacing === undefined || goesInPackets(delivery)) return;
  const paced = DELIVERIES.filter(goesInPackets);
  throw new RmaError(
    'ERR_ARG',
    `bsp.begin: pacing is for supersteps that go in packets, those of delivery: '${paced.join("' or '")}', and not ` +
      `of '${delivery}'; leave pacing out, or give delivery: '${paced[0]}'`,
  );
}

/** Errors: `ERR_ARG` if supersteps have no barrier, or not such a one. */
function refuseBarrier({ job }: Communicator, { delivery, barrier }: ReadOptions): void {
  const offered = barriersOf(job.context.capabilities);
  if (barrier === 'auto' || (delivery === 'shared' && offered.includes(barrier))) return;
  throw new RmaError(
    'ERR_ARG',
    delivery === 'shared'
      ? `bsp.begin: barrier: '${barrier}' needs a device that offers it; leave it out, or choose one of ` +
          offered.join(', ')
      : `bsp.begin: barrier: '${barrier}' is for supersteps that end with a barrier, those of delivery: 'shared'; ` +
          `leave it out, since those of '${delivery}' end when all counts have come`,
  );
}

/** What is always the default costs no bytes. */
function comparedIn(comm: Communicator): typeof COMPARED {
  return COMPARED.filter(({ isUseful }) => isUseful?.(comm) ?? true);
}

/**
 * What is added to the number of `delivery`, which is smaller: computations without pacing say no more than they did
 * before there was any.
 */
const PACED = 64;

/** What all processes must give alike, as numbers. */
export function comparedNumbers(read: ReadOptions, comm: Communicator): number[] {
  const numbers = comparedIn(comm).map(({ name, number }) => number(read[name], comm));
  numbers[0] += PACED * numberOfPacing(read.pacing);
  return numbers;
}

/** In words, two numbers of different processes. @param at which of `comparedNumbers` */
export function comparedWords(comm: Communicator, at: number, own: number, other: number) {
  const { name, word } = comparedIn(comm)[at];
  if (at > 0) return { name, own: word(own), other: word(other) };
  const [mine, theirs] = [own, other].map((number) => Math.floor(number / PACED));
  if (mine !== theirs) return { name: 'pacing', own: wordOfPacing(mine), other: wordOfPacing(theirs) };
  return { name, own: word(own % PACED), other: word(other % PACED) };
}
