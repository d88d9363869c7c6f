/** What the figures of the dissertation's chapter 5 share: its testbed, schemes, and what a lock and its unlock take. */
import type { WindowInfo } from 'onesided';
import { type Fabric, runTasks } from 'onesided/fabrics';
import { fabricOf } from './fabrics.ts';
import { forEach, lockFile, type Series, show } from './figure.ts';
import { mean, type PairsOptions, pairs } from './programs.ts';

export const NODES = fabricOf('connectx-16-cores');
export const seed = 1;
/** The same fabric with so many ranks a node. */
export const nodesOf = (ranks: number): Fabric => ({ ...NODES, node: { ...NODES.node, ranks } });
export const EVERY: WindowInfo = { lock: 'hybrid', lock_migration: 'every-request' };
export const NETWORK_MODE: WindowInfo = { lock: 'hybrid', lock_mode: 'network', lock_migration: 'never' };
export const SCHEMES: readonly (readonly [string, WindowInfo])[] = [
  ['two-sided', { lock: 'two-sided', lock_defer: true }],
  ['one-sided', { lock: 'direct' }],
  ['hybrid', EVERY],
];
/**
 * Where nothing is done under the lock, `two-sided` is waited for: a deferred lock around nothing ends before it was
 * granted.
 */
export const EMPTY: typeof SCHEMES = [['two-sided', { lock: 'two-sided' }], ...SCHEMES.slice(1)];
export const FILES = [lockFile('two-sided'), lockFile('direct'), lockFile('hybrid')];
export const SAMPLES = 20;

/** Microseconds of a lock and its unlock, the mean of all ranks that take one. */
export async function pairsOf(
  size: number,
  options: Pick<PairsOptions, 'info' | 'target' | 'compute' | 'pieces'>,
  fabric: Fabric = NODES,
): Promise<number> {
  const whole = { ...options, samples: SAMPLES, warm: 1 };
  return mean(await runTasks(size, (world) => pairs(world, whole), { fabric, seed }));
}

const bySchemes = (
  run: (info: WindowInfo) => Promise<number[]>,
  schemes: readonly (readonly [string, WindowInfo])[] = SCHEMES,
): Promise<Series[]> => forEach(schemes, async ([name, info]) => ({ name, values: await run(info) }));

/** The same for locks around nothing. */
export const byEmpty = (run: (info: WindowInfo) => Promise<number[]>): Promise<Series[]> => bySchemes(run, EMPTY);

export const listed = (series: readonly Series[], k: number): string =>
  series.map(({ name, values }) => `${name} ${show(values[k])}`).join(', ');
