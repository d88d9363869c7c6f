/**
 * Private memory that values are copied to before anything looks at them: what lies in the map can change meanwhile,
 * and the engine's decoders look twice.
 */

/** Values of programs that keep their bytes share pieces of memory of this size, as Node's buffers do. */
const PIECE = 16 << 10;
/** Longer values have memory of their own. */
const SHARED = PIECE >> 3;

export class CopySpace {
  words: Int32Array;
  #buffer: Buffer;
  /** Where the value is, a multiple of 8, and its bytes. */
  begin = 0;
  length = 0;
  /** What the codec has noted of the value. */
  kind = 0;
  /** When the entry expires, 0 for never, and the TURN in which it was copied. */
  expiry = 0;
  turn = 0;

  constructor() {
    this.#buffer = Buffer.allocUnsafeSlow(PIECE);
    this.words = new Int32Array(this.#buffer.buffer);
  }

  /** Makes room for a value. */
  reserve(length: number): void {
    this.length = length;
    const there = this.#buffer.length;
    if (this.begin + length > there || (there > PIECE && length <= SHARED)) this.#renew(length);
  }

  #renew(length: number): void {
    this.#buffer = Buffer.allocUnsafeSlow(length > SHARED ? (length + 7) & ~7 : PIECE);
    this.words = new Int32Array(this.#buffer.buffer);
    this.begin = 0;
  }

  text(encoding: 'latin1' | 'utf8' | 'utf16le'): string {
    return this.#buffer.toString(encoding, this.begin, this.begin + this.length);
  }

  /** Whether the value has these bytes. */
  hasBytes(bytes: Uint8Array): boolean {
    return (
      bytes.length === this.length &&
      this.#buffer.compare(bytes, 0, bytes.length, this.begin, this.begin + this.length) === 0
    );
  }

  /** The value's bytes, until the next one is copied here. */
  bytes(): Uint8Array {
    return new Uint8Array(this.words.buffer, this.begin, this.length);
  }

  /** Gives the value's memory away: the next one gets other memory. */
  give(): Uint8Array {
    const { begin, length } = this;
    const given = this.bytes();
    this.begin = (begin + length + 7) & ~7;
    return given;
  }
}
