/** Machines that stand in files: JSON objects of one level (s, p, l, g) or of two (s, p, q, l, L, g, G), by name. */
import { readFileSync } from 'node:fs';
import { RmaError, show } from '../../errors.ts';
import type { Bsp2Machine, BspMachine } from './machines.ts';

export type Machine = BspMachine | Bsp2Machine;

const ONE_LEVEL = ['s', 'p', 'l', 'g'];
const TWO_LEVELS = ['s', 'p', 'q', 'l', 'L', 'g', 'G'];

/**
 * Checks a machine that a program has read from somewhere. It has two levels if it says `q`.
 * @param name of the machine in messages
 * Errors: `ERR_ARG`, which names the number that is missing, is none of a machine's, or makes no sense.
 */
export function readMachine(value: unknown, name = 'machine'): Machine {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RmaError('ERR_ARG', `${name} must be an object of ${ONE_LEVEL.join(', ')}, not ${show(value)}`);
  }
  const given = value as Readonly<Record<string, unknown>>;
  const fields = Object.hasOwn(given, 'q') ? TWO_LEVELS : Object.hasOwn(given, 'o') ? [...ONE_LEVEL, 'o'] : ONE_LEVEL;
  const other = Object.keys(given).find((field) => !fields.includes(field));
  if (other !== undefined) {
    throw new RmaError('ERR_ARG', `${name}: a machine has no ${other}; its numbers are ${fields.join(', ')}`);
  }
  return Object.fromEntries(fields.map((field) => [field, numberOf(name, field, given[field])])) as unknown as Machine;
}

/**
 * A machine of one level that predictions are made by: what `probe` gives, perhaps with more beside it.
 * @param name of it in messages
 * Errors: `ERR_ARG` if it has two levels, or its numbers make no sense. Without `p` it has one processor.
 */
export function oneLevel(name: string, value: unknown): BspMachine {
  if (typeof value !== 'object' || value === null) {
    throw new RmaError('ERR_ARG', `${name} must have numbers s, l and g (and o), as probe() gives them`);
  }
  if (Object.hasOwn(value, 'q')) {
    throw new RmaError('ERR_ARG', `${name} has two levels; flat() gives the machine of one level that a program sees`);
  }
  const { s, p = 1, l, g, o } = value as Readonly<Record<string, unknown>>;
  const numbers = { s, p, l, g, ...(o !== undefined && { o }) };
  const read = Object.entries(numbers).map(([field, number]) => [field, numberOf(name, field, number)] as const);
  return Object.fromEntries(read) as unknown as BspMachine;
}

/**
 * Reads a file of machines: a JSON object of machines by name.
 * Errors: `ERR_ARG`, which names the file; those of reading it.
 */
export function loadMachines(file: string): Readonly<Record<string, Machine>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new RmaError('ERR_ARG', `${file} is not JSON: ${cause.message}`, { cause });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new RmaError('ERR_ARG', `${file} must have an object of machines by name, not ${show(parsed)}`);
  }
  return Object.fromEntries(Object.entries(parsed).map(([name, one]) => [name, readMachine(one, `${file}: ${name}`)]));
}

/** s is above 0; p and q are whole numbers from 1 on; the others are from 0 on. */
function numberOf(name: string, field: string, value: unknown): number {
  const isCount = field === 'p' || field === 'q';
  const least = isCount ? 1 : 0;
  const isNumber = typeof value === 'number' && Number.isFinite(value) && value >= least;
  if (isNumber && !(isCount && !Number.isInteger(value)) && !(field === 's' && value === 0)) return value;
  const rule = isCount ? 'a whole number from 1 on' : field === 's' ? 'a number above 0' : 'a number from 0 on';
  throw new RmaError('ERR_ARG', `${name}: ${field} must be ${rule}, not ${show(value)}`);
}
