/** How values become bytes, and back. */

import { deserialize, serialize } from 'node:v8';
import { argumentTypeError, RmaError, reading, show } from '../../errors.ts';
import { bufferOf, lengthOf, tagOf } from '../../intrinsics.ts';
import { unknownName } from '../../options.ts';
import type { CopySpace } from './copy-space.ts';

/** A codec of the program's own. The bytes that `decode` gets are the program's to keep. */
export interface CustomCodec<V> {
  encode(value: V): Uint8Array;
  decode(bytes: Uint8Array): V;
}

/** The names of the codecs that there are. */
export type CodecName = 'bytes' | 'string' | 'json' | 'structured';

/** A value as bytes. One for all sets of a map. */
export interface EncodedValue {
  bytes: Uint8Array;
  /** The same bytes as words of private memory that begins with them; `undefined` if there is no such memory. */
  words: Int32Array | undefined;
  length: number;
  /** Two bits for `decode`. */
  kind: number;
}

export interface Codec<V> {
  /** In the map's header: all members must have the same. */
  readonly number: number;
  readonly name: string;
  /**
   * Fills `out`. Runs code of the program's at most before that.
   * @param most bytes that an entry has room for: of what is surely longer, only the length is told
   */
  encode(call: string, value: V, out: EncodedValue, most: number): void;
  /** What it gives may keep the memory of the copy only by `copy.give()`. */
  decode(copy: CopySpace): V;
}

const CODEC_NAMES = ['bytes', 'string', 'json', 'structured'] as const;

/** Text of characters below 128; in UTF-8; as it is, with halves of surrogate pairs. */
const ASCII = 0;
const UTF8 = 1;
const UTF16 = 2;

function setBytes(call: string, what: string, value: unknown, out: EncodedValue): void {
  if (tagOf(value) !== 'Uint8Array')
    throw argumentTypeError(`${call}: ${what} must be a Uint8Array, not ${show(value)}`);
  let bytes = value as Uint8Array;
  // Another thread may let shared memory grow before it is copied.
  if (bufferOf(bytes) instanceof SharedArrayBuffer) bytes = Uint8Array.from(bytes);
  out.bytes = bytes;
  out.words = undefined;
  out.length = lengthOf(bytes);
  out.kind = 0;
}

/** Longer texts have memory of their own, which is not kept. */
const KEPT_CHARACTERS = 64 << 10;

class Text {
  #words = new Int32Array(1024);
  #buffer = Buffer.from(this.#words.buffer);

  encode(text: string, out: EncodedValue, most: number): void {
    const { length } = text;
    if (length > most) {
      out.length = length;
      return;
    }
    if (length > KEPT_CHARACTERS) {
      out.kind = HALF_PAIR.test(text) ? UTF16 : UTF8;
      out.bytes = Buffer.from(text, out.kind === UTF16 ? 'utf16le' : 'utf8');
      out.words = undefined;
      out.length = out.bytes.length;
      return;
    }
    if (3 * length > this.#buffer.length) {
      this.#words = new Int32Array(length);
      this.#buffer = Buffer.from(this.#words.buffer);
    }
    const buffer = this.#buffer;
    out.bytes = buffer;
    out.words = this.#words;
    out.length = buffer.write(text, 0, 'utf8');
    out.kind = out.length === length ? ASCII : UTF8;
    if (out.kind === UTF8 && HALF_PAIR.test(text)) {
      out.length = buffer.write(text, 0, 'utf16le');
      out.kind = UTF16;
    }
  }

  decode(copy: CopySpace): string {
    return copy.text(copy.kind === ASCII ? 'latin1' : copy.kind === UTF16 ? 'utf16le' : 'utf8');
  }
}

const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

class BytesCodec implements Codec<Uint8Array> {
  readonly number = 1;
  readonly name = 'bytes';

  encode(call: string, value: Uint8Array, out: EncodedValue): void {
    setBytes(call, 'the value', value, out);
  }

  decode(copy: CopySpace): Uint8Array {
    return copy.give();
  }
}

class StringCodec implements Codec<string> {
  readonly number = 2;
  readonly name = 'string';
  readonly #text = new Text();

  encode(call: string, value: string, out: EncodedValue, most: number): void {
    if (typeof value !== 'string') throw argumentTypeError(`${call}: the value must be a string, not ${show(value)}`);
    this.#text.encode(value, out, most);
  }

  decode(copy: CopySpace): string {
    return this.#text.decode(copy);
  }
}

class JsonCodec implements Codec<unknown> {
  readonly number = 3;
  readonly name = 'json';
  readonly #text = new Text();

  encode(call: string, value: unknown, out: EncodedValue, most: number): void {
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch (cause) {
      throw argumentTypeError(`${call}: the value cannot be written as JSON`, 'ERR_ARG', { cause });
    }
    if (text === undefined) throw argumentTypeError(`${call}: JSON has no form for ${show(value)}`);
    this.#text.encode(text, out, most);
  }

  decode(copy: CopySpace): unknown {
    return decoding(() => JSON.parse(this.#text.decode(copy)));
  }
}

class StructuredCodec implements Codec<unknown> {
  readonly number = 4;
  readonly name = 'structured';

  encode(call: string, value: unknown, out: EncodedValue): void {
    let bytes: Buffer;
    try {
      bytes = serialize(value);
    } catch (cause) {
      throw argumentTypeError(`${call}: the value cannot be cloned`, 'ERR_ARG', { cause });
    }
    setBytes(call, 'the value', bytes, out);
  }

  decode(copy: CopySpace): unknown {
    const bytes = copy.give();
    return decoding(() => deserialize(bytes));
  }
}

class OwnCodec<V> implements Codec<V> {
  readonly number = 5;
  readonly name = 'custom';
  readonly #own: CustomCodec<V>;

  constructor(own: CustomCodec<V>) {
    this.#own = own;
  }

  encode(call: string, value: V, out: EncodedValue): void {
    setBytes(call, 'what encode gives', this.#own.encode(value), out);
  }

  decode(copy: CopySpace): V {
    return this.#own.decode(copy.give());
  }
}

/** What a member has stored can be decoded, unless the memory was written over. */
function decoding<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new RmaError('ERR_DAMAGED', 'a value of the shared map cannot be decoded: its bytes were written over', {
      cause,
    });
  }
}

/** The codec of a map's options. */
export function readCodec(call: string, codec: unknown): Codec<unknown> {
  switch (codec) {
    case 'bytes':
      return new BytesCodec() as Codec<unknown>;
    case 'string':
      return new StringCodec() as Codec<unknown>;
    case 'json':
    case undefined:
      return new JsonCodec();
    case 'structured':
      return new StructuredCodec();
  }
  if (typeof codec === 'string') throw argumentTypeError(`${call}: codec: ${unknownName(codec, CODEC_NAMES)}`);
  if (typeof codec !== 'object' || codec === null)
    throw argumentTypeError(`${call}: codec must be a name or { encode, decode }, not ${show(codec)}`);
  const own = reading(call, 'codec', () => {
    const { encode, decode } = codec as CustomCodec<unknown>;
    return { encode, decode };
  });
  if (typeof own.encode !== 'function' || typeof own.decode !== 'function')
    throw argumentTypeError(`${call}: codec must have the functions encode and decode`);
  return new OwnCodec({
    encode: (value) => own.encode.call(codec, value),
    decode: (bytes) => own.decode.call(codec, bytes),
  });
}
