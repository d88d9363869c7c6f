/** How values become bytes, and back. */

import { deserialize, serialize } from 'node:v8';
import { argumentTypeError, reading, show } from '../../errors.ts';
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

/** The number of all codecs of programs' own. */
const OWN = 5;

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
   * Fills `out`. Runs code of the program's at most before that. Errors: `Refused`, and those of that code.
   * @param most bytes that an entry has room for: of what is surely longer, only the length is told
   */
  encode(value: V, out: EncodedValue, most: number): void;
  /** Errors: `Undecodable`. What it gives may keep the memory of the copy only by `copy.give()`. */
  decode(copy: CopySpace): V;
}

/** Why a value cannot be encoded, as the end of "the value of the key …": the map says which value it is. */
export class Refused extends Error {}

/** A value cannot be decoded: its bytes are none that the codec has given. The cause says why. */
export class Undecodable extends Error {}

const CODEC_NAMES = ['bytes', 'string', 'json', 'structured'] as const;

/** The number of a codec in words. */
export function sayCodec(number: number): string {
  const name = CODEC_NAMES[number - 1];
  if (name !== undefined) return `codec "${name}"`;
  return number === OWN ? 'a codec of functions of its own' : 'a codec that is unknown';
}

/** Text of characters below 128; in UTF-8; as it is, with halves of surrogate pairs. */
const ASCII = 0;
const UTF8 = 1;
const UTF16 = 2;

function setBytes(value: unknown, out: EncodedValue): void {
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

  encode(value: Uint8Array, out: EncodedValue): void {
    if (tagOf(value) !== 'Uint8Array') throw new Refused(`must be a Uint8Array, not ${show(value)}`);
    setBytes(value, out);
  }

  decode(copy: CopySpace): Uint8Array {
    return copy.give();
  }
}

class StringCodec implements Codec<string> {
  readonly number = 2;
  readonly name = 'string';
  readonly #text = new Text();

  encode(value: string, out: EncodedValue, most: number): void {
    if (typeof value !== 'string') throw new Refused(`must be a string, not ${show(value)}`);
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

  encode(value: unknown, out: EncodedValue, most: number): void {
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch (cause) {
      throw new Refused(`cannot be written as JSON: ${reasonOf(cause)}`, { cause });
    }
    if (text === undefined) throw new Refused(`is ${show(value)}, for which JSON has no form`);
    this.#text.encode(text, out, most);
  }

  decode(copy: CopySpace): unknown {
    return decoding(() => JSON.parse(this.#text.decode(copy)));
  }
}

class StructuredCodec implements Codec<unknown> {
  readonly number = 4;
  readonly name = 'structured';

  encode(value: unknown, out: EncodedValue): void {
    let bytes: Buffer;
    try {
      bytes = serialize(value);
    } catch (cause) {
      throw new Refused(`cannot be cloned: ${reasonOf(cause)}`, { cause });
    }
    setBytes(bytes, out);
  }

  decode(copy: CopySpace): unknown {
    const bytes = copy.give();
    return decoding(() => deserialize(bytes));
  }
}

class OwnCodec<V> implements Codec<V> {
  readonly number = OWN;
  readonly name = 'custom';
  readonly #own: CustomCodec<V>;

  constructor(own: CustomCodec<V>) {
    this.#own = own;
  }

  encode(value: V, out: EncodedValue): void {
    const bytes: unknown = this.#own.encode(value);
    if (tagOf(bytes) !== 'Uint8Array') throw new Refused(`was encoded as ${show(bytes)}, which is no Uint8Array`);
    setBytes(bytes, out);
  }

  decode(copy: CopySpace): V {
    return this.#own.decode(copy.give());
  }
}

/** The first line of what was thrown, whatever that is. */
function reasonOf(cause: unknown): string {
  try {
    const text = cause instanceof Error ? cause.message : String(cause);
    return text.split('\n', 1)[0].slice(0, 200);
  } catch {
    return 'it throws something without a message';
  }
}

/** What a member has stored can be decoded, unless the memory was written over. */
function decoding<T>(decode: () => T): T {
  try {
    return decode();
  } catch (cause) {
    throw new Undecodable('undecodable', { cause });
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
