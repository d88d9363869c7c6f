/** What is left of a message that waits for pieces. Its bytes are not changed. */
export class Remainder {
  readonly context: number;
  readonly total: number;
  readonly bytes: Uint8Array;
  /** Bytes of these that have left. */
  at = 0;
  /** Nothing of the message has left before. */
  readonly isWhole: boolean;

  constructor(context: number, total: number, bytes: Uint8Array) {
    this.context = context;
    this.total = total;
    this.bytes = bytes;
    this.isWhole = bytes.length === total;
  }
}
