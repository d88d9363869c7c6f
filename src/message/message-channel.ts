/** Messages among the ranks of a communicator, as collectives need them. */
import type { Processor } from '../verbs/processor.ts';

/** Messages among the ranks of one communicator, in the communicator's numbering. */
export interface Channel {
  readonly rank: number;
  readonly size: number;
  send(target: number, payload: Uint8Array): void;
  /** The next message from `source`, if it has arrived; looks for arrivals itself. */
  receive(source: number): Uint8Array | undefined;
  /** Whose message a collective waits for, for error messages; -1 if it waits for none. */
  awaited: number;
  /** This rank's: told of what is combined. */
  readonly processor: Processor;
  /** Where ranks map each other's memory. */
  readonly shared?: SharedMessages | undefined;
}

/** A channel that takes messages over, too. */
export interface MessageChannel extends Channel {
  /** Sends a message that is not changed any more, so that it need not be copied. */
  give(target: number, message: Uint8Array): void;
}

/** Messages that all others read where they lie. */
export interface SharedMessages {
  /** The most bytes of one. */
  readonly bytes: number;
  /** Sends one to all other ranks of the communicator; copied before this returns. */
  toOthers(payload: Uint8Array): void;
  /** Sends one to one rank; copied before this returns. */
  to(target: number, payload: Uint8Array): void;
  /** How many of these some rank has still to read. Looks for arrivals. Errors: as those of `Channel.receive`. */
  unread(): number;
  /** The message that was received last is not read any more. */
  release(): void;
}
