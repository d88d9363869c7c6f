/**
 * Schedules: one requirement of the conformance suite on a modelled fabric, on which what may be reordered is reordered
 * by a seed. Messages of different connections overtake each other, what happens at one time happens in random order,
 * messages are lost and sent again. The same seed is the same schedule, whatever the machine, so one that finds
 * something is repeated by its number.
 */
import type { WindowInfo } from 'onesided';
import { type Fabric, type FaultOptions, loadFabric, runTasks, type TaskOptions } from 'onesided/fabrics';
import { type Requirement, Trial } from '../conformance/requirement.ts';
import { FENCES_BY_HINT, LOCKS_BY_HINT, SCHEDULES as NAMES, NONCONTIGUOUS_NAMES, UPDATE_SCHEMES } from './kinds.ts';
import { Random } from './random.ts';

export interface Schedule {
  /** A name, or a name and the ranks of a node: `connectx-16-cores/2`. */
  readonly fabric: string;
  readonly size: number;
  readonly seed: number;
}

/**
 * What the seed stands for: every fourth schedule is an orderly one, every fourth loses messages; the others delay
 * them, more or less. Half of all place puts late.
 */
function faultsOf(seed: number): { readonly order: 'ranks' | 'random'; readonly faults: FaultOptions } {
  const late = Math.floor(seed / 16) % 2 === 1 ? { placement: 20 } : {};
  switch (seed % 4) {
    case 0:
      return { order: 'ranks', faults: late };
    case 1:
      return { order: 'random', faults: { ...late, delay: 2 } };
    case 2:
      return { order: 'random', faults: { ...late, delay: 50 } };
    default:
      return { order: 'random', faults: { ...late, delay: 5, loss: 0.02 } };
  }
}

/** The same, with more losses: of no datagram in every fourth schedule, and of up to 30 % in the others. */
function lossesOf(seed: number): ReturnType<typeof faultsOf> {
  const { order, faults } = faultsOf(seed);
  return { order, faults: { ...faults, datagramLoss: (0.3 * (seed % 4) * (1 + (Math.floor(seed / 4) % 5))) / 15 } };
}

export const FENCES: readonly WindowInfo[] = FENCES_BY_HINT.map((fence) => ({ fence }));

/** Each scheme as it is, and those that have more hints with these. */
export const LOCKS: readonly WindowInfo[] = [
  ...LOCKS_BY_HINT.map((lock) => ({ lock })),
  { lock_order: 'running-first' },
  { lock: 'remote', lock_order: 'running-first' },
  { lock: 'hybrid', lock_order: 'running-first', lock_migration: 'never' },
  { lock: 'two-sided', lock_defer: true },
  { lock: 'hybrid', lock_migration: 'every-request' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'threshold:2' },
  { lock: 'hybrid', lock_migration: 'never' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'never' },
  { lock: 'hybrid', lock_defer: true },
  { lock: 'hybrid', lock_migration: 'threshold:2', lock_defer: true },
  { lock: 'hybrid', lock_cpu: 'one-word', lock_migration: 'threshold:2' },
  { lock: 'hybrid', lock_cpu: 'one-word', lock_migration: 'never' },
];

export const SCHEDULES: readonly WindowInfo[] = NAMES.map((schedule) => ({ schedule }));

export const LAYOUTS: readonly WindowInfo[] = NONCONTIGUOUS_NAMES.map((noncontiguous) => ({ noncontiguous }));

/** Four schedules with the schemes that windows have by themselves, then four with others. */
function hintsOf(seed: number): WindowInfo {
  const turn = Math.floor(seed / 4);
  if (turn % 2 === 0) return {};
  const pair = (turn - 1) / 2;
  return {
    ...FENCES[pair % FENCES.length],
    ...LOCKS[pair % LOCKS.length],
    ...SCHEDULES[(pair + 1) % SCHEDULES.length],
    update: UPDATE_SCHEMES[pair % UPDATE_SCHEMES.length],
    ...LAYOUTS[(pair + 1) % LAYOUTS.length],
  };
}

function fabricOf(text: string): Fabric {
  const [name, ranks] = text.split('/');
  const fabric = loadFabric(name);
  return ranks === undefined ? fabric : { ...fabric, node: { ...fabric.node, ranks: Number(ranks) } };
}

/** The same with adapters that carry out barriers, in both ways. */
function withAdapters(fabric: Fabric): Fabric {
  // On an Ethernet requests can wait, but adapters have no protocol of their own.
  if (fabric.ethernet !== undefined) return { ...fabric, adapter: { ...fabric.adapter, step: 0.5 } };
  return { ...fabric, adapter: { ...fabric.adapter, step: 0.5, barrierSend: 1.2, barrierReceive: 1.8 } };
}

/** Puts a requirement on trial under one schedule. @param races how races are searched for @returns what went wrong */
export async function tryUnder(
  { run, barriers, isLossy }: Requirement,
  { fabric, size, seed }: Schedule,
  races?: TaskOptions['races'],
): Promise<unknown> {
  const modelled = fabricOf(fabric);
  try {
    await runTasks(
      size,
      (world) => {
        const [own, shared] = [new Random(seed, 0, world.rank), new Random(seed, 0)];
        // What is lost there is sent again after 200 ms at the soonest.
        const slowness = modelled.ethernet === undefined ? 1 : 1000;
        return run!(new Trial(world, own, shared, false, hintsOf(seed), slowness));
      },
      {
        fabric: barriers === undefined ? modelled : withAdapters(modelled),
        ...(races !== undefined && { races }),
        ...{ seed, ...(isLossy === true ? lossesOf(seed) : faultsOf(seed)), ...barriers },
      },
    );
    return undefined;
  } catch (error) {
    return error ?? new Error('nothing was thrown');
  }
}

/** Whether an error is only that something is not to be had on a device: the library says so, and nothing else. */
export function isNotOnDevices(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (NOT_ON_DEVICES.test(at.message)) return true;
  return false;
}

const NOT_ON_DEVICES =
  /cannot load and store its memory|is behind a device|are not on devices|needs a provider whose requests/;
