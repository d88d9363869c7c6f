/** Which barrier a program wants: what the ranks of a job say when they join it. */

/** How a barrier goes from rank to rank; `auto` is words where memory is loaded and stored, and messages elsewhere. */
export type BarrierKind = 'auto' | 'words' | 'messages' | 'waits' | 'adapter';

export interface BarrierChoice {
  readonly kind: BarrierKind;
  /** `dissemination`, `pairwise`, or `gather-broadcast:d`: for `waits` and `adapter`. */
  readonly algorithm: string;
  /** Milliseconds: for `adapter`. */
  readonly nackAfter: number;
}

export const AUTOMATIC_BARRIER: BarrierChoice = { kind: 'auto', algorithm: 'dissemination', nackAfter: 10 };
