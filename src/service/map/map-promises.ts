/**
 * The calls that write a map, as promises: where another member is in the middle of a change of the same part, and is
 * stopped or has no core, the event loop goes on, and the call is made again a little later. Arguments are read by each
 * attempt: so a value that the program changes meanwhile is written as it is then.
 */
import { readWait, type WaitOptions } from '../../wait/operation.ts';
import { Waiting } from '../../wait/waiting.ts';
import { type EntryOptions, readEntryOptions } from './map-options.ts';
import type { MapState } from './map-state.ts';
import type { MapWriters } from './map-writers.ts';

/** Options of an entry, and of how long to wait. */
export interface EntryWaitOptions extends WaitOptions, Pick<EntryOptions, 'ttl'> {}

export class MapPromises<V> {
  readonly #state: MapState<V>;
  readonly #writers: MapWriters<V>;
  readonly #ttl: number;

  /** @param ttl the map's own */
  constructor(state: MapState<V>, writers: MapWriters<V>, ttl: number) {
    this.#state = state;
    this.#writers = writers;
    this.#ttl = ttl;
  }

  /** As `SharedMap.set`. Errors: also the signal's reason. */
  async set(key: string, value: V, options?: EntryWaitOptions): Promise<void> {
    const { call, waiting, ttl } = this.#read('set', options);
    await this.#later(waiting, (patience) => this.#writers.set(call, key, value, ttl, patience));
  }

  /** As `SharedMap.touch`. Errors: also the signal's reason. */
  async touch(key: string, options?: EntryWaitOptions): Promise<boolean> {
    const { call, waiting, ttl } = this.#read('touch', options);
    return this.#later(waiting, (patience) => this.#writers.touch(call, key, ttl, patience));
  }

  /** As `SharedMap.delete`. Errors: also the signal's reason. */
  async delete(key: string, options?: WaitOptions): Promise<boolean> {
    const waiting = new Waiting('SharedMap.promises.delete', options);
    return this.#later(waiting, (patience) => this.#writers.delete(waiting.call, key, patience));
  }

  /** As `SharedMap.update`: `change` is called once. Errors: also the signal's reason. */
  async update(
    key: string,
    change: (value: V | undefined) => V | undefined,
    options?: EntryWaitOptions,
  ): Promise<V | undefined> {
    const { call, waiting, ttl } = this.#read('update', options);
    return this.#later(waiting, (patience) => this.#writers.update(call, key, change, ttl, patience));
  }

  /** As `SharedMap.increment`. Errors: also the signal's reason. */
  async increment(key: string, by = 1, options?: EntryWaitOptions): Promise<number> {
    const { call, waiting, ttl } = this.#read('increment', options);
    return this.#later(waiting, (patience) => this.#writers.increment(call, key, by, ttl, patience));
  }

  /** As `SharedMap.compareAndSet`. Errors: also the signal's reason. */
  async compareAndSet(
    key: string,
    expected: V | undefined,
    value: V | undefined,
    options?: EntryWaitOptions,
  ): Promise<boolean> {
    const { call, waiting, ttl } = this.#read('compareAndSet', options);
    return this.#later(waiting, (patience) => this.#writers.compareAndSet(call, key, expected, value, ttl, patience));
  }

  /** As `SharedMap.clear`: when it fails, the parts that nobody held are empty. Errors: also the signal's reason. */
  async clear(options?: WaitOptions): Promise<void> {
    const waiting = new Waiting('SharedMap.promises.clear', options);
    this.#state.checkIn(waiting.call);
    const parts = this.#state.shards.map((shard) =>
      this.#later(waiting, (patience) => {
        this.#state.checkIn(waiting.call);
        this.#writers.clearPart(waiting.call, shard, patience);
      }),
    );
    for (const { status, reason } of (await Promise.allSettled(parts)) as { status: string; reason?: unknown }[])
      if (status === 'rejected') throw reason;
  }

  #later<R>(waiting: Waiting, act: (patience: number) => R): Promise<R> {
    return this.#state.gate.later(waiting, act);
  }

  #read(method: string, options: EntryWaitOptions | undefined): { call: string; waiting: Waiting; ttl: number } {
    const call = `SharedMap.promises.${method}`;
    const wait = readWait(call, options, ['ttl']);
    const { ttl } = readEntryOptions(call, options === undefined ? {} : { ttl: options.ttl! }, this.#ttl);
    return { call, waiting: new Waiting(call, wait), ttl };
  }
}
