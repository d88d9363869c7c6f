/**
 * What the completion queues of all providers have in common besides where their completions lie: how many one poll
 * takes, and how long they live.
 */
import { RmaError } from '../../errors.ts';
import { checkUnused } from '../../verbs/checks.ts';
import type { CompletionQueue, WorkCompletions } from '../../verbs/completion-queue.ts';
import { workCompletions } from '../../verbs/work-completions.ts';

export abstract class CompletionQueueCore implements CompletionQueue {
  readonly capacity: number;
  readonly wc: WorkCompletions;
  /** Work queues of queue pairs that complete here. */
  users = 0;
  // A field, and no accessor: each poll looks at it.
  isDestroyed = false;
  /** Completions that one `poll` can fetch. */
  protected readonly batch: number;

  /** @param most of the completions that one `poll` can fetch */
  constructor(capacity: number, most: number) {
    this.capacity = capacity;
    this.batch = Math.min(capacity, most);
    this.wc = workCompletions(this.batch);
  }

  abstract poll(max: number): number;
  abstract reqNotify(solicitedOnly?: boolean): void;

  destroy(): void {
    if (this.isDestroyed) return;
    checkUnused(this.users);
    this.release();
    this.isDestroyed = true;
  }

  protected abstract release(): void;

  protected mustLive(call: string): void {
    if (this.isDestroyed) throw new RmaError('ERR_VERBS', `${call}: the completion queue was destroyed`);
  }
}
