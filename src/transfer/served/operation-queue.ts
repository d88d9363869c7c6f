/**
 * Operations that are not carried out when they are issued, but sent to the target as one message and carried out
 * there, in the order of the calls, by the target's processor: what the deferred fence and the two-sided lock do
 * (dissertation §4.3, §6.2). operation-server.ts is the other end.
 *
 * What is written is copied when it is queued, so origins of puts and accumulates may be used again at once; what is
 * fetched comes with the answer.
 *
 * A message is a header of 8 bytes, which the sender may use, and then for each operation, all numbers in the byte
 * order of the machine:
 *
 *   64 bits   kind | base type << 8 | operation << 16, a 32-bit word, and the number of elements (of places, for PUT
 *             and GET), another one
 *   64 bits   the byte of the target's part that the places are counted from
 *   places    pairs of 64-bit numbers (start, bytes) for PUT and GET; for ACCUMULATE and FETCH 32-bit offsets of
 *             elements, or none if they are one after the other
 *   payload   for all but GET and SIGNAL
 *
 * Each of the last two begins at a multiple of 8.
 */
import { bytesOf, type TypedArray } from '../../datatype/base-types.ts';
import { type CopyKernels, copyPlaces, forEachRun, type Places } from '../../datatype/copy.ts';
import { elementOffsets, sideAt } from '../../datatype/layout.ts';
import type { Side } from '../../datatype/sides.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { byteLengthOf } from '../../intrinsics.ts';
import type { Fetch } from '../requests/fetch.ts';
import { lostError } from '../requests/lost-arrays.ts';

export const Kind = Object.freeze({ PUT: 1, GET: 2, ACCUMULATE: 3, FETCH: 4, SWAP: 5, SIGNAL: 6 });
/** With ACCUMULATE and FETCH: offsets of elements follow. */
export const SCATTERED = 1 << 24;
/** Bytes of a message before its first operation. */
export const MESSAGE_HEADER = 8;
/** Bytes of an operation before its places. */
export const OPERATION_HEADER = 16;

const FURTHEST = 2 ** 31 - 1;

/** Places, and where they end. */
type Reach = Places & { readonly high: number };

/** Where the next bytes of an answer go. */
interface Sink {
  readonly bytes: number;
  put(answer: Uint8Array, at: number): void;
}

/** What is queued for one target. */
interface TargetQueue {
  readonly pieces: Uint8Array[];
  bytes: number;
  /** Bytes that are fetched. */
  fetched: number;
  operations: number;
  readonly sinks: Sink[];
}

/** A message, and how its answer is used. */
export interface QueuedOperations {
  readonly message: Uint8Array;
  /** Whether something is fetched. */
  readonly fetches: boolean;
  /**
   * Puts what was fetched to its places. Errors: `ERR_BUFFER` if the program has taken one of them away; all others
   * have what is theirs then.
   */
  take(answer: Uint8Array): void;
}

/**
 * Records operations that are queued: those of this rank's queue for others, and those of their queues that are carried
 * out here. What goes to a rank is carried out there in the order in which it was queued.
 */
export interface QueueTrace {
  /**
   * @param turn of the call for which it is; 0: of the call that is under way
   * @returns its number among those to the rank
   */
  queued(rank: number, turn: number): number;
  /** The next of those that `source` has queued for this rank. */
  carriedOut(source: number): void;
  /** What a get has asked for is here. */
  fetched(rank: number, number: number): void;
}

export class OperationQueue {
  readonly #queues: (TargetQueue | undefined)[];
  readonly #kernels: CopyKernels | undefined;
  readonly #trace: QueueTrace | undefined;

  /** @param trace in a job that is traced */
  constructor(size: number, kernels: CopyKernels | undefined, trace?: QueueTrace) {
    this.#queues = new Array<undefined>(size).fill(undefined);
    this.#kernels = kernels;
    this.#trace = trace;
  }

  /** What is told of each operation of `source`'s queue that is carried out here; absent if it is not recorded. */
  carriedOut(source: number): (() => void) | undefined {
    const trace = this.#trace;
    return trace && (() => trace.carriedOut(source));
  }

  /** Whether something is queued for a rank. */
  has(rank: number): boolean {
    return this.#queues[rank] !== undefined;
  }

  /** Whether one operation is queued for a rank that moves at most so many bytes, either way. */
  isOne(rank: number, bytes: number): boolean {
    const queue = this.#queues[rank];
    return queue?.operations === 1 && queue.bytes + queue.fetched <= bytes;
  }

  /** @param turn of its call, if that was made before */
  put(origin: TypedArray, from: Side, rank: number, at: number, to: Side, turn = 0): void {
    const queue = this.#queueOf(rank);
    this.#trace?.queued(rank, turn);
    this.#addPlaces(queue, Kind.PUT, at, to);
    this.#addPayload(queue, this.#packed(origin, from, dense(from.bytes)));
  }

  /** @param turn as of `put` */
  get(origin: TypedArray, from: Side, rank: number, at: number, to: Side, turn = 0): void {
    const queue = this.#queueOf(rank);
    this.#addPlaces(queue, Kind.GET, at, to);
    queue.fetched += from.bytes;
    const sink = this.#sinkOf(origin, from, dense(from.bytes), () => lostError('origin', 'a get', rank));
    const trace = this.#trace;
    if (trace === undefined) {
      queue.sinks.push(sink);
      return;
    }
    const number = trace.queued(rank, turn);
    queue.sinks.push({
      bytes: sink.bytes,
      put(answer, at) {
        sink.put(answer, at);
        trace.fetched(rank, number);
      },
    });
  }

