/**
 * Start/complete/post/wait by counters, where remote memory can be loaded and stored.
 *
 * Each rank has a line of words for each peer, which that peer alone writes and it alone reads:
 *   POSTED     exposure epochs that the peer has opened for this rank
 *   COMPLETED  access epochs to this rank's part that the peer has completed
 * The counts only grow (wrapping around), and each side keeps count of what it has used up, so epochs can follow each
 * other without any more messages: a target may post again before the origin has started, and an origin's second start
 * waits for the second post.
 *
 * Memory order. An origin's puts are stores before its store of COMPLETED; the target loads that count and then its own
 * part. A target's own stores come before its store of POSTED, and the origin loads that count before it gets. Both are
 * stores with release order and loads with acquire order: plain ones where the processor keeps stores in order and a
 * rank that goes to sleep makes others' plain stores visible (`plain`, as for the pair's barrier), `Atomics` elsewhere.
 * The same condition keeps a wake-up from being lost: the writer stores the count and then looks whether the reader
 * sleeps, the reader announces its sleep and then looks at the count.
 *
 * Cost: a store to each peer for post and complete, a line fetched from each peer for start and wait.
 */

import { loadAcquire, TOTAL_STORE_ORDER } from '../../memory-model.ts';
import type { Context } from '../../verbs/device.ts';
import type { Operation } from '../../wait/operation.ts';
import type { GeneralActiveTarget } from './pscw-scheme.ts';

const POSTED = 0;
const COMPLETED = 1;
/** Words of a peer's line. */
const LINE = 16;

/** Words that each rank's block needs for `size` peers. */
export function counterWords(size: number): number {
  return LINE * size;
}

export class Counters implements GeneralActiveTarget {
  readonly seesPostsAtOnce = true;
  readonly #context: Context;
  readonly #rank: number;
  readonly #members: readonly number[];
  readonly #plain: boolean;
  readonly #own: Int32Array;
  readonly #linesOf: (rank: number) => Int32Array;
  readonly #peers: (Int32Array | undefined)[];
  /**
   * By peer: exposures to it, of those completed by it that were waited for; its exposures that starts used up;
   * accesses to it completed.
   */
  readonly #posts: Int32Array;
  readonly #starts: Int32Array;
  readonly #completes: Int32Array;

  /** @param linesOf maps the lines of a rank; @param plain all ranks see plain stores when they go to sleep */
  constructor(
    context: Context,
    rank: number,
    members: readonly number[],
    plain: boolean,
    linesOf: (rank: number) => Int32Array,
  ) {
    this.#context = context;
    this.#rank = rank;
    this.#members = members;
    this.#plain = plain && TOTAL_STORE_ORDER;
    this.#linesOf = linesOf;
    this.#own = linesOf(rank);
    this.#peers = new Array<undefined>(members.length).fill(undefined);
    this.#posts = new Int32Array(members.length);
    this.#starts = new Int32Array(members.length);
    this.#completes = new Int32Array(members.length);
  }

  post(origins: readonly number[]): void {
    // All are mapped before the first is told: if one is gone, no rank was told anything.
    for (let i = 0; i < origins.length; i++) this.#lines(origins[i]);
    for (let i = 0; i < origins.length; i++) this.#tell(origins[i], POSTED, ++this.#posts[origins[i]]);
  }

  tryStart(targets: readonly number[]): boolean {
    for (let i = 0; i < targets.length; i++) if (!this.#hasPosted(targets[i])) return false;
    for (let i = 0; i < targets.length; i++) this.#starts[targets[i]]++;
    return true;
  }

  start(targets: readonly number[]): Operation {
    return {
      advance: () => this.tryStart(targets),
      describe: () => `start (waiting for the post of rank ${targets.filter((t) => !this.#hasPosted(t)).join(', ')})`,
    };
  }

  complete(targets: readonly number[]): void {
    for (let i = 0; i < targets.length; i++) this.#lines(targets[i]);
    for (let i = 0; i < targets.length; i++) this.#tell(targets[i], COMPLETED, ++this.#completes[targets[i]]);
  }

  tryWait(origins: readonly number[]): boolean {
    for (let i = 0; i < origins.length; i++) if (!this.#hasCompleted(origins[i])) return false;
    return true;
  }

  wait(origins: readonly number[]): Operation {
    return {
      advance: () => this.tryWait(origins),
      describe: () =>
        `wait (waiting for the complete of rank ${origins.filter((o) => !this.#hasCompleted(o)).join(', ')})`,
    };
  }

  #hasPosted(target: number): boolean {
    return ((loadAcquire(this.#own, LINE * target + POSTED) - this.#starts[target]) | 0) > 0;
  }

  #hasCompleted(origin: number): boolean {
    return ((loadAcquire(this.#own, LINE * origin + COMPLETED) - this.#posts[origin]) | 0) >= 0;
  }

  #tell(peer: number, word: number, count: number): void {
    const lines = this.#lines(peer);
    const at = LINE * this.#rank + word;
    if (this.#plain) lines[at] = count;
    else Atomics.store(lines, at, count);
    if (peer !== this.#rank) this.#context.wake(this.#members[peer]);
  }

  #lines(peer: number): Int32Array {
    const lines = this.#peers[peer];
    if (lines !== undefined) return lines;
    const mapped = this.#linesOf(peer);
    this.#peers[peer] = mapped;
    return mapped;
  }
}
