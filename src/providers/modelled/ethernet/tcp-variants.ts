/**
 * What TCP did elsewhere: numbers that replace those of a description, `{ ...fabric.tcp, ...tcpVariants.bsd }`. The
 * descriptions of this package are Solaris'.
 */
import { MOST_WINDOW, type TcpNumbers } from './ethernet-numbers.ts';

/** More segments than any window has. */
const NO_COUNT = 2 ** 20;

export const tcpVariants = Object.freeze({
  /** Hosts on one network: 50 ms or 8 segments (Solaris manual: tcp_local_dack_interval, tcp_local_dacks_max). */
  solaris: Object.freeze({ delay: 50_000, segments: 8, tick: 0, timeout: 200_000, firstTimeout: 500_000 }),
  /**
   * 4.4BSD: one clock that ticks every 200 milliseconds for all connections, an acknowledgement for two full segments,
   * no timeout below a second (Wright and Stevens, TCP/IP Illustrated, volume 2).
   */
  bsd: Object.freeze({ delay: 200_000, segments: 2, tick: 1, timeout: 1_000_000, firstTimeout: 1_500_000 }),
  /** As Donaldson, Hill and Skillicorn tell it: a timer of 200 milliseconds alone, and a window that never closes. */
  timer: Object.freeze({ delay: 200_000, segments: NO_COUNT, window: MOST_WINDOW, window0: MOST_WINDOW }),
  /** Each segment is acknowledged at once. */
  immediate: Object.freeze({ segments: 0 }),
  /** Acknowledgements without data take no frame: what remains is not their doing. */
  silent: Object.freeze({ silent: 1 }),
}) satisfies Readonly<Record<string, Partial<TcpNumbers>>>;
