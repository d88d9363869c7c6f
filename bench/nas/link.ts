/**
 * How the NAS kernels communicate: by links. A link is one direction between two ranks, and carries doubles: whoever
 * sends writes them into the link's `room` and posts them; whoever receives takes them, in that order. The kernels know
 * nothing else, so that the three styles (styles/) change no line of them, as the dissertation changed nothing but the
 * point-to-point calls of NPB 2.3 (§9.3.3).
 *
 * A rank may be at most `AHEAD` messages ahead of what the rank at the other end has taken. Both kernels keep that:
 * they exchange, so what a rank takes tells it that its own messages before that exchange were taken. An exchange has
 * two messages at most, a multigrid level one more between two exchanges: no more than five are under way.
 */
import type { Communicator, Window } from 'onesided';
import type { Form } from '../calls.ts';

export const AHEAD = 6;

/** Ranks that have links to each other. */
export interface Group {
  /** Their numbers in the world, in the order of their numbers here. */
  readonly ranks: readonly number[];
  readonly world: Communicator;
  /** Of them alone, where links have windows: few ranks, for a window connects each with each. */
  readonly communicator: Communicator | undefined;
}

/** What a link connects. */
export interface Ends {
  readonly group: Group;
  /** Doubles of the longest message. The same at both ends. */
  readonly capacity: number;
  /** Of the group: whom this rank sends to, and from whom it receives. */
  readonly to: number;
  readonly from: number;
}

export interface Link {
  /** Where the next message's doubles are written. Waits for an earlier message if it is in the way. */
  room(length: number): Float64Array | Promise<Float64Array>;
  /** Sends what was written there last. */
  post(length: number): void | Promise<void>;
  /** Waits for the next message. It stays where it is until the next but one is taken. */
  take(length: number): Float64Array | Promise<Float64Array>;
  /**
   * Waits until what was posted needs this rank no more, at the end of an exchange: a rank that computes meanwhile
   * keeps nobody waiting.
   */
  settle(): void | Promise<void>;
}

export interface Style {
  /** Whether a message that is posted moves while this rank computes: then the kernels post early and take late. */
  readonly overlaps: boolean;
  /** Whether its links need a window. */
  readonly oneSided: boolean;
  /** @param window of the link, if it needs one; absent otherwise */
  link(form: Form, ends: Ends, tag: number, window: Window<Float64Array> | undefined): Link;
}
