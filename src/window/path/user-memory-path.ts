/** The path of memory that only its owner's process can address (transfer/served/user-memory.ts). All is complete at once. */
import { bytesOf, type TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { UserMemory } from '../../transfer/served/user-memory.ts';
import type { Moves, OwnMemory, Path, ProgressBy } from './path.ts';

export class UserMemoryPath implements Path {
  readonly own: OwnMemory | undefined;
  readonly #memory: UserMemory;
  readonly #rank: number;
  readonly #base: number;

  /** @param base the address of byte 0 */
  constructor(memory: UserMemory, rank: number, base: number, own: OwnMemory | undefined) {
    this.#memory = memory;
    this.#rank = rank;
    this.#base = base;
    this.own = own;
  }

  open(): void {}

  aligned(at: number): number {
    return this.#base + at;
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#memory.put(bytesOf(origin), from, this.#rank, this.#base + at, to);
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#memory.get(bytesOf(origin), from, this.#rank, this.#base + at, to);
  }

  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    const result = fetch && bytesOf(fetch.result);
    this.#memory.accumulate(bytesOf(origin), from, this.#rank, this.#base + at, to, op, result, fetch?.side);
  }

  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    this.#memory.compareAndSwap(origin, compare, result, this.#rank, this.#base + at, to.base);
  }

  progressBy(moves: Moves): ProgressBy {
    return moves === 'transfer' && this.#memory.copies(this.#rank) ? 'kernel' : 'agent';
  }
}
