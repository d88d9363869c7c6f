/**
 * The words of messages, written and read where the messenger has them (`Messenger.compose`, and listeners that
 * borrow): to make a view takes longer than to read a message by one that is there, and messages of a rank lie in the
 * same memory again and again.
 */
export class MessageWords {
  /** All whole words of the memory, of 32 and of 64 bits. */
  i32: Int32Array = new Int32Array(0);
  f64: Float64Array = new Float64Array(0);

  /** Makes these the words of some memory. */
  of(buffer: ArrayBufferLike): this {
    if (this.i32.buffer !== buffer) {
      this.i32 = new Int32Array(buffer, 0, buffer.byteLength >> 2);
      this.f64 = new Float64Array(buffer, 0, buffer.byteLength >> 3);
    }
    return this;
  }
}
