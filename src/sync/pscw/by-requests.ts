/**
 * Start/complete/post/wait where memory cannot be shared. A post is a message to each origin. A complete is a write of
 * no bytes with immediate to each target, on the connection that this rank's puts to it have taken: that a put is
 * complete at its origin is not enough for the target's loads (see immediate-optimized.ts), but the immediate arrives
 * behind the data of all writes before it.
 *
 * So a target is told as soon as all that is for it has been posted, not only when it has been carried out; the origin
 * itself waits for its requests, since `complete` gives it its buffers back and brings what it gets. There is no third
 * rank that could find less than it was promised: whoever may get here what this rank puts elsewhere is told by that
 * target's post, after its own `wait`.
 *
 * Posts of one sender arrive in order, and so do its completes, so epochs can follow each other without any more.
 * Between the two there is no order, and none is needed.
 */
import type { Channel } from '../../comm/collectives.ts';
import type { Operation } from '../../comm/operation.ts';
import type { RequestTransfer } from '../../transfer/requests.ts';
import type { GeneralActiveTarget } from './scheme.ts';

const POSTED = new Uint8Array(0);

export class SyncByRequests implements GeneralActiveTarget {
  readonly seesPostsAtOnce = false;
  readonly #channel: Channel;
  readonly #requests: RequestTransfer;
  /** By peer: posts that have arrived and were not used up; completes that were used up. */
  readonly #posts: Int32Array;
  readonly #completes: Int32Array;
  /** By peer: whether it has been told that the epoch is complete, which has not ended here yet. */
  readonly #told: Uint8Array;

  /** @param channel nothing else goes through it */
  constructor(channel: Channel, requests: RequestTransfer) {
    this.#channel = channel;
    this.#requests = requests;
    this.#posts = new Int32Array(channel.size);
    this.#completes = new Int32Array(channel.size);
    this.#told = new Uint8Array(channel.size);
  }

  post(origins: readonly number[]): void {
    for (const origin of origins) this.#channel.send(origin, POSTED);
  }

  tryStart(targets: readonly number[]): boolean {
    for (const target of targets) {
      while (this.#posts[target] === 0) {
        if (this.#channel.receive(target) === undefined) return false;
        this.#posts[target]++;
      }
    }
    for (const target of targets) this.#posts[target]--;
    return true;
  }

  start(targets: readonly number[]): Operation {
    return {
      advance: () => this.tryStart(targets),
      describe: () => `start (waiting for the post of rank ${targets.filter((t) => this.#posts[t] === 0).join(', ')})`,
    };
  }

  completing(targets: readonly number[]): Operation {
    const flush = this.#requests.drain();
    return {
      advance: () => {
        for (const target of targets) if (this.#requests.isPosted(target)) this.#tell(target);
        return flush.advance();
      },
      describe: () => `complete: ${flush.describe()}`,
      abandon: () => flush.abandon?.(),
      isPolling: () => flush.isPolling?.() ?? false,
    };
  }

  complete(targets: readonly number[]): void {
    for (const target of targets) {
      this.#tell(target);
      this.#told[target] = 0;
    }
  }

  #tell(target: number): void {
    if (this.#told[target] !== 0) return;
    this.#told[target] = 1;
    this.#requests.tellCompleted(target);
  }

  tryWait(origins: readonly number[]): boolean {
    if (!this.#haveCompleted(origins)) {
      this.#requests.poll();
      if (!this.#haveCompleted(origins)) return false;
    }
    for (const origin of origins) this.#completes[origin] = (this.#completes[origin] + 1) | 0;
    return true;
  }

  wait(origins: readonly number[]): Operation {
    return {
      advance: () => this.tryWait(origins),
      describe: () =>
        `wait (waiting for the complete of rank ${origins.filter((o) => !this.#hasCompleted(o)).join(', ')})`,
    };
  }

  #haveCompleted(origins: readonly number[]): boolean {
    for (const origin of origins) if (!this.#hasCompleted(origin)) return false;
    return true;
  }

  #hasCompleted(origin: number): boolean {
    return ((this.#requests.completedBy(origin) - this.#completes[origin]) | 0) > 0;
  }
}
