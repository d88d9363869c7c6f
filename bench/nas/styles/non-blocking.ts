/**
 * One-sided and non-blocking, as the dissertation's second version (§9.1, §9.3.3): a put with a handle is posted as
 * soon as its data are there, and its handle is waited for when its buffer is needed again, many messages later.
 * Meanwhile the kernels compute, or work on the next dimension: they ask `overlaps`.
 */
import type { Request, Window } from 'onesided';
import type { Form } from '../../calls.ts';
import { AHEAD, type Ends, type Link, type Style } from '../link.ts';
import { Inbox } from './inbox.ts';

/** Behind a put with a handle: the notification alone. */
const NOTHING = new Float64Array(0);

class NonBlockingLink implements Link {
  readonly #form: Form;
  readonly #ends: Ends;
  readonly #window: Window<Float64Array>;
  readonly #inbox: Inbox;
  /** Buffers, by turns, and the handles of the puts that read them. */
  readonly #out: readonly Float64Array[];
  readonly #handles: (Request | undefined)[] = Array.from({ length: AHEAD });
  #posted = 0;

  constructor(form: Form, ends: Ends, window: Window<Float64Array>) {
    this.#form = form;
    this.#ends = ends;
    this.#window = window;
    this.#inbox = new Inbox(form, ends.capacity, window);
    this.#out = Array.from({ length: AHEAD }, () => new Float64Array(ends.capacity));
  }

  async room(): Promise<Float64Array> {
    const turn = this.#posted % AHEAD;
    const handle = this.#handles[turn];
    if (this.#form === 'sync') handle?.waitSync();
    else await handle?.wait();
    return this.#out[turn];
  }

  post(length: number): void {
    const { to } = this.#ends;
    const turn = this.#posted++ % AHEAD;
    const at = this.#inbox.next();
    this.#handles[turn] = this.#window.rput(this.#out[turn].subarray(0, length), to, at);
    this.#window.putNotify(NOTHING, to, at);
  }

  take(length: number): Promise<Float64Array> {
    return this.#inbox.take(length);
  }

  /** A put needs nobody's processor. */
  settle(): void {}
}

export const nonBlocking: Style = {
  overlaps: true,
  oneSided: true,
  link: (form, ends, _tag, window) => new NonBlockingLink(form, ends, window!),
};
