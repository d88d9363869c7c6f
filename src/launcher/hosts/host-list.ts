/** The hosts of a job, and which ranks each of them has: `--hosts a:4,b:4`, or a file of hosts. */
import { readFileSync } from 'node:fs';
import { argumentTypeError, show } from '../../errors.ts';

/** Ranks in a row on one host. */
export interface HostSlots {
  readonly host: string;
  readonly slots: number;
}

/** A host with the ranks that it has, in ascending order. */
export interface HostRanks {
  readonly host: string;
  readonly ranks: readonly number[];
}

/** No name of a host begins like an option: it would be one of ssh. */
const NAME = /^[^\s,:#=-][^\s,:#=]*$/;

/** `a:4,[::1]:2,c`: a host without a number has one rank. */
export function readHosts(text: string): HostSlots[] {
  return text.split(',').map((word) => {
    const found = hostAndSlots(word.trim());
    const must = '--hosts must be host[:ranks],…, with at least one rank each';
    if (found === undefined) throw argumentTypeError(`${must}, not ${show(text)}`);
    return found;
  });
}

/**
 * A host on each line, as Open MPI (`host slots=4`; `max_slots` is ignored) and Hydra (`host:4 user=me`; `binding` is
 * ignored) write it; the rest of a line after `#` is a comment.
 */
export function readHostFile(file: string): HostSlots[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw argumentTypeError(`cannot read the file of hosts: ${(error as Error).message}`);
  }
  const hosts: HostSlots[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const [first, ...words] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (first === '') continue;
    const wrong = (): Error =>
      argumentTypeError(`line ${index + 1} of ${file} must be "host slots=N" or "host:N", not ${show(line)}`);
    const found = hostAndSlots(first);
    if (found === undefined) throw wrong();
    let { host, slots } = found;
    for (const word of words
      .join(' ')
      .replaceAll(/\s*=\s*/g, '=')
      .split(' ')) {
      if (word === '') continue;
      const [, name, value] = /^([\w-]+)=([^\s=]+)$/.exec(word) ?? [];
      if (name === undefined) throw wrong();
      if (name === 'ifname') throw noInterface(file, index + 1);
      if (name === 'slots' && !/^\d+$/.test(value)) throw wrong();
      if (name === 'slots') slots = Number(value);
      if (name === 'user' && (host.includes('@') || !NAME.test(`${value}@${host}`))) throw wrong();
      if (name === 'user') host = `${value}@${host}`;
    }
    if (slots > 0) hosts.push({ host, slots });
  }
  if (hosts.length === 0) throw argumentTypeError(`the file ${file} names no host`);
  return hosts;
}

function noInterface(file: string, line: number): Error {
  return argumentTypeError(
    `line ${line} of ${file}: ifname is not known: ranks use the network by which their hosts have met; for another ` +
      'one, set ONESIDED_ADDRESS on that host',
  );
}

function hostAndSlots(word: string): HostSlots | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(word) ?? [];
  const host = bracketed ?? plain;
  const isName = bracketed === undefined ? NAME.test(host ?? '') : /^[\da-f:.]+(%[\w.-]+)?$/i.test(bracketed);
  if (!isName || digits === '0') return undefined;
  return { host, slots: digits === undefined ? 1 : Number(digits) };
}

/**
 * Ranks in blocks, in the order of the list. A host that is named twice is one host with both blocks.
 * @param size if not all slots are to be used: the first ones are
 */
export function ranksOfHosts(hosts: readonly HostSlots[], size = sizeOfHosts(hosts)): HostRanks[] {
  const ranks = new Map<string, number[]>();
  let next = 0;
  for (const { host, slots } of hosts) {
    for (let i = 0; i < slots && next < size; i++) {
      if (!ranks.has(host)) ranks.set(host, []);
      ranks.get(host)!.push(next++);
    }
  }
  return [...ranks].map(([host, own]) => ({ host, ranks: own }));
}

export function sizeOfHosts(hosts: readonly HostSlots[]): number {
  return hosts.reduce((sum, { slots }) => sum + slots, 0);
}
