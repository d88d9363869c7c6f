/**
 * What a modelled fabric is like: numbers, each with its source, in a file of its own (`fabrics/*.json`).
 *
 * Times are microseconds, sizes bytes, costs of bytes microseconds a byte. docs/guide/fabrics.md says what each number
 * means and how they work together.
 */
import { RmaError, show } from '../../errors.ts';
import { observedPart } from './observed.ts';

/** The numbers of a fabric, without their sources. Times are microseconds; costs of bytes are microseconds per byte. */
export interface Fabric {
  /** The fabric's name. */
  readonly name: string;
  /** What the fabric models. */
  readonly about: string;
  /** Processor time. */
  readonly host: {
    /** Posting the first request of a doorbell. */
    readonly post: number;
    /** Posting each further request of a doorbell. */
    readonly postNext: number;
    /** Posting a receive. */
    readonly postReceive: number;
    /** Taking one completion from a queue. */
    readonly completion: number;
    /** Polling one more connection in use for messages. */
    readonly pollConnection: number;
    /** The number of messages after which a connection counts as in use. */
    readonly pollThreshold: number;
    /** The maximum number of connections in use. */
    readonly pollLimit: number;
    /** Bytes of the longest message that is copied at both ends; a longer one goes by rendezvous, without copies. */
    readonly eager: number;
    /** 1: the receiver of a rendezvous reads the data; 0: the sender writes them. */
    readonly rendezvousByRead: number;
    /** Copying a byte. */
    readonly copy: number;
    /** Packing one put of a superstep, or placing it, besides copying its bytes. */
    readonly record: number;
    /** Combining a byte of two operands. */
    readonly combine: number;
    /** What a reduction costs each rank in addition: temporary memory, the first copy. */
    readonly reduction: number;
    /** The time between two polls of a rank that waits by polling. */
    readonly lookAgain: number;
    /** Who is there for events of the adapter while a rank computes. 0: nobody; 1: an interrupt; 2: another core. */
    readonly helper: number;
    /** The time from such an event until its handler runs. */
    readonly interrupt: number;
  };
  /** The ranks of a node, which share its adapter, and communication between them through memory. */
  readonly node: {
    /** The number of ranks of a node. */
    readonly ranks: number;
    /** 1: messages between ranks of a node go through memory; 0: through the adapter. */
    readonly messagesByMemory: number;
    /** 1: RDMA between ranks of a node goes through memory; 0: through the adapter. */
    readonly rdmaByMemory: number;
    /** The latency through memory. */
    readonly latency: number;
    /** The cost of each byte through memory. */
    readonly gap: number;
    /** An atomic instruction on a word that another core had last. */
    readonly atomic: number;
    /** What each rank that spins on a word adds when the word changes hands. */
    readonly waiter: number;
  };
  /** Between memory and the adapter. */
  readonly bus: {
    /** 1: reading and writing memory share it (PCI-X); 0: each has its own lanes (PCI-Express). */
    readonly shared: number;
    /** Fetching data that was not posted inline. */
    readonly fetch: number;
    /** Reading a byte from memory. */
    readonly readGap: number;
    /** Writing a byte to memory. */
    readonly writeGap: number;
  };
  /** The network adapter: its times and its limits. */
  readonly adapter: {
    /** Sending a message. */
    readonly send: number;
    /** Receiving a message. */
    readonly receive: number;
    /** Each further scatter/gather entry. */
    readonly entry: number;
    /** Serving a read. */
    readonly read: number;
    /** Serving an atomic; the adapter serves one at a time. */
    readonly atomic: number;
    /** Sending an acknowledgement, and receiving it. */
    readonly acknowledge: number;
    /** Replaces link and switch for a message to the same node. */
    readonly loopback: number;
    /** Bytes that a request can carry inline. */
    readonly inline: number;
    /** Scatter/gather entries of a request. */
    readonly maxSge: number;
    /** Reads and atomics that a queue pair can have outstanding. */
    readonly maxReads: number;
    /** Bytes of the longest message. */
    readonly maxMessage: number;
    /** Bytes of a packet, which is stored as a whole before it is forwarded. */
    readonly packet: number;
    /** The step that ends a wait of a request (`capabilities.waits`); absent where requests cannot wait. */
    readonly step?: number;
  };
  /** A node's link to its switch. */
  readonly link: {
    /** The latency of the cable and its ports. */
    readonly latency: number;
    /** Sending a byte. */
    readonly outGap: number;
    /** Receiving a byte. */
    readonly inGap: number;
  };
  /** The switches: a tree of two levels. */
  readonly switch: {
    /** The latency of a switch. */
    readonly latency: number;
    /** Ports of a leaf switch for nodes. */
    readonly leafPorts: number;
    /** Links of a leaf switch to the upper level. */
    readonly uplinks: number;
  };
  /** Retransmission. */
  readonly retry: {
    /** The time after which a request without an answer is sent again. */
    readonly timeout: number;
  };
}

/** What a number must be: microseconds, which may be 0 or not, microseconds a byte, or a whole number from … to. */
type Rule = 'time' | 'positive' | 'gap' | readonly [from: number, to: number];

