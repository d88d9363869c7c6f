/** What pacing has done at a process. */

/** Since the computation began; it is in `BspStatistics`. */
export interface PacingStatistics {
  /** Packets that were sent. */
  readonly packets: number;
  /** Those of them that had a slot: one in each cycle. */
  readonly cycles: number;
  /** Those of these that left before their slot was over. */
  readonly kept: number;
  /** Turns that came when the slot of a packet was over already. */
  readonly late: number;
  /** The most microseconds from the beginning of a slot until its packet left. */
  readonly lateness: number;
  /** Turns that sent several packets that had a slot, up to 4. */
  readonly bursts: number;
  /** Of the last superstep: processes that sent anything, and the most packets of one of them. */
  readonly senders: number;
  readonly most: number;
  /** Of the last superstep: slots of a cycle, and their microseconds; 0: packets left as soon as they could. */
  readonly slots: number;
  readonly slot: number;
  /** Of the last superstep: chunks left whole, since packets cost more than they gain (`pacing: 'auto'`). */
  readonly whole: boolean;
  /** Whether the pace of the last superstep was a try, by `pacing: 'auto'`, or a measurement, by `'slots'`. */
  readonly isTrying: boolean;
}

export class PacingCounts {
  packets = 0;
  cycles = 0;
  kept = 0;
  late = 0;
  lateness = 0;
  bursts = 0;
  senders = 0;
  most = 0;

  /** A packet leaves so long after its slot of `slot` microseconds began. @returns whether that was over */
  left(lateness: number, slot: number): boolean {
    this.cycles++;
    this.lateness = Math.max(this.lateness, lateness);
    if (lateness >= slot) return true;
    this.kept++;
    return false;
  }

  /** A turn has sent so many packets. */
  turned(packets: number, wasLate: boolean): void {
    if (packets > 1) this.bursts++;
    if (wasLate) this.late++;
  }
}
