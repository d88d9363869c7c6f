/**
 * Locks by messages: at each target an agent gives out the lock of its rank's part to the origins that ask for it
 * (lock-origin.ts). It does so whenever its rank waits in the library, now and then in the rank's calls on the window
 * that do not wait, and when the rank's event loop turns. A rank that computes on and on serves no other rank
 * meanwhile.
 *
 *   LOCK sequence, exclusive, attempt, news    ->   GRANT sequence, how      or, to an attempt, REFUSAL sequence
 *   UNLOCK sequence                                 also of a lock that was asked for and is no longer wanted
 *   OPERATIONS id, what is queued              ->   DONE id, what was fetched    or FAILURE id, code and message
 *   ONE id, exclusive, one operation           ->   the same, and how: lock, operation and unlock in one message
 *
 * The line. Requests stand in one line in the order of their arrival. The agent serves the head of the line: it takes
 * the lock itself (its `Gate`: nothing where all go through the agent; the lock word where others also take the lock in
 * other ways), grants it, and gives it back when all ranks to which it was granted have unlocked. Behind a shared head
 * come the shared requests that follow it directly, also those that arrive while the lock is held, until `Gate.batch`
 * have been let in. So no rank in the line is overtaken by a request of another kind, and none waits for more than
 * those before it and their batch. An exclusive holder is alone: it is the only one that was granted anything since the
 * gate was taken.
 *
 * Leaving. Messages of one origin arrive in order. So an UNLOCK finds its request in the line, and takes it out. Or it
 * finds the lock granted, and ends that. Or the lock was handed over for good (`Grant.HANDED`), and it finds nothing:
 * then the origin gives the lock back by itself, also if the grant comes after it has stopped waiting.
 *
 * Operations of an origin are carried out when they arrive, unless it waits in the line: then they are carried out when
 * it is granted the lock. An origin whose epoch has no lock (`NO_CHECK`) does not stand in the line. One that was
 * handed the lock gives it back when its operations are answered; so these, too, are carried out while it has the lock.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { OperationMessages } from '../../transfer/served/operation-messages.ts';
import { type Processor, REAL_PROCESSOR } from '../../verbs/processor.ts';
import { Grant, LOCK_WORDS, Message, sendWords } from './agent-messages.ts';
import { LockOrigin } from './lock-origin.ts';
import type { LockCounts } from './lock-scheme.ts';

/** A request as the agent has it. */
export interface LockRequest {
  readonly origin: number;
  readonly exclusive: boolean;
  /** It does not wait: it is granted at once or refused. */
  readonly attempt: boolean;
  /**
   * It is nothing but one operation: its lock ends with it, and its answer is that operation's. There is no holder who
   * could be handed the lock.
   */
  readonly isOne: boolean;
}

interface QueuedRequest extends LockRequest {
  readonly sequence: number;
  /** Messages with operations that wait for the grant. */
  readonly operations: Uint8Array[];
}

/** What the agent must hold while it has granted the lock. */
export interface Gate {
  /** How many shared holders are let in before it is given back in between. */
  readonly batch: number;
  /** A request has arrived that is not one operation. @param news what its origin has said with it */
  note?(request: LockRequest, news: number): void;
  /** Takes it for a request. @returns how that is granted; `undefined` if it was an attempt, and is refused */
  take(request: LockRequest): Generator<void, number | undefined>;
  /**
   * Gives it back.
   * @param how what `take` has returned; `HANDED` if it was taken for a request that is gone.
   * @param full the batch was full: others get a turn
   */
  give(request: LockRequest, how: number, full: boolean): Generator<void, void>;
  /** Milliseconds after which it goes on though no bell rings. */
  readonly due?: number;
  /**
   * What it does takes place in the order of this processor's time (`Processor.inOrder`), and so does all that it is
   * asked for. A gate that touches no memory of its node needs no order: `REAL_PROCESSOR`.
   */
  readonly processor: Processor;
}

/** The gate where all go through the agent. */
export const NO_GATE: Gate = {
  batch: Number.POSITIVE_INFINITY,
  processor: REAL_PROCESSOR,
  // biome-ignore lint/correctness/useYield: nothing is waited for
  *take() {
    return Grant.BY_AGENT;
  },
  *give() {},
};

export class LockAgent {
  readonly #counts: LockCounts;
  readonly #channel: OwnChannel;
  readonly #gate: Gate;
  readonly #operations: OperationMessages | undefined;
  readonly #poll: () => void;
  readonly #stop: () => void;
  /** What this rank asks the agents of the others for. */
  readonly origin: LockOrigin;
  readonly #line: QueuedRequest[] = [];
  readonly #holders = new Map<string, QueuedRequest>();
  /** Messages that have come in a task's step: they are taken in order. */
  readonly #early: { readonly source: number; readonly message: Uint8Array }[] = [];
  readonly #work: Generator<void, void>;
  #working = false;
  #again = false;
  #closed = false;
  /** Shared requests may still join the holders; how many have. */
  #admitting = false;
  #admitted = 0;

  /**
   * @param channel nothing else goes through it
   * @param counts what it sends and gives out is counted there
   * @param poll brings messages in
   * @param handedTooLate gives back by itself what was granted so, though it is no longer wanted
   * @param window in messages
   * @param operations those of passive epochs, by this channel; absent if they do not go through the agents
   */
  constructor(
    channel: OwnChannel,
    gate: Gate,
    counts: LockCounts,
    poll: () => void,
    handedTooLate: (target: number) => void,
    window: string,
    operations?: OperationMessages,
  ) {
    this.#channel = channel;
    this.#gate = gate;
    this.#counts = counts;
    this.#poll = poll;
    this.#operations = operations;
    this.origin = new LockOrigin(channel, counts, () => this.advance(), handedTooLate, window, operations);
    this.#work = this.#serve();
    this.#stop = channel.listen((source, message) => this.#take(source, message));
  }

