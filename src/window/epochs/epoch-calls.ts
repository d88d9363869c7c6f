/** What epochs are told apart by, and the calls that open and end them. */
import { LockBit } from '../../sync/lock/lock-scheme.ts';

/** What opens all targets at once, in bits that go with those of `Target.held`: a fence, */
export const FENCE = 16;
/** or `lockAll`, which is a shared lock. */
export const LOCK_ALL = LockBit.SHARED;

/** Something was issued in the epoch that the last fence opened; */
export const USED = 1;
/** plain stores were made that no fence instruction has followed. */
export const STORED = 2;

/** The calls that synchronize, and are under way until what they wait for has happened. */
export type EpochCall = 'fence' | 'start' | 'complete' | 'lockAll' | 'unlockAll';

/** What to do about one whose wait ended early: it goes on when it is called again. */
export const REMEDIES = { fence: 'call fence again', complete: 'call complete again' } as const;
export type Resumed = keyof typeof REMEDIES;
