/** What the calls of a map work on: its shards, the key that was read last, the value that was encoded or copied. */
import { argumentRangeError, argumentTypeError, RmaError, show } from '../../errors.ts';
import { CopySpace } from './copy-space.ts';
import { MapKey } from './map-key.ts';
import { ENTRY_BYTES, SECRET, ShardMemory, unitsOf } from './map-layout.ts';
import type { ReadMapOptions } from './map-options.ts';
import { ShardGate } from './shard-gate.ts';
import type { ShardLock } from './shard-lock.ts';
import { type Codec, type EncodedValue, Refused, Undecodable } from './value-codecs.ts';

/** Where a map lies: memory that all members map, at a multiple of 64 bytes. */
export interface MapMemory {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}

/** Of tests: hashes that meet, and where positions begin. */
export interface MapTestOptions {
  readonly hashMask?: number;
  readonly firstPosition?: number;
}

/** In place of the key, once the member has left: each call reads its key first, and finds that out at no cost. */
class LeftKey extends MapKey {
  readonly #refuse: (call: string) => void;

  constructor(refuse: (call: string) => void) {
    super('', 0, 0, 0);
    this.#refuse = refuse;
  }

  override read(call: string): void {
    this.#refuse(call);
  }
}

export class MapState<V> {
  /** The map, for messages. */
  readonly what: string;
  readonly gate: ShardGate;
  readonly codec: Codec<V>;
  readonly mostBytes: number;
  readonly copy = new CopySpace();
  readonly keyCopy = new CopySpace();
  readonly value: EncodedValue = { bytes: new Uint8Array(0), words: undefined, length: 0, kind: 0 };
  shards: readonly ShardMemory[];
  key: MapKey;
  #refuse: ((call: string) => void) | undefined;

  constructor(what: string, memory: MapMemory, lock: ShardLock, options: ReadMapOptions, test: MapTestOptions) {
    const { geometry } = options;
    this.what = what;
    this.gate = new ShardGate(what, lock);
    this.codec = options.codec as Codec<V>;
    this.shards = Array.from(
      { length: geometry.shards },
      (_, i) => new ShardMemory(what, memory.buffer, memory.byteOffset, geometry, i),
    );
    this.mostBytes = 8 * this.shards[0].mostUnits - ENTRY_BYTES;
    const { words } = headerOf(memory);
    this.key = new MapKey(what, words[SECRET], words[SECRET + 1], this.mostBytes, test.hashMask);
  }

  /** The member leaves: all later calls are refused, and the map's memory is let go. */
  leave(refuse: (call: string) => void): void {
    this.#refuse = refuse;
    this.key = new LeftKey(refuse);
    this.shards = [];
  }

  /** For calls without a key. Throws if the member has left. */
  checkIn(call: string): void {
    this.#refuse?.(call);
  }

  shardOfKey(): ShardMemory {
    const { shards } = this;
    return shards[((this.key.hash >>> 16) * shards.length) >>> 16];
  }

  /** Encodes into `value`. Errors: `TypeError`, those of the program's code. */
  encode(call: string, key: string, value: V): void {
    try {
      this.codec.encode(value, this.value, this.mostBytes);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      throw argumentTypeError(`${call}: ${this.valueOf(key)} ${error.message}`, 'ERR_ARG', { cause: error.cause });
    }
  }

  /** Decodes what is in `copy`. Errors: `ERR_DAMAGED`, those of the program's code. */
  decode(call: string, key: string): V {
    try {
      return this.codec.decode(this.copy);
    } catch (error) {
      if (!(error instanceof Undecodable)) throw error;
      const why = 'cannot be decoded: a member has written over its bytes; set the key anew';
      throw new RmaError('ERR_DAMAGED', `${call}: ${this.valueOf(key)} ${why}`, { cause: error.cause });
    }
  }

  /** Units of an entry of the key and the encoded value. Errors: `RangeError`. */
  unitsOfEntry(call: string, key: string): number {
    const { byteLength } = this.key;
    const { length } = this.value;
    const units = unitsOf(byteLength, length);
    if (units > this.shards[0].mostUnits) {
      throw argumentRangeError(
        `${call}: ${this.valueOf(key)} has ${length} bytes and its key ${byteLength}, an entry at most ` +
          `${this.mostBytes}: make the map with a larger \`longest\``,
        'ERR_SIZE',
      );
    }
    return units;
  }

  /** The value of a key, for messages. */
  valueOf(key: string): string {
    return `the value of the key ${show(key)} in ${this.what}`;
  }
}

export function headerOf({ buffer, byteOffset }: MapMemory): { words: Int32Array; numbers: Float64Array } {
  return { words: new Int32Array(buffer, byteOffset, 16), numbers: new Float64Array(buffer, byteOffset, 8) };
}
