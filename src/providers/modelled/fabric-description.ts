/**
 * What a modelled fabric is like: numbers, each with its source, in a file of its own (`fabrics/*.json`).
 *
 * Times are microseconds, sizes bytes, costs of bytes microseconds a byte. docs/guide/fabrics.md says what each number
 * means and how they work together.
 */
import { RmaError, show } from '../../errors.ts';
import { checkEthernet } from './ethernet/check-ethernet.ts';
import type { Fabric } from './fabric-numbers.ts';
import { observedPart } from './observed.ts';

/** What a number must be: microseconds, which may be 0 or not, microseconds a byte, or a whole number from … to. */
type Rule = 'time' | 'positive' | 'gap' | readonly [from: number, to: number];

const FLAG = [0, 1] as const;
/** Bytes of the longest message that the library itself sends in one piece (start/tasks.ts). */
export const LEAST_MESSAGE = 8192;
type Numbers<Part extends keyof Fabric> = NonNullable<Fabric[Part]>;

const RULES: {
  readonly [Part in Exclude<keyof Fabric, 'name' | 'about'>]-?: { readonly [Field in keyof Numbers<Part>]-?: Rule };
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
    post: 'time',
    completion: 'time',
    latency: 'time',
    gap: 'gap',
    atomic: 'time',
    waiter: 'time',
  },
  bus: { shared: FLAG, fetch: 'time', readGap: 'gap', writeGap: 'gap', doorbell: 'time', event: 'time' },
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
    single: FLAG,
    afterReceive: 'time',
    afterSend: 'time',
    step: 'time',
    barrierSend: 'time',
    barrierReceive: 'time',
  },
  link: { latency: 'positive', outGap: 'gap', inGap: 'gap' },
  switch: { latency: 'time', leafPorts: [1, 65_536], uplinks: [1, 65_536], levels: [2, 32], further: 'time' },
  retry: { timeout: 'positive' },
  ethernet: {
    kind: [1, 2],
    gap: 'gap',
    preamble: 'time',
    interframe: 'time',
    propagation: 'positive',
    mtu: [68, 65_535],
    driver: 'time',
    slot: 'positive',
    jam: 'time',
    attempts: [1, 1000],
    backoffLimit: [1, 30],
    room: [1, 2 ** 20],
    forward: 'time',
  },
  tcp: {
    mss: [1, 65_495],
    window: [1, 65_535],
    window0: [1, 65_535],
    delay: 'time',
    segments: [0, 2 ** 20],
    counted: FLAG,
    tick: FLAG,
    timeout: 'positive',
    firstTimeout: 'positive',
    retries: [1, 1000],
    header: [1, 256],
    silent: FLAG,
  },
};

/** Parts that a description need not have. */
const OPTIONAL_PARTS: ReadonlySet<string> = new Set(['ethernet', 'tcp']);

/** Numbers that a description need not have. */
const OPTIONAL: ReadonlySet<string> = new Set([
  'node.post',
  'node.completion',
  'bus.doorbell',
  'bus.event',
  'adapter.single',
  'adapter.afterReceive',
  'adapter.afterSend',
  'adapter.step',
  'adapter.barrierSend',
  'adapter.barrierReceive',
  'switch.levels',
  'switch.further',
  'ethernet.slot',
  'ethernet.jam',
  'ethernet.attempts',
  'ethernet.backoffLimit',
  'ethernet.room',
  'ethernet.forward',
  'tcp.counted',
  'tcp.tick',
  'tcp.silent',
]);

/** No time of a fabric is as long: a second, where microseconds are meant, would be a mistake of the unit. */
const LONGEST = 1e7;
/** Nor does a byte take as long: that would be a thousand bytes a second. */
const LONGEST_GAP = 1000;

/** A fabric in the form of a file: each number with the source that it comes from. */
export type FabricDescription = {
  readonly [Part in keyof Fabric]: NonNullable<Fabric[Part]> extends string
    ? string
    : { readonly [Field in keyof NonNullable<Fabric[Part]>]: { readonly value: number; readonly source: string } };
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
    if (whole[name] === undefined && OPTIONAL_PARTS.has(name)) continue;
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
  const checked = Object.freeze(fabric) as unknown as Fabric;
  // Observed parts were checked, and tell whoever observes them of each look.
  if (observedPart(whole['ethernet']) === undefined || observedPart(whole['tcp']) === undefined)
    checkEthernet(checked, (field, what) => wrong(file, field, what));
  return checked;
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