  /** Origin and result may be arrays of bytes. */
  accumulate(
    origin: TypedArray,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
  ): void {
    const queue = this.#queueOf(rank);
    const { base, elements } = to;
    const lost = (): Error => lostError('result', 'an accumulate', rank);
    const inOrder = sideAt(base, elements, undefined);
    const scattered = to.type !== undefined;
    const kind = (fetch === undefined ? Kind.ACCUMULATE : Kind.FETCH) | (base << 8) | (op << 16);
    if (scattered && Math.max(-to.low, to.high) > FURTHEST) {
      // Offsets of 32 bits would not do: element by element.
      const sources = elementOffsets(from);
      const sinks = fetch && elementOffsets(fetch.side);
      const one = sideAt(base, 1, undefined);
      for (const [i, offset] of elementOffsets(to).entries()) {
        this.#trace?.queued(rank, 0);
        this.#addHeader(queue, kind, 1, at + offset);
        this.#addPayload(queue, this.#packed(bytesOf(origin).subarray(sources[i]), one, one));
        if (fetch) queue.sinks.push(this.#sinkOf(bytesOf(fetch.result).subarray(sinks![i]), one, one, lost));
      }
      return;
    }
    this.#trace?.queued(rank, 0);
    this.#addHeader(queue, scattered ? kind | SCATTERED : kind, elements, at);
    if (scattered) this.#addPayload(queue, bytesOf(Int32Array.from(elementOffsets(to))));
    this.#addPayload(queue, this.#packed(origin, from, inOrder));
    if (fetch) queue.sinks.push(this.#sinkOf(fetch.result, fetch.side, inOrder, lost));
  }

  compareAndSwap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    at: number,
    base: number,
  ): void {
    const queue = this.#queueOf(rank);
    this.#trace?.queued(rank, 0);
    this.#addHeader(queue, Kind.SWAP | (base << 8), 1, at);
    this.#addPayload(queue, bytesOf(compare).slice());
    this.#addPayload(queue, bytesOf(origin).slice());
    const one = dense(result.byteLength);
    queue.sinks.push(this.#sinkOf(result, one, one, () => lostError('result', 'a compareAndSwap', rank)));
  }

  /** Raises the target's count of notifications. */
  signal(rank: number): void {
    this.#addHeader(this.#queueOf(rank), Kind.SIGNAL | (TypeCode.BYTE << 8), 0, 0);
  }

  /** Takes all that is queued for a rank. Its first `MESSAGE_HEADER` bytes are 0. */
  take(rank: number): QueuedOperations {
    const { pieces, bytes, sinks } = this.#queues[rank] ?? emptyQueue();
    this.#queues[rank] = undefined;
    const message = new Uint8Array(bytes);
    let at = MESSAGE_HEADER;
    for (const piece of pieces) {
      message.set(piece, at);
      at += aligned(piece.length);
    }
    return {
      message,
      fetches: sinks.length > 0,
      take(answer) {
        let next = 0;
        let failure: unknown;
        for (const { bytes, put } of sinks) {
          try {
            put(answer, next);
          } catch (error) {
            failure ??= error;
          }
          next += aligned(bytes);
        }
        if (failure !== undefined) throw failure;
      },
    };
  }

  #queueOf(rank: number): TargetQueue {
    this.#queues[rank] ??= emptyQueue();
    return this.#queues[rank];
  }

  #addHeader(queue: TargetQueue, kind: number, elements: number, at: number): void {
    queue.operations++;
    const header = new Float64Array(2);
    new Uint32Array(header.buffer).set([kind, elements]);
    header[1] = at;
    this.#addPayload(queue, bytesOf(header));
  }

  #addPlaces(queue: TargetQueue, kind: number, at: number, to: Side): void {
    const places: number[] = [];
    forEachRun(to, (start, bytes) => void places.push(start, bytes));
    this.#addHeader(queue, kind | (TypeCode.BYTE << 8), places.length / 2, at);
    this.#addPayload(queue, bytesOf(Float64Array.from(places)));
  }

  #addPayload(queue: TargetQueue, payload: Uint8Array): void {
    queue.pieces.push(payload);
    queue.bytes += aligned(payload.length);
  }

  #packed(origin: TypedArray, from: Places, to: Reach): Uint8Array {
    const packed = new Uint8Array(to.high);
    copyPlaces(from, origin, 0, to, packed, 0, this.#kernels);
    return packed;
  }

  /** @param lost the error if the program has taken the array away by then */
  #sinkOf(result: TypedArray, into: Reach, packed: Reach, lost: () => Error): Sink {
    return {
      bytes: packed.high,
      put: (answer, at) => {
        if (byteLengthOf(result) < into.high) throw lost();
        copyPlaces(packed, answer, at, into, result, 0, this.#kernels);
      },
    };
  }
}

function emptyQueue(): TargetQueue {
  return { pieces: [], bytes: MESSAGE_HEADER, fetched: 0, operations: 0, sinks: [] };
}

function dense(bytes: number): Reach {
  return { bytes, runs: undefined, count: 1, stride: 0, high: bytes };
}

/** The next multiple of 8. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
