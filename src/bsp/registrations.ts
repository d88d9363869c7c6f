/**
 * Variables that other processes can name (BSPlib's `bsp_push_reg`, `bsp_pop_reg`).
 *
 * A process names a variable of another by its own array that was registered in the same call. As in C, where that is
 * an address, an array is known by where its memory begins: another view of the same place names the same variable. Of
 * several registrations of one place, that of this very array is meant, and without one the newest.
 *
 * All processes register and remove in the same order (delivery compares that), so they number the variables alike
 * without talking: each gets the least number that is free. What is registered or removed in a superstep takes effect
 * at its end, removals first.
 */
import { bytesOf, checkBuffer, TYPE_SIZES, type TypedArray, typeCodeOf } from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { bufferOf, byteLengthOf, byteOffsetOf, tagOf } from '../intrinsics.ts';
import { columnOf } from './alike.ts';
import type { Reach, Slot } from './slot.ts';
import type { Variables } from './variables.ts';

/** Bytes of a variable at most: places in it are 31-bit numbers. */
const MOST_BYTES = 2 ** 31 - 1;
/** A process that has no such variable has registered `null`. */
const NO_VARIABLE = -1;

const NO_BYTES = new Uint8Array(0);

/** What was registered in this superstep. */
interface Pushed {
  readonly array: TypedArray | null;
  readonly reach: Reach | undefined;
}

export class VariableRegistrations {
  /** By number; for the code that places what has come. */
  readonly slots: (Slot | undefined)[] = [];
  /** Slots of the same place, in the order of their registration. */
  readonly #places = new Map<ArrayBufferLike, Map<number, Slot[]>>();
  readonly #nulls: Slot[] = [];
  /** Numbers that are free, the least one last. */
  #free: number[] = [];
  #pushed: Pushed[] = [];
  #popped: Slot[] = [];
  readonly #variables: Variables | undefined;
  /** Whether some variables share memory, here; `undefined` if that is not known. */
  #overlap: boolean | undefined = false;
  /** Numbers of each variable that processes tell each other. */
  readonly #told: number;

  /** @param variables registers them for the device, too */
  constructor(variables: Variables | undefined) {
    this.#variables = variables;
    this.#told = variables === undefined ? 1 : 3;
  }

  /** Errors: `ERR_BUFFER`, `ERR_SIZE`, `TypeError`. */
  push(array: TypedArray | null): void {
    if (array !== null) {
      checkBuffer('bsp.pushReg', 'variable', array);
      if (byteLengthOf(array) > MOST_BYTES) {
        throw argumentRangeError(
          `bsp.pushReg: the variable has ${byteLengthOf(array)} bytes, ` +
            `but at most ${MOST_BYTES} can be registered; register parts of it`,
          'ERR_SIZE',
        );
      }
    }
    this.#pushed.push({ array, reach: this.#variables?.take(array) });
  }

  /** Errors: `ERR_RMA_ATTACH`, `TypeError`. */
  pop(array: TypedArray | null): void {
    const line = array === null ? this.#nulls : this.#at('bsp.popReg', array);
    const slot = meant(line, array, ({ removed }) => !removed);
    if (slot === undefined) {
      const isNew = this.#pushed.some((one) => one.array === array);
      throw new RmaError(
        'ERR_RMA_ATTACH',
        isNew
          ? `bsp.popReg: ${show(array)} was registered in this superstep; ` +
              'its registration takes effect with sync(), and can be removed after that'
          : `bsp.popReg: ${show(array)} is not registered${line === undefined || line.length === 0 ? '' : ' any more'}`,
      );
    }
    slot.removed = true;
    this.#popped.push(slot);
  }

  /** The variable that an array names now. Errors: `ERR_RMA_ATTACH`, `TypeError`. */
  find(call: string, array: TypedArray): Slot {
    const line = this.#at(call, array);
    const newest = line?.at(-1);
    if (newest !== undefined) return newest.array === array ? newest : meant(line, array)!;
    const isNew = this.#pushed.some((one) => one.array !== null && bufferOf(one.array) === bufferOf(array));
    throw new RmaError(
      'ERR_RMA_ATTACH',
      `${call}: ${show(array)} is not registered` +
        (isNew
          ? ' yet: its registration takes effect with the next sync()'
          : '; register it with pushReg(), in all processes, in an earlier superstep'),
    );
  }

  /** Nothing was registered or removed in this superstep. */
  get isUnchanged(): boolean {
    return this.#pushed.length === 0 && this.#popped.length === 0;
  }

  /** Variables that were registered in this superstep. */
  get pushed(): number {
    return this.#pushed.length;
  }

