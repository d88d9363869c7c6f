/** Arrays that lie about themselves, over memory with canaries on both sides: what they really are is known. */
import assert from 'node:assert/strict';
import type { TypedArray, TypedArrayConstructor } from 'onesided';
import type { Random } from './random.ts';

const CANARY = 0xc9;
/** Bytes of canaries on each side. */
const GUARD = 64;

/** Bytes between canaries. */
export class Guarded {
  readonly #whole: Uint8Array;
  readonly #end: number;

  /** @param make where the memory comes from; it is given its length in bytes */
  constructor(bytes: number, make: (bytes: number) => Uint8Array = (n) => new Uint8Array(n)) {
    this.#end = GUARD + bytes;
    this.#whole = make(bytes + 2 * GUARD);
    this.#whole.subarray(0, GUARD).fill(CANARY);
    this.#whole.subarray(this.#end).fill(CANARY);
  }

  /** The memory as an array of a type, or of a subclass of one. */
  as<T extends TypedArray>(type: TypedArrayConstructor<T>): T {
    const { buffer, byteOffset } = this.#whole;
    return new type(buffer, byteOffset + GUARD, (this.#end - GUARD) / type.BYTES_PER_ELEMENT);
  }

  check(label: string): void {
    // Of memory that is gone, nothing is left to look at.
    if (this.#whole.length === 0) return;
    for (const side of [this.#whole.subarray(0, GUARD), this.#whole.subarray(this.#end)])
      assert.ok(
        side.every((byte) => byte === CANARY),
        `${label}: bytes beside the buffer were written`,
      );
  }
}

const explode = (): never => {
  throw new Error('a getter of the array has run');
};

/** What an array can say of itself. */
const PROPERTIES = [
  'length',
  'byteLength',
  'byteOffset',
  'buffer',
  'BYTES_PER_ELEMENT',
  'constructor',
  'subarray',
  'set',
  'slice',
  'fill',
  Symbol.toStringTag,
  Symbol.iterator,
] as const;
const VALUES = [1 << 20, 2 ** 40, 0, 1, -8, Number.NaN, 1.5, '7', undefined, null, 2n, new ArrayBuffer(1 << 10), Date];

/** Lies about an array that is what it was, and says how. */
function lieAbout(array: TypedArray, random: Random): string {
  const property = random.pick(PROPERTIES);
  const value: unknown = random.pick(VALUES);
  const name = String(property);
  switch (random.below(4)) {
    case 0:
      Object.defineProperty(array, property, { configurable: true, get: explode });
      return `a getter of ${name} that throws`;
    case 1: {
      let calls = 0;
      Object.defineProperty(array, property, { configurable: true, get: () => ++calls << 8 });
      return `a getter of ${name} that counts`;
    }
    default:
      Object.defineProperty(array, property, { configurable: true, value });
      return `${name} ${typeof value === 'object' ? typeof value : String(value)}`;
  }
}

/** A subclass whose getters lie. */
function liarClass<T extends TypedArray>(type: TypedArrayConstructor<T>, random: Random): TypedArrayConstructor<T> {
  const Base = type as TypedArrayConstructor<Uint8Array>;
  const value = random.pick(VALUES);
  const Liar = class extends Base {
    static get [Symbol.species](): unknown {
      return explode();
    }
  };
  for (const name of ['length', 'byteLength', 'byteOffset', 'buffer'] as const)
    if (random.chance(0.5)) Object.defineProperty(Liar.prototype, name, { get: () => value });
  return Liar as unknown as TypedArrayConstructor<T>;
}

/** An array over guarded memory that lies about itself, or does not, and says in words how. */
export function liar<T extends TypedArray>(
  guarded: Guarded,
  type: TypedArrayConstructor<T>,
  random: Random,
): { readonly array: T; readonly lie: string } {
  const way = random.below(8);
  if (way === 0) return { array: guarded.as(type), lie: 'an honest array' };
  if (way === 1) return { array: guarded.as(liarClass(type, random)), lie: 'a subclass' };
  const array = guarded.as(type);
  if (way === 2) {
    const prototype = random.pick([null, Float64Array.prototype, BigInt64Array.prototype, Uint8Array.prototype, {}]);
    Object.setPrototypeOf(array, prototype);
    return { array, lie: 'an array with another prototype' };
  }
  if (way === 3) {
    const { buffer } = array;
    const property = random.pick(['byteLength', 'resizable', 'growable', 'constructor', 'slice']);
    Object.defineProperty(buffer, property, { value: random.pick(VALUES) });
    return { array, lie: `a buffer with ${property} of its own` };
  }
  const lies = Array.from({ length: random.between(1, 3) }, () => lieAbout(array, random));
  return { array, lie: lies.join(', ') };
}

/** Gives the memory of an array away. */
export function transfer(array: ArrayBufferView): void {
  const { buffer } = array;
  if (buffer instanceof ArrayBuffer && buffer.byteLength > 0) structuredClone(buffer, { transfer: [buffer] });
}
