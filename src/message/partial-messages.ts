/** Messages that are on their way in, at most one from each source: what came of them, and where it goes. */
import { RmaError } from '../errors.ts';

/** Where a message goes: the memory may be exchanged while it comes in. */
export interface Place {
  /** Absent if there is no memory for it. Shorter than the message if the program has given it away. */
  bytes: Uint8Array | undefined;
}

/** Where a message from `source` may go at once: into memory of `bytes` bytes of the call that waits for it. */
export type Room = (source: number, bytes: number) => Place | undefined;

export interface PartialMessage {
  readonly context: number;
  readonly total: number;
  place: Place;
  /** Whether that is the memory of the call that waits for it. */
  isInPlace: boolean;
  filled: number;
  /** Of one in the place of a long message: it is complete. */
  readonly complete: (() => void) | undefined;
}

/** What the messenger does for them. */
interface Owner {
  /** Whether complete messages of a source wait to be received. */
  hasEarlier(context: number, source: number): boolean;
  deliver(source: number, context: number, message: Uint8Array): void;
  lose(source: number, error: RmaError): void;
}

export class PartialMessages {
  readonly #owner: Owner;
  readonly #bySource = new Map<number, PartialMessage>();
  readonly #rooms = new Map<number, Room>();

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  /** Has long messages of a context go to the memory of the calls that wait for them. */
  receiveInto(context: number, room: Room): () => void {
    this.#rooms.set(context, room);
    return () => void this.#rooms.delete(context);
  }

  /** The message of which the next bytes of a source are a part; `undefined` if a message begins. */
  of(source: number): PartialMessage | undefined {
    return this.#bySource.get(source);
  }

  /** A message begins, in memory that is made for it. */
  begin(source: number, context: number, total: number): PartialMessage {
    return this.#begin(source, context, total, { bytes: this.#roomFor(source, total) }, false);
  }

  /** A message begins, in the memory of the call that waits for it if there is one. */
  beginInPlace(source: number, context: number, total: number): PartialMessage {
    const room = this.#owner.hasEarlier(context, source) ? undefined : this.#rooms.get(context);
    const place = room?.(source, total);
    if (place === undefined) return this.begin(source, context, total);
    return this.#begin(source, context, total, place, true);
  }

  /** A message begins that comes in the place of a long one. */
  beginInstead(source: number, context: number, bytes: Uint8Array, complete: () => void): PartialMessage {
    return this.#begin(source, context, bytes.length, { bytes }, false, complete);
  }

  #begin(
    source: number,
    context: number,
    total: number,
    place: Place,
    isInPlace: boolean,
    complete?: () => void,
  ): PartialMessage {
    const message = { context, total, place, isInPlace, filled: 0, complete };
    this.#bySource.set(source, message);
    return message;
  }

  /** The next bytes of a message have come. */
  fill(source: number, message: PartialMessage, bytes: Uint8Array): void {
    const { context, total, place, filled, complete } = message;
    // It is shorter if the program has given it away.
    if (place.bytes !== undefined && place.bytes.length === total) place.bytes.set(bytes, filled);
    message.filled += bytes.length;
    if (message.filled < total) return;
    this.#bySource.delete(source);
    if (complete !== undefined) complete();
    else if (place.bytes === undefined) this.#owner.lose(source, noMemory(source, total));
    else this.#owner.deliver(source, context, place.bytes);
  }

  /** Nothing more comes of a source's message. */
  end(source: number): void {
    this.#bySource.delete(source);
  }

  /** A call waits for a message of a source: one that is on its way in goes to its memory from now on. */
  awaitFrom(source: number, context: number): void {
    const message = this.#bySource.get(source);
    if (message?.context !== context || message.isInPlace || message.complete !== undefined) return;
    const { bytes } = message.place;
    if (bytes === undefined || this.#owner.hasEarlier(context, source)) return;
    const place = this.#rooms.get(context)?.(source, message.total);
    if (place === undefined) return;
    place.bytes!.set(bytes.subarray(0, message.filled));
    message.place = place;
    message.isInPlace = true;
  }

  #roomFor(source: number, bytes: number): Uint8Array | undefined {
    try {
      return new Uint8Array(bytes);
    } catch (cause) {
      this.#owner.lose(source, noMemory(source, bytes, cause));
      return undefined;
    }
  }
}

export function noMemory(source: number, bytes: number, cause?: unknown): RmaError {
  const what = `receive: cannot allocate the ${bytes} bytes of a message from rank ${source}`;
  return new RmaError('ERR_SIZE', `${what}; send it in several messages`, { cause });
}
