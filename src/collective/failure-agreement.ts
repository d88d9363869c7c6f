/**
 * An agreement that holds whichever ranks fail meanwhile: all ranks that end it have the same flags, the same ranks
 * that have failed, and the same number. What ULFM's `MPI_Comm_agree` and `MPI_Comm_shrink` need.
 *
 * Each rank has an estimate, and first merges into it what each other rank sends: flags by AND, failed ranks by OR.
 * Then each rank is the coordinator of a round, in their order: it sends its estimate to all, and every other rank
 * takes it instead of its own, or hears that the coordinator has failed and keeps its own (consensus with a perfect
 * failure detector, Chandra and Toueg 1996, with the rotating coordinator made plain).
 *
 * Why all get the same: consider the first coordinator that does not fail before the end of its round. Nobody takes it
 * for failed, since only ranks that have ended are declared so; thus every rank that goes on has its estimate then, and
 * all later coordinators send that one. Why the flag of each rank that lives is in it: an estimate is sent in a round
 * only by a rank that has merged those of all ranks that had not failed.
 *
 * From each rank come at most two messages of each agreement, in this order: its first estimate, and that of its round.
 * So the next message from a rank is the one that is waited for; or an older one, of a rank that was found gone before
 * that message was here, which is passed over.
 * Messages are few bytes; 2p (p − 1) of them in p steps one after the other, for p ranks.
 */
import { RmaError } from '../errors.ts';
import type { MessageChannel } from '../message/message-channel.ts';

/** What the ranks agree on. */
export interface Agreed {
  /** The flags of all ranks that have not failed, by AND. */
  readonly flags: number;
  /** Ranks that have failed: of those that one rank knew when it had heard from all others. */
  readonly failed: readonly number[];
  /** The number that one rank has proposed, no matter which. */
  readonly number: number;
}

/** What an agreement needs of its ranks. */
export interface Agreeing {
  readonly channel: MessageChannel;
  /** Whether a rank will not send any more: it has failed, or has left the job. */
  isGone(rank: number): boolean;
}

const SEQUENCE = 0;
const ROUND = 1;
const FLAGS = 2;
const NUMBER = 3;
const FAILED = 4;

export class Agreement {
  readonly #with: Agreeing;
  readonly #sequence: number;
  readonly #estimate: Int32Array;
  /** Whose message is waited for, or −1. */
  awaited = -1;

  /** @param sequence how many agreements of these ranks were before this one */
  constructor(agreeing: Agreeing, sequence: number, flags: number, number: number) {
    this.#with = agreeing;
    this.#sequence = sequence;
    this.#estimate = new Int32Array(FAILED + Math.ceil(agreeing.channel.size / 32));
    this.#estimate[SEQUENCE] = sequence;
    this.#estimate[FLAGS] = flags;
    this.#estimate[NUMBER] = number;
  }

  *steps(): Generator<void, Agreed> {
    const { rank: me, size } = this.#with.channel;
    this.#tell(0);
    for (let rank = 0; rank < size; rank++) {
      if (rank === me) continue;
      const theirs = yield* this.#hear(rank, 0);
      if (theirs === undefined) continue;
      this.#estimate[FLAGS] &= theirs[FLAGS];
      for (let i = FAILED; i < theirs.length; i++) this.#estimate[i] |= theirs[i];
    }
    for (let rank = 0; rank < size; rank++)
      if (this.#with.isGone(rank)) this.#estimate[FAILED + (rank >>> 5)] |= 1 << (rank & 31);
    for (let rank = 0; rank < size; rank++) {
      const round = rank + 1;
      if (rank === me) this.#tell(round);
      else {
        const theirs = yield* this.#hear(rank, round);
        if (theirs !== undefined) this.#estimate.set(theirs);
      }
    }
    return this.#agreed();
  }

  #tell(round: number): void {
    const { channel } = this.#with;
    this.#estimate[ROUND] = round;
    const message = new Uint8Array(this.#estimate.buffer.slice(0));
    for (let rank = 0; rank < channel.size; rank++)
      if (rank !== channel.rank && !this.#with.isGone(rank)) channel.send(rank, message);
  }

  /** @returns `undefined` if the rank is gone, and has not sent it */
  *#hear(rank: number, round: number): Generator<void, Int32Array | undefined> {
    const { channel } = this.#with;
    this.awaited = rank;
    for (;;) {
      // First, so that nothing is missed that came before it went.
      const isGone = this.#with.isGone(rank);
      const message = channel.receive(rank);
      const words = message && this.#read(rank, message, round);
      if (words !== undefined) {
        this.awaited = -1;
        return words;
      }
      if (message !== undefined) continue;
      if (isGone) break;
      yield;
    }
    this.awaited = -1;
    return undefined;
  }

  /** @returns `undefined` for one that is not waited for any more */
  #read(rank: number, message: Uint8Array, round: number): Int32Array | undefined {
    const words = new Int32Array(message.slice().buffer);
    if (words.length === this.#estimate.length && words[SEQUENCE] === this.#sequence && words[ROUND] === round)
      return words;
    const isOlder = words[SEQUENCE] < this.#sequence || (words[SEQUENCE] === this.#sequence && words[ROUND] < round);
    if (isOlder) return undefined;
    throw new RmaError(
      'ERR_COLLECTIVE',
      `agree, shrink: rank ${rank} is in agreement ${words[SEQUENCE] + 1}, and this rank in ${this.#sequence + 1}; ` +
        'all ranks that have not failed must call them in the same order',
    );
  }

  #agreed(): Agreed {
    const words = this.#estimate;
    const isFailed = (rank: number): boolean => ((words[FAILED + (rank >>> 5)] >>> (rank & 31)) & 1) === 1;
    const failed = Array.from({ length: this.#with.channel.size }, (_, rank) => rank).filter(isFailed);
    return { flags: words[FLAGS], failed, number: words[NUMBER] };
  }
}
