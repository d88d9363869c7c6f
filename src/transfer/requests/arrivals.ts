/**
 * Notifications that arrive at a rank of a window: writes with immediate of its peers, and messages of its fence
 * scheme.
 *
 * Each takes one receive of the window's shared receive queue, which holds no memory. Receives that were taken are
 * posted again when the rank looks. If it does not look for long, the queue's low watermark (dissertation §6.3.3)
 * raises an event, which wakes the rank if it sleeps, in whatever call of the library. Then more receives are posted,
 * up to `MOST_RECEIVES`. A target that computes on and on lets its peers' requests wait: their connections try again
 * until it comes.
 */
import { type CompletionQueue, WcStatus } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import type { ProtectionDomain } from '../../verbs/memory.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import type { Connections, WindowConnection } from './connections.ts';

/** Receives that are posted in the beginning, and at most; the watermark below which more are posted. */
const RECEIVES = 1024;
const MOST_RECEIVES = 4096;
const WATERMARK = 256;
/** Completions that are fetched by one poll. */
const POLLED = 64;

/**
 * Immediate data: a put that the next fence counts, a signal of `putNotify`, that an origin's access epoch is complete.
 * The others are the fence scheme's own, which numbers them from 0: `NOTES` that are counted (`TOLD` and behind it),
 * and as many of which each rank's are counted for itself (`FLAG` and behind it).
 */
export const COUNTED = 1;
export const SIGNAL = 2;
export const COMPLETED = 3;
export const TOLD = 4;
const NOTES = 8;
export const FLAG = TOLD + NOTES;

export class Arrivals {
  readonly cq: CompletionQueue;
  readonly srq: SharedReceiveQueue;
  /** Of each kind, since the window was made. */
  received = 0;
  signals = 0;
  readonly told: number[] = new Array<number>(NOTES).fill(0);
  /** How often the watermark made it post more receives. */
  refills = 0;
  /** Receives that are posted or whose completions are on their way. */
  #receives: number;
  /** As many as there can be: what the device has, at most `MOST_RECEIVES`. */
  readonly #most: number;

  constructor(context: Context, pd: ProtectionDomain) {
    const { maxCqe, maxSrqWr } = context.device;
    this.#most = Math.min(MOST_RECEIVES, maxCqe, maxSrqWr);
    this.cq = context.createCq(this.#most);
    this.cq.announce?.();
    this.#receives = Math.min(RECEIVES, this.#most);
    let srq: SharedReceiveQueue | undefined;
    try {
      srq = pd.createSharedReceiveQueue({ maxWr: this.#most });
      for (let i = 0; i < this.#receives; i++) srq.postRecv(i, 0, 0, 0);
      srq.arm(WATERMARK);
    } catch (error) {
      srq?.destroy();
      this.cq.destroy();
      throw error;
    }
    this.srq = srq;
  }

  /** Takes in all that have come. @param lose is told of connections that carry nothing any more */
  take(connections: Connections, lose: (connection: WindowConnection, status: number) => void): void {
    this.#refill();
    let taken = 0;
    for (;;) {
      const n = this.cq.poll(POLLED);
      taken += n;
      const { status, wrId, immData, qpNum } = this.cq.wc;
      for (let i = 0; i < n; i++) {
        const connection = connections.numbered(qpNum[i]);
        if (status[i] !== WcStatus.SUCCESS) lose(connection, status[i]);
        else this.#note(connection, immData[i]);
        this.srq.postRecv(wrId[i], 0, 0, 0);
      }
      if (n < POLLED) break;
    }
    // So many at once have passed the watermark, which disarmed it.
    if (taken > this.#receives - WATERMARK) this.srq.arm(WATERMARK);
    this.cq.reqNotify();
  }

  /**
   * Posts as many receives again as there are, when few are left. The watermark's event is there to wake this rank; how
   * many are left, a look tells.
   */
  #refill(): void {
    if (this.srq.posted >= WATERMARK || this.#receives >= this.#most) return;
    this.refills++;
    for (let more = Math.min(this.#receives, this.#most - this.#receives); more > 0; more--)
      this.srq.postRecv(this.#receives++, 0, 0, 0);
    this.srq.arm(WATERMARK);
  }

  #note(from: WindowConnection, what: number): void {
    if (what === COUNTED) this.received++;
    else if (what === SIGNAL) this.signals++;
    else if (what === COMPLETED) from.completed = (from.completed + 1) | 0;
    else if (what < FLAG) this.told[what - TOLD]++;
    else from.flags[what - FLAG] = (from.flagsOf(what - FLAG) + 1) | 0;
  }
}
