/**
 * The barrier where memory cannot be shared: dissemination by empty messages, ⌈log2 p⌉ rounds. In round k a rank tells
 * the rank 2^k after it and waits for the rank 2^k before it. Messages of one sender arrive in order, so a message of
 * the next barrier is never taken for a message of this one; no sender can be two barriers ahead.
 */

import type { Channel } from '../message/message-channel.ts';
import type { BarrierState } from './word-barrier.ts';

const NOTHING = new Uint8Array(0);

export class MessageBarrier implements BarrierState {
  readonly #channel: Channel;
  #active = false;
  /** 2^k. */
  #distance = 1;

  /** @param channel nothing else goes through it */
  constructor(channel: Channel) {
    this.#channel = channel;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    this.#distance = 1;
    this.#tell();
  }

  advance(): boolean {
    const { rank, size } = this.#channel;
    while (this.#distance < size) {
      if (this.#channel.receive((rank - this.#distance + size) % size) === undefined) return false;
      this.#distance *= 2;
      this.#tell();
    }
    this.#active = false;
    return true;
  }

  waitsFor(): string {
    return `rank ${this.#awaited}`;
  }

  askedFor(): readonly number[] {
    return [this.#awaited];
  }

  /** Messages of later rounds. */
  get owes(): boolean {
    return this.#active && 2 * this.#distance < this.#channel.size;
  }

  get #awaited(): number {
    const { rank, size } = this.#channel;
    return (rank - this.#distance + size) % size;
  }

  #tell(): void {
    const { rank, size } = this.#channel;
    if (this.#distance < size) this.#channel.send((rank + this.#distance) % size, NOTHING);
  }
}
