/**
 * The collective calls of a communicator on typed arrays (MPI 4.1, chapter 6): their arguments are checked here, before
 * anything begins; what is sent is in collectives.ts, rooted.ts and scan.ts.
 *
 * For all of them: every rank of the communicator makes the call, with the same type, length, operation and root; a
 * rank that finds out that others do not gets `ERR_COLLECTIVE`. Buffers must not change until the call is complete.
 * `send` and `receive` must not overlap. There is no form in place (MPI_IN_PLACE): give `receive.slice()` as `send`.
 * Where only the root needs a buffer, the others may give `null`, and what they give is not looked at.
 *
 * Errors of all: `ERR_BUFFER`, `ERR_TYPE`, `ERR_OP`, `ERR_RANK` (arguments); `ERR_COLLECTIVE`, `ERR_TRUNCATE` (ranks
 * disagree); `ERR_COMM`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
 */
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import type { Op } from '../datatype/op.ts';
import type { Channel } from '../message/message-channel.ts';
import type { WaitOptions } from '../wait/operation.ts';
import {
  checkBlocks,
  checkBuffers,
  checkCounts,
  checkOne,
  checkOp,
  checkOwnCount,
  checkRank,
  checkReduction,
  checkRoot,
  checkSameLength,
  type Members,
} from './collective-arguments.ts';
import { type Agreed, checksumOf } from './collective-signature.ts';
import * as collectives from './collectives.ts';
import * as rooted from './rooted.ts';
import { scan } from './scan.ts';

/** A collective that was called: what its messages say, and what it does in its turn. */
export interface CollectiveCall<T = void> extends Agreed {
  /** The caller's, which must stay until it is complete. */
  readonly buffers?: readonly TypedArray[];
  steps(channel: Channel): Generator<void, T>;
}

/** A collective that is under way. */
export interface BegunCollective<T> {
  /** Has the result when the promise is fulfilled. */
  readonly operation: { readonly result: T };
  readonly promise: Promise<void>;
}

/** A buffer that only the root needs. */
export type AtRoot<T> = T | null | undefined;

export abstract class CollectiveCalls implements Members {
  /** The rank of the caller in this communicator: 0 … `size` − 1 (`MPI_Comm_rank`). */
  abstract readonly rank: number;
  /** The number of ranks in this communicator (`MPI_Comm_size`). */
  abstract readonly size: number;
  /** The name of this communicator in error messages, for example `world`. */
  abstract readonly name: string;

