/**
 * What algorithms cost on both models (Martin and Tiskin 1999, sections 1 and 3), in operations. Constants are left
 * out, as in the paper, so costs of one algorithm can be compared with each other, not with a clock; those of Jacobi's
 * iteration have theirs.
 */
import { type Bsp2Machine, type BspMachine, flat, superstepCost } from './machines.ts';

/** How a grid lies on the processes: in strips of whole columns, or in squares. */
export type GridParts = 'strips' | 'squares';

/**
 * An iteration of Jacobi's method on a grid of `n` × `n` points: four operations a point, and the words of the process
 * that has most neighbours. In strips it puts a border of `n` points to each of up to two; in squares, of which there
 * must be a square number, one of n / √p to each of up to four. From 3 strips and 3 × 3 squares on this is as printed,
 * 2n and 4n / √p words; a process on 2 × 2 squares has two neighbours, so that it puts n words and not 2n.
 */
export function jacobi(machine: BspMachine, n: number, parts: GridParts): number {
  const { p } = machine;
  const side = Math.sqrt(p);
  const h = parts === 'strips' ? mostNeighbours(p) * n : (2 * mostNeighbours(side) * n) / side;
  return superstepCost(machine, { work: (4 * n * n) / p, h });
}

/** Of one in a row of so many. */
const mostNeighbours = (count: number): number => Math.min(2, count - 1);

interface Costs {
  bsp(machine: BspMachine, n: number): number;
  bsp2(machine: Bsp2Machine, n: number): number;
}

/** The five algorithms of section 3, on n, n × n or n × n × n numbers. */
export const ALGORITHMS = {
  'diamond DAG': {
    bsp: ({ p, l, g }, n) => n ** 2 / p + n * g + p * l,
    bsp2: ({ p, q, l, L, g, G }, n) => n ** 2 / (p * q) + n * (g + G) + p * q * l + q * L,
  },
  'cube DAG': {
    bsp: ({ p, l, g }, n) => n ** 3 / p + (n ** 2 / Math.sqrt(p)) * g + Math.sqrt(p) * l,
    bsp2: ({ p, q, l, L, g, G }, n) =>
      n ** 3 / (p * q) + n ** 2 * (g / Math.sqrt(p * q) + G / Math.sqrt(q)) + Math.sqrt(p * q) * l + Math.sqrt(q) * L,
  },
  'matrix × vector': {
    bsp: ({ p, l, g }, n) => n ** 2 / p + (n / Math.sqrt(p)) * g + l,
    bsp2: ({ p, q, l, L, g, G }, n) => n ** 2 / (p * q) + n * (g / Math.sqrt(p * q) + G / Math.sqrt(q)) + l + L,
  },
  'matrix × matrix': {
    bsp: ({ p, l, g }, n) => n ** 3 / p + (n ** 2 / p ** (2 / 3)) * g + l,
    bsp2: ({ p, q, l, L, g, G }, n) => n ** 3 / (p * q) + n ** 2 * (g / (p * q) ** (2 / 3) + G / q ** (2 / 3)) + l + L,
  },
  'sort by regular sampling': {
    bsp: ({ p, l, g }, n) => (n * Math.log2(n)) / p + (n / p) * g + l,
    bsp2: ({ p, q, l, L, g, G }, n) => (n * Math.log2(n)) / (p * q) + n * (g / (p * q) + G / q) + l + L,
  },
} as const satisfies Record<string, Costs>;

export type Algorithm = keyof typeof ALGORITHMS;

/** What the BSP program of an algorithm costs on a BSP2 machine: on the one that it sees (`flat`). */
export function flatCost(algorithm: Algorithm, machine: Bsp2Machine, n: number): number {
  return ALGORITHMS[algorithm].bsp(flat(machine), n);
}
