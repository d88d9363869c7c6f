/**
 * A key as the log has it, and its hash.
 *
 * One byte a character if all are below 256, else two: every string of JavaScript is itself, also halves of surrogate
 * pairs, and the common ones take a loop without a native call. The hash is HalfSipHash-1-3 (Aumasson and Bernstein) of
 * the padded words, then of the length: who does not know the map's secret cannot make keys that meet in its index.
 */
import { argumentRangeError, argumentTypeError, show } from '../../errors.ts';
import { KEY_BYTES, WIDE } from './map-layout.ts';

export class MapKey {
  /** The key, padded with zeros to whole words: `wordCount` of them. Of the last one that was read. */
  words = new Int32Array(64);
  wordCount = 0;
  /** Bytes of the key, and whether it is wide: word 1 of an entry without its flags. */
  head = 0;
  /** Never 0. */
  hash = 0;
  readonly #k0: number;
  readonly #k1: number;
  readonly #hashMask: number;
  readonly #mostBytes: number;

  readonly #what: string;

  /**
   * @param what the map, for messages
   * @param hashMask for tests: the bits of hashes that may differ
   */
  constructor(what: string, k0: number, k1: number, mostBytes: number, hashMask = -1) {
    this.#what = what;
    this.#k0 = k0;
    this.#k1 = k1;
    this.#mostBytes = mostBytes;
    this.#hashMask = hashMask;
  }

  get byteLength(): number {
    return this.head & KEY_BYTES;
  }

  /** Reads a key. Errors: `TypeError`, `RangeError` (longer than an entry). */
  read(call: string, key: string): void {
    if (typeof key !== 'string')
      throw argumentTypeError(`${call}: a key of ${this.#what} must be a string, not ${show(key)}`);
    const { length } = key;
    if (length > this.words.length << 2) this.#grow(call, key, length);
    const { words } = this;
    const whole = length & ~3;
    let seen = 0;
    let count = 0;
    for (let i = 0; i < whole; i += 4) {
      const a = key.charCodeAt(i);
      const b = key.charCodeAt(i + 1);
      const c = key.charCodeAt(i + 2);
      const d = key.charCodeAt(i + 3);
      seen |= a | b | c | d;
      words[count++] = a | (b << 8) | (c << 16) | (d << 24);
    }
    if (whole < length) {
      let last = 0;
      for (let i = whole; i < length; i++) {
        const character = key.charCodeAt(i);
        seen |= character;
        last |= character << ((i - whole) << 3);
      }
      words[count++] = last;
    }
    if (seen > 0xff) {
      this.#readWide(call, key);
      return;
    }
    this.wordCount = count;
    this.head = length;
    this.hash = this.#hashOf(count, length);
  }

  #readWide(call: string, key: string): void {
    const { length } = key;
    if (length > this.words.length << 1) this.#grow(call, key, 2 * length);
    const { words } = this;
    const count = (length + 1) >>> 1;
    for (let i = 0; i < length; i += 2) {
      const second = i + 1 < length ? key.charCodeAt(i + 1) : 0;
      words[i >>> 1] = key.charCodeAt(i) | (second << 16);
    }
    this.wordCount = count;
    this.head = (2 * length) | WIDE;
    this.hash = this.#hashOf(count, this.head);
  }

  #grow(call: string, key: string, bytes: number): void {
    if (bytes > this.#mostBytes) {
      throw argumentRangeError(
        `${call}: the key ${show(key)} has ${bytes} bytes, an entry of ${this.#what} at most ` +
          `${this.#mostBytes} for key and value; give a shorter key, or make the map with a larger \`longest\``,
        'ERR_SIZE',
      );
    }
    this.words = new Int32Array((bytes + 3) >>> 2);
  }

  /** The hash of the first words. */
  #hashOf(count: number, length: number): number {
    const { words } = this;
    const k0 = this.#k0;
    const k1 = this.#k1;
    let v0 = k0;
    let v1 = k1;
    let v2 = k0 ^ 0x6c796765;
    let v3 = k1 ^ 0x74656462;
    // The words, the length, and three rounds of the end, whose word is 0.
    const rounds = count + 4;
    for (let i = 0; i < rounds; i++) {
      const m = i < count ? words[i] : i === count ? length : 0;
      v3 ^= m;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= m;
      if (i === count) v2 ^= 0xff;
    }
    const hash = (v1 ^ v3) & this.#hashMask;
    return hash === 0 ? 1 : hash;
  }
}

const decoded = Buffer.alloc(256);

/** A key from words that nobody else writes. */
export function keyFrom(words: Int32Array, head: number): string {
  const length = head & KEY_BYTES;
  const bytes =
    length <= decoded.length ? decoded : Buffer.from(words.buffer as ArrayBuffer, words.byteOffset, words.byteLength);
  if (bytes === decoded) for (let i = 0; i < length; i++) decoded[i] = words[i >>> 2] >>> ((i & 3) << 3);
  return bytes.toString((head & WIDE) !== 0 ? 'utf16le' : 'latin1', 0, length);
}