  /** @internal */
  abstract collective<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): BegunCollective<T>;
  /** @internal */
  abstract collectiveSync<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): T;

  /**
   * Copies `buffer` from rank `root` to all ranks (`MPI_Bcast`).
   * @param buffer has the same type and length at all ranks
   * Cost: ⌈log2 p⌉ rounds; each rank but the root receives one message. Of 64 KiB and more, where ranks share memory:
   * all read it where the root has copied it.
   */
  async broadcast(buffer: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#broadcast(buffer, root), options).promise;
  }

  /**
   * Copies `buffer` from rank `root` to all ranks and blocks this thread until the call is complete; otherwise the same
   * as `broadcast`.
   */
  broadcastSync(buffer: TypedArray, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#broadcast(buffer, root), options);
  }

  /** Copies `buffer` from rank `root` to all ranks (MPI's name for `broadcast`). */
  bcast(buffer: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    return this.broadcast(buffer, root, options);
  }

  /**
   * Copies `buffer` from rank `root` to all ranks and blocks this thread until the call is complete (MPI's name for
   * `broadcastSync`).
   */
  bcastSync(buffer: TypedArray, root: number, options?: WaitOptions): void {
    this.broadcastSync(buffer, root, options);
  }

  /**
   * Combines the `send` arrays of all ranks element by element with `op` and stores the result in `receive` at rank
   * `root` (`MPI_Reduce`). The operands are combined in rank order, starting at the root. Their grouping depends only
   * on the number of ranks and the length, so rounded sums are the same in every run.
   * @param receive at the root, an array with the type and length of `send`; the other ranks can pass `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root sends one message of the whole vector. Of 2 MiB and more, where
   * ranks share memory: each rank combines a p-th of all vectors.
   */
  async reduce(
    send: TypedArray,
    receive: AtRoot<TypedArray>,
    op: Op,
    root: number,
    options?: WaitOptions,
  ): Promise<void> {
    await this.collective(this.#reduce(send, receive, op, root), options).promise;
  }

  /**
   * Combines the `send` arrays of all ranks at rank `root` and blocks this thread until the call is complete; otherwise
   * the same as `reduce`.
   */
  reduceSync(send: TypedArray, receive: AtRoot<TypedArray>, op: Op, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#reduce(send, receive, op, root), options);
  }

  /**
   * Combines the `send` arrays of all ranks element by element with `op` and stores the result in `receive` at every
   * rank (`MPI_Allreduce`). All ranks get the same bits.
   * Cost: ⌈log2 p⌉ exchanges of the whole vector, and two more if p is not a power of two. Of 256 KiB and more, where
   * ranks share memory: each rank combines a p-th of all vectors, and reads the rest of the result.
   */
  async allreduce(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#allreduce(send, receive, op), options).promise;
  }

  /**
   * Combines the `send` arrays of all ranks at every rank and blocks this thread until the call is complete; otherwise
   * the same as `allreduce`.
   */
  allreduceSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#allreduce(send, receive, op), options);
  }

  /**
   * Combines the `send` arrays of all ranks element by element with `op` and distributes the result: rank r receives
   * the next `counts[r]` elements (`MPI_Reduce_scatter`). Without `counts`, all ranks receive parts of equal length
   * (`MPI_Reduce_scatter_block`).
   * Cost: ⌈log2 p⌉ exchanges, each half as long as the previous one. Of 256 KiB and more, where ranks share memory:
   * each rank reads its part of all vectors.
   */
  async reduceScatter(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts?: readonly number[],
    options?: WaitOptions,
  ): Promise<void> {
    await this.collective(this.#reduceScatter(send, receive, op, counts), options).promise;
  }

  /**
   * Combines the `send` arrays of all ranks, distributes the result and blocks this thread until the call is complete;
   * otherwise the same as `reduceScatter`.
   */
  reduceScatterSync(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts?: readonly number[],
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#reduceScatter(send, receive, op, counts), options);
  }

  /**
   * Combines the `send` arrays of all ranks and distributes the result (MPI's name for `reduceScatter` with equal
   * parts).
   */
  reduceScatterBlock(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    return this.reduceScatter(send, receive, op, undefined, options);
  }

  /**
   * Combines the `send` arrays of all ranks, distributes the result, and blocks this thread until the call is complete
   * (MPI's name for `reduceScatterSync` with equal parts).
   */
  reduceScatterBlockSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.reduceScatterSync(send, receive, op, undefined, options);
  }

  /**
   * Combines the `send` arrays of ranks 0 to `rank` element by element with `op`, in rank order, and stores the result
   * in `receive` (`MPI_Scan`).
   * Cost: ⌈log2 p⌉ exchanges of the whole vector.
   */
  async scan(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scan('scan', send, receive, op), options).promise;
  }

  /**
   * Combines the `send` arrays of ranks 0 to `rank` and blocks this thread until the call is complete; otherwise the
   * same as `scan`.
   */
  scanSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#scan('scan', send, receive, op), options);
  }

  /**
   * Combines the `send` arrays of ranks 0 to `rank` − 1 element by element with `op`, in rank order, and stores the
   * result in `receive` (`MPI_Exscan`). `receive` of rank 0 does not change.
   * Cost: ⌈log2 p⌉ exchanges of the whole vector.
   */
  async exscan(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scan('exscan', send, receive, op), options).promise;
  }

  /**
   * Combines the `send` arrays of ranks 0 to `rank` − 1 and blocks this thread until the call is complete; otherwise
   * the same as `exscan`.
   */
  exscanSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#scan('exscan', send, receive, op), options);
  }

  /**
   * Collects the `send` arrays of all ranks, in rank order, in `receive` at rank `root` (`MPI_Gather`).
   * @param receive at the root, p blocks of `send.length` elements; the other ranks can pass `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root sends one message. Of 64 KiB and more, where ranks share memory:
   * p − 1 messages to the root.
   */
  async gather(send: TypedArray, receive: AtRoot<TypedArray>, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#gather(send, receive, root), options).promise;
  }

  /**
   * Collects the `send` arrays of all ranks at rank `root` and blocks this thread until the call is complete; otherwise
   * the same as `gather`.
   */
  gatherSync(send: TypedArray, receive: AtRoot<TypedArray>, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#gather(send, receive, root), options);
  }

  /**
   * Collects the `send` arrays of all ranks, which can differ in length, in `receive` at rank `root` (`MPI_Gatherv`).
   * The blocks are contiguous and in rank order.
   * @param counts at the root, the number of elements from each rank; the sum is `receive.length`. The other ranks can
   * pass `null`
   * Cost: p − 1 messages to the root.
   */
  async gatherv(
    send: TypedArray,
    receive: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    root: number,
    options?: WaitOptions,
  ): Promise<void> {
    await this.collective(this.#gatherv(send, receive, counts, root), options).promise;
  }

  /**
   * Collects the `send` arrays of all ranks, which can differ in length, at rank `root` and blocks this thread until
   * the call is complete; otherwise the same as `gatherv`.
   */
  gathervSync(
    send: TypedArray,
    receive: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    root: number,
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#gatherv(send, receive, counts, root), options);
  }

  /**
   * Sends block r of the `send` array of rank `root` to rank r (`MPI_Scatter`).
   * @param send at the root, p blocks of `receive.length` elements; the other ranks can pass `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root receives one message. Of 64 KiB and more, where ranks share memory:
   * p − 1 messages from the root.
   */
  async scatter(send: AtRoot<TypedArray>, receive: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scatter(send, receive, root), options).promise;
  }

  /**
   * Sends block r of the `send` array of rank `root` to rank r and blocks this thread until the call is complete;
   * otherwise the same as `scatter`.
   */
  scatterSync(send: AtRoot<TypedArray>, receive: TypedArray, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#scatter(send, receive, root), options);
  }

  /**
   * Sends block r of the `send` array of rank `root` to rank r; the blocks can differ in length (`MPI_Scatterv`). They
   * are contiguous and in rank order.
   * @param counts at the root, the number of elements for each rank; the sum is `send.length`. The other ranks can pass
   * `null`
   * Cost: p − 1 messages from the root.
   */
  async scatterv(
    send: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    receive: TypedArray,
    root: number,
    options?: WaitOptions,
  ): Promise<void> {
    await this.collective(this.#scatterv(send, counts, receive, root), options).promise;
  }

  /**
   * Sends block r of the `send` array of rank `root`, of any length, to rank r and blocks this thread until the call is
   * complete; otherwise the same as `scatterv`.
   */
  scattervSync(
    send: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    receive: TypedArray,
    root: number,
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#scatterv(send, counts, receive, root), options);
  }

  /**
   * Collects the `send` arrays of all ranks, in rank order, in `receive` at every rank (`MPI_Allgather`).
   * @param receive has p blocks of `send.length` elements
   * Cost: ⌈log2 p⌉ rounds; each rank sends p − 1 blocks in total.
   */
  async allgather(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.collective(this.#allgather(send, receive), options).promise;
  }

  /**
   * Collects the `send` arrays of all ranks at every rank and blocks this thread until the call is complete; otherwise
   * the same as `allgather`.
   */
  allgatherSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.collectiveSync(this.#allgather(send, receive), options);
  }

  /**
   * Sends block r of `send` to rank r, and receives block r of `receive` from rank r (`MPI_Alltoall`).
   * Cost: p − 1 messages per rank.
   */
  async alltoall(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.collective(this.#alltoall(send, receive), options).promise;
  }

  /**
   * Exchanges one block with every rank and blocks this thread until the call is complete; otherwise the same as
   * `alltoall`.
   */
  alltoallSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.collectiveSync(this.#alltoall(send, receive), options);
  }

  /**
   * Sends `sendCounts[r]` elements to rank r, and receives `receiveCounts[r]` elements from rank r (`MPI_Alltoallv`).
   * The blocks of both arrays are contiguous and in rank order.
   * Cost: p − 1 messages per rank.
   */
  async alltoallv(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
    options?: WaitOptions,
  ): Promise<void> {
    await this.collective(this.#alltoallv(send, sendCounts, receive, receiveCounts), options).promise;
  }

  /**
   * Exchanges one block of any length with every rank and blocks this thread until the call is complete; otherwise the
   * same as `alltoallv`.
   */
  alltoallvSync(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#alltoallv(send, sendCounts, receive, receiveCounts), options);
  }

  // ---- what they check and do ---------------------------------------------------------------------------------------

  #broadcast(given: TypedArray, root: number): CollectiveCall {
    const { type, buffer } = checkOne('broadcast', 'buffer', given);
    checkRank('broadcast', this, root);
    return {
      name: 'broadcast',
      type,
      root,
      count: buffer.length,
      buffers: [buffer],
      steps: (channel) => collectives.broadcast(channel, buffer, root),
    };
  }

  #reduce(givenSend: TypedArray, receive: AtRoot<TypedArray>, op: Op, root: number): CollectiveCall {
    const call = 'reduce';
    const isRoot = checkRoot(call, this, root);
    const { type, buffer: send } = checkOne(call, 'send', givenSend);
    checkOp(call, op, type);
    const result = isRoot ? checkBuffers(call, send, receive!).receive : undefined;
    if (result !== undefined) checkSameLength(call, send, result);
    return {
      name: call,
      type,
      op,
      root,
      count: send.length,
      buffers: result === undefined ? [send] : [send, result],
      steps: (channel) => rooted.reduce(channel, send, result, op.code, root),
    };
  }

  #allreduce(givenSend: TypedArray, givenReceive: TypedArray, op: Op): CollectiveCall {
    const { type, send, receive } = checkReduction('allreduce', givenSend, givenReceive, op);
    checkSameLength('allreduce', send, receive);
    return {
      name: 'allreduce',
      type,
      op,
      count: send.length,
      buffers: [send, receive],
      steps: (channel) => collectives.allreduce(channel, receive, op.code, send),
    };
  }

  #reduceScatter(
    givenSend: TypedArray,
    givenReceive: TypedArray,
    op: Op,
    counts: readonly number[] | undefined,
  ): CollectiveCall {
    const call = 'reduceScatter';
    const { type, send, receive } = checkReduction(call, givenSend, givenReceive, op);
    const equal = (): number[] => new Array<number>(this.size).fill(send.length / this.size);
    const parts = checkCounts(call, this, send, counts === undefined ? equal() : counts);
    checkOwnCount(call, this, 'receive', parts, receive);
    return {
      name: call,
      type,
      op,
      count: send.length,
      // Of short vectors, the messages' lengths say whether they are the same.
      ...(send.byteLength >= collectives.EXCHANGED_FROM && { root: checksumOf(parts) }),
      buffers: [send, receive],
      steps: (channel) => collectives.reduceScatter(channel, send, receive, parts, op.code),
    };
  }

  #scan(call: 'scan' | 'exscan', givenSend: TypedArray, givenReceive: TypedArray, op: Op): CollectiveCall {
    const { type, send, receive } = checkReduction(call, givenSend, givenReceive, op);
    checkSameLength(call, send, receive);
    return {
      name: call,
      type,
      op,
      count: send.length,
      buffers: [send, receive],
      steps: (channel) => scan(channel, call, send, receive, op.code, call === 'scan'),
    };
  }

  #gather(givenSend: TypedArray, givenReceive: AtRoot<TypedArray>, root: number): CollectiveCall {
    const call = 'gather';
    const { type, own: send, all: receive } = this.#atRoot(call, 'send', givenSend, givenReceive, root);
    if (receive !== undefined) checkBlocks(call, 'receive', receive, send, this);
    const into = receive && bytesOf(receive);
    return {
      name: call,
      type,
      root,
      count: send.length,
      buffers: into === undefined ? [send] : [send, into],
      steps: (channel) => rooted.gather(channel, bytesOf(send), into, root),
    };
  }

  #gatherv(
    givenSend: TypedArray,
    givenReceive: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    root: number,
  ): CollectiveCall {
    const call = 'gatherv';
    const { type, own: send, all: receive } = this.#atRoot(call, 'send', givenSend, givenReceive, root);
    const into = receive && this.#parts(call, receive, counts!, 'send', send);
    const buffers = into === undefined ? [send] : [send, into.all];
    return { name: call, type, root, buffers, steps: (channel) => rooted.gatherv(channel, bytesOf(send), into, root) };
  }

  #scatter(givenSend: AtRoot<TypedArray>, givenReceive: TypedArray, root: number): CollectiveCall {
    const call = 'scatter';
    const { type, own: receive, all: send } = this.#atRoot(call, 'receive', givenReceive, givenSend, root);
    if (send !== undefined) checkBlocks(call, 'send', send, receive, this);
    const from = send && bytesOf(send);
    return {
      name: call,
      type,
      root,
      count: receive.length,
      buffers: from === undefined ? [receive] : [receive, from],
      steps: (channel) => rooted.scatter(channel, from, bytesOf(receive), root),
    };
  }

  #scatterv(
    givenSend: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    givenReceive: TypedArray,
    root: number,
  ): CollectiveCall {
    const call = 'scatterv';
    const { type, own: receive, all: send } = this.#atRoot(call, 'receive', givenReceive, givenSend, root);
    const from = send && this.#parts(call, send, counts!, 'receive', receive);
    const buffers = from === undefined ? [receive] : [receive, from.all];
    const steps = (channel: Channel) => rooted.scatterv(channel, from, bytesOf(receive), root);
    return { name: call, type, root, buffers, steps };
  }

  /** The buffer that every rank passes, and the buffer for all ranks, which the root passes. */
  #atRoot(
    call: string,
    name: 'send' | 'receive',
    given: TypedArray,
    ofAll: AtRoot<TypedArray>,
    root: number,
  ): { readonly type: number; readonly own: TypedArray; readonly all: TypedArray | undefined } {
    if (!checkRoot(call, this, root)) {
      const { type, buffer } = checkOne(call, name, given);
      return { type, own: buffer, all: undefined };
    }
    const sends = name === 'send';
    const { type, send, receive } = sends ? checkBuffers(call, given, ofAll!) : checkBuffers(call, ofAll!, given);
    return { type, own: sends ? send : receive, all: sends ? receive : send };
  }

  /** The root's buffer, and how many bytes of it are each rank's. @param own the root's buffer for its own part */
  #parts(
    call: string,
    all: TypedArray,
    counts: readonly number[],
    name: string,
    own: TypedArray,
  ): { readonly all: Uint8Array; readonly lengths: readonly number[] } {
    const list = checkCounts(call, this, all, counts);
    checkOwnCount(call, this, name, list, own);
    return { all: bytesOf(all), lengths: list.map((count) => count * all.BYTES_PER_ELEMENT) };
  }

  #allgather(givenSend: TypedArray, givenReceive: TypedArray): CollectiveCall {
    const { type, send, receive } = checkBuffers('allgather', givenSend, givenReceive);
    checkBlocks('allgather', 'receive', receive, send, this);
    return {
      name: 'allgather',
      type,
      count: send.length,
      buffers: [send, receive],
      steps: (channel) => collectives.allgather(channel, bytesOf(send), bytesOf(receive)),
    };
  }

  #alltoall(givenSend: TypedArray, givenReceive: TypedArray): CollectiveCall {
    const { type, send, receive } = checkBuffers('alltoall', givenSend, givenReceive);
    const counts = new Array<number>(this.size).fill(send.length / this.size);
    return {
      type,
      count: send.length,
      ...this.#exchange('alltoall', send, counts, receive, counts),
      steps: (channel) => collectives.alltoallOfBlocks(channel, bytesOf(send), bytesOf(receive)),
    };
  }

  #alltoallv(
    givenSend: TypedArray,
    sendCounts: readonly number[],
    givenReceive: TypedArray,
    receiveCounts: readonly number[],
  ): CollectiveCall {
    const { type, send, receive } = checkBuffers('alltoallv', givenSend, givenReceive);
    return { type, ...this.#exchange('alltoallv', send, sendCounts, receive, receiveCounts) };
  }

  #exchange(
    call: 'alltoall' | 'alltoallv',
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
  ): CollectiveCall {
    const width = send.BYTES_PER_ELEMENT;
    const out = checkCounts(call, this, send, sendCounts).map((count) => count * width);
    const into = checkCounts(call, this, receive, receiveCounts).map((count) => count * width);
    return {
      name: call,
      buffers: [send, receive],
      steps: (channel) => collectives.alltoall(channel, bytesOf(send), out, bytesOf(receive), into),
    };
  }
}
