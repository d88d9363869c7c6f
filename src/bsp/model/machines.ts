/**
 * Machines as the cost models see them: BSP (Valiant 1990) by four numbers, BSP2 (Martin and Tiskin 1999, section 2) by
 * seven. Costs are counted in floating-point operations of one processor, so that `cost / s` is a time in microseconds.
 */
import { RmaError, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';

/** A BSP machine. */
export interface BspMachine {
  /** Speed of a processor: million floating-point operations a second. */
  readonly s: number;
  /** Processors. */
  readonly p: number;
  /** Operations that a synchronization takes, and what else each superstep has once. */
  readonly l: number;
  /** Operations that a word of 8 bytes takes in continuous traffic, sent or received. */
  readonly g: number;
  /**
   * Operations that a put, get or message takes besides its words, where that was measured apart (`onesided run
   * --bsp-report`). Without it, as in the model, it is a part of g, which then depends on how long they are.
   */
  readonly o?: number;
}

/** A BSP2 machine: units, each of which is a BSP machine. */
export interface Bsp2Machine {
  /** Speed of a processor: million floating-point operations a second. */
  readonly s: number;
  /** Processors of a unit. */
  readonly p: number;
  /** Units. */
  readonly q: number;
  /** Operations that a synchronization within a unit takes, and one of all units. */
  readonly l: number;
  readonly L: number;
  /** Operations that a word takes within a unit, and between units (all processors of a unit together). */
  readonly g: number;
  readonly G: number;
}

/**
 * The machine that a BSP program sees on a BSP2 machine, where its processes lie anywhere: (s, pq, l + L, g + pG)
 * (Martin and Tiskin, section 2).
 */
export function flat({ s, p, q, l, L, g, G }: Bsp2Machine): BspMachine {
  return { s, p: p * q, l: l + L, g: g + p * G };
}

/** What a superstep does. */
export interface Superstep {
  /** Operations of the process that has most. */
  readonly work: number;
  /** Words that a process sends or receives, whichever is more, of the one that has most. */
  readonly h: number;
  /** Puts, gets and messages of a process, or that concern it, of the one that has most; for machines with `o`. */
  readonly messages?: number;
}

/** What happens between two synchronizations of all units. */
export interface SuperSuperstep {
  /** Operations that the unit takes which takes most: the sum of its supersteps' costs (`superstepCost`). */
  readonly inUnit: number;
  /** Words that all processors of a unit together send to other units or receive, of the one that has most. */
  readonly between: number;
}

const STEP = ['work', 'h', 'messages'];
const SUPER_STEP = ['inUnit', 'between'];

/**
 * Operations that a superstep takes: work + h·g + l, and o for each message where that is known.
 * Errors: `ERR_ARG` if a number of the superstep is missing or none, or those of the machine make no cost; `TypeError`
 * if the superstep has what it cannot have.
 */
export function superstepCost({ g, l, o = 0 }: BspMachine, superstep: Superstep): number {
  refuseUnknown('superstepCost', 'the superstep', superstep, STEP);
  const { work, h, messages = 0 } = superstep;
  return checked('superstepCost', work + h * g + messages * o + l, { work, h, messages, g, l, o });
}

/**
 * Operations that everything between two synchronizations of all units takes: C_l + L + n_c·G (Martin and Tiskin,
 * section 2).
 * Errors: as of `superstepCost`.
 */
export function superSuperstepCost({ L, G }: Bsp2Machine, superSuperstep: SuperSuperstep): number {
  refuseUnknown('superSuperstepCost', 'the super-superstep', superSuperstep, SUPER_STEP);
  const { inUnit, between } = superSuperstep;
  return checked('superSuperstepCost', inUnit + L + between * G, { inUnit, between, L, G });
}

/** A cost, if the numbers that it comes from make one. */
function checked(call: string, cost: number, numbers: Readonly<Record<string, number>>): number {
  if (Number.isFinite(cost)) return cost;
  const [name, value] = Object.entries(numbers).find(([, number]) => !Number.isFinite(number)) ?? ['the cost', cost];
  throw new RmaError('ERR_ARG', `${call}: ${name} must be a finite number, not ${show(value)}`);
}

/** Microseconds that so many operations take. */
export function microseconds({ s }: { readonly s: number }, cost: number): number {
  return cost / s;
}

/**
 * Machines that the papers have measured, by name: Martin and Tiskin, section 1 (of the Oxford BSP toolset's
 * benchmarks), and BSP-IB, table 1 (l in thousands there).
 */
export const MACHINES = {
  'Origin 2000, 4': { s: 101, p: 4, l: 1789, g: 10.24 },
  'Origin 2000, 32': { s: 101, p: 32, l: 39057, g: 66.7 },
  'Cray T3E, 4': { s: 46.7, p: 4, l: 357, g: 1.77 },
  'Cray T3E, 16': { s: 46.7, p: 16, l: 751, g: 1.66 },
  'Pentium, shared Ethernet, 4': { s: 61, p: 4, l: 139981, g: 1128.5 },
  'Pentium, shared Ethernet, 8': { s: 61, p: 8, l: 826054, g: 2436.3 },
  'Pentium II, switched Ethernet, 4': { s: 88, p: 4, l: 27583, g: 39.6 },
  'Pentium II, switched Ethernet, 8': { s: 88, p: 8, l: 38788, g: 38.7 },
  'BSP-IB, baseline': { s: 840, p: 8, l: 44000, g: 179 },
  'BSP-IB, header compression': { s: 840, p: 8, l: 44000, g: 160 },
  'BSP-IB, multicast': { s: 840, p: 8, l: 43000, g: 184 },
  'BSP-IB, RDMA': { s: 840, p: 8, l: 97000, g: 262 },
  'IBM RS/6000 SP': { s: 212, p: 8, l: 148000, g: 187 },
  'SGI Origin 2000': { s: 326, p: 8, l: 95000, g: 297 },
  'SGI Origin 3800': { s: 285, p: 8, l: 32000, g: 126 },
  'Cray T3E': { s: 35, p: 8, l: 1000, g: 31 },
} as const satisfies Record<string, BspMachine>;
