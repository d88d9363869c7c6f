/**
 * Halo exchange with computation (dissertation §6.4.5, figure 6.11): ranks are a torus; in each step, everybody puts to
 * its 4 or 8 neighbours, computes, and ends the epoch by a fence. What a fence scheme costs, and what it lets happen
 * while one computes, shows in the time of a step.
 */
import { type Communicator, Op, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import type { Machine } from './machine.ts';

export interface HaloOptions {
  readonly neighbours: 4 | 8;
  /** Of each put: a multiple of 4. */
  readonly bytes: number;
  /** Microseconds of a step. */
  readonly compute: number;
  readonly steps: number;
  readonly info: WindowInfo;
}

export interface HaloResult {
  readonly neighbours: number;
  readonly grid: readonly [number, number];
  readonly bytes: number;
  readonly compute: number;
  readonly steps: number;
  /** Of a step: the mean of all steps, of the rank for which it was longest. */
  readonly microseconds: number;
  /** Borders that were not what the neighbour had put, of all steps and ranks. */
  readonly errors: number;
}

/** Neighbours: rows and columns away. Opposite ones are as far from the beginning as from the end of their four. */
const DIRECTIONS = [
  [-1, 0],
  [0, -1],
  [0, 1],
  [1, 0],
  [-1, -1],
  [-1, 1],
  [1, -1],
  [1, 1],
] as const;

/** Collective. */
export async function halo(world: Communicator, options: HaloOptions, machine: Machine): Promise<HaloResult> {
  const { neighbours, bytes, compute, steps, info } = options;
  const { rank, size } = world;
  let rows = Math.floor(Math.sqrt(size));
  while (size % rows !== 0) rows--;
  const columns = size / rows;
  const neighbour = (direction: number): number => {
    const [down, right] = DIRECTIONS[direction];
    const row = (Math.floor(rank / columns) + down + rows) % rows;
    return row * columns + (((rank % columns) + right + columns) % columns);
  };
  const targets = Array.from({ length: neighbours }, (_, d) => neighbour(d));
  const opposites = targets.map((_, d) => (d < 4 ? 3 - d : 11 - d));

  // A border for each direction that it comes from, twice: in a step the ones are written while what the step before
  // has brought is read from the others.
  const length = bytes / 4;
  const calls = callsOf(world, machine.form);
  await using window = await Window.allocate(world, Int32Array, 2 * neighbours * length, { info });
  const borders = window.local as Int32Array;
  const origins = targets.map(() => new Int32Array(length));
  /** Never what fresh memory holds. */
  const stamp = (sender: number, direction: number, step: number): number =>
    (((step + 2) * size + sender) * DIRECTIONS.length + direction) | 0;

  let errors = 0;
  let start = 0;
  await calls.fence(window);
  // Step -1 is the warm-up: connections are made, and code is compiled.
  for (let step = -1; step < steps; step++) {
    if (step === 0) {
      await calls.barrier();
      start = machine.now();
    }
    const half = (step & 1) * neighbours * length;
    for (let d = 0; d < neighbours; d++) {
      origins[d][0] = stamp(rank, d, step);
      origins[d][length - 1] = origins[d][0];
      window.put(origins[d], targets[d], half + opposites[d] * length);
    }
    await machine.compute(compute);
    await calls.fence(window);
    for (let d = 0; d < neighbours; d++) {
      const expected = stamp(targets[d], opposites[d], step);
      const at = half + d * length;
      if (borders[at] !== expected || borders[at + length - 1] !== expected) errors++;
    }
  }
  const took = Float64Array.of((machine.now() - start) / steps);
  const slowest = new Float64Array(1);
  await world.allreduce(took, slowest, Op.MAX);
  const total = new Int32Array(1);
  await world.allreduce(Int32Array.of(errors), total, Op.SUM);
  await calls.fence(window);
  return {
    neighbours,
    grid: [rows, columns],
    bytes,
    compute,
    steps,
    microseconds: slowest[0],
    errors: total[0],
  };
}