  /** Of each of them, in order: bytes (`NO_VARIABLE` for `null`), and how it is reached. Errors: `ERR_BUFFER`. */
  get told(): readonly number[] {
    return this.#pushed.flatMap(({ array, reach }) => {
      if (array !== null) checkRegistered(array);
      const bytes = array === null ? NO_VARIABLE : byteLengthOf(array);
      return reach === undefined ? [bytes] : [bytes, reach.key, reach.address];
    });
  }

  /** The numbers of what was removed in this superstep, in order. */
  get poppedIds(): readonly number[] {
    return this.#popped.map(({ id }) => id);
  }

  /** What was called takes effect. @param all what each process has told */
  apply(all: readonly Float64Array[]): void {
    for (const slot of this.#popped) this.#remove(slot);
    if (this.#popped.length > 0) this.#free.sort((a, b) => b - a);
    const [lengths, keys, addresses] = Array.from({ length: this.#told }, (_, column) => columnOf(all, column));
    this.#pushed.forEach(({ array, reach }, i) => {
      const told = { lengths: lengths[i], keys: keys?.[i] ?? -1, addresses: addresses?.[i] ?? 0, reach };
      const slot = slotOf(this.#free.pop() ?? this.slots.length, array, told);
      this.slots[slot.id] = slot;
      this.#lineOf(slot).push(slot);
    });
    if (this.#pushed.length + this.#popped.length > 0) this.#overlap = undefined;
    this.#pushed = [];
    this.#popped = [];
  }

  /** Whether some variables of this process share memory. */
  get overlap(): boolean {
    this.#overlap ??= this.#haveOverlap();
    return this.#overlap;
  }

  #haveOverlap(): boolean {
    const all = this.slots.filter((slot) => slot !== undefined && slot.bytes > 0) as Slot[];
    const ends = new Map<ArrayBufferLike, number>();
    return all
      .sort((a, b) => a.u8.byteOffset - b.u8.byteOffset)
      .some(({ u8 }) => {
        const before = ends.get(u8.buffer) ?? 0;
        ends.set(u8.buffer, u8.byteOffset + u8.length);
        return u8.byteOffset < before;
      });
  }

  /** Lets all variables go. */
  clear(): void {
    this.slots.length = 0;
    this.#places.clear();
    this.#nulls.length = 0;
    this.#variables?.close();
    this.#pushed = [];
    this.#popped = [];
  }

  #remove(slot: Slot): void {
    const { id, array } = slot;
    this.#variables?.give(slot);
    this.slots[id] = undefined;
    this.#free.push(id);
    const line = this.#lineOf(slot);
    line.splice(line.indexOf(slot), 1);
    if (array === undefined || line.length > 0) return;
    const places = this.#places.get(slot.u8.buffer)!;
    places.delete(slot.u8.byteOffset);
    if (places.size === 0) this.#places.delete(slot.u8.buffer);
  }

  #at(call: string, array: TypedArray): Slot[] | undefined {
    if (tagOf(array) === undefined) {
      throw argumentTypeError(`${call}: the variable must be a typed array, not ${show(array)}`, 'ERR_BUFFER');
    }
    return this.#places.get(bufferOf(array))?.get(byteOffsetOf(array));
  }

  #lineOf({ array, u8 }: Slot): Slot[] {
    if (array === undefined) return this.#nulls;
    let places = this.#places.get(u8.buffer);
    if (places === undefined) this.#places.set(u8.buffer, (places = new Map()));
    let line = places.get(u8.byteOffset);
    if (line === undefined) places.set(u8.byteOffset, (line = []));
    return line;
  }
}

/** Of the registrations of one place, the newest of this very array, else the newest. */
function meant(line: readonly Slot[] | undefined, array: TypedArray | null, is = (_: Slot) => true): Slot | undefined {
  return line?.findLast((slot) => slot.array === (array ?? undefined) && is(slot)) ?? line?.findLast(is);
}

/** Errors: `ERR_BUFFER` if it has lost its memory since it was registered. */
function checkRegistered(array: TypedArray): void {
  checkBuffer('bsp.sync', 'a variable that was registered in this superstep', array);
}

type Told = Pick<Slot, 'lengths' | 'reach' | 'keys' | 'addresses'>;

function slotOf(id: number, array: TypedArray | null, told: Told): Slot {
  if (array === null) {
    return { id, array: undefined, tag: '', width: 1, bytes: 0, u8: NO_BYTES, i32: undefined, ...told, removed: false };
  }
  checkRegistered(array);
  const u8 = bytesOf(array);
  const aligned = u8.byteOffset % 4 === 0;
  return {
    id,
    array,
    tag: tagOf(array)!,
    width: TYPE_SIZES[typeCodeOf(array)],
    bytes: u8.length,
    u8,
    i32: aligned ? new Int32Array(u8.buffer, u8.byteOffset, u8.length >> 2) : undefined,
    ...told,
    removed: false,
  };
}
