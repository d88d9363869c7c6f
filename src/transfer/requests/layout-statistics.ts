/** What a window counts of layouts of several pieces (hint `noncontiguous`). Each count is of this rank. */

/** The counters of layouts that `Window.statistics` returns. */
export interface LayoutStatistics {
  /** Puts and gets of this rank that went packed: by the hint, or because no list could carry them. */
  readonly packed: number;
  /** Second connections that this rank has made. */
  readonly connections: number;
  /** Requests of this rank that said a layout with all its words. */
  readonly layoutsSaid: number;
  /** Requests of this rank that said a layout with the number that it had got before. */
  readonly layoutsNamed: number;
  /** Messages that this rank has sent on second connections. */
  readonly sends: number;
  /** Entries of the gather lists of these, together. */
  readonly sendEntries: number;
  /** Receives that this rank has posted on second connections; as many as messages are sent to it. */
  readonly receives: number;
  /** Entries of the scatter lists of these, together. */
  readonly receiveEntries: number;
  /** Entries of the longest list of either kind. */
  readonly mostEntries: number;
}

/** What `second-connections.ts` counts. */
export type MessageCounts = {
  -readonly [K in keyof LayoutStatistics as K extends 'packed' | 'layoutsSaid' | 'layoutsNamed'
    ? never
    : K]: LayoutStatistics[K];
};

export function noMessages(): MessageCounts {
  return { connections: 0, sends: 0, sendEntries: 0, receives: 0, receiveEntries: 0, mostEntries: 0 };
}
