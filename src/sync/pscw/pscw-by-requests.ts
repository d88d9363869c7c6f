/**
 * Start/complete/post/wait where memory cannot be shared. A post is a message to each origin. A complete is a write of
 * no bytes with immediate to each target, on the connection that this rank's puts to it have taken: that a put is
 * complete at its origin is not enough for the target's loads (see immediate-optimized-fence.ts), but the immediate
 * arrives behind the data of all writes before it.
 *
 * So a target is told as soon as all that is for it has been posted, not only when it has been carried out. The origin
 * itself waits for its requests, since `complete` gives it its buffers back and brings what it gets. There is no third
 * rank that could find less than it was promised: a rank that may get here what this rank puts elsewhere is told by
 * that target's post, after its own `wait`.
 *
 * The origin does not wait for the acknowledgement of what it has told. MPI's `complete` is complete at the origin (MPI
 * 4.1, 12.5.2), and that write has no buffer. Behind a get the acknowledgement would take a turn of the network more:
 * it waits for the read. Nothing piles up: the next epoch with a target begins with its post, which follows the `wait`
 * that took the write. If the write is lost with its connection, the next call of this rank that waits throws that, as
 * for every request that no call waits for. The target, which waits for the write, is in the way of the collective that
 * frees the window.
 *
 * Posts of one sender arrive in order, and so do its completes, so epochs can follow each other without any more.
 * Between the two there is no order, and none is needed.
 *
 * In windows with the schedules `aggregate` and `aggregate-gets` a complete may also be a message that carries an
 * operation (pscw-folding.ts).
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { isLost } from '../../transfer/schedule/held-operations.ts';
import type { QueueTrace } from '../../transfer/served/operation-queue.ts';
import type { OperationServer } from '../../transfer/served/operation-server.ts';
import type { Operation } from '../../wait/operation.ts';
import { Folding } from './pscw-folding.ts';
import type { Folds, GeneralActiveTarget } from './pscw-scheme.ts';

const POSTED = new Uint8Array(0);

export class SyncByRequests implements GeneralActiveTarget {
  readonly seesPostsAtOnce = false;
  readonly folds: Folds | undefined;
  readonly #channel: OwnChannel;
  readonly #requests: RequestTransfer;
  /** By peer: posts that have arrived and were not used up; completes that were used up. */
  readonly #posts: Int32Array;
  readonly #completes: Int32Array;
  /** By peer: whether it has been told that the epoch is complete, which has not ended here yet. */
  readonly #told: Uint8Array;
  readonly #folding: Folding | undefined;
  /** By target that has been told: complete when what was issued there before is. */
  readonly #before: (Operation | undefined)[] = [];
  /** By target: what had been issued there when the epoch began; kept where operations may travel with its end. */
  readonly #issued: Float64Array;
  readonly #stop: (() => void) | undefined;
  /** Why an operation of the epoch has failed, until the targets are told that it is complete, and then the caller. */
  #failure: { readonly error: unknown } | undefined;
  readonly #failed = (error: unknown): void => {
    this.#failure ??= { error };
  };

  /**
   * @param channel nothing else goes through it
   * @param server carries out operations that come with a complete; absent if none do
   * @param trace records those, in a job that is traced
   */
  constructor(channel: OwnChannel, requests: RequestTransfer, server?: OperationServer, trace?: QueueTrace) {
    this.#channel = channel;
    this.#requests = requests;
    this.#issued = new Float64Array(server === undefined ? 0 : channel.size);
    if (server !== undefined) {
      const folding = new Folding(channel, server, trace);
      this.#folding = folding;
      this.folds = {
        takes: (operation) => {
          const { rank } = operation;
          const alone = this.#requests.issuedTo(rank) === this.#issued[rank];
          return rank !== channel.rank && alone && !isLost(operation);
        },
        send: (operations) => {
          for (const operation of operations) {
            folding.send(operation, this.#failed);
            this.#told[operation.rank] = 1;
          }
        },
      };
      this.#stop = channel.listen((source, message) => {
        if (message.length === 0) this.#posts[source]++;
        else folding.take(source, message);
      });
    }
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
        if (!this.#takePost(target)) return false;
      }
    }
    for (const target of targets) this.#posts[target]--;
    if (this.#folding !== undefined)
      for (const target of targets) this.#issued[target] = this.#requests.issuedTo(target);
    return true;
  }

  /** Looks for a post of a target. */
  #takePost(target: number): boolean {
    if (this.#channel.receive(target) !== undefined) this.#posts[target]++;
    // Where there is a listener, it has taken the message.
    return this.#posts[target] > 0;
  }

  start(targets: readonly number[]): Operation {
    return {
      advance: () => this.tryStart(targets),
      describe: () => `start (waiting for the post of rank ${targets.filter((t) => this.#posts[t] === 0).join(', ')})`,
    };
  }

  completing(targets: readonly number[]): Operation {
    const requests = this.#requests;
    const tell = (target: number): void => {
      if (this.#told[target] !== 0 || !requests.isPosted(target)) return;
      this.#before[target] = requests.soFar(target, this.#failed);
      this.#tell(target);
    };
    const isDone = (target: number): boolean => {
      tell(target);
      if (this.#told[target] === 0) return false;
      if (this.#before[target]?.advance() === false) return false;
      this.#before[target] = undefined;
      return !this.#awaits(target);
    };
    return {
      advance: () => {
        if (this.#folding !== undefined && targets.some((target) => this.#awaits(target))) this.#channel.poll();
        // Before the first look at completions: what waits for more to leave with it leaves with this.
        for (const target of targets) tell(target);
        requests.tryFlush(undefined, 'notified', this.#failed);
        // All are told as soon as they can be, whichever rank is waited for, and whatever has failed.
        let done = true;
        for (const target of targets) if (!isDone(target)) done = false;
        if (done) this.#refuseFailed();
        return done;
      },
      describe: () => this.#describeCompleting(targets),
      abandon: () => requests.endHolding(),
      isPolling: () => requests.isPolling,
    };
  }

  /** Whether a target has not yet answered what has travelled with its complete. */
  #awaits(target: number): boolean {
    return this.#folding?.awaits(target) === true;
  }

  #describeCompleting(targets: readonly number[]): string {
    const awaited = targets.filter((target) => this.#awaits(target));
    const { pending } = this.#requests;
    return pending === 0 && awaited.length > 0
      ? `complete (waiting for the answer of rank ${awaited.join(', ')})`
      : `complete: flush of ${pending} outstanding requests`;
  }

  #refuseFailed(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
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
    this.#requests.notifications.tellCompleted(target);
  }

  tryWait(origins: readonly number[]): boolean {
    if (!this.#isExposureOver(origins)) {
      this.#requests.poll();
      if (this.#folding !== undefined) this.#channel.poll();
      if (!this.#isExposureOver(origins)) return false;
    }
    this.#folding?.refuse();
    for (const origin of origins) this.#completes[origin] = (this.#completes[origin] + 1) | 0;
    return true;
  }

  wait(origins: readonly number[]): Operation {
    return {
      advance: () => this.tryWait(origins),
      describe: () => {
        const behind = origins.filter((origin) => !this.#hasCompleted(origin));
        return behind.length === 0
          ? 'wait (until the answers to gets have left this rank)'
          : `wait (waiting for the complete of rank ${behind.join(', ')})`;
      },
    };
  }

  #isExposureOver(origins: readonly number[]): boolean {
    for (const origin of origins) if (!this.#hasCompleted(origin)) return false;
    return this.#folding === undefined || this.#folding.haveLeft;
  }

  #hasCompleted(origin: number): boolean {
    const folded = this.#folding?.completedBy(origin) ?? 0;
    return ((this.#requests.notifications.completedBy(origin) + folded - this.#completes[origin]) | 0) > 0;
  }

  /** For calls that wait for something else: operations of other ranks come with their completes. */
  serve(): void {
    this.#channel.poll();
  }

  release(): void {
    this.#stop?.();
  }
}
