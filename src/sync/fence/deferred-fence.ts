/**
 * The deferred fence (dissertation §6.2): operations of a fence epoch are queued where they are issued, and all the
 * work is done in the fence that closes it.
 *
 * 1. One message to each target with all that was queued for it.
 * 2. A reduce-scatter tells each rank how many messages come.
 * 3. Take so many messages, carry out what is in them, and answer those that fetch.
 * 4. Wait for the answers to one's own.
 *
 * Each part is touched only by its owner, in its own fence. So the fence that opens an epoch (`NO_PRECEDE`) does
 * nothing at all, and no fence needs a barrier, whatever succeeds. All that was issued to a rank has been carried out
 * when its fence returns. What a rank has issued itself is complete here then, and there when the target's fence
 * returns.
 *
 * Messages bear the number of the fence: a rank that is done may be in its next one before this rank has got all of
 * this one, and its message waits for that. It cannot be further ahead, since its next reduce-scatter needs this rank's
 * counts. Fences with `NO_PRECEDE` exchange nothing and do not count.
 *
 * Cheapest where little is sent: puts and synchronization are one message. There is nothing to overlap with
 * computation, since all of it is in the fence.
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { MessageChannel } from '../../message/message-channel.ts';
import type { OperationQueue, QueuedOperations } from '../../transfer/served/operation-queue.ts';
import type { OperationServer } from '../../transfer/served/operation-server.ts';
import { fenceKind } from './fence-kind.ts';
import { StepwiseFence } from './stepwise-fence.ts';

/** In a message's header: its fence, and whether an answer is waited for. */
const FENCE = 0;
const FETCHES = 1;

class DeferredFence extends StepwiseFence {
  readonly #queue: OperationQueue;
  readonly #server: OperationServer;
  readonly #operations: MessageChannel;
  readonly #answers: MessageChannel;
  /** Fences that have exchanged operations. */
  #exchanged = 0;
  /** Messages of the fence after the one that is under way. */
  readonly #early: { readonly source: number; readonly message: Uint8Array }[] = [];

  /** @param operations and @param answers nothing else goes through them */
  constructor(
    comm: Communicator,
    queue: OperationQueue,
    server: OperationServer,
    operations: MessageChannel,
    answers: MessageChannel,
    description: string,
  ) {
    super(comm, description);
    this.#queue = queue;
    this.#server = server;
    this.#operations = operations;
    this.#answers = answers;
  }

  abandon(): void {}

  protected override isNeeded(precedes: boolean): boolean {
    return precedes;
  }

  protected *steps(): Generator<void, void> {
    const { rank, size } = this.comm;
    const number = ++this.#exchanged >>> 0;
    const targets = new Int32Array(size);
    const fetching = new Map<number, QueuedOperations>();
    for (let i = 0; i < size; i++) {
      const target = (rank + i) % size;
      if (!this.#queue.has(target)) continue;
      const queued = this.#queue.take(target);
      if (target === rank) {
        // This rank's fence has come: its own part may be touched.
        try {
          queued.take(this.#server.serve(queued.message, undefined, this.#queue.carriedOut(rank)));
        } catch (error) {
          this.note(error);
        }
        continue;
      }
      targets[target] = 1;
      new Uint32Array(queued.message.buffer).set([number, queued.fetches ? 1 : 0]);
      this.#operations.give(target, queued.message);
      this.statistics.messages++;
      if (queued.fetches) fetching.set(target, queued);
    }
    this.step = () => `waiting for the counts of ${this.comm.awaited}`;
    let expected = yield* this.comm.sumForMe(targets);
    const serve = (source: number, message: Uint8Array): void => {
      expected--;
      let answer: Uint8Array = new Uint8Array(0);
      try {
        answer = this.#server.serve(message, undefined, this.#queue.carriedOut(source));
      } catch (error) {
        this.note(error);
      }
      if (new Uint32Array(message.buffer, message.byteOffset, 2)[FETCHES] === 0) return;
      this.#answers.give(source, answer);
      this.statistics.messages++;
    };
    for (const { source, message } of this.#early.splice(0)) serve(source, message);
    this.step = 'waiting for the operations of other ranks';
    while (expected > 0) {
      for (let source = 0; source < size && expected > 0; source++) {
        const message = source === rank ? undefined : this.#operations.receive(source);
        if (message === undefined) continue;
        if (new Uint32Array(message.buffer, message.byteOffset, 2)[FENCE] === number) serve(source, message);
        else this.#early.push({ source, message });
      }
      if (expected > 0) yield;
    }
    this.step = () => `waiting for the answers of rank ${[...fetching.keys()].join(', ')}`;
    while (fetching.size > 0) {
      for (const [target, queued] of fetching) {
        const answer = this.#answers.receive(target);
        if (answer === undefined) continue;
        fetching.delete(target);
        // An answer without contents comes from a rank that could not carry them out, and says so itself.
        if (answer.length === 0) continue;
        try {
          queued.take(answer);
        } catch (error) {
          this.note(error);
        }
      }
      if (fetching.size > 0) yield;
    }
  }
}

export const deferred = fenceKind({
  name: 'deferred',
  moves: 'in the fence',
  channels: 2,
  make({ comm, queued, channels, description }) {
    const { queue, server } = queued!;
    const [operations, answers] = channels;
    return new DeferredFence(comm, queue, server, operations, answers, description);
  },
});
