/**
 * The path of an epoch whose scheme has the target carry out operations itself: they wait in a queue until the scheme
 * sends them. What depends on the memory, its alignment and overlaps, is that of the path around which it is.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { OperationQueue } from '../../transfer/served/operation-queue.ts';
import type { OwnMemory, Path, ProgressBy } from './path.ts';

export class Queued implements Path {
  readonly own: OwnMemory | undefined;
  readonly #direct: Path;
  readonly #queue: OperationQueue;
  readonly #rank: number;

  constructor(direct: Path, queue: OperationQueue, rank: number) {
    this.own = direct.own;
    this.#direct = direct;
    this.#queue = queue;
    this.#rank = rank;
  }

  open(): void {
    this.#direct.open();
  }

  aligned(at: number): number {
    return this.#direct.aligned(at);
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#queue.put(origin, from, this.#rank, at, to);
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#queue.get(origin, from, this.#rank, at, to);
  }

  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    this.#queue.accumulate(origin, from, this.#rank, at, to, op, fetch);
  }

  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    this.#queue.compareAndSwap(origin, compare, result, this.#rank, at, to.base);
  }

  progressBy(): ProgressBy {
    return 'target';
  }
}
