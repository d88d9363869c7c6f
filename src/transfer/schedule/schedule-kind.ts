/** What a schedule says of itself: hints, documentation and tests know it from this alone. */

/** An operation of an epoch that has not been posted. */
export interface Schedulable {
  /** Whether its data leaves this rank; otherwise it comes. */
  readonly puts: boolean;
}

export interface ScheduleKind<N extends string = string> {
  /** Its value of the hint `schedule`. */
  readonly name: N;
  /** The order in which held operations are posted, from that of the calls. Without it, that of the calls. */
  order?<T extends Schedulable>(held: readonly T[]): readonly T[];
  /** Which small operations travel with the message that completes their epoch. */
  readonly folds?: 'puts' | 'gets';
}

export function scheduleKind<const N extends string>(kind: ScheduleKind<N>): ScheduleKind<N> {
  return kind;
}
