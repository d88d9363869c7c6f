/** Events and texts as numbers (race-log-format.ts), kept until somebody takes them. */
import { TEXT } from './race-log-format.ts';

const ROOM = 32_768;

export class EventRoom {
  /** The first `used` of these. */
  numbers = new Float64Array(ROOM);
  used = 0;
  readonly #full: () => void;

  /** @param full called when there is no room for what is to be kept; may take what is there */
  constructor(full: () => void) {
    this.#full = full;
  }

  get bytes(): Uint8Array {
    return new Uint8Array(this.numbers.buffer, 0, 8 * this.used);
  }

  text(id: number, text: string): void {
    const bytes = Buffer.from(text);
    const words = Math.ceil(bytes.length / 8);
    this.#need(3 + words);
    const at = this.used;
    this.numbers[at] = TEXT;
    this.numbers[at + 1] = id;
    this.numbers[at + 2] = bytes.length;
    new Uint8Array(this.numbers.buffer, 8 * (at + 3), bytes.length).set(bytes);
    this.used += 3 + words;
  }

  /** @param time in nanoseconds */
  event(kind: number, data: Float64Array, length: number, time: number): void {
    this.#need(3 + length);
    const { numbers } = this;
    let at = this.used;
    numbers[at++] = kind;
    numbers[at++] = length;
    numbers[at++] = time;
    for (let i = 0; i < length; i++) numbers[at++] = data[i];
    this.used = at;
  }

  #need(numbers: number): void {
    if (this.used + numbers <= this.numbers.length) return;
    this.#full();
    if (this.used + numbers <= this.numbers.length) return;
    const more = new Float64Array(2 * Math.max(this.numbers.length, this.used + numbers));
    more.set(this.numbers.subarray(0, this.used));
    this.numbers = more;
  }
}
