/**
 * A map as the store of a Keyv, and so of what is made of Keyv (cache-manager, got, …), without depending on it: Keyv
 * takes any object with these methods. Keyv turns values into text itself, so the map's codec is `string`.
 *
 *     const map = await service.map('cache', { bytes: 64 << 20, codec: 'string' });
 *     const cache = new Keyv({ store: new KeyvStore(map) });
 *
 * Each Keyv needs a store of its own, since Keyv writes its namespace there; several stores may have one map.
 */
import { argumentTypeError, readList, show } from '../errors.ts';
import { SharedMap } from './map/index.ts';

export class KeyvStore {
  /** Of a Keyv that uses it: prefixes of its keys, which `clear` and `iterator` keep to. */
  namespace: string | undefined;
  /** Keyv iterates only over stores whose dialect it knows; this one behaves as its store for Redis does. */
  readonly opts = { dialect: 'redis', url: 'onesided:' };
  readonly #map: SharedMap<string>;

  /** Errors: `ERR_ARG` (no map of a service, or one of bytes). */
  constructor(map: SharedMap<string>) {
    if (!(map instanceof SharedMap))
      throw argumentTypeError(`KeyvStore: map must be a map of a service, not ${show(map)}`);
    // Keyv would take the errors of its calls for misses, unless told otherwise.
    if (map.codec === 'bytes')
      throw argumentTypeError(
        'KeyvStore: the map must have the codec "string": Keyv gives text, and this map has bytes',
      );
    this.#map = map;
  }

  /** Keyv asks for it. This store has no events: its calls say what fails. */
  on(_event: string, _listener: (...values: never[]) => void): this {
    return this;
  }

  /** Errors of this and the other calls: as of the map's. */
  async get(key: string): Promise<string | undefined> {
    return this.#map.get(key);
  }

  async getMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    return readKeys('getMany', keys).map((key) => this.#map.get(key));
  }

  /** @param ttl milliseconds; absent: the map's */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    await this.#map.promises.set(key, value, ttl === undefined ? undefined : { ttl });
    return true;
  }

  async has(key: string): Promise<boolean> {
    return this.#map.has(key);
  }

  async hasMany(keys: readonly string[]): Promise<boolean[]> {
    return readKeys('hasMany', keys).map((key) => this.#map.has(key));
  }

  async delete(key: string): Promise<boolean> {
    return this.#map.promises.delete(key);
  }

  /** @returns whether one of them was there */
  async deleteMany(keys: readonly string[]): Promise<boolean> {
    const found = await Promise.all(readKeys('deleteMany', keys).map((key) => this.#map.promises.delete(key)));
    return found.includes(true);
  }

  /** Deletes the keys of the namespace, or all if there is none. */
  async clear(): Promise<void> {
    if (this.namespace === undefined) {
      await this.#map.promises.clear();
      return;
    }
    for (const key of this.#map.keys()) if (key.startsWith(`${this.namespace}:`)) await this.#map.promises.delete(key);
  }

  /** Keys and values of a namespace, in no order. */
  async *iterator(namespace = this.namespace): AsyncGenerator<[string, string], void> {
    if (namespace !== undefined && typeof namespace !== 'string')
      throw argumentTypeError(`KeyvStore.iterator: namespace must be a string, not ${show(namespace)}`);
    const prefix = namespace === undefined ? '' : `${namespace}:`;
    for (const [key, value] of this.#map) if (key.startsWith(prefix)) yield [key, value];
  }

  /** Does nothing: the map stays as long as its service, and the member leaves by itself. */
  async disconnect(): Promise<void> {}
}

/** The map refuses what is no key. */
function readKeys(call: string, keys: unknown): string[] {
  return readList(`KeyvStore.${call}`, 'keys', keys) as string[];
}
