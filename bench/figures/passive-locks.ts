/**
 * The locks of the dissertation's chapter 4, one rank a node. `two-sided` is that of the dissertation's library
 * (`lock_defer`): the unlock asks for the lock, or sends one small operation with it.
 */
import type { WindowInfo } from 'onesided';
import { fabricOf } from './fabrics.ts';
import { lockFile, type Series } from './figure.ts';

export const FABRIC = { fabric: fabricOf('infinihost-64'), seed: 1 } as const;
export const TWO_SIDED: WindowInfo = { lock: 'two-sided', lock_defer: true };
export const DIRECT: WindowInfo = { lock: 'direct' };
export const SCHEMES: readonly (readonly [string, WindowInfo])[] = [
  ['two-sided', TWO_SIDED],
  ['direct', DIRECT],
];
export const FILES = [lockFile('two-sided'), lockFile('direct')];
export const RANKS = [8, 16, 32, 64];

/** The same of another operation, or size. */
export const alike = (series: readonly Series[], what: string): Series[] =>
  series.map(({ name, values }) => ({ name: `${name}, ${what}`, values, like: name }));
