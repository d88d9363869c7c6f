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
import { bytesOf, checkBuffer, type TypedArray } from '../datatype/base.ts';
import type { Op } from '../datatype/op.ts';
import {
  checkBlocks,
  checkBuffers,
  checkCounts,
  checkOp,
  checkOwnCount,
  checkRank,
  checkReduction,
  checkRoot,
  checkSameLength,
  type Members,
} from './collective-arguments.ts';
import type { Agreed } from './collective-signature.ts';
import * as collectives from './collectives.ts';
import type { WaitOptions } from './operation.ts';
import * as rooted from './rooted.ts';
import { scan } from './scan.ts';

/** A collective that was called: what its messages say, and what it does in its turn. */
export interface CollectiveCall<T = void> extends Agreed {
  steps(channel: collectives.Channel): Generator<void, T>;
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
  /** This rank, from 0. */
  abstract readonly rank: number;
  /** The number of ranks. */
  abstract readonly size: number;
  /** For error messages. */
  abstract readonly name: string;

  /** @internal */
  abstract collective<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): BegunCollective<T>;
  /** @internal */
  abstract collectiveSync<T>(call: CollectiveCall<T>, options: WaitOptions | undefined): T;

  /**
   * Copies `buffer` of rank `root` into everybody's `buffer` (`MPI_Bcast`).
   * @param buffer of the same type and length at all ranks
   * Cost: ⌈log2 p⌉ rounds; each rank but the root receives one message.
   */
  async broadcast(buffer: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#broadcast(buffer, root), options).promise;
  }

  /** As `broadcast`; blocks this thread. */
  broadcastSync(buffer: TypedArray, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#broadcast(buffer, root), options);
  }

  /** MPI's name for `broadcast`. */
  bcast(buffer: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    return this.broadcast(buffer, root, options);
  }

  /** MPI's name for `broadcastSync`. */
  bcastSync(buffer: TypedArray, root: number, options?: WaitOptions): void {
    this.broadcastSync(buffer, root, options);
  }

  /**
   * `receive[i]` of rank `root` becomes the combination of all ranks' `send[i]` (`MPI_Reduce`). Operands are combined
   * in the order of the ranks from the root on; in which groups depends on the number of ranks only, so that rounded
   * sums are the same in every run.
   * @param receive at the root: of the type and length of `send`; elsewhere it may be `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root sends one message of the whole vector.
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

  /** As `reduce`; blocks this thread. */
  reduceSync(send: TypedArray, receive: AtRoot<TypedArray>, op: Op, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#reduce(send, receive, op, root), options);
  }

  /**
   * `receive[i]` becomes the combination of all ranks' `send[i]`, bit for bit the same at all ranks (`MPI_Allreduce`).
   * Cost: ⌈log2 p⌉ exchanges of the whole vector, two more if p is no power of two.
   */
  async allreduce(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#allreduce(send, receive, op), options).promise;
  }

  /** As `allreduce`; blocks this thread. */
  allreduceSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#allreduce(send, receive, op), options);
  }

  /**
   * Combines all ranks' `send` and gives rank r the part of `counts[r]` elements that is r's, or equal parts without
   * `counts` (`MPI_Reduce_scatter`, `MPI_Reduce_scatter_block`).
   * Cost: ⌈log2 p⌉ exchanges, each of half as much as the one before.
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

  /** As `reduceScatter`; blocks this thread. */
  reduceScatterSync(
    send: TypedArray,
    receive: TypedArray,
    op: Op,
    counts?: readonly number[],
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#reduceScatter(send, receive, op, counts), options);
  }

  /** MPI's name for `reduceScatter` with equal parts. */
  reduceScatterBlock(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    return this.reduceScatter(send, receive, op, undefined, options);
  }

  /** MPI's name for `reduceScatterSync` with equal parts. */
  reduceScatterBlockSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.reduceScatterSync(send, receive, op, undefined, options);
  }

  /**
   * `receive[i]` becomes the combination of `send[i]` of the ranks up to this one, in the order of the ranks
   * (`MPI_Scan`).
   * Cost: ⌈log2 p⌉ exchanges of the whole vector.
   */
  async scan(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scan('scan', send, receive, op), options).promise;
  }

  /** As `scan`; blocks this thread. */
  scanSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#scan('scan', send, receive, op), options);
  }

  /**
   * As `scan`, without this rank's own `send` (`MPI_Exscan`). `receive` of rank 0 stays as it is.
   * Cost: ⌈log2 p⌉ exchanges of the whole vector.
   */
  async exscan(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scan('exscan', send, receive, op), options).promise;
  }

  /** As `exscan`; blocks this thread. */
  exscanSync(send: TypedArray, receive: TypedArray, op: Op, options?: WaitOptions): void {
    this.collectiveSync(this.#scan('exscan', send, receive, op), options);
  }

  /**
   * `receive` of rank `root` gets all ranks' `send`, by rank (`MPI_Gather`).
   * @param receive at the root: p blocks of `send.length` elements; elsewhere it may be `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root sends one message.
   */
  async gather(send: TypedArray, receive: AtRoot<TypedArray>, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#gather(send, receive, root), options).promise;
  }

  /** As `gather`; blocks this thread. */
  gatherSync(send: TypedArray, receive: AtRoot<TypedArray>, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#gather(send, receive, root), options);
  }

  /**
   * As `gather`, with as many elements from each rank as it sends (`MPI_Gatherv`); blocks lie one after the other.
   * @param counts at the root: elements from each rank, which add up to `receive.length`; elsewhere they may be `null`
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

  /** As `gatherv`; blocks this thread. */
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
   * Block r of the `send` of rank `root` goes to rank r (`MPI_Scatter`).
   * @param send at the root: p blocks of `receive.length` elements; elsewhere it may be `null`
   * Cost: ⌈log2 p⌉ rounds; each rank but the root receives one message.
   */
  async scatter(send: AtRoot<TypedArray>, receive: TypedArray, root: number, options?: WaitOptions): Promise<void> {
    await this.collective(this.#scatter(send, receive, root), options).promise;
  }

  /** As `scatter`; blocks this thread. */
  scatterSync(send: AtRoot<TypedArray>, receive: TypedArray, root: number, options?: WaitOptions): void {
    this.collectiveSync(this.#scatter(send, receive, root), options);
  }

  /**
   * As `scatter`, with as many elements for each rank as its `receive` has (`MPI_Scatterv`); blocks lie one after the
   * other.
   * @param counts at the root: elements for each rank, which add up to `send.length`; elsewhere they may be `null`
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

  /** As `scatterv`; blocks this thread. */
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
   * Everybody's `receive` gets all ranks' `send`, by rank (`MPI_Allgather`).
   * @param receive p blocks of `send.length` elements
   * Cost: ⌈log2 p⌉ rounds; each rank sends p − 1 blocks in all.
   */
  async allgather(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.collective(this.#allgather(send, receive), options).promise;
  }

  /** As `allgather`; blocks this thread. */
  allgatherSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.collectiveSync(this.#allgather(send, receive), options);
  }

  /**
   * Block r of `send` goes to rank r; block r of `receive` comes from rank r (`MPI_Alltoall`).
   * Cost: p − 1 messages a rank.
   */
  async alltoall(send: TypedArray, receive: TypedArray, options?: WaitOptions): Promise<void> {
    await this.collective(this.#alltoall(send, receive), options).promise;
  }

  /** As `alltoall`; blocks this thread. */
  alltoallSync(send: TypedArray, receive: TypedArray, options?: WaitOptions): void {
    this.collectiveSync(this.#alltoall(send, receive), options);
  }

  /**
   * As `alltoall`, with as many elements to and from each rank as the counts say (`MPI_Alltoallv`); blocks lie one
   * after the other.
   * Cost: p − 1 messages a rank.
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

  /** As `alltoallv`; blocks this thread. */
  alltoallvSync(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
    options?: WaitOptions,
  ): void {
    this.collectiveSync(this.#alltoallv(send, sendCounts, receive, receiveCounts), options);
  }

  // ---- what they check and do -----------------------------------------------------------------------------------------

  #broadcast(buffer: TypedArray, root: number): CollectiveCall {
    const type = checkBuffer('broadcast', 'buffer', buffer);
    checkRank('broadcast', this, root);
    return {
      name: 'broadcast',
      type,
      root,
      count: buffer.length,
      steps: (channel) => collectives.broadcast(channel, buffer, root),
    };
  }

  #reduce(send: TypedArray, receive: AtRoot<TypedArray>, op: Op, root: number): CollectiveCall {
    const call = 'reduce';
    const isRoot = checkRoot(call, this, root);
    const type = checkBuffer(call, 'send', send);
    checkOp(call, op, type);
    if (isRoot) {
      checkBuffers(call, send, receive!);
      checkSameLength(call, send, receive!);
    }
    const result = isRoot ? receive! : undefined;
    return {
      name: call,
      type,
      op,
      root,
      count: send.length,
      steps: (channel) => rooted.reduce(channel, send, result, op.code, root),
    };
  }

  #allreduce(send: TypedArray, receive: TypedArray, op: Op): CollectiveCall {
    const type = checkReduction('allreduce', send, receive, op);
    checkSameLength('allreduce', send, receive);
    return {
      name: 'allreduce',
      type,
      op,
      count: send.length,
      steps: (channel) => collectives.allreduce(channel, receive, op.code, send),
    };
  }

  #reduceScatter(send: TypedArray, receive: TypedArray, op: Op, counts: readonly number[] | undefined): CollectiveCall {
    const call = 'reduceScatter';
    const type = checkReduction(call, send, receive, op);
    const equal = (): number[] => new Array<number>(this.size).fill(send.length / this.size);
    const parts = checkCounts(call, this, send, counts === undefined ? equal() : counts);
    checkOwnCount(call, this, 'receive', parts, receive);
    return {
      name: call,
      type,
      op,
      count: send.length,
      steps: (channel) => collectives.reduceScatter(channel, send, receive, parts, op.code),
    };
  }

  #scan(call: 'scan' | 'exscan', send: TypedArray, receive: TypedArray, op: Op): CollectiveCall {
    const type = checkReduction(call, send, receive, op);
    checkSameLength(call, send, receive);
    return {
      name: call,
      type,
      op,
      count: send.length,
      steps: (channel) => scan(channel, call, send, receive, op.code, call === 'scan'),
    };
  }

  #gather(send: TypedArray, receive: AtRoot<TypedArray>, root: number): CollectiveCall {
    const call = 'gather';
    const isRoot = checkRoot(call, this, root);
    const type = isRoot ? checkBuffers(call, send, receive!) : checkBuffer(call, 'send', send);
    if (isRoot) checkBlocks(call, 'receive', receive!, send, this);
    const into = isRoot ? bytesOf(receive!) : undefined;
    return {
      name: call,
      type,
      root,
      count: send.length,
      steps: (channel) => rooted.gather(channel, bytesOf(send), into, root),
    };
  }

  #gatherv(
    send: TypedArray,
    receive: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    root: number,
  ): CollectiveCall {
    const call = 'gatherv';
    const isRoot = checkRoot(call, this, root);
    const type = isRoot ? checkBuffers(call, send, receive!) : checkBuffer(call, 'send', send);
    const into = isRoot ? this.#parts(call, receive!, counts!, 'send', send) : undefined;
    return { name: call, type, root, steps: (channel) => rooted.gatherv(channel, bytesOf(send), into, root) };
  }

  #scatter(send: AtRoot<TypedArray>, receive: TypedArray, root: number): CollectiveCall {
    const call = 'scatter';
    const isRoot = checkRoot(call, this, root);
    const type = isRoot ? checkBuffers(call, send!, receive) : checkBuffer(call, 'receive', receive);
    if (isRoot) checkBlocks(call, 'send', send!, receive, this);
    const from = isRoot ? bytesOf(send!) : undefined;
    return {
      name: call,
      type,
      root,
      count: receive.length,
      steps: (channel) => rooted.scatter(channel, from, bytesOf(receive), root),
    };
  }

  #scatterv(
    send: AtRoot<TypedArray>,
    counts: AtRoot<readonly number[]>,
    receive: TypedArray,
    root: number,
  ): CollectiveCall {
    const call = 'scatterv';
    const isRoot = checkRoot(call, this, root);
    const type = isRoot ? checkBuffers(call, send!, receive) : checkBuffer(call, 'receive', receive);
    const from = isRoot ? this.#parts(call, send!, counts!, 'receive', receive) : undefined;
    return { name: call, type, root, steps: (channel) => rooted.scatterv(channel, from, bytesOf(receive), root) };
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

  #allgather(send: TypedArray, receive: TypedArray): CollectiveCall {
    const type = checkBuffers('allgather', send, receive);
    checkBlocks('allgather', 'receive', receive, send, this);
    return {
      name: 'allgather',
      type,
      count: send.length,
      steps: (channel) => collectives.allgather(channel, bytesOf(send), bytesOf(receive)),
    };
  }

  #alltoall(send: TypedArray, receive: TypedArray): CollectiveCall {
    const type = checkBuffers('alltoall', send, receive);
    const counts = new Array<number>(this.size).fill(send.length / this.size);
    return { type, count: send.length, ...this.#exchange('alltoall', send, counts, receive, counts) };
  }

  #alltoallv(
    send: TypedArray,
    sendCounts: readonly number[],
    receive: TypedArray,
    receiveCounts: readonly number[],
  ): CollectiveCall {
    const type = checkBuffers('alltoallv', send, receive);
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
      steps: (channel) => collectives.alltoall(channel, bytesOf(send), out, bytesOf(receive), into),
    };
  }
}
