/**
 * Where the messages of a one-sided link arrive: as many places as messages may be under way, by turns, in the target's
 * part of the link's window.
 *
 * One rank puts here, in the order of the places, and notifies behind each put; this rank reads a place only when it
 * has taken the notification, which orders its loads after the put's stores. The place is written again `AHEAD`
 * messages later, and link.ts says why it has been read by then.
 */
import type { Window } from 'onesided';
import type { Form } from '../../calls.ts';
import { AHEAD } from '../link.ts';

export class Inbox {
  readonly #form: Form;
  readonly #capacity: number;
  readonly #window: Window<Float64Array>;
  #posted = 0;
  #taken = 0;

  constructor(form: Form, capacity: number, window: Window<Float64Array>) {
    this.#form = form;
    this.#capacity = capacity;
    this.#window = window;
  }

  /** The displacement of this rank's next message at its target. */
  next(): number {
    return this.#capacity * (this.#posted++ % AHEAD);
  }

  async take(length: number): Promise<Float64Array> {
    if (this.#form === 'sync') this.#window.waitNotifySync();
    else await this.#window.waitNotify();
    const at = this.#capacity * (this.#taken++ % AHEAD);
    return this.#window.local.subarray(at, at + length);
  }
}
