/** Which barrier a program wants: what the ranks of a job say when they join it. */

export interface BarrierChoice {
  /** One of the family (collective/barrier-kinds.ts). */
  readonly kind: string;
  /** `dissemination`, `pairwise`, or `gather-broadcast:d`: for those by adapters. */
  readonly algorithm: string;
  /** Milliseconds: for `adapter`. */
  readonly nackAfter: number;
}

export const AUTOMATIC_BARRIER: BarrierChoice = { kind: 'auto', algorithm: 'dissemination', nackAfter: 10 };
