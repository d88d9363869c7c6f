/**
 * `onesided/bsp`: bulk-synchronous programs (BSPlib) on the ranks of a job.
 *
 *     import { run } from 'onesided/bsp';
 *     await run(async (bsp) => { … await bsp.sync(); … });
 */
import { publicCalls } from '../program-line.ts';
import { begin, run } from './begin-computation.ts';
import { Bsp } from './bsp.ts';
import { Bsp2 } from './bsp2.ts';

export { begin, type RunOptions, run } from './begin-computation.ts';
export { Bsp, type BspStatistics, type Message } from './bsp.ts';
export type { BspOptions, HeaderName } from './bsp-options.ts';
export { Bsp2 } from './bsp2.ts';
export type { CountExchange } from './delivery/counts.ts';
export type { DatagramStatistics } from './delivery/datagram-counts.ts';
export type { DeliveryName } from './delivery/delivery-kinds.ts';
export type { PacingStatistics } from './delivery/pacing-counts.ts';
export type { PacingOption, PacingSlots } from './pacing-options.ts';
export type { Units } from './units.ts';
/** The calls that begin a computation, under the name that programs know. */
export const bsp = { begin, run } as const;

publicCalls(begin, run, Bsp, Bsp2);
