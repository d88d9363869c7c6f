/** The schemes of the library that is tested, from its own lists: a new one goes through all programs by itself. */

// Compiled programs lie two folders deeper than their sources.
const up = import.meta.url.includes('/build/programs/') ? '../../../../../' : '../../../';
const kindsOf = (what: string): string => new URL(`${up}dist/sync/${what}/kinds.js`, import.meta.url).href;

const fences = (await import(kindsOf('fence'))) as typeof import('../../../src/sync/fence/kinds.ts');
const locks = (await import(kindsOf('lock'))) as typeof import('../../../src/sync/lock/kinds.ts');

export type { FenceSchemeName } from '../../../src/sync/fence/kinds.ts';
export const { FENCE_SCHEMES } = fences;
/** The fences that a window can have wherever its ranks are. */
export const FENCES_BY_HINT = FENCE_SCHEMES.filter((name) => fences.fenceNamed(name).moves !== 'immediately');
/** The locks that a window has by a hint alone. */
export const LOCKS_BY_HINT = locks.LOCK_SCHEMES.filter((name) => name !== 'queue');
