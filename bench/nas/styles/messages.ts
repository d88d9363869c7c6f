/**
 * Send and receive, as NPB has it: a tag for each link. A receive waits. The library's send copies and never waits;
 * above the eager limit it has a handshake, which goes on only while both ranks are in the library. MPI's send of a
 * long message, which NPB uses, returns after that, and here an answer of whoever received it takes its place: without
 * one, a rank would compute with the handshake open, and its neighbour would wait for all of that. The answer comes a
 * latency later than the end of MPI's send would.
 */
import type { Communicator } from 'onesided';
import type { Form } from '../../calls.ts';
import type { Ends, Link, Style } from '../link.ts';

/** Doubles: messages that are longer are answered. 16 KiB, as the dissertation has it of MPICH-GM (§9.3.2). */
const LONG = 16384 / 8;

class MessageLink implements Link {
  readonly #form: Form;
  readonly #world: Communicator;
  readonly #to: number;
  readonly #from: number;
  readonly #options: { readonly tag: number };
  readonly #answers: { readonly tag: number };
  readonly #answer = new Uint8Array(1);
  /** Long messages that were not answered yet. */
  #open = 0;
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
    this.#options = { tag: 2 * tag };
    this.#answers = { tag: 2 * tag + 1 };
    this.#out = new Float64Array(ends.capacity);
    this.#in = [new Float64Array(ends.capacity), new Float64Array(ends.capacity)];
  }

  room(): Float64Array {
    return this.#out;
  }

  post(length: number): void {
    this.#world.send(this.#out.subarray(0, length), this.#to, this.#options);
    if (length > LONG) this.#open++;
  }

  async take(length: number): Promise<Float64Array> {
    const message = this.#in[this.#taken++ & 1].subarray(0, length);
    if (this.#form === 'sync') this.#world.receiveSync(message, this.#from, this.#options);
    else await this.#world.receive(message, this.#from, this.#options);
    if (length > LONG) this.#world.send(this.#answer, this.#from, this.#answers);
    return message;
  }

  async settle(): Promise<void> {
    for (; this.#open > 0; this.#open--) {
      if (this.#form === 'sync') this.#world.receiveSync(this.#answer, this.#to, this.#answers);
      else await this.#world.receive(this.#answer, this.#to, this.#answers);
    }
  }
}

export const messages: Style = {
  overlaps: false,
  oneSided: false,
  link: (form, ends, tag) => new MessageLink(form, ends, tag),
};
