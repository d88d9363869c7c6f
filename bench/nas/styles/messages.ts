/**
 * Send and receive, as NPB has it: a tag for each link. A send copies and never waits; a receive waits. Above the eager
 * size the handshake happens when both ranks are in the library, so nothing moves while they compute.
 */
import type { Communicator } from 'onesided';
import type { Form } from '../../calls.ts';
import type { Ends, Link, Style } from '../link.ts';

class MessageLink implements Link {
  readonly #form: Form;
  readonly #world: Communicator;
  readonly #to: number;
  readonly #from: number;
  readonly #options: { readonly tag: number };
  readonly #out: Float64Array;
  /** Two, by turns: see `take`. */
  readonly #in: readonly Float64Array[];
  #taken = 0;

  constructor(form: Form, ends: Ends, tag: number) {
    this.#form = form;
    const { world, ranks } = ends.group;
    this.#world = world;
    this.#to = ranks[ends.to];
    this.#from = ranks[ends.from];
    this.#options = { tag };
    this.#out = new Float64Array(ends.capacity);
    this.#in = [new Float64Array(ends.capacity), new Float64Array(ends.capacity)];
  }

  room(): Float64Array {
    return this.#out;
  }

  post(length: number): void {
    this.#world.send(this.#out.subarray(0, length), this.#to, this.#options);
  }

  async take(length: number): Promise<Float64Array> {
    const message = this.#in[this.#taken++ & 1].subarray(0, length);
    if (this.#form === 'sync') this.#world.receiveSync(message, this.#from, this.#options);
    else await this.#world.receive(message, this.#from, this.#options);
    return message;
  }
}

export const messages: Style = {
  overlaps: false,
  oneSided: false,
  link: (form, ends, tag) => new MessageLink(form, ends, tag),
};
