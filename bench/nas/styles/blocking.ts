/**
 * One-sided and blocking, as the dissertation's first version (§9.3.3): each send becomes a put into a buffer of the
 * target, complete at the origin before anything else happens, as a blocking put of ARMCI is, and each receive becomes
 * a wait for its notification. The dissertation does not say whether its programs put or get; a put needs no word from
 * the target that the data are ready, and ARMCI's benchmarks tell their targets by a flag behind the data.
 */
import type { Window } from 'onesided';
import type { Form } from '../../calls.ts';
import type { Ends, Link, Style } from '../link.ts';
import { Inbox } from './inbox.ts';

class BlockingLink implements Link {
  readonly #form: Form;
  readonly #ends: Ends;
  readonly #window: Window<Float64Array>;
  readonly #inbox: Inbox;
  readonly #out: Float64Array;

  constructor(form: Form, ends: Ends, window: Window<Float64Array>) {
    this.#form = form;
    this.#ends = ends;
    this.#window = window;
    this.#inbox = new Inbox(form, ends.capacity, window);
    this.#out = new Float64Array(ends.capacity);
  }

  room(): Float64Array {
    return this.#out;
  }

  async post(length: number): Promise<void> {
    const { to } = this.#ends;
    this.#window.putNotify(this.#out.subarray(0, length), to, this.#inbox.next());
    if (this.#form === 'sync') this.#window.flushLocalSync(to);
    else await this.#window.flushLocal(to);
  }

  take(length: number): Promise<Float64Array> {
    return this.#inbox.take(length);
  }

  /** A put needs nobody's processor. */
  settle(): void {}
}

export const blocking: Style = {
  overlaps: false,
  oneSided: true,
  link: (form, ends, _tag, window) => new BlockingLink(form, ends, window!),
};
