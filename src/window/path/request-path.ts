/**
 * The path of memory behind a device: work requests. They are complete when a flush or a synchronization has said so.
 */
import { bytesOf, type TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { RemoteRegion } from '../../transfer/requests/regions.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { RequestUpdates } from '../../transfer/requests/request-updates.ts';
import type { WholeArrays } from '../../transfer/requests/whole-arrays.ts';
import type { Later, OwnMemory, ProgressBy } from './path.ts';

/** What carries out the requests of a window. */
export interface Senders {
  readonly requests: RequestTransfer;
  /** Absent where updates are no requests. */
  readonly updates: RequestUpdates | undefined;
  /** Absent where nothing takes whole arrays by one request. */
  readonly whole: WholeArrays | undefined;
  readonly progressBy: ProgressBy;
}

/** The epochs of the window, as far as its requests go by them. */
export interface Fenced {
  /** Whether the next fence completes what is issued now. */
  readonly isFenced: boolean;
}

export class Requests implements Later {
  readonly own: OwnMemory | undefined;
  readonly whole: WholeArrays | undefined;
  readonly #senders: Senders;
  readonly #epochs: Fenced;
  readonly #rank: number;
  readonly #region: RemoteRegion | undefined;

  /** @param region where requests reach the memory; absent: it is the rank's part */
  constructor(
    senders: Senders,
    rank: number,
    region: RemoteRegion | undefined,
    own: OwnMemory | undefined,
    epochs: Fenced,
  ) {
    this.#senders = senders;
    this.#rank = rank;
    this.#region = region;
    this.own = own;
    // To this rank itself, overlaps are looked for first.
    this.whole = region === undefined && own === undefined ? senders.whole : undefined;
    this.#epochs = epochs;
  }

  get later(): Later {
    return this;
  }

  open(): void {}

  aligned(at: number): number {
    return at + (this.#region?.address ?? this.#senders.updates?.skewOf(this.#rank) ?? 0);
  }

  get turn(): number {
    return this.#senders.requests.turn;
  }

  set turn(turn: number) {
    this.#senders.requests.turn = turn;
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#senders.requests.put(bytesOf(origin), from, this.#rank, at, to, this.#epochs.isFenced, this.#region);
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    this.#senders.requests.get(bytesOf(origin), from, this.#rank, at, to, this.#region);
  }

  failed(error: unknown): void {
    this.#senders.requests.noteFailure(error, this.#rank);
  }

  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    this.#senders.updates!.accumulate(origin, from, this.#rank, at, to, op, fetch, this.#region);
  }

  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    this.#senders.updates!.compareAndSwap(origin, compare, result, this.#rank, at, to, this.#region);
  }

  progressBy(): ProgressBy {
    return this.#senders.progressBy;
  }
}
