/**
 * The completions of a rank's messages, in their order. A call that sends many chunks takes back the memory of those
 * that have left (`reap`); what it finds of other completions waits for the next poll, since listeners must not be told
 * of messages in the midst of a call that sends. No wake-up is lost by that: each wait polls before it sleeps.
 */
import { type CompletionQueue, WcStatus } from '../verbs/completion-queue.ts';

/** How many completions are asked for at a time. */
const BATCH = 16;

/** What is done with one completion. */
export type Complete = (id: number, status: number, opcode: number, byteLen: number, qpNum: number) => void;

export class MessageCompletions {
  readonly #cq: CompletionQueue;
  readonly #complete: Complete;
  readonly #lose: (error: unknown) => void;
  /** The queue is lost: nothing comes from it any more. */
  #isLost = false;
  /** Found by `reap`, oldest first. All of them are older than what is in the queue. */
  #kept: Parameters<Complete>[] = [];
  #isPolling = false;
  /** The first error of this poll. */
  #failure: { readonly error: unknown } | undefined;

  /** @param lose is told, once, when the queue is lost */
  constructor(cq: CompletionQueue, complete: Complete, lose: (error: unknown) => void) {
    this.#cq = cq;
    this.#complete = complete;
    this.#lose = lose;
  }

  #fetch(): number {
    if (this.#isLost) return 0;
    try {
      return this.#cq.poll(BATCH);
    } catch (error) {
      this.#isLost = true;
      this.#lose(error);
      return 0;
    }
  }

  /** Has the next completion ring this rank's bell. */
  wantNews(): void {
    if (this.#isLost) return;
    try {
      this.#cq.reqNotify();
    } catch (error) {
      this.#isLost = true;
      this.#lose(error);
    }
  }

  /** Completes all. @returns the first error that a completion has thrown; the others were completed all the same */
  poll(): { readonly error: unknown } | undefined {
    const outer = this.#isPolling;
    this.#isPolling = true;
    this.#failure = undefined;
    if (this.#kept.length > 0) this.#takeKept();
    const { wrId, status, opcode, byteLen, qpNum } = this.#cq.wc;
    for (let n = this.#fetch(); n > 0; n = this.#fetch()) {
      for (let i = 0; i < n; i++) this.#take(wrId[i], status[i], opcode[i], byteLen[i], qpNum[i]);
    }
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
    const { wrId, status, opcode, byteLen, qpNum } = this.#cq.wc;
    for (let n = this.#fetch(); n > 0; n = this.#fetch()) {
      for (let i = 0; i < n; i++) {
        if (wrId[i] < below && status[i] === WcStatus.SUCCESS) sent(wrId[i]);
        else this.#kept.push([wrId[i], status[i], opcode[i], byteLen[i], qpNum[i]]);
      }
    }
  }
}
