/**
 * What a modelled fabric is like: numbers, each with its source, in a file of its own (`fabrics/*.json`).
 *
 * Times are microseconds, sizes bytes, costs of bytes microseconds a byte. docs/guide/fabrics.md says what each number means and how they work together.
 */
import { RmaError, show } from '../../errors.ts';

/** The numbers of a fabric, without their sources. */
export interface Fabric {
  readonly name: string;
  readonly about: string;
  /** Processor time. */
  readonly host: {
    /** Posting requests: the first of a doorbell, each further one. */
    readonly post: number;
    readonly postNext: number;
    readonly postReceive: number;
    /** Taking one completion from a queue. */
    readonly completion: number;
    /** Looking for a message on each further connection from which messages come. */
    readonly pollConnection: number;
    /** Messages after which a connection is one of those that are looked at, and how many of those there are at most. */
    readonly pollThreshold: number;
    readonly pollLimit: number;
    /** Copying a byte; combining a byte of two operands. */
    readonly copy: number;
    readonly combine: number;
    /** What a reduction costs each rank besides: temporary memory, the first copy. */
    readonly reduction: number;
    /** From one look to the next, where a rank looks again and again because nothing tells it. */
    readonly lookAgain: number;
  };
  /** Ranks that share a node and its adapter, and their way to each other through memory. */
  readonly node: {
    readonly ranks: number;
    /** 1: messages between ranks of a node go through memory; 0: through the adapter. */
    readonly messagesByMemory: number;
    readonly rdmaByMemory: number;
    readonly latency: number;
    readonly gap: number;
    /** An atomic instruction on a word that another core had last. */
    readonly atomic: number;
  };
  /** Between memory and the adapter. */
  readonly bus: {
    /** 1: reading and writing memory share it (PCI-X); 0: each has its own lanes (PCI-Express). */
    readonly shared: number;
    /** The time to fetch data that was not posted inline. */
    readonly fetch: number;
    readonly readGap: number;
    readonly writeGap: number;
  };
  readonly adapter: {
    /** Sending or receiving one message. */
    readonly send: number;
    readonly receive: number;
    /** Each further scatter/gather entry. */
    readonly entry: number;
    /** Serving a read; an atomic, of which only one is carried out at a time. */
    readonly read: number;
    readonly atomic: number;
    /** Answering that a request has arrived, and taking that answer in. */
    readonly acknowledge: number;
    /** In place of the way through the link, for a message to the own node. */
    readonly loopback: number;
    readonly inline: number;
    readonly maxSge: number;
    readonly maxReads: number;
    readonly maxMessage: number;
    /** Bytes of a packet: what is stored as a whole before it is passed on. */
    readonly packet: number;
  };
  readonly link: {
    readonly latency: number;
    readonly outGap: number;
    readonly inGap: number;
  };
  /** A tree of two levels: leaves with ports for nodes, and links up. */
  readonly switch: {
    readonly latency: number;
    readonly leafPorts: number;
    readonly uplinks: number;
  };
  readonly retry: {
    /** Until a request that was not answered is sent again. */
    readonly timeout: number;
  };
}

/** What a number must be: microseconds, which may be 0 or not, microseconds a byte, or a whole number from … to. */
type Rule = 'time' | 'positive' | 'gap' | readonly [from: number, to: number];

const FLAG = [0, 1] as const;
/** Bytes of the longest message that the library itself sends in one piece (comm/tasks.ts). */
export const LEAST_MESSAGE = 8192;
const RULES: {
  readonly [Part in Exclude<keyof Fabric, 'name' | 'about'>]: { readonly [Field in keyof Fabric[Part]]: Rule };
} = {
  host: {
    post: 'time',
    postNext: 'time',
    postReceive: 'time',
    completion: 'time',
    pollConnection: 'time',
    pollThreshold: [0, 2 ** 31],
    pollLimit: [1, 2 ** 31],
    copy: 'gap',
    combine: 'gap',
    reduction: 'time',
    lookAgain: 'positive',
  },
  node: {
    ranks: [1, 65_536],
    messagesByMemory: FLAG,
    rdmaByMemory: FLAG,
    latency: 'time',
    gap: 'gap',
    atomic: 'time',
  },
  bus: { shared: FLAG, fetch: 'time', readGap: 'gap', writeGap: 'gap' },
  adapter: {
    send: 'time',
    receive: 'time',
    entry: 'time',
    read: 'time',
    atomic: 'time',
    acknowledge: 'time',
    loopback: 'time',
    inline: [1, 4096],
    maxSge: [1, 1024],
    maxReads: [1, 255],
    maxMessage: [LEAST_MESSAGE, 2 ** 31],
    packet: [1, 65_536],
  },
  link: { latency: 'positive', outGap: 'gap', inGap: 'gap' },
  switch: { latency: 'time', leafPorts: [1, 65_536], uplinks: [1, 65_536] },
  retry: { timeout: 'positive' },
};

