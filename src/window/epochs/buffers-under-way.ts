/**
 * For debugging (`ONESIDED_DEBUG=poison`): the arrays of the program that operations of a window use, until these are
 * complete at this rank.
 *
 * A result (of `get`, `getAccumulate`, `fetchAndOp`, `compareAndSwap`) is delivered into an array of the library's own.
 * The program's array holds a pattern meanwhile, NaN as floating-point numbers, and gets the data when the program has
 * called what completes the operation. So a program that reads early sees the pattern, also where a get is complete
 * when it is issued. Of an origin, a copy is kept; it is compared then.
 *
 * Both happen before other ranks learn that the epoch is over: from then on they may put where a result or an origin
 * lies, if that is in this rank's part (sync/fence/delivering-fence.ts).
 *
 * It costs some microseconds a call and a copy of each array, and closes the fast paths (access-log.ts).
 */
import { arrayOf, bytesOf, type TypedArray, typeCodeOf } from '../../datatype/base-types.ts';
import { forEachRun } from '../../datatype/copy.ts';
import { begun, ended, type MemoryUnderWay, refuseUnderWay } from '../../datatype/poison.ts';
import type { Side } from '../../datatype/sides.ts';
import { RmaError } from '../../errors.ts';
import { programLine } from '../../program-line.ts';

/** A NaN as a Float32Array and as a Float64Array; 2147335919 as an Int32Array. */
const PATTERN = Buffer.from(Uint32Array.of(0x7ffdbeef).buffer);

interface Used extends MemoryUnderWay {
  /** Of the call that uses it (`AccessLog.calls`). */
  readonly number: number;
  readonly target: number;
  /** Of the program. */
  readonly array: TypedArray;
  readonly side: Side;
  /** Of a result, where it is delivered; of an origin, what it held. */
  readonly own: Uint8Array<ArrayBuffer>;
  readonly isResult: boolean;
}

export class BuffersUnderWay {
  readonly #used = new Set<Used>();
  readonly #isBroken: () => boolean;
  #complaint: RmaError | undefined;

  /** @param isBroken whether nothing of the window will be completed any more, since a rank has failed */
  constructor(isBroken: () => boolean) {
    this.#isBroken = isBroken;
  }

  get pending(): boolean {
    return this.#used.size > 0 || this.#complaint !== undefined;
  }

  /**
   * Refuses an array that is in use.
   * @param where the call, its target and the window, for messages
   * @param writes the operation writes it
   * Errors: `ERR_RMA_CONFLICT`.
   */
  check(where: string, name: string, array: TypedArray, side: Side, writes: boolean): void {
    refuseUnderWay(where, `its ${name}`, array.buffer, array.byteOffset, side, writes);
  }

  /**
   * An array that an operation uses from now on. Otherwise like `check`.
   * @param number of the call
   * @returns the array to be given to the operation
   */
  use(
    where: string,
    name: string,
    target: number,
    number: number,
    array: TypedArray,
    side: Side,
    writes: boolean,
  ): TypedArray {
    const { buffer, byteOffset, byteLength } = array;
    const used: Used = {
      buffer,
      at: byteOffset,
      what: `the ${name} of ${where}${programLine()}`,
      number,
      target,
      array,
      side,
      own: bytesOf(array).slice(),
      isResult: writes,
      isLost: () => {
        if (!this.#isBroken()) return false;
        for (const lost of this.#used) ended(lost);
        this.#used.clear();
        return true;
      },
    };
    this.#used.add(used);
    begun(used, writes);
    if (!writes) return array;
    const poisoned = Buffer.from(buffer, byteOffset, byteLength);
    forEachRun(side, (offset, length) => poisoned.fill(PATTERN, offset, offset + length));
    return new (arrayOf(typeCodeOf(array)))(used.own.buffer);
  }

  /**
   * What was called is complete at this rank.
   * @param target absent: at all
   * @param after and @param to calls after the one number, up to the other
   */
  completed(target: number | undefined, after: number, to: number): void {
    for (const used of this.#used) {
      if ((target !== undefined && used.target !== target) || used.number <= after || used.number > to) continue;
      this.#used.delete(used);
      ended(used);
      if (used.array.length === 0) continue;
      if (used.isResult) deliver(used);
      else this.#complaint ??= changed(used);
    }
  }

  /** Throws what has been found when operations were completed. Errors: `ERR_RMA_CONFLICT`. */
  complain(): void {
    const complaint = this.#complaint;
    this.#complaint = undefined;
    if (complaint !== undefined) throw complaint;
  }
}

function deliver({ array, own, side }: Used): void {
  const bytes = bytesOf(array);
  forEachRun(side, (offset, length) => bytes.set(own.subarray(offset, offset + length), offset));
}

function changed({ array, own, side, what }: Used): RmaError | undefined {
  const bytes = bytesOf(array);
  let first = -1;
  forEachRun(side, (offset, length) => {
    for (let i = offset; first < 0 && i < offset + length; i++) if (bytes[i] !== own[i]) first = i;
  });
  if (first < 0) return undefined;
  const size = array.BYTES_PER_ELEMENT;
  const place = size === 1 ? `byte ${first}` : `element ${Math.floor(first / size)}`;
  return new RmaError(
    'ERR_RMA_CONFLICT',
    `${what} was changed before it was complete (${place}); ` +
      'leave origins alone until a flush, a wait for the request, or the end of the epoch',
  );
}
