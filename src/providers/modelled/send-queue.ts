/**
 * The requests of a queue pair as its adapter sees them: those up to `next` it has begun to send, and they complete in
 * the order of posting. modelled-requester.ts and modelled-datagrams.ts say what is sent, and when it completes.
 */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { SendFlag } from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField } from '../../verbs/work-request-ring.ts';
import { LocalSide } from '../core/local-side.ts';
import type { Connection } from './connection.ts';
import { local } from './local-pieces.ts';
import type { ModelledParent } from './modelled-parent.ts';

/** The queue pair that a send queue belongs to. */
export interface Sending {
  readonly number: number;
  readonly state: number;
  readonly ring: WorkRequestRing;
  readonly pd: object;
  readonly connection: Connection;
  /** The oldest request completes. */
  completeHead(status: number): void;
  /** Moves to ERR and flushes. */
  toError(): void;
}

export abstract class SendQueue {
  readonly member: number;
  readonly ring: WorkRequestRing;
  protected readonly context: ModelledParent;
  protected readonly qp: Sending;
  /** Resolves into `local` what a request gathers from or scatters to. */
  protected readonly source: LocalSide;
  /** The next request to be sent: between the ring's `head` and `tail`. */
  protected next = 0;
  /** An event that sends it is in the queue. */
  protected sending = false;
  readonly #signalAll: boolean;

  constructor(context: ModelledParent, qp: Sending, signalAll: boolean) {
    this.context = context;
    this.qp = qp;
    this.#signalAll = signalAll;
    this.member = context.member;
    this.ring = qp.ring;
    this.source = new LocalSide(context.regions, qp.pd, qp.ring, local);
  }

  /** Whether a request has a completion of its own when it succeeds. */
  isSignaled(request: number): boolean {
    const { ring } = this;
    return this.#signalAll || (ring.u32[ring.wordsOf(request) + WrField.FLAGS] & SendFlag.SIGNALED) !== 0;
  }

  /** The oldest request is complete, or has failed. @returns whether others can complete behind it */
  protected completeOldest(status: number): boolean {
    const { ring, qp } = this;
    if (status !== WcStatus.SUCCESS) {
      qp.completeHead(status);
      qp.toError();
      return false;
    }
    if (this.isSignaled(ring.head)) qp.completeHead(status);
    else ring.head = (ring.head + 1) | 0;
    return true;
  }

  /** Completes all requests as flushed. */
  flush(): void {
    const { ring } = this;
    while (ring.head !== ring.tail) this.qp.completeHead(WcStatus.WR_FLUSH_ERR);
    this.next = ring.tail;
  }

  /** Drops all requests. */
  clear(): void {
    this.ring.clear();
    this.next = this.ring.tail;
  }
}
