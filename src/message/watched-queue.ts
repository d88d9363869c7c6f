/**
 * A completion queue as its user looks at it. When it refuses a look, it is lost: the user is told so once, and later
 * looks do not ask the device again.
 */
import type { CompletionQueue } from '../verbs/completion-queue.ts';

export class WatchedQueue {
  readonly cq: CompletionQueue;
  /** Nothing comes from it any more. */
  isLost = false;
  readonly #most: number;
  readonly #lose: (error: unknown) => void;

  /**
   * @param most how many completions are asked for at a time
   * @param lose is told what the queue has thrown. What it throws itself goes to the caller of the look, and the queue
   * is not lost
   */
  constructor(cq: CompletionQueue, most: number, lose: (error: unknown) => void) {
    this.cq = cq;
    this.#most = most;
    this.#lose = lose;
  }

  /** @returns how many completions `cq.wc` has; none if it is lost */
  fetch(): number {
    if (this.isLost) return 0;
    try {
      return this.cq.poll(this.#most);
    } catch (error) {
      this.#noteLost(error);
      return 0;
    }
  }

  /** Has the next completion ring this rank's bell. */
  wantNews(): void {
    if (this.isLost) return;
    try {
      this.cq.reqNotify();
    } catch (error) {
      this.#noteLost(error);
    }
  }

  #noteLost(error: unknown): void {
    this.#lose(error);
    this.isLost = true;
  }
}