  /**
   * Brings messages in and goes on with what waits.
   * @returns milliseconds after which it has something to do for which no bell rings
   */
  advance(): number {
    this.#poll();
    this.kick();
    return this.#gate.due ?? Number.POSITIVE_INFINITY;
  }

  /** For calls that may never wait, now and then: `advance`, until it is closed. */
  serve(): void {
    if (!this.#closed) this.advance();
  }

  /** Goes on with what waits. Something of this rank's own may have made it possible. */
  kick(): void {
    if (this.#working) {
      this.#again = true;
      return;
    }
    if (!this.#gate.processor.inOrder) {
      // Then it is called again.
      this.#gate.processor.touch(() => {});
      return;
    }
    this.#takeEarly();
    this.#working = true;
    try {
      do {
        this.#again = false;
        this.#work.next();
      } while (this.#again);
    } finally {
      this.#working = false;
    }
  }

  close(): void {
    this.#closed = true;
    this.#stop();
  }

  // ---- messages -----------------------------------------------------------------------------------------------------

  #send(target: number, words: Int32Array): void {
    sendWords(this.#channel, this.#counts, target, words);
  }

  #take(source: number, message: Uint8Array): void {
    if (!this.#gate.processor.inOrder) this.#early.push({ source, message });
    else {
      this.#takeEarly();
      this.#takeNow(source, message);
    }
    this.kick();
  }

  #takeEarly(): void {
    if (this.#early.length > 0) for (const { source, message } of this.#early.splice(0)) this.#takeNow(source, message);
  }

  #takeNow(source: number, message: Uint8Array): void {
    // Messages have buffers of their own, from the first byte on.
    const words = new Int32Array(message.buffer, message.byteOffset, Math.min(LOCK_WORDS, message.length >> 2));
    const [what, number] = words;
    switch (what) {
      case Message.LOCK:
        this.#asked(source, number, words);
        break;
      case Message.UNLOCK:
        this.#unlocked(source, number);
        break;
      case Message.OPERATIONS: {
        const waiting = this.#line.find(({ origin }) => origin === source);
        if (waiting !== undefined) waiting.operations.push(message);
        else this.#carryOut(source, message, Grant.BY_AGENT);
        break;
      }
      case Message.ONE_EXCLUSIVE:
      case Message.ONE_SHARED: {
        const exclusive = what === Message.ONE_EXCLUSIVE;
        const request = { origin: source, exclusive, attempt: false, sequence: number };
        this.#line.push({ ...request, operations: [message], isOne: true });
        break;
      }
      default:
        this.origin.hear(source, words, message);
    }
  }

  #asked(origin: number, sequence: number, words: Int32Array): void {
    const request = {
      origin,
      exclusive: words[2] !== 0,
      attempt: words[3] !== 0,
      sequence,
      operations: [],
      isOne: false,
    };
    this.#gate.note?.(request, words[4]);
    const joins = !request.exclusive && this.#admitting;
    if (request.attempt && (this.#line.length > 0 || (this.#holders.size > 0 && !joins))) this.#refuse(request);
    else this.#line.push(request);
  }

  #unlocked(origin: number, sequence: number): void {
    const key = keyOf(origin, sequence);
    if (this.#holders.delete(key)) return;
    const at = this.#line.findIndex((waiting) => waiting.origin === origin && waiting.sequence === sequence);
    // An answer, so that the origin can forget it.
    if (at >= 0) this.#refuse(this.#line.splice(at, 1)[0]);
  }

  // ---- agent --------------------------------------------------------------------------------------------------------

  #refuse({ origin, sequence }: QueuedRequest): void {
    this.#send(origin, Int32Array.of(Message.REFUSAL, sequence));
  }

  #grant(request: QueuedRequest, how: number): void {
    const { origin, sequence, operations, isOne } = request;
    this.#counts.grants++;
    if (!isOne) {
      if (how !== Grant.HANDED) this.#holders.set(keyOf(origin, sequence), request);
      this.#send(origin, Int32Array.of(Message.GRANT, sequence, how));
    }
    for (const message of operations) this.#carryOut(origin, message, how);
  }

  *#serve(): Generator<void, void> {
    const line = this.#line;
    for (;;) {
      while (line.length === 0) yield;
      const head = line[0];
      const how = yield* this.#gate.take(head);
      const stays = line[0] === head;
      if (how === undefined) {
        if (stays) this.#refuse(line.shift()!);
        continue;
      }
      if (!stays) {
        yield* this.#gate.give(head, how, false);
        continue;
      }
      line.shift();
      this.#admitting = !head.exclusive && how !== Grant.HANDED;
      this.#admitted = 1;
      this.#grant(head, how);
      if (how === Grant.HANDED) continue;
      for (;;) {
        while (this.#admitting && line.length > 0 && !line[0].exclusive) {
          this.#grant(line.shift()!, how);
          this.#admitting = ++this.#admitted < this.#gate.batch;
        }
        if (this.#holders.size === 0) break;
        yield;
      }
      this.#admitting = false;
      yield* this.#gate.give(head, how, this.#admitted >= this.#gate.batch);
    }
  }

  /** @param how the lock was granted; the answer to a lone operation tells it */
  #carryOut(origin: number, message: Uint8Array, how: number): void {
    this.#counts.operations++;
    this.#operations!.serve(origin, message, how);
  }
}

function keyOf(origin: number, sequence: number): string {
  return `${origin}:${sequence}`;
}
