/** What a carrier (carrier.ts) hands over to packed delivery, and asks of it. */

/** A buffer with a chunk that has come. */
export interface Buffer {
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
  /** By which its carrier knows it. */
  readonly slot: number;
}

/** Is told what a carrier does. */
export interface CarrierUser {
  /** Sends a message to the carrier of a process (`heard`): by these they get to know each other. */
  tell(pid: number, words: readonly number[]): void;
  /** A chunk has come. Its buffer is the user's until `release`. */
  arrived(pid: number, buffer: Buffer, bytes: number): void;
}
