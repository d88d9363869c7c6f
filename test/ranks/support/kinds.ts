/** The schemes of the library that is tested, from its own lists: a new one goes through all programs by itself. */

// Compiled programs lie two folders deeper than their sources.
const up = import.meta.url.includes('/build/programs/') ? '../../../../../' : '../../../';
const kindsOf = (what: string): string => new URL(`${up}dist/${what}-kinds.js`, import.meta.url).href;

const fences = (await import(kindsOf('sync/fence/fence'))) as typeof import('../../../src/sync/fence/fence-kinds.ts');
const locks = (await import(kindsOf('sync/lock/lock'))) as typeof import('../../../src/sync/lock/lock-kinds.ts');
const schedules = (await import(
  kindsOf('transfer/schedule/schedule')
)) as typeof import('../../../src/transfer/schedule/schedule-kinds.ts');

const updates = (await import(
  kindsOf('transfer/served/update')
)) as typeof import('../../../src/transfer/served/update-kinds.ts');

const layouts = (await import(
  kindsOf('transfer/layouts/layout')
)) as typeof import('../../../src/transfer/layouts/layout-kinds.ts');

const deliveries = (await import(
  kindsOf('bsp/delivery/delivery')
)) as typeof import('../../../src/bsp/delivery/delivery-kinds.ts');

import type { ScheduleHint } from '../../../src/transfer/schedule/schedule-kinds.ts';

export type { FenceSchemeName } from '../../../src/sync/fence/fence-kinds.ts';
export type { ScheduleHint };
export const { FENCE_SCHEMES } = fences;
/** The fences that a window can have wherever its ranks are. */
export const FENCES_BY_HINT = FENCE_SCHEMES.filter((name) => fences.fenceNamed(name).moves !== 'immediately');
/** The locks that a window has by a hint alone. */
export const LOCKS_BY_HINT = locks.LOCK_SCHEMES.filter((name) => name !== 'queue');
export const { UPDATE_SCHEMES } = updates;
export const { NONCONTIGUOUS_NAMES } = layouts;
export const { DELIVERIES } = deliveries;
/** The schedules of puts and gets, each alone, and together: all lists of those that change the order, and of all. */
export const SCHEDULES: readonly ScheduleHint[] = (() => {
  const [alone, ...combined] = schedules.SCHEDULE_NAMES;
  const lists: string[] = [];
  for (const name of combined.slice(0, -1)) lists.push(...lists.map((list) => `${list},${name}`), name);
  return [alone, ...lists, combined.at(-1), combined.slice(-2).join(), combined.join()] as ScheduleHint[];
})();
