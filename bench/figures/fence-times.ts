/** Times with each of the four fences of the dissertation's chapter 6, one rank a node. */
import { fabricOf } from './fabrics.ts';
import { FENCES, type Fence, type Series } from './figure.ts';

export const FABRIC = { fabric: fabricOf('infinihost-64'), seed: 1 } as const;

/** Microseconds. */
export type Times = Readonly<Record<Fence, number>>;

/** At place `k`. */
export const timesAt = (series: readonly Series[], k: number): Times =>
  Object.fromEntries(series.map(({ name, values }) => [name, values[k]])) as Record<Fence, number>;

/** Whether none takes less, but for the part `within` − 1. */
export const cheapest = (times: Times, name: Fence, within = 1): boolean =>
  FENCES.every((other) => times[name] <= within * times[other]);
