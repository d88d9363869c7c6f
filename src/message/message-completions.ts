/**
 * The completions of a rank's messages, in their order. A call that sends many chunks takes back the memory of those
 * that have left (`reap`); what it finds of other completions waits for the next poll, since listeners must not be told
 * of messages in the midst of a call that sends. No wake-up is lost by that: each wait polls before it sleeps.
 */
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';
import { WatchedQueue } from './watched-queue.ts';

/** How many completions are asked for at a time. */
const BATCH = 16;

/** What is done with one completion. */
export type Complete = (id: number, status: number, opcode: number, byteLen: number, qpNum: number) => void;

export class MessageCompletions {
  readonly #queue: WatchedQueue;
  readonly #complete: Complete;
  /** A look that brings fewer is the last one of a poll. */
  readonly #least: number;
  /** Found by `reap`, oldest first. All of them are older than what is in the queue. */
  #kept: Parameters<Complete>[] = [];
  #isPolling = false;
  /** The first error of this poll. */
  #failure: { readonly error: unknown } | undefined;

  /**
   * @param lose is told, once, when the queue is lost
   * @param atOnce a poll takes what is there, and not what comes meanwhile: to look again costs a system call. A queue
   * that is asked for news (`wantNews`) says so if there is more
   */
  constructor(cq: CompletionQueue, complete: Complete, lose: (error: unknown) => void, atOnce = false) {
    this.#queue = new WatchedQueue(cq, BATCH, lose);
    this.#complete = complete;
    this.#least = atOnce ? BATCH : 1;
  }

  /** Has the next completion ring this rank's bell. */
  wantNews(): void {
    this.#queue.wantNews();
  }

  /**
   * Completes all.
   * @param untilNone also looks for what comes meanwhile
   * @returns the first error that a completion has thrown; the others were completed all the same
   */
  poll(untilNone: boolean): { readonly error: unknown } | undefined {
    const outer = this.#isPolling;
    this.#isPolling = true;
    this.#failure = undefined;
    if (this.#kept.length > 0) this.#takeKept();
    const queue = this.#queue;
    const { wrId, status, opcode, byteLen, qpNum } = queue.cq.wc;
    const least = untilNone ? 1 : this.#least;
    let n: number;
    do {
      n = queue.fetch();
      for (let i = 0; i < n; i++) this.#take(wrId[i], status[i], opcode[i], byteLen[i], qpNum[i]);
    } while (n >= least);
    this.#isPolling = outer;
    return this.#failure;
  }

  #takeKept(): void {
    const kept = this.#kept;
    this.#kept = [];
    for (const [id, status, opcode, byteLen, qpNum] of kept) this.#take(id, status, opcode, byteLen, qpNum);
  }

  #take(id: number, status: number, opcode: number, byteLen: number, qpNum: number): void {
    try {
      this.#complete(id, status, opcode, byteLen, qpNum);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  /**
   * Looks for sends that are complete. Not within a poll, which calls listeners that send: it has still to read what
   * the queue gave it.
   * @param below identifiers of sends are less
   * @param sent takes one that has succeeded
   */
  reap(below: number, sent: (id: number) => void): void {
    if (this.#isPolling) return;
    const queue = this.#queue;
    const { wrId, status, opcode, byteLen, qpNum } = queue.cq.wc;
    for (let n = queue.fetch(); n > 0; n = queue.fetch()) {
      for (let i = 0; i < n; i++) {
        if (wrId[i] < below && status[i] === WcStatus.SUCCESS) sent(wrId[i]);
        else this.#kept.push([wrId[i], status[i], opcode[i], byteLen[i], qpNum[i]]);
      }
    }
  }
}
