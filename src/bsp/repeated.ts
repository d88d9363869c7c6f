/**
 * Calls that repeat the one before: again a double, from the same array to the same variable of the same process, in
 * the same superstep. What the call before has found out holds for them, so they check their places only, and move the
 * double. Whatever is different, or wrong, they leave to the call's usual way, which does it or says what is wrong.
 *
 * Whatever could change something in between ends what is kept: the end of a superstep or of a unit's, with which
 * variables come and go; an error after which nothing can be called; the computation's end (`Core.settleCalls`). An
 * array that has lost its memory has no elements, so reading one finds nothing. Own names of an array's properties do
 * not matter: elements are always those of its memory (intrinsics.ts), and no other property of it is read.
 */
import type { TypedArray } from '../datatype/base-types.ts';
import { HEADER_WORDS, SHORT_OFFSETS, shortHeader } from './chunk-records.ts';
import type { Stream } from './chunks.ts';
import { packDouble } from './element-words.ts';

/** No program has this array. */
const NOTHING: Float64Array = new Float64Array(0);
const DOUBLE = 8;
const WORDS = 2;

/** Whether it can be the number of an element: a whole number, and no text that names one. */
function isIndex(value: number): boolean {
  return value >>> 0 === value;
}

/** Of the call before. */
class Call {
  pid = -1;
  source = NOTHING;
  variable: TypedArray = NOTHING;

  protected keep(pid: number, source: Float64Array, variable: TypedArray): void {
    this.pid = pid;
    this.source = source;
    this.variable = variable;
  }

  protected drop(): void {
    this.keep(-1, NOTHING, NOTHING);
  }

  protected is(pid: number, source: TypedArray, variable: TypedArray, count: number | undefined): boolean {
    return source === this.source && variable === this.variable && pid === this.pid && count === 1;
  }
}

/** Of `put`: records go to the end of the stream for the process. */
export class RepeatedPut extends Call {
  #stream: Stream | undefined;
  #slot = 0;
  /** Elements that the variable has there; those of them that a short header can name, and that of the first one. */
  #room = 0;
  #shortRoom = 0;
  #shortHeader = 0;

  /** @param isShort whether headers to this variable can be short */
  remember(
    pid: number,
    source: Float64Array,
    variable: TypedArray,
    slot: number,
    room: number,
    isShort: boolean,
    stream: Stream,
  ): void {
    this.keep(pid, source, variable);
    this.#stream = stream;
    this.#slot = slot;
    this.#room = room;
    this.#shortRoom = isShort ? SHORT_OFFSETS / WORDS : 0;
    this.#shortHeader = isShort ? shortHeader(slot, 0, WORDS) : 0;
  }

  forget(): void {
    if (this.#stream === undefined) return;
    this.drop();
    this.#stream = undefined;
  }

  /** The same call once more. False if it is another one, and nothing was done. */
  again(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset: number,
    count: number | undefined,
    start: number,
  ): boolean {
    if (!this.is(pid, source, variable, count)) return false;
    const from = this.source;
    if (!isIndex(offset) || offset >= this.#room || !isIndex(start) || from[start] === undefined) return false;
    const stream = this.#stream!;
    const { i32, pos } = stream;
    if (stream.end - pos < HEADER_WORDS + WORDS) return false;
    let data = pos + 1;
    if (offset < this.#shortRoom) i32[pos] = this.#shortHeader + WORDS * offset;
    else {
      i32[pos] = this.#slot;
      i32[pos + 1] = DOUBLE * offset;
      i32[pos + 2] = DOUBLE;
      data = pos + HEADER_WORDS;
    }
    packDouble(i32, data, from, start);
    stream.pos = data + WORDS;
    stream.data += DOUBLE;
    stream.calls++;
    return true;
  }
}

/** Of `hpput` to memory of another process that this one stores to. */
export class RepeatedDirectPut extends Call {
  #to = NOTHING;
  /** So often, since they were last taken account of. */
  calls = 0;

  /** @param to the variable there */
  remember(pid: number, source: Float64Array, variable: TypedArray, to: Float64Array): void {
    this.keep(pid, source, variable);
    this.#to = to;
  }

  forget(): void {
    if (this.#to === NOTHING) return;
    this.drop();
    this.#to = NOTHING;
  }

  /** As `RepeatedPut.again`. */
  again(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset: number,
    count: number | undefined,
    start: number,
  ): boolean {
    if (!this.is(pid, source, variable, count)) return false;
    const to = this.#to;
    const from = this.source;
    if (!isIndex(offset) || offset >= to.length || !isIndex(start)) return false;
    const value = from[start];
    if (value === undefined) return false;
    to[offset] = value;
    this.calls++;
    return true;
  }
}
