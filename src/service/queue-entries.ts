/** How entries of a queue lie in its memory: typed arrays of one length, or values that a codec turns into bytes. */
import { ownView, type TypedArray, type TypedArrayConstructor, typeCodeOf } from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError } from '../errors.ts';
import { type Codec, CopySpace, type EncodedValue, Refused, Undecodable } from './map/index.ts';

export interface EntryForm<T> {
  /** Of the longest entry. */
  readonly bytes: number;
  /**
   * The bytes of an entry, valid until the next call; may be those of the entry itself.
   * @param what the queue, for messages. Errors: `ERR_ARG`, `ERR_TYPE`, `ERR_SIZE`, those of the program's codec.
   */
  write(call: string, what: string, entry: T): Uint8Array;
  /**
   * The entry of some bytes, `bytes` of them, which are the caller's own and change no more. Errors: `ERR_DAMAGED`,
   * those of the program's codec.
   */
  read(call: string, what: string, bytes: Uint8Array<ArrayBuffer>): T;
}

export class TypedEntries<T extends TypedArray> implements EntryForm<T> {
  readonly bytes: number;
  readonly #type: TypedArrayConstructor<T>;
  readonly #typeCode: number;
  readonly #length: number;

  constructor(type: TypedArrayConstructor<T>, typeCode: number, length: number) {
    this.bytes = length * type.BYTES_PER_ELEMENT;
    this.#type = type;
    this.#typeCode = typeCode;
    this.#length = length;
  }

  write(call: string, what: string, entry: T): Uint8Array {
    const own = ownView(call, 'entry', entry);
    if (typeCodeOf(own) !== this.#typeCode)
      throw argumentTypeError(`${call}: entries of ${what} must be of type ${this.#type.name}`, 'ERR_TYPE');
    if (own.length !== this.#length) {
      const rule = `entries of ${what} must have ${this.#length} elements`;
      throw argumentRangeError(`${call}: ${rule}, not ${own.length}`, 'ERR_SIZE');
    }
    return new Uint8Array(own.buffer, own.byteOffset, own.byteLength);
  }

  read(_call: string, _what: string, bytes: Uint8Array<ArrayBuffer>): T {
    return new this.#type(bytes.buffer);
  }
}

/** Words before the bytes of a value: how many bytes there are, and what the codec has noted. */
const HEAD_BYTES = 8;
const KINDS = 3;

export class ValueEntries<V> implements EntryForm<V> {
  readonly bytes: number;
  readonly #codec: Codec<V>;
  readonly #longest: number;
  readonly #copy = new CopySpace();
  readonly #value: EncodedValue = { bytes: new Uint8Array(0), words: undefined, length: 0, kind: 0 };

  constructor(codec: Codec<unknown>, longest: number) {
    this.bytes = HEAD_BYTES + longest;
    this.#codec = codec as Codec<V>;
    this.#longest = longest;
  }

  write(call: string, what: string, entry: V): Uint8Array {
    if (entry === undefined) {
      const why = '"pop" gives undefined once a queue is closed';
      throw argumentTypeError(`${call}: an entry of ${what} must not be undefined: ${why}`);
    }
    const value = this.#value;
    try {
      this.#codec.encode(entry, value, this.#longest);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw argumentTypeError(`${call}: the entry for ${what} ${error.message}`, 'ERR_ARG', { cause: error.cause });
    }
    const { length, kind } = value;
    if (length > this.#longest) {
      const rule = `entries of ${what} have ${this.#longest} at most`;
      throw argumentRangeError(
        `${call}: the entry has ${length} bytes, ${rule}; make the queue with a larger \`longest\``,
        'ERR_SIZE',
      );
    }
    const bytes = new Uint8Array(HEAD_BYTES + length);
    new Int32Array(bytes.buffer, 0, 2).set([length, kind]);
    bytes.set(value.bytes.subarray(0, length), HEAD_BYTES);
    return bytes;
  }

  read(call: string, what: string, bytes: Uint8Array<ArrayBuffer>): V {
    const [length, kind] = new Int32Array(bytes.buffer, 0, 2);
    const copy = this.#copy;
    copy.kind = kind & KINDS;
    copy.reserve(Math.min(length >>> 0, this.#longest));
    copy.bytes().set(bytes.subarray(HEAD_BYTES, HEAD_BYTES + copy.length));
    try {
      return this.#codec.decode(copy);
    } catch (error) {
      if (!(error instanceof Undecodable)) throw error;
      const why = 'cannot be decoded: a member has written over it; it is gone';
      throw new RmaError('ERR_DAMAGED', `${call}: an entry of ${what} ${why}`, { cause: error.cause });
    }
  }
}