const FLAG = [0, 1] as const;
/** Bytes of the longest message that the library itself sends in one piece (comm/tasks.ts). */
export const LEAST_MESSAGE = 8192;
const RULES: {
  readonly [Part in Exclude<keyof Fabric, 'name' | 'about'>]: { readonly [Field in keyof Fabric[Part]]-?: Rule };
} = {
  host: {
    post: 'time',
    postNext: 'time',
    postReceive: 'time',
    completion: 'time',
    pollConnection: 'time',
    pollThreshold: [0, 2 ** 31],
    pollLimit: [1, 2 ** 31],
    eager: [0, 2 ** 31],
    rendezvousByRead: FLAG,
    copy: 'gap',
    record: 'time',
    combine: 'gap',
    reduction: 'time',
    lookAgain: 'positive',
    helper: [0, 2],
    interrupt: 'time',
  },
  node: {
    ranks: [1, 65_536],
    messagesByMemory: FLAG,
    rdmaByMemory: FLAG,
    latency: 'time',
    gap: 'gap',
    atomic: 'time',
    waiter: 'time',
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
    step: 'time',
  },
  link: { latency: 'positive', outGap: 'gap', inGap: 'gap' },
  switch: { latency: 'time', leafPorts: [1, 65_536], uplinks: [1, 65_536] },
  retry: { timeout: 'positive' },
};

/** Numbers that a description need not have. */
const OPTIONAL: ReadonlySet<string> = new Set(['adapter.step']);

/** No time of a fabric is as long: a second, where microseconds are meant, would be a mistake of the unit. */
const LONGEST = 1e7;
/** Nor does a byte take as long: that would be a thousand bytes a second. */
const LONGEST_GAP = 1000;

/** A fabric in the form of a file: each number with the source that it comes from. */
export type FabricDescription = {
  readonly [Part in keyof Fabric]: Fabric[Part] extends string
    ? string
    : { readonly [Field in keyof Fabric[Part]]: { readonly value: number; readonly source: string } };
};

/** Reads one number of a fabric, which stands at `field`. */
type ReadNumber = (file: string, field: string, given: unknown, rule: Rule) => number;

/**
 * Checks a description in the form of a file, where every number is an object of `value` and `source`, and returns the
 * fabric.
 * @param file the name of the description in messages
 * @param description the parsed contents of the file
 * Errors: `ERR_ARG`, which names the file and the field.
 */
export function readFabric(file: string, description: unknown): Fabric {
  return read(file, description, readSourced);
}

/**
 * The same for a fabric that a program has made, of numbers without sources. What is like the contents of a file is
 * read as that.
 * Errors: `ERR_ARG`, with the fabric's name and the field.
 */
export function checkFabric(fabric: object): Fabric {
  const { name } = fabric as Record<string, unknown>;
  const file = typeof name === 'string' ? name : show(name);
  return read(file, fabric, isSourced(fabric) ? readSourced : readPlain);
}

/** Whether the numbers of a description are objects of `value` and `source`. */
function isSourced(description: object): boolean {
  const parts = Object.values(description).filter(
    (part) => typeof part === 'object' && part !== null && observedPart(part) === undefined,
  );
  return parts.some((part) => Object.values(part).some((field) => typeof field === 'object' && field !== null));
}

function read(file: string, description: unknown, readNumber: ReadNumber): Fabric {
  const whole = part(file, '', description);
  const text = (field: string): string => {
    const value = whole[field];
    if (typeof value === 'string' && value !== '') return value;
    throw wrong(file, field, `must be a string that is not empty, not ${show(value)}`);
  };
  const fabric: Record<string, unknown> = { name: text('name'), about: text('about') };
  for (const field of Object.keys(whole)) {
    if (field !== 'name' && field !== 'about' && !Object.hasOwn(RULES, field))
      throw unknown(file, field, Object.keys(RULES));
  }
  for (const [name, rules] of Object.entries(RULES)) {
    if (observedPart(whole[name]) === name) {
      fabric[name] = whole[name];
      continue;
    }
    const given = part(file, name, whole[name]);
    const numbers: Record<string, number> = {};
    for (const field of Object.keys(given)) {
      if (!Object.hasOwn(rules, field)) throw unknown(file, `${name}.${field}`, Object.keys(rules));
    }
    for (const [field, rule] of Object.entries(rules as Record<string, Rule>)) {
      if (given[field] === undefined && OPTIONAL.has(`${name}.${field}`)) continue;
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
  if (typeof rule !== 'string') return `an integer from ${rule[0]} to ${rule[1]}`;
  if (rule === 'gap') return `a number of microseconds per byte from 0 to ${LONGEST_GAP}`;
  return rule === 'time'
    ? `a number of microseconds from 0 to ${LONGEST}`
    : `a number of microseconds above 0 and up to ${LONGEST}`;
}

function part(file: string, field: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw wrong(file, field, value === undefined ? 'is missing' : `must be an object, not ${show(value)}`);
}

function unknown(file: string, field: string, known: readonly string[]): RmaError {
  return wrong(file, field, `is not a field; the fields are ${known.join(', ')}`);
}

function wrong(file: string, field: string, what: string): RmaError {
  return new RmaError('ERR_ARG', `fabric ${file}: ${field === '' ? 'the description' : field} ${what}`);
}
