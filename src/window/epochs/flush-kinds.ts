/** What the calls of a passive epoch complete, whose operations may be under way: the flushes, and the unlocks. */

export interface FlushKind {
  /** Its name, for messages. */
  readonly call: string;
  /** It completes operations to all targets, not to one. */
  readonly all: boolean;
  /** Where they are complete then: at this rank, or at their targets, too. */
  readonly extent: 'here' | 'in memory';
  /** A lock is given back behind it. */
  readonly last: boolean;
}

export const FLUSHES = {
  flush: { call: 'flush', all: false, extent: 'in memory', last: false },
  flushAll: { call: 'flushAll', all: true, extent: 'in memory', last: false },
  flushLocal: { call: 'flushLocal', all: false, extent: 'here', last: false },
  flushLocalAll: { call: 'flushLocalAll', all: true, extent: 'here', last: false },
  unlock: { call: 'unlock', all: false, extent: 'in memory', last: true },
  unlockAll: { call: 'unlockAll', all: true, extent: 'in memory', last: true },
} as const satisfies Record<string, FlushKind>;