/** No time of a fabric is as long: a second, where microseconds are meant, would be a mistake of the unit. */
const LONGEST = 1e7;
/** Nor does a byte take as long: that would be a thousand bytes a second. */
const LONGEST_GAP = 1000;

/** Reads one number of a fabric, which stands at `field`. */
type ReadNumber = (file: string, field: string, given: unknown, rule: Rule) => number;

/**
 * Checks a description, as it stands in a file: every number is an object of `value` and `source`.
 * @param file names it in messages
 * Errors: `ERR_ARG`, with the file and the field.
 */
export function readFabric(file: string, description: unknown): Fabric {
  return read(file, description, readSourced);
}

/**
 * The same for a fabric that a program has made, of numbers without sources. What is like the contents of a file is read as that.
 * Errors: `ERR_ARG`, with the fabric's name and the field.
 */
export function checkFabric(fabric: object): Fabric {
  const { name } = fabric as Record<string, unknown>;
  const file = typeof name === 'string' ? name : show(name);
  return read(file, fabric, isSourced(fabric) ? readSourced : readPlain);
}

/** Whether the numbers of a description are objects of `value` and `source`. */
function isSourced(description: object): boolean {
  const parts = Object.values(description).filter((part) => typeof part === 'object' && part !== null);
  return parts.some((part) => Object.values(part).some((field) => typeof field === 'object' && field !== null));
}

function read(file: string, description: unknown, readNumber: ReadNumber): Fabric {
  const whole = part(file, '', description);
  const text = (field: string): string => {
    const value = whole[field];
    if (typeof value === 'string' && value !== '') return value;
    throw wrong(file, field, `must be a text, not ${show(value)}`);
  };
  const fabric: Record<string, unknown> = { name: text('name'), about: text('about') };
  for (const field of Object.keys(whole)) {
    if (field !== 'name' && field !== 'about' && !Object.hasOwn(RULES, field))
      throw unknown(file, field, Object.keys(RULES));
  }
  for (const [name, rules] of Object.entries(RULES)) {
    const given = part(file, name, whole[name]);
    const numbers: Record<string, number> = {};
    for (const field of Object.keys(given)) {
      if (!Object.hasOwn(rules, field)) throw unknown(file, `${name}.${field}`, Object.keys(rules));
    }
    for (const [field, rule] of Object.entries(rules as Record<string, Rule>)) {
      if (given[field] === undefined) throw wrong(file, `${name}.${field}`, 'is missing');
      numbers[field] = readNumber(file, `${name}.${field}`, given[field], rule);
    }
    fabric[name] = Object.freeze(numbers);
  }
  return Object.freeze(fabric) as unknown as Fabric;
}

function readSourced(file: string, field: string, given: unknown, rule: Rule): number {
  const { value, source } = part(file, field, given);
  const number = readPlain(file, `${field}.value`, value, rule);
  if (typeof source !== 'string' || source.trim() === '') {
    throw wrong(file, `${field}.source`, `must say where ${number} comes from, not ${show(source)}`);
  }
  return number;
}

function readPlain(file: string, field: string, value: unknown, rule: Rule): number {
  if (typeof value === 'number' && isWithin(value, rule)) return value;
  throw wrong(file, field, `must be ${inWords(rule)}, not ${show(value)}`);
}

function isWithin(value: number, rule: Rule): boolean {
  if (typeof rule !== 'string') return Number.isInteger(value) && value >= rule[0] && value <= rule[1];
  if (rule === 'gap') return value >= 0 && value <= LONGEST_GAP;
  return value >= 0 && value <= LONGEST && (value > 0 || rule === 'time');
}

function inWords(rule: Rule): string {
  if (typeof rule !== 'string') return `a whole number from ${rule[0]} to ${rule[1]}`;
  if (rule === 'gap') return `microseconds a byte, from 0 to ${LONGEST_GAP}`;
  return rule === 'time' ? `microseconds, from 0 to ${LONGEST}` : `more than 0 microseconds, and at most ${LONGEST}`;
}

function part(file: string, field: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw wrong(file, field, value === undefined ? 'is missing' : `must be an object, not ${show(value)}`);
}

function unknown(file: string, field: string, known: readonly string[]): RmaError {
  return wrong(file, field, `is none of the fields there are: ${known.join(', ')}`);
}

function wrong(file: string, field: string, what: string): RmaError {
  return new RmaError('ERR_ARG', `fabric ${file}: ${field === '' ? 'the description' : field} ${what}`);
}
