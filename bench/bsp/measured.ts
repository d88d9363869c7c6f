/** What bulk-synchronous programs have in common: what they say of a run. */
export { median } from '../statistics.ts';

export interface Measured {
  readonly processes: number;
  /** Of a run, of the process that took longest; the median of all runs. */
  readonly microseconds: number;
  /** Million operations a second, of all processes together. */
  readonly mflops: number;
  /** What is wrong, over all processes. */
  readonly errors: number;
}
