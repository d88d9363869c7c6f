/** What the contexts of all providers have in common: open until they are closed, with events that programs fetch. */
import { types } from 'node:util';
import { argumentTypeError, RmaError, show } from '../../errors.ts';
import type { AsyncEvent, DeviceAttributes } from '../../verbs/device.ts';
import type { Memory, RemotePointer } from '../../verbs/memory.ts';

export abstract class ContextCore {
  abstract readonly device: DeviceAttributes;
  isClosed = false;
  readonly #title: string;
  readonly #events: AsyncEvent[] = [];

  /** @param title what messages call it */
  constructor(title: string) {
    this.#title = title;
  }

  mustBeOpen(call: string): void {
    if (this.isClosed) throw new RmaError('ERR_VERBS', `${call}: the ${this.#title} was closed`);
  }

  adoptMemory(buffer: ArrayBufferLike): Memory {
    this.mustBeOpen('adopt memory');
    if (!types.isAnyArrayBuffer(buffer)) {
      throw argumentTypeError(
        `adopt memory: buffer must be an ArrayBuffer or a SharedArrayBuffer, not ${show(buffer)}`,
      );
    }
    return this.adopt(buffer);
  }

  protected abstract adopt(buffer: ArrayBufferLike): Memory;

  exposeMemory(_buffer: ArrayBufferLike, _bytes: number): Memory | undefined {
    return undefined;
  }

  remotePointer(
    _member: number,
    _rkey: number,
    _remoteAddress: number,
    _length: number,
    _access: number,
  ): RemotePointer {
    throw new RmaError(
      'ERR_VERBS',
      `remote pointer: device ${this.device.name} cannot map remote memory (capability loadStore)`,
    );
  }

  raise(event: AsyncEvent): void {
    this.#events.push(event);
  }

  pollAsyncEvent(): AsyncEvent | undefined {
    if (!this.isClosed) this.fetchEvents();
    return this.#events.shift();
  }

  /** Raises what has happened and was not noticed yet. */
  protected fetchEvents(): void {}
}
