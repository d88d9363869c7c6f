/**
 * For debugging (`ONESIDED_DEBUG=poison`): memory that must be left alone, because operations of windows that use it
 * are not complete. Windows tell of it (window/epochs/buffers-under-way.ts); what takes arrays of the program asks
 * here, so that a result which is not there yet is not passed on.
 */
import { debugs } from '../debug.ts';
import { RmaError } from '../errors.ts';
import { denseExtent, type Extent, sharedBytes } from './overlap.ts';

export const POISON = debugs('poison');

/** Bytes of the program that an operation uses. */
export interface MemoryUnderWay {
  readonly buffer: ArrayBufferLike;
  /** Where they are, counted from byte `at` of the buffer on. */
  readonly at: number;
  readonly side: Extent;
  /** `the result of get from rank 1 in window x, called at …`. */
  readonly what: string;
  /** Whether it will never be complete, since a rank has failed; then it has ended. */
  isLost(): boolean;
}

/** Of all windows of this thread: results that are not there yet, and origins that must not change. */
const results = new Set<MemoryUnderWay>();
const origins = new Set<MemoryUnderWay>();

export function begun(memory: MemoryUnderWay, isResult: boolean): void {
  (isResult ? results : origins).add(memory);
}

export function ended(memory: MemoryUnderWay): void {
  results.delete(memory);
  origins.delete(memory);
}

/**
 * Refuses bytes that a result is under way into: those of `side` from byte `at` of a buffer on.
 * @param where the call, and what it is about
 * @param name of the array
 * @param writes the call writes it, so it must not be an origin either
 * Errors: `ERR_RMA_CONFLICT`.
 */
export function refuseUnderWay(
  where: string,
  name: string,
  buffer: ArrayBufferLike,
  at: number,
  side: Extent,
  writes = false,
): void {
  for (const all of writes ? [results, origins] : [results]) {
    for (const other of all) {
      const both = other.buffer === buffer ? sharedBytes(side, at, other.side, other.at) : undefined;
      if (both === undefined || other.isLost()) continue;
      throw new RmaError(
        'ERR_RMA_CONFLICT',
        `${where}: bytes ${both.low - at} … ${both.high - at - 1} of ${name} are ${other.what}, which is not ` +
          'complete; complete it first, with a flush, a wait for its request, or the end of the epoch',
      );
    }
  }
}

/** The same of all of an array that is sent, or given to a collective. */
export function refusePassingOn(call: string, name: string, { buffer, byteOffset, byteLength }: ArrayBufferView): void {
  refuseUnderWay(call, name, buffer, byteOffset, denseExtent(byteLength));
}
