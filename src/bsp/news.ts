/**
 * If something breaks a computation at one process alone, such as a variable that has lost its memory, the others would
 * not learn of it: they would wait in the next `sync` for a process that does not come. So the process tells them,
 * once, by a message to each. A process that hears of it ends its wait with that error, and refuses all later calls. If
 * a process can complete a superstep without the broken one, it may complete it before it hears.
 */
import type { OwnChannel } from '../collective/communicator.ts';
import { type ErrorCode, RmaError } from '../errors.ts';

/** Of what is told, so that it fits into a short message. */
const MOST_LETTERS = 500;

export class News {
  readonly #channel: OwnChannel;
  readonly #stop: () => void;

  /** @param heard told once for each process that cannot go on, with the error for this one */
  constructor(channel: OwnChannel, heard: (error: RmaError) => void) {
    this.#channel = channel;
    this.#stop = channel.listen((pid, message) => {
      const { code, why } = JSON.parse(new TextDecoder().decode(message)) as { code: ErrorCode; why: string };
      heard(new RmaError(code, `bsp: process ${pid} cannot go on: ${why}`));
    });
  }

  tell({ code, message }: RmaError): void {
    const text = new TextEncoder().encode(JSON.stringify({ code, why: message.slice(0, MOST_LETTERS) }));
    const { rank, size, send } = this.#channel;
    for (let k = 1; k < size; k++) {
      try {
        send((rank + k) % size, text);
      } catch {
        // A process that cannot be told has gone; the others learn that it has.
      }
    }
  }

  close(): void {
    this.#stop();
  }
}
