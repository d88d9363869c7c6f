/** Carries out at the target what operation-queue.ts has queued, by this rank's processor on its own part. */

import { TYPE_SIZES } from '../../datatype/base-types.ts';
import { copyLong } from '../../datatype/copy.ts';
import { sideAt } from '../../datatype/layout.ts';
import type { Side } from '../../datatype/sides.ts';
import { type Processor, REAL_PROCESSOR } from '../../verbs/processor.ts';
import { accumulateElements, type BulkKernels } from '../loads/accumulate.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import type { Stripes } from '../loads/stripes.ts';
import { aligned, Kind, MESSAGE_HEADER, OPERATION_HEADER, SCATTERED } from './operation-queue.ts';

export class OperationServer {
  readonly #part: () => RemotePart;
  readonly #stripes: () => Stripes;
  readonly #kernels: BulkKernels | undefined;
  readonly #signal: () => void;

  /**
   * @param part this rank's part, or an error if it is gone
   * @param stripes for accumulates: those that all others take that may accumulate to this part at the same time
   * @param signal raises this rank's count of notifications
   */
  constructor(part: () => RemotePart, stripes: () => Stripes, kernels: BulkKernels | undefined, signal: () => void) {
    this.#part = part;
    this.#stripes = stripes;
    this.#kernels = kernels;
    this.#signal = signal;
  }

  /**
   * Carries out all operations of a message, in their order. Ranges and alignment were checked at the origin.
   * @param processor is told of what is combined; without it that is free, as what a rank does to its own part
   * @param carriedOut is told of each that was, notifications aside
   * @returns what they fetch
   */
  serve(message: Uint8Array, processor = REAL_PROCESSOR, carriedOut?: () => void): Uint8Array {
    // Messages begin at a multiple of 8 of a buffer of their own.
    const { buffer, byteOffset, length } = message.byteOffset % 8 === 0 ? message : message.slice();
    const answers: Uint8Array[] = [];
    let at = byteOffset + MESSAGE_HEADER;
    const end = byteOffset + length;
    const take = (bytes: number): number => {
      const here = at;
      at += aligned(bytes);
      return here;
    };
    while (at < end) {
      const [kind, count] = new Uint32Array(buffer, at, 2);
      const place = new Float64Array(buffer, at + 8, 1)[0];
      take(OPERATION_HEADER);
      const base = (kind >>> 8) & 0xff;
      switch (kind & 0xff) {
        case Kind.PUT:
        case Kind.GET: {
          const places = new Float64Array(buffer, take(16 * count), 2 * count);
          const bytes = sum(places);
          const part = this.#part();
          if ((kind & 0xff) === Kind.PUT) copyOut(part, place, places, new Uint8Array(buffer, take(bytes), bytes));
          else answers.push(copyIn(part, place, places, bytes));
          break;
        }
        case Kind.SWAP: {
          const bytes = TYPE_SIZES[base];
          const compare = take(bytes);
          answers.push(swap(this.#part(), place, base, buffer, compare, take(bytes)));
          break;
        }
        case Kind.SIGNAL:
          this.#signal();
          break;
        default: {
          const offsets = (kind & SCATTERED) === 0 ? undefined : new Int32Array(buffer, take(4 * count), count).slice();
          const inOrder = sideAt(base, count, undefined);
          const to = offsets === undefined ? inOrder : sideAt(base, count, offsets);
          const origin = new Uint8Array(buffer, take(inOrder.high), inOrder.high);
          const result = (kind & 0xff) === Kind.FETCH ? new Uint8Array(inOrder.high) : undefined;
          this.#accumulate(place, to, origin, inOrder, (kind >>> 16) & 0xff, result, processor);
          if (result !== undefined) answers.push(result);
        }
      }
      if ((kind & 0xff) !== Kind.SIGNAL) carriedOut?.();
    }
    return joined(answers);
  }

  #accumulate(
    place: number,
    to: Side,
    origin: Uint8Array,
    from: Side,
    op: number,
    result: Uint8Array | undefined,
    processor: Processor,
  ): void {
    const part = this.#part();
    const into = result && from;
    processor.combine(to.bytes);
    accumulateElements(part, part.skew + place, to, origin, from, op, result, into, this.#stripes(), this.#kernels);
  }
}

function sum(places: Float64Array): number {
  let bytes = 0;
  for (let i = 1; i < places.length; i += 2) bytes += places[i];
  return bytes;
}

function copyOut(part: RemotePart, place: number, places: Float64Array, payload: Uint8Array): void {
  let at = 0;
  for (let i = 0; i < places.length; i += 2) {
    copyLong(part.u8, part.skew + place + places[i], payload, at, places[i + 1], 1, undefined);
    at += places[i + 1];
  }
}

function copyIn(part: RemotePart, place: number, places: Float64Array, bytes: number): Uint8Array {
  const answer = new Uint8Array(bytes);
  let at = 0;
  for (let i = 0; i < places.length; i += 2) {
    copyLong(answer, at, part.u8, part.skew + place + places[i], places[i + 1], 1, undefined);
    at += places[i + 1];
  }
  return answer;
}

function swap(
  part: RemotePart,
  place: number,
  base: number,
  buffer: ArrayBufferLike,
  compare: number,
  value: number,
): Uint8Array {
  const view = part.view(base) as Int32Array;
  const ofView = view.constructor as new (buffer: ArrayBufferLike, offset: number, length: number) => Int32Array;
  const [expected] = new ofView(buffer, compare, 1);
  const [wanted] = new ofView(buffer, value, 1);
  const answer = new Uint8Array(view.BYTES_PER_ELEMENT);
  const found = new ofView(answer.buffer, 0, 1);
  found[0] = Atomics.compareExchange(view, (part.skew + place) / view.BYTES_PER_ELEMENT, expected, wanted);
  return answer;
}

/** One behind the other, each at a multiple of 8. */
function joined(answers: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(answers.reduce((bytes, answer) => bytes + aligned(answer.length), 0));
  let at = 0;
  for (const answer of answers) {
    all.set(answer, at);
    at += aligned(answer.length);
  }
  return all;
}
